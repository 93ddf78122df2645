"""Can the probabilities be taken at their word, before and after temperature scaling, and what changes for the maps?"""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.charts import reliability
from heatcheck.report.evidence import READERS, Evidence
from heatcheck.report.footnotes import Footnotes
from heatcheck.report.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.numbers import MISSING, SCORE, Unit, interval, number
from heatcheck.studies.localization.vocabulary import CALIBRATION, CUTOFFS, ON_FOLDS, ON_VALIDATION, SCALED, TEMPERATURE

METRIC = "iou_full"
LOGITS = (
    "The maps themselves do not change: they are made from the model\u2019s logits, and temperature only changes how a "
    "logit is turned into a probability. What changes is which cases are called positive, and with it the overlap on "
    "all images. A cutoff of 0.5 cannot change anything either: scaling never moves a probability across one half."
)
_FITTED = {
    ON_VALIDATION: "on the validation data",
    ON_FOLDS: "by folds of patients: each patient\u2019s probability was scaled without that patient",
}


@dataclass(frozen=True, slots=True)
class Curves:
    """The reliability curves: all findings pooled, and each."""

    pooled: Markup | None
    by_finding: Mapping[str, Markup]
    scaled: bool


def curves(evidence: Evidence) -> Curves:
    """The curves, before and, where it was done, after scaling."""
    before, after = reliability.bins_by_finding(evidence), reliability.bins_by_finding(evidence, scaled=True)
    drawn = {f: reliability.draw(f, before.get(f, ()), after.get(f, ())) for f in dict.fromkeys([*before, *after])}
    return Curves(drawn.pop(ALL_FINDINGS, None), drawn, bool(after))


def scaling(evidence: Evidence) -> Mapping[str, object] | None:
    """What temperature scaling did; None when the run did none."""
    view = evidence.under(temperature=SCALED)
    fitted = {row.finding: (row, str(facts.get("fitted_on", ""))) for row, facts in evidence.rows(TEMPERATURE)}
    names = [f for f in (ALL_FINDINGS, *evidence.findings) if view.find(CALIBRATION, "ece", f) or f in fitted]
    table = _table(evidence, view, names, fitted) if names else None
    localized = _localization(evidence)
    if table is None and localized is None:
        return None
    ways = {way for _, way in fitted.values()}
    return {
        "table": table,
        "fitted": [_FITTED[way] for way in sorted(ways) if way in _FITTED],
        "localization": localized,
        "logits": LOGITS,
    }


def _table(evidence: Evidence, view: Evidence, names: list[str], fitted: Mapping[str, tuple[Estimate, str]]) -> Matrix:
    """Calibration error before and after, and the temperature, a column a finding."""
    notes = Footnotes()
    before = [evidence.find(CALIBRATION, "ece", name) for name in names]
    after = [view.find(CALIBRATION, "ece", name) for name in names]
    degrees = [fitted[name][0] if name in fitted else None for name in names]
    rows = [
        labelled("ECE before", [_cell(row, SCORE, notes) for row in before]),
        labelled("ECE after", [_cell(row, SCORE, notes) for row in after]),
        labelled("Temperature", [_cell(row, SCORE.rounded(2), notes) for row in degrees]),
    ]
    columns = tuple(Column(name, main=name == ALL_FINDINGS) for name in names)
    return Matrix("Calibration error before and after", columns, (("", tuple(rows)),), tuple(notes.reasons), "")


def _cell(row: Estimate | None, unit: Unit, notes: Footnotes) -> Cell:
    """A number that may have an interval but need not, with what the run says of it."""
    if row is None:
        return Cell(MISSING)
    bounds = interval(row.low, row.high, unit)
    return Cell(number(row.value, unit), bounds, title=row.reason, note=notes.mark(row.reason))


def _localization(evidence: Evidence) -> Matrix | None:
    """Each method's full-slice overlap where cases below a cutoff are called negative, before and after."""
    if METRIC not in evidence.measures:
        return None
    views: dict[str, Evidence] = {}
    for cutoff in CUTOFFS:
        views[f"cutoff {cutoff:g}, before"] = evidence.under(cutoff=cutoff)
        views[f"cutoff {cutoff:g}, after"] = evidence.under(cutoff=cutoff, temperature=SCALED)
    names, notes, groups = (ALL_FINDINGS, *evidence.findings), Footnotes(), []
    for entrant in (READERS, *evidence.methods):
        found = {label: [view.find(MEAN, METRIC, n, entrant.name) for n in names] for label, view in views.items()}
        rows: list[Row] = [
            labelled(label, [cell_of(e, SCORE, notes) for e in row]) for label, row in found.items() if any(row)
        ]
        if rows:
            groups.append((entrant.label, tuple(rows)))
    if not groups:
        return None
    columns = tuple(Column(name, main=name == ALL_FINDINGS) for name in names)
    return Matrix(evidence.measures[METRIC].label, columns, tuple(groups), tuple(notes.reasons), "Scaling")
