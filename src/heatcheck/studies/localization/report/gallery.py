"""Gallery cards: a case with the films of every finding, until the page's share of bytes is used up."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from heatcheck.report.blocks.block import Drawn, prose
from heatcheck.report.blocks.films import Film, FilmStrip, Outline
from heatcheck.report.blocks.gallery import Gallery, by_name, gallery_of, likely, number_or_dash, orientation
from heatcheck.report.blocks.pictures import Frame, frame_for, image_uri, map_uri, path_data
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, SHARE, SPACE, count, number
from heatcheck.report.page import Section
from heatcheck.studies.localization.report.facts import best_first
from heatcheck.studies.localization.vocabulary import LocalizationEntry, MethodMapEntry

MANY = 8  # methods that stand in the run's own order
BRIGHTEST = 99.5  # percentile of a map at which its colour scale ends: one hot pixel cannot hide the others
_TELLING = ("typical", "best overlap", "high overlap but miss")  # reasons, the most telling case first


@dataclass(frozen=True, slots=True)
class FindingCard:
    """One finding of a case: why it is shown, and its films."""

    case: str
    finding: str
    why: str
    strip: FilmStrip
    has_readers: bool
    has_rectangle: bool
    in_volume: bool

    @property
    def group(self) -> str:
        """Why it was chosen."""
        return self.why

    @property
    def weight(self) -> int:
        """About how many bytes it adds to the page."""
        return self.strip.weight + 1500


@dataclass(frozen=True, slots=True)
class CaseCard:
    """All findings of one case."""

    anchor: str
    case: str
    findings: tuple[FindingCard, ...]


LocalizationGallery = Gallery[FindingCard]


def localization_gallery(evidence: Evidence, budget: int) -> LocalizationGallery:
    """As many findings of cases as fit into `budget` bytes, in the order the study chose them."""
    shown = _shown_order(evidence)
    return gallery_of(evidence, LocalizationEntry, lambda entry, folder: _card(entry, folder, shown), budget)


def gallery_section(gallery: LocalizationGallery) -> Section:
    """Cases to look at, one card for each with all methods on all its findings."""
    if not gallery.cards:
        blocks = prose("This run kept no pictures, so there is no gallery.", *gallery.left_out)
        return Section("pictures", "Cases to look at", "Pictures", blocks, "This run kept no pictures.")
    cards = case_cards(gallery)
    content = {
        "gallery": gallery,
        "cards": cards,
        "methods": list({film.label: None for card in gallery.cards for film in card.strip.films}),
        "has_readers": any(card.has_readers for card in gallery.cards),
        "has_rectangles": any(card.has_rectangle for card in gallery.cards),
        "has_slices": any(card.in_volume for card in gallery.cards),
    }
    summary = f"{count(len(cards), 'case')}, typical ones and failures, with the map of every method."
    return Section("pictures", "Cases to look at", "Pictures", (Drawn("study/gallery.html", content),), summary)


def case_cards(gallery: LocalizationGallery) -> list[CaseCard]:
    """The cards by case, in the order of each case's first finding; the image is held once."""
    order = list(dict.fromkeys(card.case for card in gallery.cards))
    ranked = sorted(gallery.cards, key=lambda card: order.index(card.case))
    cards = []
    for case, of_case in groupby(ranked, key=lambda card: card.case):
        first, *others = of_case
        shared = [replace(card, strip=replace(card.strip, image="", image_of=first.strip.anchor)) for card in others]
        cards.append(CaseCard(f"case-{order.index(case)}", case, (first, *shared)))
    return cards


def telling_strip(gallery: LocalizationGallery) -> FilmStrip | None:
    """The films of a typical case, for the first screen; None where no pictures were kept."""
    ranks = {why: rank for rank, why in enumerate(_TELLING)}
    found = min(gallery.cards, key=lambda card: ranks.get(card.why, len(ranks)), default=None)
    if found is None:
        return None
    strip = found.strip
    return replace(
        strip,
        anchor="telling",
        title=f"One case with {found.finding}",
        note="Outlined: the true place of the finding. ✓: the hottest point (ring) lies inside. IoU: how much the hot "
        f"region overlaps the outline. {strip.note}".rstrip(),
        link="pictures",
        films=tuple(replace(film, outlines=_few_lines(film.outlines)) for film in strip.films),
    )


def _few_lines(outlines: Sequence[Outline]) -> tuple[Outline, ...]:
    """The truth and the hottest point: in small pictures more lines would hide the heat."""
    return tuple(line for line in outlines if line.style in {"truth", "peak"})


def _shown_order(evidence: Evidence) -> list[Entrant]:
    """Methods before floors; where they are many, the highest overlap comes first."""
    methods = evidence.methods if len(evidence.methods) <= MANY else best_first(evidence)
    return [*methods, *evidence.floors]


def _card(entry: LocalizationEntry, folder: Path, shown: Sequence[Entrant]) -> FindingCard:
    frame = frame_for(entry.shape)
    kinds = {each.name: each for each in shown}
    order = [entry.method, *(name for name in kinds if name != entry.method)]  # whose map is the reason comes first
    maps = by_name(entry.maps, lambda each: each.method, order)
    truth, readers = _outlines(entry, frame)
    named = f"{entry.finding} in case {entry.case}"
    alone = Film("Image", f"Image of case {entry.case} with {entry.finding} outlined", "", (*truth, *readers))
    films = [_film(each, folder, (frame, (*truth, *readers)), kinds, named) for each in maps]
    whose = kinds[entry.method].label if entry.method in kinds else entry.method
    likely_ = likely(entry.probability)
    case = [f"Case {entry.case}", f"model: {likely_} likely" if likely_ else "", _lies(entry)]
    why = f"Chosen for: {entry.why}{f' ({whose})' if whose else ''}." if entry.why else ""
    strip = FilmStrip(
        anchor=f"films-{entry.id}",
        title=entry.finding,
        case=" · ".join(part for part in case if part),
        size=(frame.width, frame.height),
        image=image_uri(folder, entry.image),
        films=(alone, *films),
        note=why,
    )
    marks = bool(entry.readers), bool(entry.rectangle), bool(entry.slices)
    return FindingCard(entry.case, entry.finding, entry.why, strip, *marks)


def _outlines(entry: LocalizationEntry, frame: Frame) -> tuple[tuple[Outline, ...], tuple[Outline, ...]]:
    """The lines of the truth, and those of the readers."""
    truth = [Outline("truth", path_data(entry.truth, frame))]
    if entry.rectangle:
        truth.append(Outline("rectangle", path_data([entry.rectangle], frame)))
    readers = Outline("readers", "".join(path_data(reader.contours, frame) for reader in entry.readers))
    points = [frame.place(point) for reader in entry.readers for point in reader.points]
    crosses = Outline("reader-point", "".join(f"M{x - 6} {y - 6}l12 12m0-12l-12 12" for x, y in points))
    return tuple(line for line in truth if line.path), tuple(line for line in (readers, crosses) if line.path)


def _lies(entry: LocalizationEntry) -> str:
    """Plane, slice and sides of the patient as far as they are known; else that sides are those of the file."""
    plane = entry.plane or ""
    if entry.slices:
        along = "" if plane else " along the first axis of the file"
        plane = f"{plane} slice {entry.slice} of {entry.slices}{along}".strip()
    return orientation(plane, entry.sides or "left and right as in the file")


def _film(
    entry: MethodMapEntry,
    folder: Path,
    drawn: tuple[Frame, tuple[Outline, ...]],
    kinds: Mapping[str, Entrant],
    named: str,
) -> Film:
    """One method's map over the image, with its region, its hottest point and its scores."""
    frame, shared = drawn
    label = kinds[entry.method].label if entry.method in kinds else entry.method
    sign, word, sentence = _outcome(entry.hit, entry.peak_slice)
    if entry.hit == 0 and not entry.peak and not entry.peak_slice:
        sign, word, sentence = "✕", "miss", "the map is empty, so it has no hottest point"
    own = [Outline("region", path_data(entry.region, frame))] if entry.region else []
    if entry.peak:
        x, y = frame.place(entry.peak)
        own.append(Outline("peak", f"M{x - 9} {y}a9 9 0 1 0 18 0a9 9 0 1 0 -18 0"))
    is_floor = entry.method in kinds and kinds[entry.method].kind == "floor"
    return Film(
        label=f"{label} (floor)" if is_floor else label,
        described=f"{label}: heat map for {named}; {sentence}",
        heat=map_uri(folder, entry.file, BRIGHTEST),
        outlines=(*shared, *own),
        sign=sign,
        caption=f"{word} · IoU {number_or_dash(entry.iou, SCORE.rounded(2))}",
    )


def _outcome(hit: float | None, elsewhere: int | None = None) -> tuple[str, str, str]:
    """The sign, the word and the sentence for a hit between 0 and 1; `elsewhere` is the slice of a peak not shown."""
    if hit is None or math.isnan(hit):
        return "?", "undefined", "whether the hottest point lies inside the outline is undefined"
    there = f", in slice {elsewhere}" if elsewhere else ""
    if hit == 1:
        return "✓", f"hit{there}", f"the hottest point lies inside the outline{there}"
    if hit == 0:
        return "✕", f"miss{there}", f"the hottest point lies outside the outline{there}"
    share = f"under 1{SPACE}%" if hit < 0.005 else number(float(hit), SHARE.rounded(0))
    first = f", the first of them in slice {elsewhere}" if elsewhere else ""
    sentence = f"several points are equally hot, and {share} of them lie inside the outline{first}"
    return "◐", f"{share} of equally hot points inside", sentence
