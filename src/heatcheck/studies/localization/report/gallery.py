"""Gallery cards: a case with its outlines and one overlay per method, until the page's share of bytes is used up."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.gallery import fitting, ramp
from heatcheck.report.numbers import SHARE, number
from heatcheck.report.pictures import Frame, frame_for, image_uri, map_uri, path_data

MANY = 8  # methods that one choice can show at once


@dataclass(frozen=True, slots=True)
class Overlay:
    """One method's map on one case."""

    label: str
    uri: str
    region: str  # path data
    peak: tuple[float, float] | None
    sign: str
    word: str
    sentence: str
    overlap: str


@dataclass(frozen=True, slots=True)
class Card:
    """One case as the page shows it."""

    case: str
    finding: str
    why: str
    whose: str  # the method of which the reason speaks
    probability: str
    frame: Frame
    image: str
    truth: str  # path data
    readers: str  # path data
    reader_points: tuple[tuple[float, float], ...]
    overlays: tuple[Overlay, ...]
    rectangle: str = ""  # path data
    lies: str = ""  # how the picture lies in the patient and which slice it is, where that is known

    @property
    def weight(self) -> int:
        """About how many bytes the card adds to the page."""
        paths = len(self.truth) + len(self.readers) + len(self.rectangle) + sum(len(o.region) for o in self.overlays)
        return len(self.image) + sum(len(o.uri) + 1200 for o in self.overlays) + paths + 2500


@dataclass(frozen=True, slots=True)
class Gallery:
    """The cards that fit, and what was left out in plain sentences."""

    cards: tuple[Card, ...]
    left_out: tuple[str, ...] = ()

    @property
    def ramp(self) -> str:
        """The colours of the maps from cold to hot."""
        return ramp()

    @property
    def has_rectangles(self) -> bool:
        """Whether a card shows a fitted rectangle."""
        return any(card.rectangle for card in self.cards)

    @property
    def has_slices(self) -> bool:
        """Whether a card shows a slice of a volume."""
        return any("slice" in card.lies for card in self.cards)

    @property
    def findings(self) -> list[str]:
        """The findings that have a card."""
        return sorted({card.finding for card in self.cards})

    @property
    def reasons(self) -> list[str]:
        """Why cases were chosen."""
        return sorted({card.why for card in self.cards if card.why})

    @property
    def methods(self) -> list[str]:
        """The methods that have an overlay, in the order of the first card that shows them."""
        return list({overlay.label: None for card in self.cards for overlay in card.overlays})


def gallery_of(evidence: Evidence, budget: int) -> Gallery:
    """As many cards as fit into `budget` bytes, in the order the study chose them."""
    labels = {e.name: e.label for e in _in_order(evidence)}
    folder = evidence.run.path / "gallery"
    return Gallery(*fitting(evidence.run.gallery.get("items", []), lambda item: _card(item, folder, labels), budget))


def _in_order(evidence: Evidence) -> list[Entrant]:
    """Methods before floors; where they are too many to see at once, the highest overlap comes first."""
    if len(evidence.methods) <= MANY:
        return [*evidence.methods, *evidence.floors]

    def place(entrant: Entrant) -> float:
        value = evidence.value("mean", "iou", ALL_FINDINGS, entrant.name)
        return math.inf if math.isnan(value) else -value

    return [*sorted(evidence.methods, key=place), *evidence.floors]


def _best_first(maps: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Mapping[str, Any]]:
    return sorted(maps, key=lambda each: names.index(each["method"]) if each["method"] in names else len(names))


def _card(item: Mapping[str, Any], folder: Path, labels: Mapping[str, str]) -> Card:
    frame = frame_for(item["shape"])
    readers = item.get("readers", [])
    chance = item.get("probability")
    chance = math.nan if chance is None else float(chance)
    method = str(item.get("method") or "")
    shown = sorted(_best_first(item.get("maps", []), list(labels)), key=lambda each: each["method"] != method)
    return Card(
        case=str(item["case"]),
        finding=str(item["finding"]),
        why=str(item.get("why") or ""),
        whose=labels.get(method, method),
        probability="" if math.isnan(chance) else number(chance, SHARE.rounded(0)),
        frame=frame,
        image=image_uri(folder, item["image"]),
        truth=path_data(item.get("truth", []), frame),
        readers="".join(path_data(reader.get("contours", []), frame) for reader in readers),
        reader_points=tuple(frame.place(point) for reader in readers for point in reader.get("points", [])),
        overlays=tuple(_overlay(each, folder, frame, labels) for each in shown),
        rectangle=path_data([item["rectangle"]], frame) if item.get("rectangle") else "",
        lies=_lies(item),
    )


def _lies(item: Mapping[str, Any]) -> str:
    """The plane, the slice and which side of the patient is where, as far as the study knows them."""
    plane, sides = (str(item.get(key) or "").replace("'", "\u2019") for key in ("plane", "sides"))
    if item.get("slices"):
        along = "" if plane else " along the first axis of the file"
        plane = f"{plane} slice {item['slice']} of {item['slices']}{along}".strip()
    return ", ".join(filter(None, (plane, sides)))


def _overlay(facts: Mapping[str, Any], folder: Path, frame: Frame, labels: Mapping[str, str]) -> Overlay:
    sign, word, sentence = _outcome(facts.get("hit"), facts.get("peak_slice"))
    overlap = facts.get("iou")
    return Overlay(
        label=labels.get(facts["method"], str(facts["method"])),
        uri=map_uri(folder, facts["file"]),
        region=path_data(facts.get("region", []), frame),
        peak=_peak(facts.get("peak"), frame),
        sign=sign,
        word=word,
        sentence=sentence,
        overlap=number(math.nan if overlap is None else float(overlap)),
    )


def _peak(point: Sequence[float] | None, frame: Frame) -> tuple[float, float] | None:
    return frame.place(point) if point else None


def _outcome(hit: float | None, elsewhere: int | None = None) -> tuple[str, str, str]:
    """The sign, the word and the sentence for a hit between 0 and 1; `elsewhere` is the slice of a peak not shown."""
    if hit is None or math.isnan(hit):
        return "?", "Undefined", "whether the hottest point lies inside the outline is undefined"
    there = f", in slice {elsewhere}" if elsewhere else ""
    if hit == 1:
        return "✓", "Hit", f"the hottest point lies inside the outline{there}"
    if hit == 0:
        return "✕", "Miss", f"the hottest point lies outside the outline{there}"
    share = number(float(hit), SHARE.rounded(0))
    first = f", the first of them in slice {elsewhere}" if elsewhere else ""
    return "◐", "Shared", f"several points are equally hot, and {share} of them lie inside the outline{first}"
