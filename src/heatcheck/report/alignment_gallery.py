"""Cases to look at: one image, four networks, the same method, and the experts' outline over each map."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heatcheck.report.alignment_facts import ARMS, bases, methods_of
from heatcheck.report.evidence import Evidence
from heatcheck.report.gallery import fitting, ramp
from heatcheck.report.numbers import SCORE, SHARE, number
from heatcheck.report.outlines import Frame, frame_for, path_data
from heatcheck.report.pictures import image_uri, map_uri

TOP = 99.5  # the percentile of a map that gets the brightest colour: gradients have few, very hot pixels


@dataclass(frozen=True, slots=True)
class ArmMap:
    """One network's map of the image."""

    label: str
    uri: str
    probability: str
    mass: str
    rank: str


@dataclass(frozen=True, slots=True)
class AlignmentCard:
    """One image, finding, model and method."""

    case: str
    finding: str
    pipeline: str
    frame: Frame
    film: str
    truth: str  # path data
    maps: tuple[ArmMap, ...]

    @property
    def weight(self) -> int:
        """About how many bytes the card adds to the page."""
        return len(self.film) + sum(len(each.uri) + len(self.truth) + 700 for each in self.maps) + 1500


@dataclass(frozen=True, slots=True)
class AlignmentGallery:
    """The cards that fit, and what was left out in plain sentences."""

    cards: tuple[AlignmentCard, ...]
    left_out: tuple[str, ...]
    ramp: str  # the colours of the maps, as CSS has them

    @property
    def findings(self) -> list[str]:
        """The findings that have a card."""
        return list(dict.fromkeys(card.finding for card in self.cards))

    @property
    def pipelines(self) -> list[str]:
        """The models and methods that have a card."""
        return list(dict.fromkeys(card.pipeline for card in self.cards))


def alignment_gallery(evidence: Evidence, budget: int) -> AlignmentGallery:
    """As many cards as fit into `budget` bytes, in the order the study chose them."""
    folder = evidence.run.path / "gallery"
    names = {base.name: base.label for base in bases(evidence)}
    names |= {method.name: method.label for method in methods_of(evidence)}
    items = evidence.run.gallery.get("items", [])
    return AlignmentGallery(*fitting(items, lambda item: _card(item, folder, names), budget), ramp())


def _card(item: Mapping[str, Any], folder: Path, names: Mapping[str, str]) -> AlignmentCard:
    frame = frame_for(item["shape"])
    model, method = str(item["model"]), str(item["method"])
    order = list(ARMS)
    maps = sorted(item.get("maps", []), key=lambda each: order.index(each["arm"]))
    return AlignmentCard(
        case=str(item["case"]),
        finding=str(item["finding"]),
        pipeline=f"{names.get(model, model)} · {names.get(method, method)}",
        frame=frame,
        film=image_uri(folder, item["film"]),
        truth=path_data(item.get("outlines", []), frame),
        maps=tuple(_map(each, folder) for each in maps),
    )


def _map(facts: Mapping[str, Any], folder: Path) -> ArmMap:
    mass, rank = (number(_known(facts.get(name)), SCORE.rounded(2)) for name in ("mass", "rank"))
    chance = number(_known(facts.get("probability")), SHARE.rounded(0))
    return ArmMap(ARMS[facts["arm"]], map_uri(folder, facts["file"], TOP), chance, mass, rank)


def _known(value: float | None) -> float:
    return math.nan if value is None else float(value)
