"""Cases to look at: each modality's image and outline, and each method's map over it; volumes slice by slice."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heatcheck.report.blocks.gallery import (
    BROKEN,
    Gallery,
    by_name,
    entries_of,
    gallery_of,
    likely,
    number_or_dash,
    orientation,
)
from heatcheck.report.blocks.pictures import Contour, SliceStrip, hottest, simplified
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, SHARE, number
from heatcheck.studies.modality.report.facts import manifest, phi, primary_game
from heatcheck.studies.modality.report.reliance import reliance_of
from heatcheck.studies.modality.report.sections.comparison import sorted_by_msfi
from heatcheck.studies.modality.vocabulary import PHI_LESION, SHARED_MAP, ModalityEntry, ModalityMapsEntry

MOST = 7_500_000  # bytes of pictures, so that the page stays below 10 MB
WANTED = 4  # cards that should fit, before pictures become coarser
AT_ONCE = 12  # maps of a case that are shown together; of more, those of one modality at a time
THUMBNAIL = 48  # pixels
AS_STORED = "left and right as in the file"
DRAWN = "drawn: no side is the patient\u2019s left or right"
SIDES = {"patient's right on the left": ("R", "L"), "front on the left": ("A", "P")}
_SOME = 4  # one in this many methods is enough to estimate the size of the pictures
_TOLERANCE = 0.15  # pixels that a simplified outline may stray


@dataclass(frozen=True, slots=True)
class PictureDetail:
    """How finely pictures are kept: sides of images and maps in pixels, grey levels of maps, and slices at most."""

    image: int
    map: int
    levels: int
    slices: int


SINGLE = (PictureDetail(320, 160, 64, 1), PictureDetail(256, 112, 32, 1))
STACK = (
    PictureDetail(192, 112, 64, 48),
    PictureDetail(160, 80, 32, 32),
    PictureDetail(128, 64, 16, 24),
    PictureDetail(112, 48, 16, 12),
)


@dataclass(frozen=True, slots=True)
class ModalityView:
    """One modality of the case: its strip of slices, and the lesion's outline in every slice of the strip."""

    modality: str
    image: str
    outline: str  # path data
    importance: str  # of its lesion for the network that saw the case


@dataclass(frozen=True, slots=True)
class MethodMaps:
    """One method's maps, one for each modality or one for all."""

    label: str
    maps: Mapping[str, str]
    msfi: str
    correlation: str
    share: str

    @property
    def is_shared(self) -> bool:
        """Whether all modalities have the same map."""
        return SHARED_MAP in self.maps


@dataclass(frozen=True, slots=True)
class ModalityCard:
    """One case as the page shows it."""

    anchor: str
    case: str
    finding: str  # the true class
    said: str
    probability: str
    fold: str
    height: int
    width: int
    numbers: tuple[int, ...]  # of the slices, counted from 1
    start: int  # index of the slice that is shown first
    orientation: str  # of the picture
    sides: tuple[str, str] | None  # the letters at its left and right edge, where the file says which side is which
    views: tuple[ModalityView, ...]
    trials: tuple[MethodMaps, ...]
    thumbnail: str  # of the modality that is shown first
    first_view: int  # the index of the modality whose maps are shown first

    @property
    def group(self) -> str:
        """Whether the network was right."""
        return "correct" if self.said == self.finding else "misclassified"

    @property
    def across(self) -> int:
        """The width of a strip of all slices."""
        return self.width * len(self.numbers)

    @property
    def one_view(self) -> bool:
        """Whether maps are shown of one modality at a time, because those of all would be too many."""
        return len(self.views) > 1 and len(self.trials) * len(self.views) > AT_ONCE

    @property
    def weight(self) -> int:
        """The approximate number of bytes that the card adds to the page."""
        return self.image_weight + self.map_weight

    @property
    def image_weight(self) -> int:
        """The part that does not depend on the number of methods."""
        return 1500 + len(self.thumbnail) + sum(len(view.image) + len(view.outline) + 700 for view in self.views)

    @property
    def map_weight(self) -> int:
        """The part that the methods add."""
        maps = sum(len(uri) + 200 for trial in self.trials for uri in trial.maps.values())
        return maps + len(self.trials) * (600 + 650 * len(self.views))


def modality_gallery(evidence: Evidence, budget: int) -> Gallery[ModalityCard]:
    """As many cards as fit into `budget` bytes, in the study's order, in the finest detail in which some fit."""
    room, entries = min(budget, MOST), entries_of(evidence, ModalityEntry)
    *finer, coarsest = STACK if any(entry.slices > 1 for entry in entries) else SINGLE
    wanted = min(len(entries), WANTED)
    detail = next((each for each in finer if _about(evidence, entries, each) * wanted <= room), coarsest)
    return gallery_of(evidence, ModalityEntry, lambda entry, folder: _card(evidence, entry, folder, detail), room)


def _about(evidence: Evidence, entries: Iterable[ModalityEntry], detail: PictureDetail) -> int:
    """The weight of the first card that can be made, from some of its methods; 0 where none can."""
    for entry in entries:
        some = replace(entry, maps=entry.maps[::_SOME])
        try:
            card = _card(evidence, some, evidence.run.path / "gallery", detail)
        except BROKEN:
            continue
        methods = len(entry.maps) / max(1, len(card.trials))
        return int(card.image_weight + card.map_weight * methods)
    return 0


def _card(evidence: Evidence, entry: ModalityEntry, folder: Path, detail: PictureDetail) -> ModalityCard:
    height, width = entry.shape
    kept = kept_slices(entry.slices, entry.start, detail.slices)
    images = SliceStrip(entry.slices, kept, detail.image)
    maps = SliceStrip(entry.slices, kept, detail.map, detail.levels)
    order = [method.name for method in (*sorted_by_msfi(evidence), *evidence.floors)]
    labels = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    names = manifest(evidence).modalities or tuple(entry.images)
    shown = shown_modality(evidence, names)
    thumbnail = SliceStrip(entry.slices, (entry.start,), THUMBNAIL)
    return ModalityCard(
        anchor=anchor_of(entry),
        case=entry.case,
        finding=entry.finding,
        said=entry.said,
        probability=likely(entry.probability),
        fold=str(entry.fold or "") if manifest(evidence).folds > 1 else "",
        height=height,
        width=width,
        numbers=tuple(entry.first + entry.step * index + 1 for index in kept),
        start=kept.index(entry.start),
        orientation=sides_of(evidence, entry),
        sides=SIDES.get(entry.sides),
        views=tuple(
            ModalityView(name, images.image_uri(folder, entry.images[name]),
                         outline(entry.outlines.get(name, []), kept, width), _importance(evidence, entry, name))
            for name in names
        ),
        trials=tuple(
            _method_maps(each, folder, maps, labels) for each in by_name(entry.maps, lambda each: each.method, order)
        ),
        thumbnail=thumbnail.image_uri(folder, entry.images[shown]),
        first_view=names.index(shown),
    )  # fmt: skip


def sides_of(evidence: Evidence, entry: ModalityEntry) -> str:
    """Plane and sides in words; where the file does not state them, that they are the file's own."""
    unknown = DRAWN if manifest(evidence).source.drawn else AS_STORED
    return orientation(entry.plane, entry.sides) or unknown


def anchor_of(entry: ModalityEntry) -> str:
    """The address of a case's card on the page."""
    return f"case-{entry.id}"


def shown_modality(evidence: Evidence, names: Sequence[str]) -> str:
    """The modality whose maps are shown first: the most important one to the networks, where that is known."""
    reliance = reliance_of(evidence)
    return reliance.top if reliance and reliance.top in names else names[0]


def kept_slices(slices: int, start: int, most: int) -> tuple[int, ...]:
    """The indices of at most `most` slices at equal distances, among them the one that is shown first."""
    if not 0 <= start < slices:
        raise ValueError(f"the slice to begin with must be one of {slices}, got {start}; draw the gallery again")
    step = max(1, math.ceil(slices / most))
    return tuple(range(start % step, slices, step))


def outline(slices: Sequence[Sequence[Contour]], kept: Sequence[int], width: int) -> str:
    """The contours of every kept slice as one path along the strip; (0, 0) is the centre of the first pixel."""
    parts = []
    for position, index in enumerate(kept):
        for contour in slices[index] if index < len(slices) else ():
            points = simplified([(point[0] + 0.5, point[1] + 0.5) for point in contour], _TOLERANCE)
            path = "L".join(f"{round(x + position * width, 1):g} {round(y, 1):g}" for x, y in points)
            parts.append(f"M{path}Z" if points else "")
    return "".join(parts)


def _importance(evidence: Evidence, entry: ModalityEntry, modality: str) -> str:
    """The Shapley value of the lesion in this modality, for the network of the case's fold."""
    row = phi(evidence, primary_game(evidence, PHI_LESION).of_fold(entry.fold or 1), modality)
    return "" if row is None or math.isnan(row.value) else number(row.value, SCORE.rounded(2))


def _method_maps(entry: ModalityMapsEntry, folder: Path, strip: SliceStrip, labels: Mapping[str, str]) -> MethodMaps:
    full = hottest(folder, tuple(entry.files.values()))
    return MethodMaps(
        label=labels.get(entry.method, entry.method),
        maps={name: strip.map_uri(folder, file, full) for name, file in entry.files.items()},
        msfi=number_or_dash(entry.msfi, SCORE.rounded(2)),
        correlation=number_or_dash(entry.mi_correlation, SCORE.rounded(2)),
        share=number_or_dash(entry.lesion_share, SHARE.rounded(0)),
    )
