"""Cases to look at: one image with the maps of four networks by one method, and the experts' outline on each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from heatcheck.report.blocks.block import Drawn, prose
from heatcheck.report.blocks.films import Film, FilmStrip, Outline
from heatcheck.report.blocks.gallery import Gallery, by_name, gallery_of, likely, number_or_dash
from heatcheck.report.blocks.pictures import frame_for, image_uri, map_uri, path_data
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, count
from heatcheck.report.page import Section
from heatcheck.studies.alignment.report.facts import ARM_LABELS, Pipeline, manifest, methods_of
from heatcheck.studies.alignment.vocabulary import ARMS, DIRECTIONS, AlignmentEntry, ArmMapEntry

TOP = 99.5  # percentile of a map with the brightest colour; gradient maps have few, very hot pixels
SIDES = "left and right as in the file"
MASS_AND_RANK = (
    "Mass: the share of a map\u2019s heat that lies inside the outline. Rank: of its hottest pixels, as many as the "
    "outline holds, the share inside. Both are low where a map is hot all around too, even if it is hot inside."
)


@dataclass(frozen=True, slots=True)
class StripCard:
    """One image, finding, model and method, with a film for each network."""

    case: str
    finding: str
    model: str
    method: str
    pipeline: str  # model and method by their labels
    strip: FilmStrip
    apart: float  # map score of the aligned network less that of the misaligned one; NaN where one is not known

    @property
    def group(self) -> str:
        """The model and method, by which cards can be chosen."""
        return self.pipeline

    @property
    def weight(self) -> int:
        """About how many bytes it adds to the page."""
        return self.strip.weight + 1500


@dataclass(frozen=True, slots=True)
class CaseCard:
    """All that is shown of one case; its image is held once."""

    anchor: str
    case: str
    strips: tuple[StripCard, ...]


AlignmentGallery = Gallery[StripCard]


def alignment_gallery(evidence: Evidence, budget: int) -> AlignmentGallery:
    """As many strips as fit into `budget` bytes, in the order the study chose them."""
    names = {base.name: base.label for base in manifest(evidence).models}
    names |= {method.name: method.label for method in methods_of(evidence)}
    return gallery_of(evidence, AlignmentEntry, lambda entry, folder: _card(entry, folder, names), budget)


def gallery_section(gallery: AlignmentGallery) -> Section:
    """Cases to look at, one card for each with the maps of the four networks."""
    if not gallery.cards:
        none = "This run kept no pictures"
        blocks = prose(f"{none}, so there is no gallery.", *gallery.left_out)
        return Section("pictures", "Cases to look at", "Pictures", blocks, f"{none}.")
    cards = case_cards(gallery)
    content = {"gallery": gallery, "cards": cards, "networks": [label.capitalize() for label in ARM_LABELS.values()],
               "scores": MASS_AND_RANK}  # fmt: skip
    summary = f"{count(len(cards), 'case')}, each with the maps of the same method on four networks."
    return Section("pictures", "Cases to look at", "Pictures", (Drawn("study/gallery.html", content),), summary)


def case_cards(gallery: AlignmentGallery) -> list[CaseCard]:
    """The strips by case, in the order of each case's first."""
    order = list(dict.fromkeys(card.case for card in gallery.cards))
    ranked = sorted(gallery.cards, key=lambda card: order.index(card.case))
    cards = []
    for case, of_case in groupby(ranked, key=lambda card: card.case):
        first, *others = of_case
        shared = [replace(card, strip=replace(card.strip, image="", image_of=first.strip.anchor)) for card in others]
        cards.append(CaseCard(f"case-{order.index(case)}", case, (first, *shared)))
    return cards


def telling_card(gallery: AlignmentGallery, pipeline: Pipeline | None) -> StripCard | None:
    """The case on which this pipeline's aligned and misaligned maps differ most; else the first that was kept."""
    wanted = (pipeline.base.name, pipeline.method.name) if pipeline else ()
    own = [card for card in gallery.cards if (card.model, card.method) == wanted and not math.isnan(card.apart)]
    return max(own, key=lambda card: card.apart, default=next(iter(gallery.cards), None))


def _card(entry: AlignmentEntry, folder: Path, names: Mapping[str, str]) -> StripCard:
    frame = frame_for(entry.shape)
    size = (frame.width, frame.height)
    truth = path_data(entry.outlines, frame)
    outlines = (Outline("truth", truth),) if truth else ()
    pipeline = f"{names.get(entry.method, entry.method)} on {names.get(entry.model, entry.model)}"
    alone = Film("Image", f"Image of case {entry.case} with {entry.finding} outlined", "", outlines)
    maps = by_name(entry.maps, lambda each: each.arm, ARMS)
    strip = FilmStrip(
        anchor=f"films-{entry.id}",
        title=f"{entry.finding} \u00b7 {pipeline}",
        case=f"Case {entry.case} \u00b7 {SIDES}",
        size=size,
        image=image_uri(folder, entry.film),
        films=(alone, *(_film(each, folder, entry, outlines) for each in maps)),
    )
    masses = {each.arm: math.nan if each.mass is None else each.mass for each in entry.maps}
    align, misalign = (masses.get(arm, math.nan) for arm in DIRECTIONS)
    return StripCard(entry.case, entry.finding, entry.model, entry.method, pipeline, strip, align - misalign)


def _film(each: ArmMapEntry, folder: Path, entry: AlignmentEntry, outlines: tuple[Outline, ...]) -> Film:
    """One network's map over the image, with its scores and what the network says."""
    mass, rank = (number_or_dash(value, SCORE.rounded(2)) for value in (each.mass, each.rank))
    label, chance = ARM_LABELS[each.arm], likely(each.probability)
    return Film(
        label=label.capitalize(),
        described=f"Map of the {label} network over case {entry.case}, with the experts\u2019 outline of "
        f"{entry.finding}; mass {mass}",
        heat=map_uri(folder, each.file, TOP),
        outlines=outlines,
        caption=f"mass {mass}, rank {rank}" + (f" \u00b7 finding {chance} likely" if chance else ""),
    )
