"""Cases to look at: one image with the maps of four networks by one method, and the experts' outline."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heatcheck.report.blocks.gallery import Gallery, by_name, gallery_of, number_or_dash
from heatcheck.report.blocks.pictures import Frame, frame_for, image_uri, map_uri, path_data
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, SHARE
from heatcheck.studies.alignment.report.facts import ARM_LABELS, manifest, methods_of
from heatcheck.studies.alignment.vocabulary import ARMS, AlignmentEntry, ArmMapEntry

TOP = 99.5  # percentile of a map with the brightest colour; gradient maps have few, very hot pixels


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
        """The model and method, by which cards can be chosen."""
        return self.pipeline

    @property
    def weight(self) -> int:
        """About how many bytes the card adds to the page."""
        return len(self.film) + sum(len(each.uri) + len(self.truth) + 700 for each in self.maps) + 1500


def alignment_gallery(evidence: Evidence, budget: int) -> Gallery[AlignmentCard]:
    """As many cards as fit into `budget` bytes, in the order the study chose them."""
    names = {base.name: base.label for base in manifest(evidence).models}
    names |= {method.name: method.label for method in methods_of(evidence)}
    return gallery_of(evidence, AlignmentEntry, lambda entry, folder: _card(entry, folder, names), budget)


def _card(entry: AlignmentEntry, folder: Path, names: Mapping[str, str]) -> AlignmentCard:
    frame = frame_for(entry.shape)
    return AlignmentCard(
        case=entry.case,
        finding=entry.finding,
        pipeline=f"{names.get(entry.model, entry.model)} · {names.get(entry.method, entry.method)}",
        frame=frame,
        film=image_uri(folder, entry.film),
        truth=path_data(entry.outlines, frame),
        maps=tuple(_map(each, folder) for each in by_name(entry.maps, lambda each: each.arm, ARMS)),
    )


def _map(entry: ArmMapEntry, folder: Path) -> ArmMap:
    mass, rank = (number_or_dash(value, SCORE.rounded(2)) for value in (entry.mass, entry.rank))
    probability = number_or_dash(entry.probability, SHARE.rounded(0))
    return ArmMap(ARM_LABELS[entry.arm], map_uri(folder, entry.file, TOP), probability, mass, rank)
