"""Cases to look at: every modality's image and outline, and each method's map over them; volumes slice by slice."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heatcheck.report.evidence import Evidence
from heatcheck.report.gallery import Gallery, exhibits_of, in_order, items_of, likely, told
from heatcheck.report.numbers import SCORE, SHARE, number
from heatcheck.report.pictures import Contour, PictureError, Strip, simplified
from heatcheck.studies.modality.report.facts import folds_of, game, modalities_of, phi
from heatcheck.studies.modality.report.sections.comparison import sorted_by_msfi

ALL = "all"  # the key of a map that is the same for all modalities
MOST = 7_500_000  # bytes of pictures, so that the page stays below 10 MB
WANTED = 4  # cards that should fit, before pictures become coarser
_SOME = 4  # of so many methods, one is enough to see how much pictures weigh
_TOLERANCE = 0.15  # pixels that a simplified outline may stray


@dataclass(frozen=True, slots=True)
class Detail:
    """How finely pictures are kept: sides of images and maps in pixels, grey levels of maps, and slices at most."""

    image: int
    map: int
    levels: int
    slices: int


SINGLE = (Detail(320, 160, 64, 1), Detail(256, 112, 32, 1))
STACK = (Detail(192, 112, 64, 48), Detail(160, 80, 32, 32), Detail(128, 64, 16, 24), Detail(112, 48, 16, 12))


@dataclass(frozen=True, slots=True)
class View:
    """One modality of the case: its strip of slices, and the lesion's outline in every slice of the strip."""

    modality: str
    image: str
    outline: str  # path data
    importance: str  # of its lesion for the network that saw the case


@dataclass(frozen=True, slots=True)
class Trial:
    """One method's maps, one for each modality or one for all."""

    label: str
    maps: Mapping[str, str]
    msfi: str
    correlation: str
    share: str

    @property
    def is_shared(self) -> bool:
        """Whether all modalities have the same map."""
        return ALL in self.maps


@dataclass(frozen=True, slots=True)
class ModalityCard:
    """One case as the page shows it."""

    case: str
    finding: str  # the true class
    said: str
    probability: str
    fold: str
    height: int
    width: int
    numbers: tuple[int, ...]  # of the slices, counted from 1
    start: int  # place of the slice that is shown first
    lies: str  # how the picture lies, where the file says so
    views: tuple[View, ...]
    trials: tuple[Trial, ...]

    @property
    def group(self) -> str:
        """Whether the network told it right."""
        return "told right" if self.said == self.finding else "told wrong"

    @property
    def across(self) -> int:
        """The width of a whole strip."""
        return self.width * len(self.numbers)

    @property
    def weight(self) -> int:
        """About how many bytes the card adds to the page."""
        return self.image_weight + self.map_weight

    @property
    def image_weight(self) -> int:
        """What of it does not depend on the number of methods."""
        return 1500 + sum(len(view.image) + len(view.outline) + 700 for view in self.views)

    @property
    def map_weight(self) -> int:
        """What of it the methods add."""
        maps = sum(len(uri) + 200 for trial in self.trials for uri in trial.maps.values())
        return maps + len(self.trials) * (600 + 450 * len(self.views))


def modality_gallery(evidence: Evidence, budget: int) -> Gallery[ModalityCard]:
    """As many cards as fit into `budget` bytes, in the study's order, as finely as lets some of them fit."""
    room, items = min(budget, MOST), items_of(evidence)
    deep = any(int(item.get("slices") or 1) > 1 for item in items)
    *finer, coarsest = STACK if deep else SINGLE
    wanted = min(len(items), WANTED)
    detail = next((each for each in finer if _about(evidence, each) * wanted <= room), coarsest)
    return exhibits_of(evidence, lambda item, folder: _card(evidence, item, folder, detail), room)


def _about(evidence: Evidence, detail: Detail) -> int:
    """The weight of the first card that can be made, from some of its methods; 0 where none can."""
    for item in items_of(evidence):
        try:
            some = {**item, "maps": item.get("maps", [])[::_SOME]}
            card = _card(evidence, some, evidence.run.path / "gallery", detail)
        except (PictureError, KeyError, TypeError, ValueError):
            continue
        methods = len(item.get("maps", [])) / max(1, len(card.trials))
        return int(card.image_weight + card.map_weight * methods)
    return 0


def _card(evidence: Evidence, item: Mapping[str, Any], folder: Path, detail: Detail) -> ModalityCard:
    height, width = (int(side) for side in item["shape"])
    slices, start = int(item.get("slices") or 1), int(item.get("start") or 0)
    kept = kept_slices(slices, start, detail.slices)
    first, step = int(item.get("first") or 0), int(item.get("step") or 1)
    images = Strip(slices, kept, detail.image)
    maps = Strip(slices, kept, detail.map, detail.levels)
    modalities = modalities_of(evidence) or tuple(item["images"])
    order = [method.name for method in (*sorted_by_msfi(evidence), *evidence.floors)]
    labels = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    return ModalityCard(
        case=str(item["case"]),
        finding=str(item["finding"]),
        said=str(item.get("said") or ""),
        probability=likely(item.get("probability")),
        fold=str(item.get("fold") or "") if len(folds_of(evidence)) > 1 else "",
        height=height,
        width=width,
        numbers=tuple(first + step * place + 1 for place in kept),
        start=kept.index(start),
        lies=", ".join(str(item[part]) for part in ("plane", "sides") if item.get(part)).replace("'", "\u2019"),
        views=tuple(
            View(name, images.image_uri(folder, item["images"][name]),
                 outline(item.get("outlines", {}).get(name, []), kept, width), _importance(evidence, item, name))
            for name in modalities
        ),
        trials=tuple(_trial(each, folder, maps, labels) for each in in_order(item.get("maps", []), "method", order)),
    )  # fmt: skip


def kept_slices(slices: int, start: int, most: int) -> tuple[int, ...]:
    """At most so many slices at equal distances, the first one that is shown among them."""
    if not 0 <= start < slices:
        raise ValueError("the slice to begin with is none of the strip")
    step = max(1, math.ceil(slices / most))
    return tuple(range(start % step, slices, step))


def outline(slices: Sequence[Sequence[Contour]], kept: Sequence[int], width: int) -> str:
    """The contours of every kept slice as one path along the strip; (0, 0) is the centre of the first pixel."""
    parts = []
    for place, number_ in enumerate(kept):
        for contour in slices[number_] if number_ < len(slices) else ():
            points = simplified([(point[0] + 0.5, point[1] + 0.5) for point in contour], _TOLERANCE)
            told_points = "L".join(f"{round(x + place * width, 1):g} {round(y, 1):g}" for x, y in points)
            parts.append(f"M{told_points}Z" if points else "")
    return "".join(parts)


def _importance(evidence: Evidence, item: Mapping[str, Any], modality: str) -> str:
    """The Shapley value of the lesion in this modality, for the network of the case's fold."""
    played = game(evidence, "phi_lesion").of_fold(int(item.get("fold") or 1))
    row = phi(evidence, played, modality)
    return "" if row is None or math.isnan(row.value) else number(row.value, SCORE.rounded(2))


def _trial(facts: Mapping[str, Any], folder: Path, strip: Strip, labels: Mapping[str, str]) -> Trial:
    return Trial(
        label=labels.get(facts["method"], str(facts["method"])),
        maps={str(name): strip.map_uri(folder, file) for name, file in facts["files"].items()},
        msfi=told(facts.get("msfi"), SCORE.rounded(2)),
        correlation=told(facts.get("mi_correlation"), SCORE.rounded(2)),
        share=told(facts.get("lesion_share"), SHARE.rounded(0)),
    )
