"""Cases to look at: the poisoned image, and for every method its map, its box and the image recovered by it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heatcheck.report.blocks.gallery import Gallery, by_name, gallery_of, likely, number_or_dash
from heatcheck.report.blocks.pictures import image_uri, map_uri
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE
from heatcheck.studies.triggers.report.facts import triggers_of
from heatcheck.studies.triggers.vocabulary import Corners, TriggerEntry, TriggerMapEntry


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A box in pixels of the image: left, top, width and height."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class MethodOutcome:
    """One method on one poisoned image."""

    label: str
    uri: str  # of the map
    box: Rectangle | None
    sign: str
    outcome: str
    overlap: str


@dataclass(frozen=True, slots=True)
class TriggerCard:
    """One poisoned image as the page shows it."""

    case: str
    finding: str  # the trigger's label
    why: str  # it was chosen
    seed: str
    truth: str  # class
    clean_says: str  # what the poisoned model answers without the trigger
    target: str
    probability: str
    height: int
    width: int
    clean: str
    poisoned: str
    planted: Rectangle
    trials: tuple[MethodOutcome, ...]
    baseline: tuple[tuple[str, str], ...]  # label and map of the clean image
    baseline_says: str

    @property
    def group(self) -> str:
        """Why it was chosen."""
        return self.why

    @property
    def weight(self) -> int:
        """About how many bytes the card adds to the page."""
        maps = sum(len(trial.uri) + 2400 for trial in self.trials) + sum(len(uri) + 500 for _, uri in self.baseline)
        return len(self.clean) + len(self.poisoned) + maps + 2500


def trigger_gallery(evidence: Evidence, budget: int) -> Gallery[TriggerCard]:
    """As many cards as fit into `budget` bytes, in the order the study chose them."""
    names = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    names |= {trigger.name: trigger.label for trigger in triggers_of(evidence)}
    return gallery_of(evidence, TriggerEntry, lambda entry, folder: _card(entry, folder, names), budget)


def _card(entry: TriggerEntry, folder: Path, names: Mapping[str, str]) -> TriggerCard:
    height, width = entry.shape
    order = list(names)
    can_return = not entry.clean_says or entry.clean_says != entry.target
    return TriggerCard(
        case=entry.case,
        finding=names.get(entry.trigger, entry.trigger),
        why=entry.why,
        seed="" if entry.seed is None else str(entry.seed),
        truth=entry.label,
        clean_says=entry.clean_says,
        target=entry.target,
        probability=likely(entry.probability),
        height=height,
        width=width,
        clean=image_uri(folder, entry.clean),
        poisoned=image_uri(folder, entry.poisoned),
        planted=_rectangle(entry.trigger_box),
        trials=tuple(
            _method_outcome(each, folder, names, can_return=can_return)
            for each in by_name(entry.maps, lambda each: each.method, order)
        ),
        baseline=tuple(
            (names.get(each.method, each.method), map_uri(folder, each.file))
            for each in by_name(entry.baseline, lambda each: each.method, order)
        ),
        baseline_says=entry.baseline_says,
    )


def _rectangle(box: Corners) -> Rectangle:
    left, top, right, bottom = map(float, box)
    return Rectangle(left, top, right - left, bottom - top)


def _method_outcome(
    entry: TriggerMapEntry, folder: Path, names: Mapping[str, str], *, can_return: bool
) -> MethodOutcome:
    sign, outcome = _outcome(entry.recovered, entry.says, detected=entry.box is not None)
    if not can_return:  # as in the scores, where recovery is undefined on such an image
        sign, outcome = "?", "nothing to recover: the model gives this answer without the trigger too"
    return MethodOutcome(
        label=names.get(entry.method, entry.method),
        uri=map_uri(folder, entry.file),
        box=_rectangle(entry.box) if entry.box else None,
        sign=sign,
        outcome=outcome,
        overlap=number_or_dash(entry.iou, SCORE.rounded(2)),
    )


def _outcome(recovered: float | None, says: str, *, detected: bool) -> tuple[str, str]:
    """The sign, and the outcome once clean pixels are pasted into the box."""
    answer = f": the model says {says}" if says else ""
    if not detected:
        return "✕", "nothing detected, so nothing recovered"
    if recovered is None or math.isnan(recovered):
        return "?", "whether the image was recovered is unknown"
    return ("✓", f"recovered{answer}") if recovered else ("✕", f"not recovered{answer}")
