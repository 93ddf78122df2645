"""Tables of estimates: methods down, findings (or floors) across, every undefined cell with its reason."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import (
    DIFFERENCE,
    MEAN,
    MODEL_DIFFERENCE,
    PERCENT_DECREASE,
    RATIO,
    SLOPE,
    SPEARMAN,
    TEST,
    TUNED_CUTOFF,
    TUNED_THRESHOLD,
    Statistic,
)
from heatcheck.judging.judgement import Answer, judgement_of, opposite_of
from heatcheck.report.blocks.footnotes import Footnotes, explained, lacks_interval
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import (
    MISSING,
    PERCENT,
    SCORE,
    Unit,
    count,
    difference_of,
    interval,
    number,
    probability,
    spread,
)
from heatcheck.report.verdict import would_decide

GROUPS = {"human": "Human readers", "method": "Methods", "floor": "Floors"}
_COMPARISONS = {DIFFERENCE, TEST, MODEL_DIFFERENCE, SLOPE}
_SIGNED = {*_COMPARISONS, SPEARMAN}


@dataclass(frozen=True, slots=True)
class Cell:
    """One number with its interval; `note` counts the footnotes from 1, 0 is none.

    A `tint` from −1 to 1 colours the cell: deeper further from 0, another colour below it.
    """

    text: str
    interval: str = ""
    title: str = ""
    note: int = 0
    strong: bool = False
    outcome: str = ""
    tint: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table."""

    entrant: Entrant
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and what stands in small print below it."""

    name: str
    aside: str = ""
    main: bool = False


@dataclass(frozen=True, slots=True)
class Matrix:
    """A table ready for the page: rows grouped by kind, footnotes for what is undefined."""

    caption: str
    columns: tuple[Column, ...]
    groups: tuple[tuple[str, tuple[Row, ...]], ...]
    notes: tuple[str, ...]
    corner: str = "Method"  # what the rows are


def by_finding(evidence: Evidence, statistic: Statistic, metric: str, *, other: str = "") -> Matrix | None:
    """Entrants against findings for one statistic of one metric; None when the run has no such estimate.

    Rows and columns without any estimate are left out.
    """
    entrants = [evidence.readers, *evidence.methods, *evidence.floors]
    every = {
        name: [evidence.find(statistic, metric, name, e.name, other) for e in entrants]
        for name in (ALL_FINDINGS, *evidence.findings)
    }
    columns = [name for name, estimates in every.items() if any(estimates)]
    estimates = {e: [every[name][i] for name in columns] for i, e in enumerate(entrants)}
    estimates = {entrant: row for entrant, row in estimates.items() if any(row)}
    if not estimates:
        return None
    unit = _unit(evidence, statistic, metric)
    notes = Footnotes()
    rows = [
        Row(e, tuple(cell_of(estimate, unit, notes) for estimate in row))
        for e, row in _ranked(estimates, evidence, metric)
    ]
    heads = tuple(Column(name, _cases(estimates.values(), i), name == ALL_FINDINGS) for i, name in enumerate(columns))
    better = statistic != PERCENT_DECREASE and evidence.metrics[metric].higher_is_better
    rows = with_best(rows, estimates, highest=better) if statistic in {MEAN, RATIO} else rows
    return Matrix(evidence.metrics[metric].label, heads, grouped(rows), tuple(notes.reasons))


def by_floor(evidence: Evidence, metric: str) -> Matrix | None:
    """Methods against floors over all findings, highest floor first, each cell with its test; None without one."""
    tested = [f for f in evidence.floors if any(_test(evidence, metric, m, f) for m in evidence.methods)]
    if not tested:
        return None
    floors = [floor for floor, _ in _ranked({floor: [] for floor in tested}, evidence, metric)]
    unit = difference_of(evidence.metrics[metric].unit)
    notes = Footnotes()
    rows = [
        Row(method, tuple(cell_of(_test(evidence, metric, method, floor), unit, notes) for floor in floors))
        for method in evidence.methods
    ]
    columns = tuple(Column(floor.label) for floor in floors)
    return Matrix(evidence.metrics[metric].label, columns, grouped(rows), tuple(notes.reasons))


def _test(evidence: Evidence, metric: str, method: Entrant, floor: Entrant) -> Estimate | None:
    return evidence.find(TEST, metric, ALL_FINDINGS, method.name, floor.name)


def _unit(evidence: Evidence, statistic: Statistic, metric: str) -> Unit:
    if statistic == PERCENT_DECREASE:
        return PERCENT
    if statistic in {SLOPE, SPEARMAN}:
        return SCORE
    if statistic in {TUNED_THRESHOLD, TUNED_CUTOFF}:
        return SCORE.rounded(2)
    unit = evidence.metrics[metric].unit
    return difference_of(unit) if statistic in {DIFFERENCE, TEST} else unit


def labelled(label: str, cells: Iterable[Cell], *, kind: str = "", note: str = "") -> Row:
    """A row that stands for a finding or a model instead of a method."""
    return Row(Entrant(label, label, kind, note=note), tuple(cells))


def cell_of(estimate: Estimate | None, unit: Unit, notes: Footnotes) -> Cell:
    """The estimate as a cell, with a footnote for what is missing."""
    if estimate is None:
        return Cell(MISSING, title="not computed in this run", note=notes.mark("not computed in this run"))
    reason, signed = explained(estimate), estimate.statistic in _SIGNED
    if math.isnan(estimate.value):
        return Cell(MISSING, title=reason, note=notes.mark(reason))
    counts = [count(estimate.n_cases, "case")] if estimate.n_cases else []
    counts += [count(estimate.n_patients, "patient")] if estimate.n_patients else []
    counts += [f"{estimate.n_undefined:,} undefined"] if estimate.n_undefined else []
    return Cell(
        number(estimate.value, unit, signed=signed),
        interval_or_dash(estimate, unit, signed=signed),
        title="; ".join(filter(None, [", ".join(counts), reason])),
        note=notes.mark(reason),
        outcome=_outcome(estimate),
    )


def interval_or_dash(estimate: Estimate, unit: Unit, *, signed: bool = False) -> str:
    """The interval without the unit's sign; a dash when it is missing for a reason, empty when none is expected."""
    if lacks_interval(estimate):
        return MISSING if estimate.reason else ""
    return interval(estimate.low, estimate.high, replace(unit, sign=""), signed=signed)


def _outcome(estimate: Estimate) -> str:
    """What the comparison shows, by its judgement, with its corrected p-value."""
    if estimate.statistic not in _COMPARISONS or math.isnan(estimate.size) or lacks_interval(estimate):
        return ""
    above, below = judgement_of(estimate), opposite_of(estimate)
    if above.is_yes:
        words = "✓ clearly higher"
    elif below.is_yes:
        words = "✕ clearly lower"
    elif above.is_no and below.is_no:
        words = "no difference that matters"
    elif estimate.low > 0:
        words = "higher by less than matters" if above.is_no else "higher, not shown to be by enough to matter"
    else:
        words = "not higher" if above.is_no else "not shown to be higher"
    needed = would_decide(estimate) if above.answer is Answer.OPEN else ""
    return "; ".join(filter(None, [", ".join(filter(None, [words, probability(estimate.p_adjusted)])), needed]))


def _cases(rows: Iterable[list[Estimate | None]], column: int) -> str:
    counts = [estimate.n_cases for row in rows if (estimate := row[column]) and estimate.n_cases]
    return f"n {spread(counts)}" if counts else ""


def _ranked(
    estimates: dict[Entrant, list[Estimate | None]], evidence: Evidence, metric: str
) -> list[tuple[Entrant, list[Estimate | None]]]:
    """Highest first by the mean over all findings; the groups are split afterwards."""

    def order(item: tuple[Entrant, list[Estimate | None]]) -> float:
        value = evidence.value(MEAN, metric, ALL_FINDINGS, item[0].name)
        return math.inf if math.isnan(value) else -value

    return sorted(estimates.items(), key=order)


def with_best(rows: list[Row], estimates: dict[Entrant, list[Estimate | None]], *, highest: bool) -> list[Row]:
    """The rows with each column's best method in strong type, when there is more than one to choose from."""
    methods = [entrant for entrant in estimates if entrant.kind == "method"]
    if len(methods) < 2:
        return rows
    best: dict[int, float] = {}
    for i in range(len(rows[0].cells)):
        values = [e.value for m in methods if (e := estimates[m][i]) and not math.isnan(e.value)]
        if values:
            best[i] = max(values) if highest else min(values)
    return [
        replace(row, cells=tuple(_strong(c, estimates[row.entrant][i], best.get(i)) for i, c in enumerate(row.cells)))
        if row.entrant.kind == "method"
        else row
        for row in rows
    ]


def _strong(cell: Cell, estimate: Estimate | None, best: float | None) -> Cell:
    return replace(cell, strong=True) if estimate and estimate.value == best else cell


def grouped(rows: list[Row]) -> tuple[tuple[str, tuple[Row, ...]], ...]:
    """The rows by kind, readers before methods before floors."""
    groups = ((title, tuple(row for row in rows if row.entrant.kind == kind)) for kind, title in GROUPS.items())
    return tuple((title, members) for title, members in groups if members)
