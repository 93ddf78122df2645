"""What was tuned on validation data: thresholds of regions, and probabilities below which there is no region."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, HUMAN
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, TUNED_CUTOFF, TUNED_THRESHOLD, Condition, Statistic
from heatcheck.report.blocks.matrix import Matrix, by_finding
from heatcheck.report.charts import curves
from heatcheck.report.charts.axes import limits_around
from heatcheck.report.charts.curves import Curve
from heatcheck.report.charts.panels import PanelGroup
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, number
from heatcheck.studies.localization.report.facts import best_first, manifest
from heatcheck.studies.localization.report.figures import against_readers
from heatcheck.studies.localization.vocabulary import (
    CUTOFF_CURVE,
    SMOOTHING_CURVE,
    THRESHOLD_CURVE,
    TUNED,
    TUNED_SMOOTHING,
)

DRAWN = 8  # methods whose curves are on the page


@dataclass(frozen=True, slots=True)
class TunableSetting:
    """A threshold or cutoff that can be tuned, and where its estimates are kept."""

    name: Literal["threshold", "cutoff"]  # also in the conditions of the curve's points
    curve: Statistic
    chosen: Statistic
    metric: str
    tuned: Condition  # of the scores with the chosen values
    axis: str


THRESHOLD = TunableSetting("threshold", THRESHOLD_CURVE, TUNED_THRESHOLD, "iou", {"threshold": TUNED}, "threshold")
CUTOFF = TunableSetting("cutoff", CUTOFF_CURVE, TUNED_CUTOFF, "iou_full", {"cutoff": TUNED}, "probability cutoff")


@dataclass(frozen=True, slots=True)
class MethodCurves:
    """A method's curves, one per finding."""

    label: str
    drawn: tuple[tuple[str, Markup], ...]


@dataclass(frozen=True, slots=True)
class TunedResult:
    """Curves, chosen values and scores of one tuned setting."""

    curves: tuple[MethodCurves, ...]
    left_out: int  # methods with curves that are not drawn
    chosen: Matrix | None
    means: Matrix | None
    differences: Matrix | None
    against: PanelGroup | None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was tuned."""
        return not (self.curves or self.chosen or self.means)


def thresholds(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on thresholds shows; None when nothing was tuned."""
    results: dict[str, TunedResult] = {tuned.name: _result(evidence, tuned) for tuned in (THRESHOLD, CUTOFF)}
    if all(result.is_empty for result in results.values()):
        return None
    words = manifest(evidence).validation.words
    return {**results, "smoothing": _smoothing(evidence), "validation": words, "has_readers": evidence.has_readers}


def _smoothing(evidence: Evidence) -> list[str]:
    """Which smoothing was chosen for each method that tried several, with the mean overlap of each: a sentence each."""
    sentences = []
    for entrant in evidence.methods:
        chosen = evidence.value(TUNED_SMOOTHING, "iou", ALL_FINDINGS, entrant.name)
        tried = {
            float(smooth): row.value
            for row, facts in evidence.rows(SMOOTHING_CURVE)
            if (row.method, row.finding) == (entrant.name, ALL_FINDINGS) and (smooth := facts.get("smooth")) is not None
        }
        if tried and not math.isnan(chosen):
            each = ", ".join(f"{smooth:g}: {number(value, SCORE)}" for smooth, value in sorted(tried.items()))
            sentences.append(f"{entrant.label}: {chosen:g} of the longer side (mean overlap there, {each}).")
    return sentences


def _result(evidence: Evidence, tuned: TunableSetting) -> TunedResult:
    view = evidence.under(readers=True, **tuned.tuned)
    drawn = _method_curves(evidence, tuned)
    known = tuned.metric in evidence.metrics
    has_means = any(key[:2] == (MEAN, tuned.metric) and key[3] != HUMAN for key in view.estimates)
    return TunedResult(
        curves=tuple(drawn[:DRAWN]),
        left_out=len(drawn[DRAWN:]),
        chosen=by_finding(evidence, tuned.chosen, tuned.metric) if known else None,
        means=by_finding(view, MEAN, tuned.metric) if known and has_means else None,
        differences=by_finding(view, DIFFERENCE, tuned.metric, other=HUMAN) if known else None,
        against=against_readers(view, tuned.metric) if known and has_means else None,
    )


def _method_curves(evidence: Evidence, tuned: TunableSetting) -> list[MethodCurves]:
    """The curves of each method that has some, the best method first, all on one scale."""
    names = {entrant.name for entrant in evidence.methods}
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row, facts in evidence.rows(tuned.curve):
        tried = facts.get(tuned.name)
        if row.metric == tuned.metric and row.method in names and isinstance(tried, int | float):
            points.setdefault((row.method, row.finding), []).append((float(tried), row.value))
    drawable = {
        (method, finding): Curve(
            f"{finding}: score against {tuned.axis}",
            tuned.axis,
            tuple(sorted(curve)),
            evidence.value(tuned.chosen, tuned.metric, finding, method),
        )
        for (method, finding), curve in points.items()
    }
    scale = limits_around(curves.limits(list(drawable.values())))
    by_method = []
    for entrant in best_first(evidence):
        drawn = [
            (finding, curves.draw(drawable[entrant.name, finding], scale))
            for finding in (*evidence.findings, ALL_FINDINGS)
            if (entrant.name, finding) in drawable
        ]
        if drawn:
            by_method.append(MethodCurves(entrant.label, tuple(drawn)))
    return by_method
