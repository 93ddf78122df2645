"""Gallery cards: a case with its outlines and one overlay per method, until the page's share of bytes is used up."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heatcheck.report.blocks.gallery import Gallery, by_name, gallery_of, likely, number_or_dash, orientation
from heatcheck.report.blocks.pictures import Frame, frame_for, image_uri, map_uri, path_data
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, SHARE, number
from heatcheck.studies.localization.report.facts import best_first
from heatcheck.studies.localization.vocabulary import LocalizationEntry, MethodMapEntry

MANY = 8  # methods that are listed at once


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
class LocalizationCard:
    """One case as the page shows it."""

    case: str
    finding: str
    why: str
    whose: str  # the method whose map is the reason
    probability: str
    frame: Frame
    image: str
    truth: str  # path data
    readers: str  # path data
    reader_points: tuple[tuple[float, float], ...]
    overlays: tuple[Overlay, ...]
    rectangle: str = ""  # path data
    lies: str = ""  # plane, slice and sides of the patient, where they are known
    in_volume: bool = False

    @property
    def group(self) -> str:
        """Why it was chosen."""
        return self.why

    @property
    def weight(self) -> int:
        """About how many bytes the card adds to the page."""
        paths = len(self.truth) + len(self.readers) + len(self.rectangle) + sum(len(o.region) for o in self.overlays)
        return len(self.image) + sum(len(o.uri) + 1200 for o in self.overlays) + paths + 2500


def localization_gallery(evidence: Evidence, budget: int) -> Gallery[LocalizationCard]:
    """As many cards as fit into `budget` bytes, in the order the study chose them."""
    labels = {e.name: e.label for e in _shown_order(evidence)}
    return gallery_of(evidence, LocalizationEntry, lambda entry, folder: _card(entry, folder, labels), budget)


def shown(gallery: Gallery[LocalizationCard]) -> Mapping[str, object]:
    """What the section of cases shows; the methods are in the order of the first card that shows them."""
    return {
        "gallery": gallery,
        "findings": sorted(gallery.findings),
        "reasons": sorted(gallery.groups),
        "methods": list({overlay.label: None for card in gallery.cards for overlay in card.overlays}),
        "has_rectangles": any(card.rectangle for card in gallery.cards),
        "has_slices": any(card.in_volume for card in gallery.cards),
    }


def _shown_order(evidence: Evidence) -> list[Entrant]:
    """Methods before floors; where they are many, the highest overlap comes first."""
    methods = evidence.methods if len(evidence.methods) <= MANY else best_first(evidence)
    return [*methods, *evidence.floors]


def _card(entry: LocalizationEntry, folder: Path, labels: Mapping[str, str]) -> LocalizationCard:
    frame = frame_for(entry.shape)
    maps = by_name(entry.maps, lambda each: each.method, list(labels))
    return LocalizationCard(
        case=entry.case,
        finding=entry.finding,
        why=entry.why,
        whose=labels.get(entry.method, entry.method),
        probability=likely(entry.probability),
        frame=frame,
        image=image_uri(folder, entry.image),
        truth=path_data(entry.truth, frame),
        readers="".join(path_data(reader.contours, frame) for reader in entry.readers),
        reader_points=tuple(frame.place(point) for reader in entry.readers for point in reader.points),
        overlays=tuple(
            _overlay(each, folder, frame, labels) for each in sorted(maps, key=lambda each: each.method != entry.method)
        ),
        rectangle=path_data([entry.rectangle], frame) if entry.rectangle else "",
        lies=_lies(entry),
        in_volume=bool(entry.slices),
    )


def _lies(entry: LocalizationEntry) -> str:
    """Plane, slice and sides of the patient, as far as they are known."""
    plane = entry.plane or ""
    if entry.slices:
        along = "" if plane else " along the first axis of the file"
        plane = f"{plane} slice {entry.slice} of {entry.slices}{along}".strip()
    return orientation(plane, entry.sides or "")


def _overlay(entry: MethodMapEntry, folder: Path, frame: Frame, labels: Mapping[str, str]) -> Overlay:
    sign, word, sentence = _outcome(entry.hit, entry.peak_slice)
    if entry.hit == 0 and not entry.peak and not entry.peak_slice:
        sign, word, sentence = "✕", "Miss", "the map is empty, so it has no hottest point"
    return Overlay(
        label=labels.get(entry.method, entry.method),
        uri=map_uri(folder, entry.file),
        region=path_data(entry.region, frame),
        peak=frame.place(entry.peak) if entry.peak else None,
        sign=sign,
        word=word,
        sentence=sentence,
        overlap=number_or_dash(entry.iou, SCORE),
    )


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
