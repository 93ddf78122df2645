"""Whose fault a low score is, by model, method and finding: what the map shows and what the model uses."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.judging.sizes import Sizes
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, listed
from heatcheck.studies.alignment.report import strip as strips
from heatcheck.studies.alignment.report.facts import (
    ARM_LABELS,
    FLOOR_ENTRANTS,
    Pipeline,
    manifest,
    map_estimate,
    network_estimate,
    pipelines,
)
from heatcheck.studies.alignment.report.sections.blame_labels import BEFORE, UNDER, BlameLabel
from heatcheck.studies.alignment.vocabulary import (
    ADDED,
    ARMS,
    BLAME,
    FLOOR,
    FLOORS,
    HUMAN_ARM,
    PLACEBO,
    RANDOM,
    RELIANCE,
    SCALED,
    SEPARATION,
    UNTRAINED,
)

CHECK = "Made without the model: a check, not counted above"
OPEN = 24  # rows that are shown unfolded; more are folded by model
_UNIT = SCORE.rounded(2)
_SCORE_ENDS, _RELIANCE_ENDS = (
    (-1.0, 1.5),
    (-3.0, 5.0),
)  # furthest limits of the axes, so that one extreme row does not compress the others


@dataclass(frozen=True, slots=True)
class Blame:
    """A pipeline on one finding, with the readings of the base model and under fine-tuning."""

    pipeline: Pipeline
    finding: str
    before: str
    under: str
    sentence: str


@dataclass(frozen=True, slots=True)
class BlameRow:
    """A row as the page shows it."""

    row: Blame
    before: BlameLabel
    under: BlameLabel
    score: Markup
    reliance: Markup


def blames(evidence: Evidence) -> tuple[Blame, ...]:
    """The run's blame table, by model, method and finding in the run's order."""
    table = {
        (row.model, row.method, row.finding): (row, facts) for row, facts in evidence.rows(BLAME, every_model=True)
    }
    blames = []
    for pipeline, finding in itertools.product(pipelines(evidence, every=True), evidence.findings):
        key = pipeline.base.name, pipeline.method.name, finding
        if key in table:
            row, facts = table[key]
            before, under = _known(facts.get("before", ""), BEFORE), _known(facts.get("under", ""), UNDER)
            blames.append(Blame(pipeline, finding, before, under, row.reason))
    return tuple(blames)


def _pooled(evidence: Evidence) -> list[tuple[str, BlameLabel, str]]:
    """The readings over all findings together, each finding with the same weight; none where there is one finding."""
    names = {(each.base.name, each.method.name): each.label for each in pipelines(evidence, every=True)}
    return [
        (names[row.model, row.method], BEFORE[_known(facts.get("before", ""), BEFORE)], row.reason)
        for row, facts in evidence.rows(BLAME, every_model=True)
        if row.finding == ALL_FINDINGS and (row.model, row.method) in names
    ]


def without_floors(rows: Sequence[Blame]) -> list[Blame]:
    """The rows of methods that look at the model; floors only test the criterion and are not counted."""
    return [row for row in rows if row.pipeline.method.kind != "floor"]


def _known(reading: str, labels: Mapping[str, BlameLabel]) -> str:
    return reading if reading in labels else "undecided"


def blame(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section shows; None when the run judged nothing."""
    rows = blames(evidence)
    if not rows:
        return None
    shown = _shown(evidence, rows)
    models = list(dict.fromkeys(each.row.pipeline.base.label for each in shown))
    name = evidence.label_of(manifest(evidence).blame_metric)
    return {
        "counts": _counts(rows),
        "groups": [(model, [each for each in shown if each.row.pipeline.base.label == model]) for model in models],
        "fold": len(shown) > OPEN,
        "numbers": _numbers(evidence, rows),
        "floors": _floors(evidence),
        "nulls": _nulls(evidence),
        "metric": name,
        "upper": "the mask itself, a perfect map" if _against_truth(evidence) else "the human readers\u2019 masks",
        "before": [each for key, each in BEFORE.items() if any(row.before == key for row in rows)],
        "under": [each for key, each in UNDER.items() if any(row.under == key for row in rows)],
        "fills": _fills(evidence),
        "sizes": _sizes(evidence),
        "pooled": _pooled(evidence),
        "films": manifest(evidence).reliance.films,
        "has_separation": any(_separation_mark(evidence, row) for row in rows),
    }


def _sizes(evidence: Evidence) -> str:
    """What "hardly" means."""
    sizes = Sizes(**manifest(evidence).sizes)
    return (
        f"\u201cHardly\u201d means: by less than {sizes.reliance:.0%} of the full separation (reliance), or by less "
        f"than {sizes.maps:.0%} of the room up to 1 (map score), even at the high end of the interval. Each reading is "
        "made by itself, without a correction for the number of readings. Intervals of a base model vary the patients: "
        "they speak of this network. Those under fine-tuning vary patients and seeds, from the same base."
    )


def _fills(evidence: Evidence) -> str:
    names = {"blur": "a blurred copy", "mean": "the image\u2019s mean", "noise": "noise"}
    return listed([names.get(fill, fill) for fill in manifest(evidence).reliance.fills], "or")


def _against_truth(evidence: Evidence) -> bool:
    """Whether the upper end of the common scale is the mask itself, because there are no readers."""
    return manifest(evidence).human == "truth"


def _scaled(evidence: Evidence, row: Blame) -> list[Estimate | None]:
    metric = manifest(evidence).blame_metric
    return [map_estimate(evidence, row.pipeline, arm, SCALED, metric, row.finding) for arm in ARMS]


def _reliance(evidence: Evidence, row: Blame) -> list[Estimate | None]:
    return [network_estimate(evidence, row.pipeline, arm, MEAN, RELIANCE, row.finding) for arm in ARMS]


def _shown(evidence: Evidence, rows: Sequence[Blame]) -> list[BlameRow]:
    """The rows with their strips, all on the same two axes."""
    scores, reliances = ([find(evidence, row) for row in rows] for find in (_scaled, _reliance))
    score_limits = strips.limits_of([each for row in scores for each in row], (0.0, 1.0), _SCORE_ENDS)
    always = (0, 0.2, *(value for row in rows for value in _separation_mark(evidence, row)))
    reliance_limits = strips.limits_of([each for row in reliances for each in row], always, _RELIANCE_ENDS)
    upper = "the mask" if _against_truth(evidence) else "readers"
    shown = []
    for row, score, reliance in zip(rows, scores, reliances, strict=True):
        subject = f"{row.pipeline.label}, {row.finding}"
        shown.append(
            BlameRow(
                row,
                BEFORE[row.before],
                UNDER[row.under],
                _strip(f"Map score: {subject}", score, score_limits, {**_floor_mark(evidence, row), 1.0: upper}),
                _strip(
                    f"Reliance: {subject}", reliance, reliance_limits, {0.0: "none", **_separation_mark(evidence, row)}
                ),
            )
        )
    return shown


def _floor_mark(evidence: Evidence, row: Blame) -> dict[float, str]:
    """0 for a random map and, where another floor scores higher, the best of them on the same scale."""
    metric, floors = manifest(evidence).blame_metric, evidence.under(arm=FLOOR)
    found = {name: floors.find(MEAN, metric, row.finding, name) for name in FLOORS}
    scores = {name: each.value for name, each in found.items() if each and not math.isnan(each.value)}
    human = evidence.under(arm=HUMAN_ARM).find(MEAN, metric, row.finding, HUMAN)
    top = human.value if human else 1.0
    marks = {0.0: "random map"}
    best = max(scores, key=lambda name: scores[name], default=RANDOM)
    if best != RANDOM and RANDOM in scores and top > scores[RANDOM]:
        labels = {each.name: each.label.lower() for each in FLOOR_ENTRANTS}
        marks[(scores[best] - scores[RANDOM]) / (top - scores[RANDOM])] = labels[best]
    return marks


def _separation_mark(evidence: Evidence, row: Blame) -> dict[float, str]:
    """The base model's separation as a mark of the axis, where it is above 0."""
    separation = evidence.under(row.pipeline.base.name, arm="base").find(SEPARATION, RELIANCE, row.finding)
    return {separation.value: "full separation"} if separation and separation.value > 0 else {}


def _strip(
    title: str, rows: Sequence[Estimate | None], limits: tuple[float, float], marks: Mapping[float, str]
) -> Markup:
    lines = tuple(strips.Line(arm, label, row) for (arm, label), row in zip(ARM_LABELS.items(), rows, strict=True))
    return strips.draw(strips.ScoreStrip(title, lines, limits, marks))


def _counts(rows: Sequence[Blame]) -> Matrix:
    """How often each reading was made: in all, by method and by model; floors are counted apart, at the end."""
    kinds = [("before", key, each) for key, each in BEFORE.items()] + [
        ("under", key, each) for key, each in UNDER.items()
    ]
    counted = Counter((kind, getattr(row, kind)) for row in rows for kind in ("before", "under"))
    kinds = [(kind, key, each) for kind, key, each in kinds if counted[kind, key]]
    methods, floors = without_floors(rows), [row for row in rows if row.pipeline.method.kind == "floor"]
    total = (labelled("All", [_count(methods, kind, key) for kind, key, _ in kinds]),)
    groups: list[tuple[str, tuple[Row, ...]]] = [("", total)]
    parts = (("By method", "method", methods, 2), ("By model", "base", methods, 2), (CHECK, "method", floors, 1))
    for title, part, counted_rows, fewest in parts:
        parted: dict[str, list[Blame]] = {}
        for row in counted_rows:
            parted.setdefault(getattr(row.pipeline, part).label, []).append(row)
        lines = [labelled(label, [_count(each, kind, key) for kind, key, _ in kinds]) for label, each in parted.items()]
        groups += [(title, tuple(lines))] if len(lines) >= fewest else []
    asides = {"before": "base model", "under": "under fine-tuning"}
    columns = tuple(Column(each.words[:1].upper() + each.words[1:], asides[kind]) for kind, _, each in kinds)
    return Matrix("How many findings have which reading", columns, tuple(groups), (), "Model · method")


def _count(rows: Sequence[Blame], kind: str, key: str) -> Cell:
    n = sum(getattr(row, kind) == key for row in rows)
    return Cell(f"{n:,}")


def _numbers(evidence: Evidence, rows: Sequence[Blame]) -> Matrix:
    """Every number behind the strips, with its interval."""
    notes, metric = Footnotes(), manifest(evidence).blame_metric
    by_pipeline: dict[str, list[Row]] = {}
    for row in rows:
        floor = evidence.under(arm=FLOOR).find(MEAN, metric, row.finding, RANDOM)
        cells = [cell_of(floor, _UNIT, notes)]
        cells += [cell_of(each, _UNIT, notes) for each in _scaled(evidence, row)]
        cells.append(_human_cell(evidence, row, notes))
        cells += [cell_of(each, _UNIT, notes) for each in _reliance(evidence, row)]
        by_pipeline.setdefault(row.pipeline.label, []).append(labelled(row.finding, cells))
    columns = (
        Column("Random map", "raw, = 0"),
        *(Column(label.capitalize(), "0 to 1") for label in ARM_LABELS.values()),
        Column("Mask" if _against_truth(evidence) else "Readers", "raw, = 1"),
        *(Column(label.capitalize(), "reliance") for label in ARM_LABELS.values()),
    )
    groups = tuple((label, tuple(lines)) for label, lines in by_pipeline.items())
    return Matrix("Map scores on the common scale, and reliance", columns, groups, tuple(notes.reasons), "Finding")


def _floors(evidence: Evidence) -> Matrix:
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


def _nulls(evidence: Evidence) -> Matrix:
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
    labels = ("Reliance", "At that place without the finding", "Area added without the finding", "Untrained networks")
    columns = tuple(Column(label) for label in labels)
    return Matrix(
        "Reliance of the base models, and its controls", columns, tuple(groups), tuple(notes.reasons), "Finding"
    )


def _human_cell(evidence: Evidence, row: Blame, notes: Footnotes) -> Cell:
    readers = evidence.under(arm=HUMAN_ARM).find(MEAN, manifest(evidence).blame_metric, row.finding, HUMAN)
    if readers is None and _against_truth(evidence):
        return Cell("1.00", title="by definition: the mask compared with itself")
    return cell_of(readers, _UNIT, notes)
