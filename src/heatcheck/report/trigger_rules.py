"""The rules that make a box out of a map, in words, and what the methods score under the one and the other."""

from collections.abc import Mapping, Sequence
from typing import Any

from heatcheck.report.evidence import Evidence, facts_of
from heatcheck.report.matrix import Matrix
from heatcheck.report.numbers import SHARE, number
from heatcheck.report.trigger_tables import EVERY, SHORT, Place, detection_table

METRICS = ("trigger_iou", "recovered", "box_area")
_SHORT = {"gradcam15": "one rule for all", "thresholded": "own threshold"}
_OWN = (
    "the map is stretched to 0\u20131, and the box holds every pixel above a threshold that each method has of its own"
)


def main_preset(evidence: Evidence) -> str:
    """The name of the rule behind the verdict."""
    return str(_detection(evidence).get("preset") or "")


def rule_in_words(evidence: Evidence, preset: str) -> str:
    """How the rule makes a box; the preset's name where it is not known here."""
    facts = _detection(evidence)
    if preset == "thresholded":
        return _OWN
    if preset != "gradcam15" or "sigma" not in facts or "threshold" not in facts:
        return preset
    share = number(float(facts["threshold"]), SHARE.rounded(0))
    return (
        f"the map is smoothed (Gaussian, σ {float(facts['sigma']):g} pixels), what lies above {share} of its maximum "
        "is kept, and the box holds the largest connected part of that"
    )


def both_presets(evidence: Evidence) -> Matrix | None:
    """Overlap, recovery and box area over all triggers under both rules; None where only one was tried."""
    main, others = main_preset(evidence), _other_presets(evidence)
    if not others:
        return None
    rules = [(_named(main), evidence), *((_named(other), evidence.under(preset=other)) for other in others)]
    places = [
        Place(seen, metric, EVERY, SHORT[metric][0].upper() + SHORT[metric][1:], name)
        for metric in METRICS
        if metric in evidence.measures
        for name, seen in rules
    ]
    return detection_table("Two ways to make a box, over all triggers", places)


def presets_in_words(evidence: Evidence) -> list[tuple[str, str]]:
    """The rules that were tried, each with what it does."""
    names: Sequence[str] = (main_preset(evidence), *_other_presets(evidence))
    return [(_named(name), rule_in_words(evidence, name)) for name in names if name]


def _named(preset: str) -> str:
    return _SHORT.get(preset, preset)


def _other_presets(evidence: Evidence) -> list[str]:
    conditions = [facts_of(under) for _, under in evidence.slices]
    return sorted({str(facts["preset"]) for facts in conditions if set(facts) == {"preset"}})


def _detection(evidence: Evidence) -> Mapping[str, Any]:
    return evidence.run.manifest.get("detection") or {}
