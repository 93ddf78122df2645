"""Does the shape of a finding affect the scores of its maps? Distributions of four features, and regressions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import SLOPE
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.blocks.block import Figures, Prose, Terms, bullets, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.charts import legend
from heatcheck.report.charts.distributions import draw, spread_of
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, SHARE, Unit, listed
from heatcheck.report.page import Section
from heatcheck.report.published import figure_cell, with_rows
from heatcheck.studies.localization.report import literature
from heatcheck.studies.localization.report.facts import footnotes_of
from heatcheck.studies.localization.report.standing import NAMES, standing_on
from heatcheck.studies.localization.vocabulary import PAPER_PRESET, TESTED

OURS, THEIRS = "recommended", "paper\u2019s rules"
_STARS = (0.05, 0.01, 0.001)


@dataclass(frozen=True, slots=True)
class Feature:
    """A property of the truth's outline: its names and its unit."""

    name: str
    label: str
    phrase: str  # to follow "rises with"
    meaning: str
    unit: Unit


FEATURES = (
    Feature("instances", "Number of instances", "the number of outlines",
            "how many separate outlines the finding has in the image", Unit(1, 1)),
    Feature("size", "Size", "size", "the share of the image that the outline covers", SHARE),
    Feature("elongation", "Elongation", "elongation",
            "the long side divided by the short side of the tightest rectangle around the longest outline", Unit(1, 2)),
    Feature("irrectangularity", "Irrectangularity", "an irregular outline",
            "the share of that rectangle which the outline leaves free", SCORE),
)  # fmt: skip


FIT = (
    "Each cell is a slope with its 95 % interval: above 0 the score rises with the feature. Left of each pair, the "
    "recommended fit: it compares within a finding, treats the images of one patient as a cluster, and corrects "
    "intervals and p-values for the number of fits (Bonferroni); for hits it is a log odds ratio. Right of each pair, "
    "the paper\u2019s rules: one straight line through all findings at once, each feature stretched to 0\u20131, stars "
    "at p below 0.05, 0.01 and 0.001 divided by 4. The two are on different scales for hits: compare signs and "
    "p-values."
)


def geometry(evidence: Evidence) -> Section | None:
    """The section on size and shape; None when the run has neither shapes nor regressions."""
    panels, tables_ = _panels(evidence), _tables(evidence, "")
    if not panels and not tables_:
        return None
    asks = (
        "This section relates the scores of the maps to the size and shape of the experts\u2019 outlines."
        if tables_
        else "This section shows how the experts\u2019 outlines differ in size and shape."
    )
    sentences = [sentence for metric in TESTED if (sentence := _sentence(evidence, metric))]
    behind = "The same for readers minus method: above 0 the method falls further behind as the feature grows."
    gaps = _tables(evidence, HUMAN)
    blocks = (
        *prose("Some findings are easier to point at than others.", asks),
        *bullets(sentences),
        *((Figures(tuple(panels), (legend.LETTER_VALUES,)),) if panels else ()),
        Terms(tuple((feature.label, feature.meaning) for feature in FEATURES)),
        *fold(
            "Regressions of the score on size and shape, for every method",
            (
                Prose(FIT, small=True),
                *tables(tables_, ": slope on size and shape"),
                *prose(literature.caveat_of(evidence, tables_), small=True),
            )
            if tables_
            else (),
        ),
        *fold(
            "Regressions of the distance from the human readers",
            (Prose(behind, small=True), *tables(gaps, ", readers minus method: slope on size and shape"))
            if gaps
            else (),
        ),
    )
    summary = sentences[0] if sentences else "Size and shape of the outlines, finding by finding."
    return Section("geometry", "Which findings are hard to point at?", "Geometry", blocks, summary)


def _panels(evidence: Evidence) -> list[Panel]:
    """One panel per feature, all findings pooled first."""
    table = evidence.run.shapes
    if table.empty:
        return []
    panels = []
    for feature in FEATURES:
        names = [name for name in evidence.findings if (table["finding"] == name).any()]
        values = {ALL_FINDINGS: table[feature.name]}
        values |= {name: table.loc[table["finding"] == name, feature.name] for name in names}
        spreads = [spread for name, column in values.items() if (spread := spread_of(name, column.tolist()))]
        if spreads:
            sign = f" ({feature.unit.sign.strip()})" if feature.unit.sign else ""
            panels.append(Panel(feature.label, draw(feature.label + sign, spreads, feature.unit)))
    return panels


def _slope(evidence: Evidence, metric: str, method: str, feature: str, other: str) -> tuple[Estimate | None, ...]:
    """The recommended slope and the one by the paper's rules."""
    views = (evidence.under(feature=feature), evidence.under(feature=feature, preset=PAPER_PRESET))
    return tuple(view.find(SLOPE, metric, ALL_FINDINGS, method, other) for view in views)


def _tables(evidence: Evidence, other: str) -> list[Matrix]:
    return [table for metric in TESTED if metric in evidence.metrics and (table := _table(evidence, metric, other))]


def _table(evidence: Evidence, metric: str, other: str) -> Matrix | None:
    """Methods against features, each feature under both presets, with the published coefficients below."""
    notes = Footnotes()
    slopes = {
        entrant: [slope for f in FEATURES for slope in _slope(evidence, metric, entrant.name, f.name, other)]
        for entrant in evidence.methods
    }
    slopes = {entrant: row for entrant, row in slopes.items() if any(row)}
    if not slopes:
        return None
    tests = len(FEATURES)
    rows = [Row(entrant, tuple(slope_cell(x, notes, tests) for x in row)) for entrant, row in slopes.items()]
    columns = tuple(Column(feature.label, rules) for feature in FEATURES for rules in (OURS, THEIRS))
    name = evidence.metrics[metric].label
    table = Matrix(name, columns, (("Methods", tuple(rows)),), tuple(notes.reasons))
    return (
        _with_published(table, metric, other, list(slopes))
        if literature.is_own_data(evidence) and literature.shared(evidence.findings)
        else table
    )


def slope_cell(row: Estimate | None, notes: Footnotes, tests: int = 1) -> Cell:
    """A slope; under the paper's rules with stars, at levels divided by the number of tests."""
    cell = cell_of(row, SCORE, notes)
    if row is None or not math.isnan(row.p_adjusted) or math.isnan(row.p_value):
        return cell
    return replace(cell, text=cell.text + "*" * sum(row.p_value < level / tests for level in _STARS))


def _with_published(table: Matrix, metric: str, other: str, methods: Sequence[Entrant]) -> Matrix:
    label = next((method.label for method in methods if method.name == literature.PIPELINE), "")
    if not label:
        return table
    notes = footnotes_of(table)
    column = "human_minus_saliency" if other else "saliency"
    cells = [
        cell
        for f in FEATURES
        for cell in (Cell(""), figure_cell(literature.geometry(metric, f.name, column), SCORE, notes, signed=True))
    ]
    return with_rows(table, [labelled(label, cells, kind="published")], notes, literature.SOURCE)


def _sentence(evidence: Evidence, metric: str) -> str:
    """What the leading method's slopes say, in words."""
    standing = standing_on(evidence, metric)
    if standing is None:
        return ""
    entrant = standing.leader
    slopes = {f.phrase: _slope(evidence, metric, entrant.name, f.name, "")[0] for f in FEATURES}
    tested = {phrase: row for phrase, row in slopes.items() if row and not math.isnan(row.p_adjusted)}
    return f"The {NAMES[metric]} of {entrant.label} {listed(_links(tested))}." if tested else ""


def _links(slopes: Mapping[str, Estimate]) -> list[str]:
    """With what the score clearly rises or falls, with what it does not change, and where that is not shown."""
    rises = [phrase for phrase, row in slopes.items() if judgement_of(row).is_yes]
    falls = [phrase for phrase, row in slopes.items() if opposite_of(row).is_yes]
    flat = [phrase for phrase, row in slopes.items() if judgement_of(row).is_no and opposite_of(row).is_no]
    unknown = [phrase for phrase in slopes if phrase not in {*rises, *falls, *flat}]
    parts = [f"clearly rises with {listed(rises)}"] if rises else []
    parts += [f"clearly falls with {listed(falls)}"] if falls else []
    parts += [f"does not change by a size that matters with {listed(flat, 'or')}"] if flat else []
    return parts + ([f"is not shown to change with {listed(unknown, 'or')}"] if unknown else [])
