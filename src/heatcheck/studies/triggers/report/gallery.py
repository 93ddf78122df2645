"""Cases to look at: the poisoned image, and for every method its map, its box and the image recovered by it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heatcheck.report.evidence import Evidence
from heatcheck.report.gallery import Gallery, exhibits_of, in_order, likely, told
from heatcheck.report.numbers import SCORE
from heatcheck.report.pictures import image_uri, map_uri
from heatcheck.studies.triggers.report.facts import triggers_of


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A box in pixels of the image: left, top, width and height."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Trial:
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
    trials: tuple[Trial, ...]
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
    return exhibits_of(evidence, lambda item, folder: _card(item, folder, names), budget)


def _card(item: Mapping[str, Any], folder: Path, names: Mapping[str, str]) -> TriggerCard:
    height, width = (int(side) for side in item["shape"])
    order = list(names)
    said, target = str(item.get("clean_says") or ""), str(item.get("target") or "")
    maps = in_order(item.get("maps", []), "method", order)
    return TriggerCard(
        case=str(item["case"]),
        finding=names.get(item["trigger"], str(item["trigger"])),
        why=str(item.get("why") or ""),
        seed=str(item.get("seed", "")),
        truth=str(item.get("label") or ""),
        clean_says=said,
        target=target,
        probability=likely(item.get("probability")),
        height=height,
        width=width,
        clean=image_uri(folder, item["clean"]),
        poisoned=image_uri(folder, item["poisoned"]),
        planted=_rectangle(item["trigger_box"]),
        trials=tuple(_trial(each, folder, names, can_return=not said or said != target) for each in maps),
        baseline=tuple(
            (names.get(each["method"], str(each["method"])), map_uri(folder, each["file"]))
            for each in in_order(item.get("baseline", []), "method", order)
        ),
        baseline_says=str(item.get("baseline_says") or ""),
    )


def _rectangle(box: Sequence[float]) -> Rectangle:
    left, top, right, bottom = (float(edge) for edge in box)
    return Rectangle(left, top, right - left, bottom - top)


def _trial(facts: Mapping[str, Any], folder: Path, names: Mapping[str, str], *, can_return: bool) -> Trial:
    box = facts.get("box")
    sign, outcome = _outcome(facts.get("recovered"), str(facts.get("says") or ""), found=box is not None)
    if not can_return:  # as in the scores, where recovery is undefined on such an image
        sign, outcome = "?", "nothing to recover: the model gives this answer without the trigger too"
    return Trial(
        label=names.get(facts["method"], str(facts["method"])),
        uri=map_uri(folder, facts["file"]),
        box=_rectangle(box) if box else None,
        sign=sign,
        outcome=outcome,
        overlap=told(facts.get("iou"), SCORE.rounded(2)),
    )


def _outcome(recovered: float | None, says: str, *, found: bool) -> tuple[str, str]:
    """The sign, and what became of the image once the box was put right."""
    answer = f": the model says {says}" if says else ""
    if not found:
        return "✕", "nothing detected, so nothing recovered"
    if recovered is None or math.isnan(recovered):
        return "?", "whether the image was recovered is unknown"
    return ("✓", f"recovered{answer}") if recovered else ("✕", f"not recovered{answer}")
