"""How good the model itself is: discrimination and calibration by finding, before and after temperature scaling."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc
from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, CALIBRATION, CHANCE_CALIBRATION, MEAN
from heatcheck.report.blocks.block import Block, Figures, Heading, Prose, Table, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes, explained
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, cell_of, interval_or_dash, labelled
from heatcheck.report.charts import legend, reliability
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import MISSING, SCORE, Unit, interval, number
from heatcheck.report.page import Section
from heatcheck.runs.store import Run
from heatcheck.studies.localization.report.facts import every_finding, finding_columns
from heatcheck.studies.localization.vocabulary import (
    ON_FOLDS,
    ON_VALIDATION,
    SCALED,
    SHOWN_CUTOFFS,
    TEMPERATURE,
)

FULL_OVERLAP = "iou_full"
LOGITS = (
    "The maps themselves do not change: they are made from the model\u2019s logits, and temperature only changes how a "
    "logit is turned into a probability. What changes is which cases are called positive, and with it the overlap on "
    "all images. A cutoff of 0.5 cannot change anything either: scaling never moves a probability across one half."
)
_FITTED = {
    ON_VALIDATION: "on the validation data",
    ON_FOLDS: "by folds of patients: each patient\u2019s probability was scaled without that patient",
}


BY_CHANCE = (
    "Even a perfect model does not reach 0 with few cases: beside each error stands what a perfect model with these "
    "probabilities would get by chance, on average and at most in 95 % of runs."
)
MARKS = (
    "Each mark stands for cases to which the model gave about the same probability; the larger the mark, the more "
    "cases. On the dashed line a predicted 70 % comes true in 70 % of cases; below it the model is overconfident, "
    "above it underconfident."
)
TEMPERATURES = (
    "Temperature scaling divides every logit by one number per finding, so that the probabilities come closer to how "
    "often the finding is present: above 1 the model was overconfident."
)
CUTOFFS = "Overlap on all images before and after, where cases below a probability of 0.3 or 0.5 are called negative"


def model_section(evidence: Evidence) -> Section:
    """The section on the model itself: discrimination, calibration, and what temperature scaling changes."""
    card = model_card(evidence)
    blocks: tuple[Block, ...] = (
        *prose(evidence.manifest.model_description),
        *_quality_blocks(evidence, card),
        *_reliability_blocks(evidence, is_scored=bool(card.rows)),
        *_scaling_blocks(evidence),
    )
    overall = evidence.find(AUROC, "auroc", ALL_FINDINGS)
    known = overall is not None and not math.isnan(overall.value)
    summary = f"AUROC {number(overall.value, SCORE.rounded(2))} over all findings." if known and overall else ""
    return Section("model", "How good is the model itself?", "Model", blocks, summary)


def _quality_blocks(evidence: Evidence, card: "ModelCard") -> tuple[Block, ...]:
    """AUROC and calibration error by finding, with what they mean."""
    if not card.rows:
        return prose("The model\u2019s AUROC and calibration were not computed in this run.")
    columns = Column("AUROC", "95 % interval"), Column("ECE"), Column("ECE by chance"), Column("Cases")
    rows = tuple(
        labelled(row.finding, (row.auroc, row.ece, Cell(row.chance), Cell(row.cases), Cell(row.positives)))
        for row in card.rows
    )
    caption = "The model\u2019s answers by finding"
    matrix = Matrix(caption, (*columns, Column("With the finding")), (("", rows),), card.notes, "Finding")
    meanings = {name: evidence.metrics[name].summary for name in ("auroc", "ece") if name in evidence.metrics}
    auroc = Markup("<b>AUROC.</b> {}").format(meanings["auroc"]) if meanings.get("auroc") else ""
    ece = Markup("<b>ECE.</b> {} {}").format(meanings["ece"], BY_CHANCE) if meanings.get("ece") else ""
    return (*prose(auroc), *prose(ece), Table(matrix))


def _reliability_blocks(evidence: Evidence, *, is_scored: bool) -> tuple[Block, ...]:
    """The reliability curves: all findings together, and each behind a fold."""
    curves = _curves(evidence)
    if not curves.pooled and not curves.by_finding:
        return prose("No reliability curve was computed in this run." if is_scored else "")
    keys = (legend.AS_PREDICTED, legend.AFTER_SCALING) if curves.scaled else ()
    each = tuple(Panel(finding, curve) for finding, curve in curves.by_finding.items())
    return (
        Heading("Reliability: can its probabilities be trusted?"),
        Prose(MARKS, small=True),
        *((Figures((Panel("All findings together", curves.pooled),), keys),) if curves.pooled else ()),
        *fold("Reliability by finding", (Figures(each),) if each else ()),
    )


def _scaling_blocks(evidence: Evidence) -> tuple[Block, ...]:
    """What temperature scaling changes; nothing when the run did none."""
    fitted = {row.finding: row for row, _ in evidence.rows(TEMPERATURE)}
    table, overlap = _scaling_table(evidence, fitted), _overlap_by_cutoff(evidence)
    if table is None and overlap is None:
        return ()
    ways = sorted({facts.get("fitted_on", "") for _, facts in evidence.rows(TEMPERATURE)} & set(_FITTED))
    where = f"The temperature was fitted {'; '.join(_FITTED[way] for way in ways)}." if ways else ""
    scaled = tables([overlap], ", before and after scaling")
    return (
        Heading("After temperature scaling"),
        *prose(TEMPERATURES, where),
        *tables([table]),
        *prose(LOGITS if scaled else ""),
        *fold(CUTOFFS, scaled),
    )


@dataclass(frozen=True, slots=True)
class ModelQuality:
    """The model's discrimination and calibration on one finding, as text."""

    finding: str
    auroc: Cell
    ece: Cell
    chance: str  # what a perfect model would get
    positives: str
    cases: str


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One row per finding the model was scored on, all findings first, with footnotes for what is undefined."""

    rows: tuple[ModelQuality, ...]
    notes: tuple[str, ...]


def model_card(evidence: Evidence) -> ModelCard:
    """The table of discrimination and calibration by finding."""
    estimated = {key[2] for key in evidence.estimates if key[0] in {AUROC, CALIBRATION}}
    findings = [finding for finding in every_finding(evidence) if finding in estimated]
    positives, notes = positive_cases(evidence.run), Footnotes()
    rows = [_answers(evidence, finding, positives, notes) for finding in findings]
    return ModelCard(tuple(rows), tuple(notes.reasons))


def _answers(evidence: Evidence, finding: str, positives: Mapping[str, int], notes: Footnotes) -> ModelQuality:
    auroc = evidence.find(AUROC, "auroc", finding)
    ece = evidence.find(CALIBRATION, "ece", finding)
    either = auroc or ece
    return ModelQuality(
        finding=finding,
        auroc=_cell(auroc, notes),
        ece=_cell(ece, notes),
        chance=_by_chance(evidence.find(CHANCE_CALIBRATION, "ece", finding)),
        positives=f"{positives[finding]:,}" if finding in positives else MISSING,
        cases=f"{either.n_cases:,}" if either and either.n_cases else MISSING,
    )


def _cell(estimate: Estimate | None, notes: Footnotes) -> Cell:
    if estimate is None:
        return Cell(MISSING)
    reason = explained(estimate)
    return Cell(number(estimate.value), interval_or_dash(estimate, SCORE), title=reason, note=notes.mark(reason))


def _by_chance(estimate: Estimate | None) -> str:
    """The error that a perfect model has on average, and that which only one in twenty exceeds."""
    if estimate is None or math.isnan(estimate.value):
        return MISSING
    return f"{number(estimate.value)} (up to {number(estimate.high)})"


def positive_cases(run: Run) -> dict[str, int]:
    """How many cases have each finding, counted without holding the predictions in memory."""
    counted: Counter[tuple[str, str]] = Counter()
    for answers in run.row_groups("predictions", ["finding", "model", "label"]):
        present = pc.equal(answers["label"], 1).cast("int64")
        by_model = answers.select(["finding", "model"]).append_column("present", present).group_by(["finding", "model"])
        sums = by_model.aggregate([("present", "sum")]).to_pydict()
        keys = zip(sums["finding"], sums["model"], strict=True)
        counted.update(dict(zip(keys, sums["present_sum"], strict=True)))
    positives: dict[str, int] = {}
    for (finding, _), cases in counted.items():  # several models predict the same cases
        positives[finding] = max(cases, positives.get(finding, 0))
    return positives


@dataclass(frozen=True, slots=True)
class Curves:
    """The reliability curves: all findings pooled, and each."""

    pooled: Markup | None
    by_finding: Mapping[str, Markup]
    scaled: bool


def _curves(evidence: Evidence) -> Curves:
    """The curves, before and, where it was done, after scaling."""
    before, after = reliability.bins_by_finding(evidence), reliability.bins_by_finding(evidence, scaled=True)
    drawn = {f: reliability.draw(f, before.get(f, ()), after.get(f, ())) for f in dict.fromkeys([*before, *after])}
    return Curves(drawn.pop(ALL_FINDINGS, None), drawn, bool(after))


def _scaling_table(evidence: Evidence, fitted: Mapping[str, Estimate]) -> Matrix | None:
    """Calibration error before and after, and the temperature, by finding; None without either."""
    view, notes = evidence.under(temperature=SCALED), Footnotes()
    names = [name for name in every_finding(evidence) if view.find(CALIBRATION, "ece", name) or name in fitted]
    before = [evidence.find(CALIBRATION, "ece", name) for name in names]
    after = [view.find(CALIBRATION, "ece", name) for name in names]
    rows = [
        labelled("ECE before", [_scaling_cell(row, SCORE, notes) for row in before]),
        labelled("ECE after", [_scaling_cell(row, SCORE, notes) for row in after]),
        labelled("Temperature", [_scaling_cell(fitted.get(name), SCORE.rounded(2), notes) for name in names]),
    ]
    groups, caption = (("", tuple(rows)),), "Calibration error before and after"
    return Matrix(caption, finding_columns(names), groups, tuple(notes.reasons), "") if names else None


def _scaling_cell(row: Estimate | None, unit: Unit, notes: Footnotes) -> Cell:
    """A number that may have an interval but need not, with the reason that the run gives."""
    if row is None:
        return Cell(MISSING)
    bounds = interval(row.low, row.high, unit)
    return Cell(number(row.value, unit), bounds, title=row.reason, note=notes.mark(row.reason))


def _overlap_by_cutoff(evidence: Evidence) -> Matrix | None:
    """Each method's overlap on all images where cases below a cutoff are called negative, before and after scaling."""
    if FULL_OVERLAP not in evidence.metrics:
        return None
    views: dict[str, Evidence] = {}
    for cutoff in SHOWN_CUTOFFS:
        views[f"cutoff {cutoff:g}, before"] = evidence.under(cutoff=cutoff)
        views[f"cutoff {cutoff:g}, after"] = evidence.under(cutoff=cutoff, temperature=SCALED)
    names, notes, groups = every_finding(evidence), Footnotes(), []
    for entrant in (evidence.readers, *evidence.methods):
        means = {
            label: [view.find(MEAN, FULL_OVERLAP, name, entrant.name) for name in names]
            for label, view in views.items()
        }
        rows = [labelled(label, [cell_of(e, SCORE, notes) for e in row]) for label, row in means.items() if any(row)]
        if rows:
            groups.append((entrant.label, tuple(rows)))
    if not groups:
        return None
    label = evidence.metrics[FULL_OVERLAP].label
    return Matrix(label, finding_columns(names), tuple(groups), tuple(notes.reasons), "Scaling")
