"""The rules of a localization run in words, for its report."""

from heatcheck.running.facts import RESIZED
from heatcheck.scoring.presets import Rules

_NOTES: dict[tuple[str, object], str] = {
    ("empty_region", "zero"): (
        "A map that marks nothing on a positive case scores 0: leaving it out would reward a method for failing."
    ),
    ("empty_region", "left_out"): (
        "A map that marks nothing on a positive case is left out, as in the benchmark: this rewards a failing method."
    ),
    ("empty_map", "failure"): (
        "A map with the same value everywhere points nowhere: it is a failure and scores 0 by every measure."
    ),
    ("empty_map", "scored"): (
        "A map with the same value everywhere is scored like any other: its hit is the outline's share of the image."
    ),
    ("ties", "share"): (
        "When several pixels share the highest value, they share the hit; taking the first would favour the top left."
    ),
    ("ties", "first"): (
        "When several pixels share the highest value, the first counts, as in the benchmark: this favours the top left."
    ),
    ("placement", "centres"): (
        "The map of a coarse layer lies where its cells look; plain resizing takes the cells to tile the image."
    ),
    ("placement", "plain"): (
        "The map of a coarse layer is resized as if its cells tiled the image, as in the benchmark: this may move it."
    ),
    ("resampling", "patients"): (
        "Patients, not images, are resampled for the intervals: two images of one patient are not independent."
    ),
    ("resampling", "images"): (
        "Images, not patients, are resampled for the intervals: they are too narrow where patients have several."
    ),
    ("human_common_cases", True): (
        "Differences from the human readers use only the cases that method, readers and truth have in common."
    ),
    ("human_common_cases", False): (
        "Method and readers are each scored on their own cases, as in the benchmark: they also differ in cases."
    ),
}


def rule_notes(rules: Rules) -> list[str]:
    """The rules behind the tables, in a sentence each."""
    return [RESIZED, *(sentence for (name, value), sentence in _NOTES.items() if getattr(rules, name) == value)]
