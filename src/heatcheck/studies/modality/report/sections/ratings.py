"""What readers thought of the maps: mean ratings beside MSFI, how both go together, and the readers' own words."""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass

from heatcheck.core.paths import without_paths
from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.report.evidence import Evidence
from heatcheck.report.footnotes import Footnotes
from heatcheck.report.matrix import Column, Matrix, Row, cell_of, grouped
from heatcheck.report.numbers import SCORE, Unit, count, interval, number, probability
from heatcheck.studies.modality.report import literature
from heatcheck.studies.modality.report.facts import estimate

FILE = "ratings.csv"
LONGEST = 600  # letters of a comment
MOST = 200  # comments on the page
_POINTS = Unit(1, 0)
_SCORE = SCORE.rounded(2)


@dataclass(frozen=True, slots=True)
class Comment:
    """A reader's words on one map; readers have numbers here, not names."""

    reader: str
    case: str
    rating: str
    words: str


def ratings(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on ratings shows; None when nobody rated."""
    table = _table(evidence)
    if table is None:
        return None
    comments = _comments(evidence)
    return {
        "sentences": [
            sentence for sentence in (_basis(evidence), *_together(evidence), _agreement(evidence)) if sentence
        ],
        "table": table,
        "comments": comments,
        "published": _published(),
    }


def _table(evidence: Evidence) -> Matrix | None:
    """Methods down, the highest rating first; rating and MSFI across."""
    found = {m: row for m in evidence.methods if (row := evidence.find("mean", "rating", ALL_FINDINGS, m.name))}
    if not found:
        return None
    notes = Footnotes()
    ordered = sorted(found, key=lambda m: math.inf if math.isnan(found[m].value) else -found[m].value)
    rows = [
        Row(
            m,
            (
                cell_of(found[m], _POINTS, notes),
                cell_of(evidence.find("mean", "msfi", ALL_FINDINGS, m.name), SCORE, notes),
            ),
        )
        for m in ordered
    ]
    columns = (Column("Reader rating", "0 to 100", main=True), Column("MSFI", "all cases"))
    return Matrix("Mean rating of every method", columns, grouped(rows), tuple(notes.reasons))


def _basis(evidence: Evidence) -> str:
    told = evidence.run.manifest.get("ratings") or {}
    if not told.get("rows"):
        return ""
    readers = count(int(told.get("readers") or 0), "reader")
    return (
        f"{readers} gave {count(int(told['rows']), 'rating')} from 0 to 100 for how well the map agrees with what "
        "matters clinically."
    )


def _together(evidence: Evidence) -> list[str]:
    """Spearman's correlation of rating and MSFI, over all maps and within each case."""
    words = {
        "all": "Over all rated maps, rating and MSFI go together with Spearman\u2019s ρ",
        "case": "Within a case, where only the method differs, the mean ρ is",
    }
    sentences = []
    for within, text in words.items():
        row = estimate(evidence, ("correlation", "rating"), {"with": "msfi", "within": within})
        if row is None:
            continue
        if math.isnan(row.value):
            sentences.append(f"{text}: undefined, {row.reason or 'no reason recorded'}.")
            continue
        sentences.append(f"{text} {_valued(row)}.")
    return sentences


def _valued(row: Estimate) -> str:
    between, p = interval(row.low, row.high, _SCORE), probability(row.p_value)
    told = [f"95 % interval {between}" if between else "", p]
    aside = ", ".join(part for part in told if part)
    return number(row.value, _SCORE) + (f" ({aside})" if aside else "")


def _agreement(evidence: Evidence) -> str:
    row = evidence.find("alpha", "rating", ALL_FINDINGS)
    if row is None:
        return ""
    if math.isnan(row.value):
        return f"Agreement between readers (Krippendorff\u2019s α) is undefined: {row.reason or 'no reason recorded'}."
    between = interval(row.low, row.high, _SCORE)
    aside = f" (95 % interval {between})" if between else ""
    return (
        f"Agreement between readers, Krippendorff\u2019s α: {number(row.value, _SCORE)}{aside}; 1 is full agreement, 0 "
        "what chance gives."
    )


def _comments(evidence: Evidence) -> list[tuple[str, list[Comment]]]:
    """The comments by method, in the order of the run's methods; nothing where the file is missing or unreadable."""
    labels = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    found: dict[str, list[Comment]] = {}
    readers: dict[str, str] = {}
    for row in _rows(evidence):
        reader = readers.setdefault(str(row.get("reader") or ""), f"Reader {len(readers) + 1}")
        words = str(without_paths((row.get("comment") or "").strip()))[:LONGEST]
        if words and sum(map(len, found.values())) < MOST:
            method = str(row.get("method") or "")
            case, rating = str(without_paths(row.get("case") or "")), str(row.get("rating") or "")
            found.setdefault(method, []).append(Comment(reader, case, rating, words))
    order = list(labels)
    ranked = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    return [(labels.get(name, name), found[name]) for name in ranked]


def _rows(evidence: Evidence) -> list[dict[str, str]]:
    try:
        with (evidence.run.path / FILE).open(newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file))
    except (OSError, UnicodeError, csv.Error):
        return []


def _published() -> str:
    rho, p = literature.scalar("spearman", "rating and MSFI"), literature.scalar("spearman_p", "rating and MSFI")
    if rho is None or p is None:
        return ""
    return (
        f"Published, one neurosurgeon on two cases: ρ = {rho.value:g} (p = {p.value:g}) between rating and MSFI "
        f"({literature.SOURCE}); guided backprop was rated 70 with an MSFI of 0.40, Shapley sampling 30 with 0.31."
    )
