"""The picture of the first screen: one case, with the most important modality's map of every method."""

import math
from collections.abc import Iterable
from pathlib import Path

from heatcheck.judging.judgement import Answer
from heatcheck.report.blocks.films import Film, FilmStrip, Outline
from heatcheck.report.blocks.gallery import BROKEN, entries_of, likely, number_or_dash
from heatcheck.report.blocks.pictures import SliceStrip, hottest
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, number
from heatcheck.studies.modality.report.claims import UNJUDGED, MethodClaims, every_claim
from heatcheck.studies.modality.report.facts import manifest
from heatcheck.studies.modality.report.gallery import outline, shown_modality, sides_of
from heatcheck.studies.modality.report.reliance import reliance_of
from heatcheck.studies.modality.report.sections.cases import scores_by_case
from heatcheck.studies.modality.report.sections.comparison import sorted_by_msfi
from heatcheck.studies.modality.report.sections.pictures import ANCHOR
from heatcheck.studies.modality.vocabulary import SHARED_MAP, ModalityEntry

IMAGE_SIDE, MAP_SIDE = 256, 128  # pixels at most
SIGNS = {Answer.YES: "✓", Answer.OPEN: "?", Answer.NO: "✕"}
MEANINGS = {"✓": "yes", "?": "not shown", "✕": "no"}
OF_ALL = "Signs say whether the method, over all cases, marks the lesion better than maps made without the network"
MEANS = "msfi mean"  # the column of a case's mean over the methods
_SCORE = SCORE.rounded(2)


def telling_case(evidence: Evidence) -> FilmStrip | None:
    """The usual case of the gallery: its mean MSFI is nearest to the median of all cases; right answers come first.

    None where the run kept no pictures with maps.
    """
    median = _usual_msfi(evidence)

    def unusual(entry: ModalityEntry) -> tuple[bool, bool, float]:
        """Whether it lacks maps, whether the answer is wrong, and how far its scores are from the usual ones."""
        mean = _mean_msfi(entry)
        far = math.inf if math.isnan(mean) else 0.0 if math.isnan(median) else abs(mean - median)
        return not entry.maps, entry.said != entry.finding, far

    for entry in sorted(entries_of(evidence, ModalityEntry), key=unusual):
        try:
            return _strip(evidence, entry, median) if entry.maps else None
        except BROKEN:
            continue
    return None


def _usual_msfi(evidence: Evidence) -> float:
    """The median over all cases of their mean MSFI over the methods."""
    table = scores_by_case(evidence, sorted_by_msfi(evidence))
    return float(table[MEANS].median()) if MEANS in table else math.nan


def _mean_msfi(entry: ModalityEntry) -> float:
    scores = [each.msfi for each in entry.maps if each.msfi is not None]
    return sum(scores) / len(scores) if scores else math.nan


def _why(entry: ModalityEntry, median: float) -> str:
    """Why this case is shown."""
    mean = _mean_msfi(entry)
    if math.isnan(mean) or math.isnan(median):
        return ""
    numbers = f"{number(mean, _SCORE)}; the median of all cases is {number(median, _SCORE)}"
    return f"Shown because it is the most usual of the cases below: mean MSFI over the methods {numbers}. "


def _strip(evidence: Evidence, entry: ModalityEntry, median: float) -> FilmStrip:
    folder = evidence.run.path / "gallery"
    height, width = entry.shape
    names = manifest(evidence).modalities or tuple(entry.images)
    name = shown_modality(evidence, names)
    image = SliceStrip(entry.slices, (entry.start,), IMAGE_SIDE).image_uri(folder, entry.images[name])
    path = outline(entry.outlines.get(name, []), (entry.start,), width)
    lines = (Outline("truth", path),) if path else ()
    films = [Film(name, f"{name} of case {entry.case} with the outline of the lesion", outlines=lines)]
    films += _films(entry, name, folder, lines, every_claim(evidence))
    return FilmStrip(
        "telling-case",
        f"{name}, the most important modality, with each method\u2019s map" if reliance_of(evidence) else name,
        _about(evidence, entry),
        (width, height),
        image,
        tuple(films),
        f"{_why(entry, median)}The line is the edge of the lesion.{_signs(films)}",
        ANCHOR,
    )


def _films(
    entry: ModalityEntry, name: str, folder: Path, lines: tuple[Outline, ...], claims: Iterable[MethodClaims]
) -> list[Film]:
    """A film for each method with a map, the best outcome first."""
    maps = {each.method: each for each in entry.maps}
    strip = SliceStrip(entry.slices, (entry.start,), MAP_SIDE)
    films = []
    for one in claims:
        made = maps.get(one.entrant.name)
        file = made.files.get(name) or made.files.get(SHARED_MAP) if made else None
        if made is None or file is None:
            continue
        label, full = one.entrant.label, hottest(folder, tuple(made.files.values()))
        described = f"{label} over {name} of case {entry.case}, with the outline of the lesion"
        sign = "" if one.outcome == UNJUDGED else SIGNS[one.marks.answer]
        caption = f"MSFI {number_or_dash(made.msfi, _SCORE)}"
        films.append(Film(label, described, strip.map_uri(folder, file, full), lines, sign, caption))
    return films


def _about(evidence: Evidence, entry: ModalityEntry) -> str:
    said = f"the network says {entry.said} ({likely(entry.probability)})" if entry.said else ""
    answer = f"{entry.finding}, {said}" if said else entry.finding
    return " · ".join((f"Case {entry.case}", answer, sides_of(evidence, entry)))


def _signs(films: Iterable[Film]) -> str:
    """What the signs that occur stand for."""
    found = {film.sign for film in films}
    parts = [f"{sign} {meaning}" for sign, meaning in MEANINGS.items() if sign in found]
    return f" MSFI is that of this case. {OF_ALL}: {', '.join(parts)}." if parts else ""
