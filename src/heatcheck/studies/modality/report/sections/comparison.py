"""The methods side by side: metrics down, methods across, every value a square, and the same as numbers."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.block import Block, Drawn, Table, fold, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, grouped
from heatcheck.report.cost import seconds_by_method
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import MISSING, SCORE, Unit, brief, interval, listed, number
from heatcheck.report.page import Section
from heatcheck.report.ranking import Ranking, ranking_of
from heatcheck.studies.modality.report.facts import empty_maps, manifest, msfi_mean, msfi_views
from heatcheck.studies.modality.report.sections.ranking import starred
from heatcheck.studies.modality.vocabulary import COUNTED, PUBLISHED, RATING, UNIFORM

METRICS = ("mi_correlation", "msfi", "lesion_share", "median_iou", "delta_aupc")
ORDERS = ("mi_correlation", PUBLISHED)  # undefined for one map of all modalities
MAIN = ("msfi", "delta_aupc")  # what the summary names
ONE_MAP = "one map for all modalities: no order by construction, counts 0 in the ranking"
EMPTY = "Empty maps, which are 0 everywhere or (for modality correlation) the same in every modality, count 0"
READING = (
    "The larger a square and the stronger its colour, the better the method by that row; the smallest square of a row "
    "is its worst method, the largest its best, so rows cannot be compared with each other."
)
STAR = (
    "A star marks the methods that may be the first in mean rank (Nemenyi\u2019s test at 5 %), where these are fewer "
    "than half; ranks have no size that matters, so a star claims nothing."
)
ALONE = (
    "Intervals here are each score\u2019s own; in the table of what each method shows they allow for all comparisons "
    "made together and are wider."
)
SPEED = "Speed"
_FEWER = {SCORE: SCORE.rounded(2)}


@dataclass(frozen=True, slots=True)
class MatrixSquare:
    """One method's value: its position between the worst (0) and the best (1) of the row, and the number itself."""

    position: float | None
    text: str
    title: str
    is_top: bool = False


@dataclass(frozen=True, slots=True)
class SquareRow:
    """A metric's squares; `aside` says where the methods' ranks may be chance."""

    name: str
    sentence: str
    squares: tuple[MatrixSquare, ...]
    aside: str = ""


@dataclass(frozen=True, slots=True)
class MethodMatrix:
    """The matrix; the last `floors` of its columns are made without the model."""

    columns: tuple[Entrant, ...]
    rows: tuple[SquareRow, ...]
    floors: int


@dataclass(frozen=True, slots=True)
class _MetricLine:
    """A metric before it is drawn: how to find a method's estimate."""

    metric: str
    name: str
    find: Callable[[str], Estimate | None]
    is_primary: bool = True


def comparison(evidence: Evidence) -> Section | None:
    """The methods side by side, as squares and as numbers; None when no metric has a value."""
    lines = _lines(evidence)
    columns = _columns(evidence, lines)
    if not lines or not columns:
        return None
    matrix = squares(evidence)
    stars = any(square.is_top for row in matrix.rows for square in row.squares)
    blocks: tuple[Block, ...] = (
        *prose(READING, _order(evidence, matrix), STAR if stars else "", "Point at a square for its interval."),
        Drawn("study/comparison.html", {"matrix": matrix}),
        *prose(ALONE, _empty(evidence), small=True),
        *fold("The numbers with their intervals", (Table(number_table(evidence)),)),
    )
    title = "How do the methods compare?"
    return Section("comparison", title, "Comparison", blocks, summary(evidence), printed=True)


def summary(evidence: Evidence) -> str:
    """The method with the highest mean by each of the two main metrics."""
    parts = []
    for metric in MAIN:
        means = {method.label: evidence.value(MEAN, metric, ALL_FINDINGS, method.name) for method in evidence.methods}
        known = {label: value for label, value in means.items() if not math.isnan(value)}
        if known and metric in evidence.metrics:
            best, name = max(known, key=lambda label: known[label]), evidence.metrics[metric].label
            parts.append(f"{name}: {best} ({number(known[best], _unit(evidence, metric))})")
    return f"Highest {'; '.join(parts)}." if parts else ""


def squares(evidence: Evidence) -> MethodMatrix:
    """Every metric and the speed against every method, and the floors of the spec."""
    lines = _lines(evidence)
    columns = _columns(evidence, lines)
    rows = [_squares(evidence, line, columns) for line in lines]
    rows += [row for row in (_speed(evidence, columns),) if row]
    return MethodMatrix(columns, tuple(rows), sum(entrant.kind == "floor" for entrant in columns))


def number_table(evidence: Evidence) -> Matrix:
    """The same numbers with intervals, one row per method, and the modality correlation as it was published."""
    lines = _lines(evidence)
    if PUBLISHED in evidence.metrics:
        published = _MetricLine(
            PUBLISHED, f"{evidence.metrics[PUBLISHED].label} (as published)", _mean(evidence, PUBLISHED)
        )
        lines += [published] if any(_has(published, method) for method in evidence.methods) else []
    return _table(evidence, lines, _columns(evidence, lines))


def _columns(evidence: Evidence, lines: Sequence[_MetricLine]) -> tuple[Entrant, ...]:
    """The methods, the highest MSFI first, and the floors that have a value."""
    floors = [floor for floor in evidence.floors if any(_has(line, floor) for line in lines)]
    return (*sorted_by_msfi(evidence), *floors)


def _order(evidence: Evidence, matrix: MethodMatrix) -> str:
    by = "the sum of their two MSFI" if len(msfi_views(evidence)) > 1 else "their MSFI"
    last = "; what is made without the model comes last" if matrix.floors else ""
    return f"The methods are ordered by {by}{last}."


def _empty(evidence: Evidence) -> str:
    """How many maps of which method are empty, in a sentence; "" where none is."""
    parts = []
    for method in evidence.methods:
        rows = [row for metric in COUNTED if (row := empty_maps(evidence, metric, method.name))]
        if rows:
            most = max(rows, key=lambda row: row.value)
            parts.append(f"{method.label} {most.value:.0f} of {most.n_cases:,}")
    return f"{EMPTY}: {listed(parts)}." if parts else ""


def treated(evidence: Evidence) -> str:
    """How means treat undefined scores, in a sentence: those of empty maps count 0."""
    every = (*evidence.methods, *evidence.floors)
    rows = [empty_maps(evidence, metric, entrant.name) for metric in COUNTED for entrant in every]
    counted = round(sum(row.value for row in rows if row))
    how_many = f" ({counted:,} of these scores)" if counted else ""
    return f"{EMPTY} in the means{how_many}; all other undefined scores are left out of them."


def sorted_by_msfi(evidence: Evidence) -> list[Entrant]:
    """The methods by the sum of their MSFI over the importances, the highest first."""
    views = msfi_views(evidence)

    def negative_sum(entrant: Entrant) -> float:
        rows = [msfi_mean(evidence, view, entrant.name) for view in views]
        defined = [row.value for row in rows if row and not math.isnan(row.value)]
        return -sum(defined) if defined else math.inf

    return sorted(evidence.methods, key=negative_sum)


def _lines(evidence: Evidence) -> list[_MetricLine]:
    """The metrics that have a value, MSFI once for every importance."""
    lines = []
    for metric in METRICS:
        if metric not in evidence.metrics:
            continue
        name = evidence.metrics[metric].label
        if metric != "msfi":
            lines.append(_MetricLine(metric, name, _mean(evidence, metric)))
            continue
        for i, view in enumerate(msfi_views(evidence)):
            full_name = f"{name}, {view.label}" if view.label else name
            lines.append(_MetricLine(metric, full_name, partial(msfi_mean, evidence, view), is_primary=i == 0))
    if RATING in evidence.metrics:
        lines.append(_MetricLine(RATING, evidence.metrics[RATING].label, _mean(evidence, RATING)))
    return [line for line in lines if any(_has(line, method) for method in evidence.methods)]


def _mean(evidence: Evidence, metric: str) -> Callable[[str], Estimate | None]:
    return partial(evidence.find, MEAN, metric, ALL_FINDINGS)


def _has(line: _MetricLine, entrant: Entrant) -> bool:
    row = line.find(entrant.name)
    return row is not None and not math.isnan(row.value)


def _unit(evidence: Evidence, metric: str) -> Unit:
    unit = evidence.metrics[metric].unit
    return _FEWER.get(unit) or unit.rounded(0)


def _squares(evidence: Evidence, line: _MetricLine, columns: Sequence[Entrant]) -> SquareRow:
    measure, unit = evidence.metrics[line.metric], _unit(evidence, line.metric)
    rows = {entrant.name: line.find(entrant.name) for entrant in columns}
    positions = normalised({name: row.value for name, row in rows.items() if row})
    ranking = ranking_of(evidence, line.metric) if line.is_primary else None
    stars = starred(ranking)
    squares = []
    for entrant in columns:
        row = rows[entrant.name]
        if row is None or math.isnan(row.value):
            squares.append(MatrixSquare(None, MISSING, _why(evidence, line, entrant, row)))
            continue
        between = interval(row.low, row.high, unit)
        title = f"{entrant.label}, {line.name}: {number(row.value, unit)}" + (f" ({between})" if between else "")
        text = number(row.value, Unit(unit.factor, unit.decimals))
        is_top = entrant.name in stars
        squares.append(MatrixSquare(positions[entrant.name], text, title, is_top))
    aside = _unclear(ranking) if ranking and not stars else ""
    aside = aside or (f"in{unit.sign}" if unit.sign else "")
    return SquareRow(line.name, measure.summary, tuple(squares), aside)


def _unclear(ranking: Ranking) -> str:
    """That ranks may be chance, or how many methods may be the first, where there are too many for a star."""
    if not ranking.is_defined:
        return ""
    return f"{len(ranking.best)} may be first" if ranking.differ else "ranks may be chance"


def _why(evidence: Evidence, line: _MetricLine, entrant: Entrant, row: Estimate | None) -> str:
    if line.metric == "mi_correlation" and entrant.name in manifest(evidence).shared:
        return f"{entrant.label}: {ONE_MAP}"
    if entrant.name == UNIFORM:
        return "not defined for a uniform map"
    return f"{entrant.label}: {row.reason if row and row.reason else 'not computed in this run'}"


def normalised(values: Mapping[str, float]) -> dict[str, float]:
    """The position of each defined value between the lowest (0) and the highest (1)."""
    defined = {name: value for name, value in values.items() if not math.isnan(value)}
    if not defined:
        return {}
    low, high = min(defined.values()), max(defined.values())
    return {name: (value - low) / (high - low) if high > low else 1.0 for name, value in defined.items()}


def _speed(evidence: Evidence, columns: Sequence[Entrant]) -> SquareRow | None:
    """Seconds per map on a reversed logarithmic scale, so that fast is large."""
    seconds = {name: value for name, value in seconds_by_method(evidence).items() if value > 0}
    if not any(entrant.name in seconds for entrant in columns):
        return None
    positions = normalised({e.name: -math.log10(seconds[e.name]) for e in columns if e.name in seconds})
    squares = tuple(
        MatrixSquare(positions[e.name], brief(seconds[e.name]), f"{e.label}: {brief(seconds[e.name])} per map")
        if e.name in positions
        else MatrixSquare(None, MISSING, f"{e.label}: no time recorded")
        for e in columns
    )
    return SquareRow(SPEED, "Time for the maps of one case, on a logarithmic scale: the faster, the larger.", squares)


def _table(evidence: Evidence, lines: Sequence[_MetricLine], columns: Sequence[Entrant]) -> Matrix:
    notes, shared, rows = Footnotes(), manifest(evidence).shared, []
    for entrant in columns:
        cells = []
        for line in lines:
            unit = evidence.metrics[line.metric].unit
            if line.metric in ORDERS and entrant.name in shared:
                cells.append(Cell(MISSING, title=ONE_MAP, note=notes.mark(ONE_MAP)))
            elif entrant.kind == "floor" and line.find(entrant.name) is None:
                cells.append(Cell(MISSING, title="not defined for this floor"))
            else:
                cells.append(cell_of(line.find(entrant.name), unit, notes))
        rows.append(Row(entrant, tuple(cells)))
    heads = tuple(Column(line.name) for line in lines)
    return Matrix("Every method and metric, mean over cases", heads, grouped(rows), tuple(notes.reasons))
