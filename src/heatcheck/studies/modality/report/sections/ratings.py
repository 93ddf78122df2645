"""Readers' ratings of the maps: mean ratings beside MSFI, how the two correlate, and the readers' comments."""

import csv
import math

from markupsafe import Markup

from heatcheck.core.paths import without_paths
from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import CORRELATION, MEAN
from heatcheck.report.blocks.block import Heading, Table, Terms, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Column, Matrix, Row, cell_of, grouped
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, Unit, count, interval, number, probability
from heatcheck.report.page import Section
from heatcheck.studies.modality.report import literature
from heatcheck.studies.modality.report.facts import estimate, manifest
from heatcheck.studies.modality.vocabulary import (
    ALL_MAPS,
    ALPHA,
    EACH_CASE,
    RATING,
    RATING_COLUMNS,
    RATINGS_FILE,
    SINGLE_MAPS,
)

LONGEST = 600  # letters of a comment
MOST = 200  # comments on the page
ENOUGH = 60  # patients with whom BCa intervals of ρ and α hold, by simulation
COMMENT = Markup('\u201c{}\u201d <span class="small">{}, {}, case {}</span>')  # readers are numbered, not named
_POINTS = Unit(1, 0)
_SCORE = SCORE.rounded(2)


def ratings(evidence: Evidence) -> Section | None:
    """What readers gave the maps; None when there are no ratings."""
    table = _table(evidence)
    if table is None:
        return None
    comments = _comments(evidence)
    blocks = (
        *(each for sentence in sentences(evidence) for each in prose(sentence)),
        Table(table),
        *prose(_published(evidence), small=True),
        *((Heading("In the readers\u2019 words"), Terms(comments)) if comments else ()),
    )
    return Section("ratings", "What do readers think?", "Ratings", blocks, summary(evidence))


def summary(evidence: Evidence) -> str:
    """The method with the highest mean rating."""
    means = {m.label: evidence.value(MEAN, RATING, ALL_FINDINGS, m.name) for m in evidence.methods}
    known = {label: value for label, value in means.items() if not math.isnan(value)}
    best = max(known, key=lambda label: known[label], default="")
    return f"Highest mean rating: {best}, {number(known[best], _POINTS)} of 100." if best else ""


def sentences(evidence: Evidence) -> list[str]:
    """What the ratings rest on, how they go with MSFI, and how far the readers agree."""
    every = (
        _basis(evidence),
        *_together(evidence),
        _as_published(evidence),
        _agreement(evidence),
        _too_short(evidence),
    )
    return [sentence for sentence in every if sentence]


def _table(evidence: Evidence) -> Matrix | None:
    """One row per method, the highest rating first, with its rating and MSFI."""
    means = {m: row for m in evidence.methods if (row := evidence.find(MEAN, RATING, ALL_FINDINGS, m.name))}
    if not means:
        return None
    notes = Footnotes()
    ordered = sorted(means, key=lambda m: math.inf if math.isnan(means[m].value) else -means[m].value)
    rows = [
        Row(
            m,
            (
                cell_of(means[m], _POINTS, notes),
                cell_of(evidence.find(MEAN, "msfi", ALL_FINDINGS, m.name), SCORE, notes),
            ),
        )
        for m in ordered
    ]
    columns = (Column("Reader rating", "0 to 100", main=True), Column("MSFI", "all cases"))
    return Matrix("Mean rating of every method", columns, grouped(rows), tuple(notes.reasons))


def _basis(evidence: Evidence) -> str:
    given = manifest(evidence).ratings
    if not given or not given.rows:
        return ""
    return (
        f"{count(given.readers, 'reader')} gave {count(given.rows, 'rating')} from 0 to 100 for how well the map "
        "agrees with what matters clinically."
    )


def _together(evidence: Evidence) -> list[str]:
    """Spearman's correlation of rating and MSFI, over all maps and within each case."""
    words = {
        ALL_MAPS: "Over all rated maps, rating and MSFI correlate with Spearman\u2019s ρ",
        EACH_CASE: "Within a case, where only the method differs, the mean ρ is",
    }
    sentences = []
    for within, text in words.items():
        row = estimate(evidence, CORRELATION, RATING, {"with_metric": "msfi", "within": within})
        if row is None:
            continue
        if math.isnan(row.value):
            sentences.append(f"{text}: undefined, {row.reason or 'no reason recorded'}.")
            continue
        sentences.append(f"{text} {_valued(row)}.")
    return sentences


def _as_published(evidence: Evidence) -> str:
    """The p-value by the paper's rule, and why it is too small."""
    row = estimate(evidence, CORRELATION, RATING, {"with_metric": "msfi", "within": SINGLE_MAPS})
    if row is None or math.isnan(row.p_value):
        return ""
    return (
        f"By the paper\u2019s rule, which counts every map as independent, {probability(row.p_value)} for the same ρ "
        f"over {count(row.n_cases, 'map')}; it does not allow for maps of one patient being alike."
    )


def _valued(row: Estimate) -> str:
    between, p = interval(row.low, row.high, _SCORE), probability(row.p_value)
    aside = ", ".join(filter(None, (f"95 % interval {between}" if between else "", p)))
    return number(row.value, _SCORE) + (f" ({aside})" if aside else "")


def _agreement(evidence: Evidence) -> str:
    row = evidence.find(ALPHA, RATING, ALL_FINDINGS)
    if row is None:
        return ""
    if math.isnan(row.value):
        return f"Agreement between readers (Krippendorff\u2019s α) is undefined: {row.reason or 'no reason recorded'}."
    between = interval(row.low, row.high, _SCORE)
    aside = f" (95 % interval {between})" if between else ""
    return (
        f"Agreement between readers, Krippendorff\u2019s α: {number(row.value, _SCORE)}{aside}; 1 is full agreement, 0 "
        "is chance."
    )


def _too_short(evidence: Evidence) -> str:
    """That intervals of correlation and agreement hold less than they should where few patients were rated."""
    overall = estimate(evidence, CORRELATION, RATING, {"with_metric": "msfi", "within": ALL_MAPS})
    rows = [row for row in (overall, evidence.find(ALPHA, RATING, ALL_FINDINGS)) if row and not math.isnan(row.low)]
    if not rows or min(row.n_patients for row in rows) >= ENOUGH:
        return ""
    return (
        f"With fewer than {ENOUGH} rated patients, the intervals of ρ over all maps and of α are too short: in "
        "simulations they held the true value in 80 to 90 % of studies."
    )


def _comments(evidence: Evidence) -> tuple[tuple[str, Markup], ...]:
    """The comments by method, in the order of the run's methods; nothing where the file is missing or unreadable."""
    labels = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    by_method: dict[str, list[Markup]] = {}
    readers: dict[str, str] = {}
    for row in _rows(evidence):
        reader = readers.setdefault(row["reader"], f"Reader {len(readers) + 1}")
        words = str(without_paths(row["comment"].strip()))[:LONGEST]
        if words and sum(map(len, by_method.values())) < MOST:
            case = str(without_paths(row["case"]))
            by_method.setdefault(row["method"], []).append(COMMENT.format(words, reader, row["rating"], case))
    order = list(labels)
    ordered = sorted(by_method, key=lambda name: order.index(name) if name in order else len(order))
    return tuple((labels.get(name, name), Markup("<br>").join(by_method[name])) for name in ordered)


def _rows(evidence: Evidence) -> list[dict[str, str]]:
    try:
        with (evidence.run.path / RATINGS_FILE).open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file, restval="")
            return list(table) if set(RATING_COLUMNS) <= set(table.fieldnames or ()) else []
    except (OSError, UnicodeError, csv.Error):
        return []


def _published(evidence: Evidence) -> str:
    """What the paper found, beside runs on its data."""
    rho, p = literature.scalar("spearman", "rating and MSFI"), literature.scalar("spearman_p", "rating and MSFI")
    if rho is None or p is None or not literature.is_data_of(manifest(evidence)):
        return ""
    return (
        f"Published, one neurosurgeon on two cases: ρ = {rho.value:g} (p = {p.value:g}) between rating and MSFI "
        f"({literature.SOURCE}); guided backprop was rated 70 with an MSFI of 0.40, Shapley sampling 30 with 0.31."
    )
