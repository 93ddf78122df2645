"""What was tuned on validation data: thresholds of regions, and probabilities below which there is no region."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, HUMAN
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, TUNED_CUTOFF, TUNED_THRESHOLD, Condition, Statistic
from heatcheck.report.blocks.block import Block, Figures, Heading, Legend, Prose, Table, bullets, fold, prose, tables
from heatcheck.report.blocks.matrix import Matrix, by_finding
from heatcheck.report.charts import curves, legend
from heatcheck.report.charts.axes import limits_around
from heatcheck.report.charts.curves import Curve
from heatcheck.report.charts.panels import Panel, PanelGroup
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, number
from heatcheck.report.page import Section
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


WIDTHS = (
    "Fine-grained maps are smoothed before a region is cut out. The width of the box with the highest mean overlap on "
    "the validation data was used, one for all findings:"
)
ALL_IMAGES = (
    "Here images without the finding count too: a region drawn where the finding is absent is a false alarm and scores "
    "0. Where the model\u2019s probability is below the cutoff, no region is drawn."
)


def thresholds(evidence: Evidence) -> Section | None:
    """The section on thresholds; None when nothing was tuned."""
    threshold, cutoff = (_result(evidence, tuned) for tuned in (THRESHOLD, CUTOFF))
    if threshold.is_empty and cutoff.is_empty:
        return None
    words, smoothing = manifest(evidence).validation.words, _smoothing(evidence)
    blocks = (
        Prose(
            "A map becomes a region at a threshold. Would another threshold change the verdict? The values were "
            f"tuned on other images than those scored here{f' ({words})' if words else ''}: tuned on the scored images "
            "themselves, they would favour every method."
        ),
        *((Heading("The threshold that makes a region"),) if not threshold.is_empty else ()),
        *_result_blocks(threshold, "threshold", has_readers=evidence.has_readers),
        *((Heading("How far maps are smoothed"), Prose(WIDTHS)) if smoothing else ()),
        *bullets(smoothing),
        *((Heading("All images, with a probability cutoff"), Prose(ALL_IMAGES)) if not cutoff.is_empty else ()),
        *_result_blocks(cutoff, "cutoff", has_readers=evidence.has_readers),
    )
    tuned = " and ".join(name for name, one in (("thresholds", threshold), ("cutoffs", cutoff)) if not one.is_empty)
    summary = f"The same maps with {tuned} tuned on other images."
    return Section("thresholds", "Would other thresholds change it?", "Thresholds", blocks, summary)


def _result_blocks(result: TunedResult, what: str, *, has_readers: bool) -> tuple[Block, ...]:
    """The curves of the best method, the means, and behind folds the values chosen and the readers."""
    if result.is_empty:
        return ()
    first, others = result.curves[:1], result.curves[1:]
    left_out = f"{result.left_out} more methods have curves; estimates.csv below has all."
    rest = (*_curve_blocks(others), *prose(left_out if result.left_out else "", small=True)) if others else ()
    panels = result.against.panels[:6] if result.against and has_readers else ()
    chosen = (Table(result.chosen, f"Chosen {what}"),) if result.chosen else ()
    return (
        *((Legend((legend.CHOSEN,)),) if result.curves else ()),
        *_curve_blocks(first),
        *fold("The same for the other method" if len(others) == 1 else "The same for the other methods", rest),
        *tables([result.means], f" with tuned {what}s"),
        *fold("The values that were chosen", chosen),
        *fold(
            f"Tuned {what}s against the human readers",
            (Figures(panels, (legend.METHOD, legend.readers())),) if panels else (),
        ),
        *fold(
            f"Tuned {what}s: difference from the human readers",
            tables([result.differences], ", tuned: method minus readers"),
        ),
    )


def _curve_blocks(methods: Sequence[MethodCurves]) -> tuple[Block, ...]:
    return tuple(
        block
        for method in methods
        for block in (
            Heading(method.label),
            Figures(tuple(Panel(finding, drawn) for finding, drawn in method.drawn), layout="small-multiples"),
        )
    )


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
