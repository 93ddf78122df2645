"""Which methods differ? Every two of them by paired differences, and the set of methods that may be best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import DIFFERENCE
from heatcheck.judging.best import BestSet, best_set
from heatcheck.judging.judgement import Answer, judgement_of
from heatcheck.report.blocks.block import Block, Heading, Prose, Table, fold, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, grouped
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import Unit, count, difference_of, few, listed, number, probability
from heatcheck.report.page import Section
from heatcheck.report.verdict import CLEARLY, NOT_SHOWN, smallest_visible, would_decide
from heatcheck.studies.triggers.report.facts import these_networks, training_each, trainings
from heatcheck.studies.triggers.vocabulary import CRITERION_METRICS

_WORDS = {Answer.YES: "clearly better", Answer.NO: "no difference that matters", Answer.OPEN: "not shown"}
_MOST_NAMED = 8
OVERLAP = CRITERION_METRICS[0]
_CELLS = (
    "Each cell is the method of its row less that of its column, with its 95 % interval and its p-value. A pair stands "
    "where the method with the higher mean has its row."
)


@dataclass(frozen=True, slots=True)
class MethodDifferences:
    """All pairs of methods by one metric: what they say, and their table."""

    name: str  # of the metric
    sentences: tuple[str, ...]
    table: Matrix


def differences(evidence: Evidence) -> Section | None:
    """Every two methods by overlap and by recovery; None where no two methods were compared."""
    made = compared(evidence)
    if not made:
        return None
    several = trainings(evidence) > 1
    intro = Prose(
        "Every two methods are compared image by image, over the images, triggers and seeds that all methods have. The "
        f"intervals and p-values of all pairs allow for one another. {CLEARLY} {NOT_SHOWN if several else ''}".rstrip()
    )
    each, these = training_each(evidence).capitalize(), these_networks(evidence)
    one = f"{each}: the differences in {these}, which say nothing about the methods in general."
    summary = in_short(evidence) if several else one
    blocks = (intro, *(block for found in made for block in _shown(found)))
    return Section("differences", "Which methods differ?", "Differences", blocks, summary, printed=True)


def in_short(evidence: Evidence) -> str:
    """Which methods may have the best overlap with the triggers."""
    found, labels = best_by(evidence, OVERLAP), compared_methods(evidence, OVERLAP)
    if found is None:
        return "No two methods can be compared by overlap."
    if found.best:
        return f"By overlap, {labels[found.best]} is best."
    if len(found.members) == len(labels):
        return f"By overlap, each of the {len(labels)} methods may be best."
    if len(found.members) == 1:
        return f"By overlap, {labels[found.members[0]]} is ahead beyond chance, but not by a size that matters."
    return f"By overlap, {few([labels[name] for name in found.members])} may be best."


def compared(evidence: Evidence) -> list[MethodDifferences]:
    """The pairs of methods by each metric by which any were compared."""
    return [found for metric in CRITERION_METRICS if (found := _by_metric(evidence, metric))]


def _shown(found: MethodDifferences) -> tuple[Block, ...]:
    return (
        Heading(found.name),
        *prose(*found.sentences),
        *fold("All pairs of methods", (Table(found.table, note=_CELLS),)),
    )


def best_by(evidence: Evidence, metric: str) -> BestSet | None:
    """Which methods may be best by the metric; None where no two have an interval between them."""
    pairs = method_pairs(evidence, metric)
    if all(math.isnan(row.low) for row in pairs):
        return None
    return best_set(list(compared_methods(evidence, metric)), {(row.method, row.other_method): row for row in pairs})


def compared_methods(evidence: Evidence, metric: str) -> dict[str, str]:
    """The methods of which any two were compared by the metric, with their labels."""
    names = {name for row in method_pairs(evidence, metric) for name in (row.method, row.other_method)}
    return {method.name: method.label for method in evidence.methods if method.name in names}


def method_pairs(evidence: Evidence, metric: str) -> list[Estimate]:
    """The comparisons of every two methods, the one with the higher mean first."""
    names = {method.name for method in evidence.methods}
    return [
        row
        for key, row in evidence.estimates.items()
        if key[:3] == (DIFFERENCE, metric, ALL_FINDINGS) and row.method in names and row.other_method in names
    ]


def _by_metric(evidence: Evidence, metric: str) -> MethodDifferences | None:
    pairs = method_pairs(evidence, metric)
    if not pairs:
        return None
    sentences = (_outcome(evidence, pairs), _coverage(pairs), _out_of_sight(evidence, metric, pairs))
    name = evidence.metrics[metric].label
    return MethodDifferences(name, tuple(filter(None, sentences)), _table(evidence, metric, pairs))


def _outcome(evidence: Evidence, pairs: Sequence[Estimate]) -> str:
    if trainings(evidence) == 1:
        return (
            f"Judged with {training_each(evidence)}: these are the differences in {these_networks(evidence)}, with "
            "intervals over images. They say nothing about the methods in general."
        )
    found = best_by(evidence, pairs[0].metric)
    if found is None:
        return f"No two methods can be compared: {pairs[0].reason or 'there is no interval'}."
    methods = compared_methods(evidence, pairs[0].metric)
    labels = [methods[name] for name in found.members]
    if found.best:
        return f"{methods[found.best]} is best: it is clearly better than every other method."
    if len(labels) == len(methods):
        return f"No method is shown to be better than another: each of the {len(methods)} may be best."
    if len(labels) == 1:
        return f"{labels[0]} is ahead of every other method beyond chance, but not of all by a size that matters."
    named = listed(labels) if len(labels) <= _MOST_NAMED else few(labels)
    ruled_out = len(methods) - len(labels)
    some = "One method" if ruled_out == 1 else f"{ruled_out} methods"
    return f"{named} may be best: no other method is above any of them beyond chance. {some} can be ruled out."


def _coverage(pairs: Sequence[Estimate]) -> str:
    """On what all methods were compared."""
    row = max(pairs, key=lambda row: row.n_cases)
    if not row.n_cases:
        return ""
    return (
        f"All were compared on the same {count(row.n_cases, 'poisoned image')} of {count(row.n_patients, 'patient')}."
    )


def _out_of_sight(evidence: Evidence, metric: str, pairs: Sequence[Estimate]) -> str:
    size = least_shown(pairs)
    if math.isnan(size):
        return ""
    unit = difference_of(evidence.metrics[metric].unit)
    least = number(size, unit.rounded(unit.decimals - 1))
    return f"A difference below {least} would go unnoticed in more than half of such runs."


def least_shown(rows: Sequence[Estimate]) -> float:
    """The smallest difference that would more likely be shown than missed, at least the size that matters."""
    sizes = [row.size for row in rows if not math.isnan(row.size)]
    return max(smallest_visible(rows), min(sizes, default=0.0))  # NaN stays NaN


def _table(evidence: Evidence, metric: str, pairs: Sequence[Estimate]) -> Matrix:
    """Each method less those that have a lower mean."""
    by_pair = {(row.method, row.other_method): row for row in pairs}
    wins = {method: sum(row.method == method.name for row in pairs) for method in evidence.methods}
    names = {name for pair in by_pair for name in pair}
    ordered = [m for m in sorted(evidence.methods, key=lambda m: -wins[m]) if m.name in names]
    notes, unit = Footnotes(), difference_of(evidence.metrics[metric].unit)
    rows = []
    for one in ordered[:-1]:
        cells = [_cell(by_pair.get((one.name, other.name)), unit, notes) for other in ordered[1:]]
        rows.append(Row(one, tuple(cells)))
    columns = tuple(Column(f"less {other.label}") for other in ordered[1:])
    return Matrix(evidence.metrics[metric].label, columns, grouped(rows), tuple(notes.reasons))


def _cell(row: Estimate | None, unit: Unit, notes: Footnotes) -> Cell:
    if row is None:
        return Cell("")
    cell = cell_of(row, unit, notes)
    words = _WORDS[judgement_of(row).answer] if not math.isnan(row.size) else ""
    outcome = ", ".join(filter(None, [words, probability(row.p_adjusted), would_decide(row)]))
    return Cell(cell.text, cell.interval, cell.title, cell.note, outcome=outcome)
