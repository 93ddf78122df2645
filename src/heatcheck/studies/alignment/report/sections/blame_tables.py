"""The tables of the section on blame: counts of readings, and the numbers behind them."""

from collections.abc import Sequence

from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE
from heatcheck.studies.alignment.report.facts import (
    ARM_LABELS,
    FLOOR_ENTRANTS,
    manifest,
    map_estimate,
    network_estimate,
)
from heatcheck.studies.alignment.report.readings import Blame, of_floors, without_floors
from heatcheck.studies.alignment.report.scale import against_truth
from heatcheck.studies.alignment.report.sections.blame_labels import EVERY, BlameLabel
from heatcheck.studies.alignment.vocabulary import (
    ADDED,
    ARMS,
    FLOOR,
    HUMAN_ARM,
    PLACEBO,
    RANDOM,
    RELIANCE,
    SCALED,
    UNTRAINED,
)

CHECK = "Maps made without the model: a check of the rule, not counted above"
NULLS = (
    "All four are in units of how much the model\u2019s score differs between images. \u201cSame place, no "
    "finding\u201d: how much further the score falls when the same place is hidden on images without the finding than "
    "when other places are; below 0, hiding that place raises their score. It is already subtracted from reliance. "
    "\u201cRegion put on images without the finding\u201d: how much their score rises when the region of an image with "
    "the finding is put on them; high where the region alone suffices. \u201cUntrained networks\u201d: the reliance of "
    "networks of the same build that learned nothing."
)
_BEFORE, _UNDER = "before fine-tuning", "under fine-tuning"
_UNIT = SCORE.rounded(2)


def scaled(evidence: Evidence, row: Blame) -> list[Estimate | None]:
    """The map scores of the four networks on the common scale."""
    metric = manifest(evidence).blame_metric
    return [map_estimate(evidence, row.pipeline, arm, SCALED, metric, row.finding) for arm in ARMS]


def reliance(evidence: Evidence, row: Blame) -> list[Estimate | None]:
    """The reliance of the four networks on the region."""
    return [network_estimate(evidence, row.pipeline, arm, MEAN, RELIANCE, row.finding) for arm in ARMS]


def counts(rows: Sequence[Blame]) -> Matrix:
    """How often each reading was made: in all, by method and by model; floors are counted apart, at the end."""
    found = {_BEFORE: {row.label for row in rows}, _UNDER: {row.under_label for row in rows}}
    kinds = [(when, label) for when, labels in found.items() for label in EVERY if label in labels]
    methods, made_without = without_floors(rows), of_floors(rows)
    total = (labelled("All", [_count(methods, *kind) for kind in kinds]),)
    groups: list[tuple[str, tuple[Row, ...]]] = [("", total)]
    parts = (("By method", "method", methods, 2), ("By model", "base", methods, 2), (CHECK, "method", made_without, 1))
    for title, part, counted_rows, fewest in parts:
        parted: dict[str, list[Blame]] = {}
        for row in counted_rows:
            parted.setdefault(getattr(row.pipeline, part).label, []).append(row)
        lines = [labelled(label, [_count(each, *kind) for kind in kinds]) for label, each in parted.items()]
        groups += [(title, tuple(lines))] if len(lines) >= fewest else []
    columns = tuple(Column(label.words[:1].upper() + label.words[1:], when) for when, label in kinds)
    return Matrix("How many findings have which reading", columns, tuple(groups), (), "Model · method")


def _count(rows: Sequence[Blame], when: str, label: BlameLabel) -> Cell:
    n = sum((row.label if when == _BEFORE else row.under_label) is label for row in rows)
    return Cell(f"{n:,}")


def numbers(evidence: Evidence, rows: Sequence[Blame]) -> Matrix:
    """Every number behind the strips, with its interval."""
    notes, metric = Footnotes(), manifest(evidence).blame_metric
    by_pipeline: dict[str, list[Row]] = {}
    for row in rows:
        floor = evidence.under(arm=FLOOR).find(MEAN, metric, row.finding, RANDOM)
        cells = [cell_of(floor, _UNIT, notes)]
        cells += [cell_of(each, _UNIT, notes) for each in scaled(evidence, row)]
        cells.append(_human_cell(evidence, row, notes))
        cells += [cell_of(each, _UNIT, notes) for each in reliance(evidence, row)]
        by_pipeline.setdefault(row.pipeline.label, []).append(labelled(row.finding, cells))
    columns = (
        Column("Random map", "raw, = 0"),
        *(Column(label.capitalize(), "0 to 1") for label in ARM_LABELS.values()),
        Column("Mask" if against_truth(evidence) else evidence.readers.label, "raw, = 1"),
        *(Column(label.capitalize(), "reliance") for label in ARM_LABELS.values()),
    )
    groups = tuple((label, tuple(lines)) for label, lines in by_pipeline.items())
    return Matrix("Map scores on the common scale, and reliance", columns, groups, tuple(notes.reasons), "Finding")


def floors(evidence: Evidence) -> Matrix:
    """The scores of maps that are made without a model, by finding."""
    notes, metric, under = Footnotes(), manifest(evidence).blame_metric, evidence.under(arm=FLOOR)
    rows = [
        labelled(
            finding, [cell_of(under.find(MEAN, metric, finding, each.name), _UNIT, notes) for each in FLOOR_ENTRANTS]
        )
        for finding in evidence.findings
    ]
    columns = tuple(Column(each.label) for each in FLOOR_ENTRANTS)
    return Matrix("Maps made without the model", columns, (("", tuple(rows)),), tuple(notes.reasons), "Finding")


def nulls(evidence: Evidence) -> Matrix:
    """What reliance is compared with: the same place without the finding, what the area adds, untrained networks."""
    notes, groups = Footnotes(), []
    for base in manifest(evidence).tuned:
        of_base, untrained = (evidence.under(base.name, arm=arm) for arm in ("base", UNTRAINED))
        wanted = ((of_base, RELIANCE), (of_base, PLACEBO), (of_base, ADDED), (untrained, RELIANCE))
        rows = [
            labelled(
                finding, [cell_of(under.find(MEAN, metric, finding, ""), _UNIT, notes) for under, metric in wanted]
            )
            for finding in evidence.findings
        ]
        groups.append((base.label, tuple(rows)))
    labels = (
        "Reliance",
        "Same place, no finding",
        "Region put on images without the finding",
        "Untrained networks",
    )
    columns = tuple(Column(label) for label in labels)
    return Matrix(
        "Reliance of the base models, and its controls", columns, tuple(groups), tuple(notes.reasons), "Finding"
    )


def _human_cell(evidence: Evidence, row: Blame, notes: Footnotes) -> Cell:
    readers = evidence.under(arm=HUMAN_ARM).find(MEAN, manifest(evidence).blame_metric, row.finding, HUMAN)
    if readers is None and against_truth(evidence):
        return Cell("1.00", title="by definition: the mask compared with itself")
    return cell_of(readers, _UNIT, notes)
