"""Cases to look at: one image, four networks, the same method, and the experts' outline over each map."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heatcheck.report.evidence import Evidence
from heatcheck.report.gallery import Exhibits, exhibits_of, in_order, told
from heatcheck.report.numbers import SCORE, SHARE
from heatcheck.report.pictures import Frame, frame_for, image_uri, map_uri, path_data
from heatcheck.studies.alignment.report.facts import ARMS, bases, methods_of

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
    def group(self) -> str:
        """The model and method."""
        return self.pipeline

    @property
    def weight(self) -> int:
        """About how many bytes the card adds to the page."""
        return len(self.film) + sum(len(each.uri) + len(self.truth) + 700 for each in self.maps) + 1500


def alignment_gallery(evidence: Evidence, budget: int) -> Exhibits[AlignmentCard]:
    """As many cards as fit into `budget` bytes, in the order the study chose them."""
    names = {base.name: base.label for base in bases(evidence)}
    names |= {method.name: method.label for method in methods_of(evidence)}
    return exhibits_of(evidence, lambda item, folder: _card(item, folder, names), budget)


def _card(item: Mapping[str, Any], folder: Path, names: Mapping[str, str]) -> AlignmentCard:
    frame = frame_for(item["shape"])
    model, method = str(item["model"]), str(item["method"])
    return AlignmentCard(
        case=str(item["case"]),
        finding=str(item["finding"]),
        pipeline=f"{names.get(model, model)} · {names.get(method, method)}",
        frame=frame,
        film=image_uri(folder, item["film"]),
        truth=path_data(item.get("outlines", []), frame),
        maps=tuple(_map(each, folder) for each in in_order(item.get("maps", []), "arm", list(ARMS))),
    )


def _map(facts: Mapping[str, Any], folder: Path) -> ArmMap:
    mass, rank = (told(facts.get(name), SCORE.rounded(2)) for name in ("mass", "rank"))
    chance = told(facts.get("probability"), SHARE.rounded(0))
    return ArmMap(ARMS[facts["arm"]], map_uri(folder, facts["file"], TOP), chance, mass, rank)
