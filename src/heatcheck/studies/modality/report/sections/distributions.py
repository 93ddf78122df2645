"""How single cases score: modality correlation and MSFI of every method as swarms and boxes, with the uniform floor."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from heatcheck.core.vocabulary import Condition, condition_of
from heatcheck.report.blocks.block import Block, Figures, prose
from heatcheck.report.charts import svg
from heatcheck.report.charts.legend import coloured_dot, key
from heatcheck.report.charts.panels import Panel
from heatcheck.report.charts.swarm import Swarm, SwarmRow, draw, legend
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, number
from heatcheck.report.page import Section
from heatcheck.studies.modality.report.facts import MsfiView, empty_maps, manifest, msfi_mean, msfi_views
from heatcheck.studies.modality.vocabulary import UNIFORM

ONE_MAP = "one map for all modalities: nothing to compare"
NO_SCORE = "no defined score"
_COLUMNS = ["method", "metric", "condition", "value"]
BOX = key(
    "middle half, median, mean",
    svg.tag("rect", x=6, y=2, width=26, height=12, class_="half-box"),
    svg.line(17, 2, 17, 14, "median"),
    svg.path([(21, 5), (27, 11)], "mean-mark"),
    svg.path([(21, 11), (27, 5)], "mean-mark"),
)
FLOOR = key("what an uninformed map scores", svg.line(19, 1, 19, 15, "floor-line"))
FoldScores = tuple[tuple[int, float], ...]  # the fold and the score of each case


def distributions(evidence: Evidence) -> Section | None:
    """A dot for every case and method; None when there are no scores."""
    panels = swarms(evidence)
    if not panels:
        return None
    folds = manifest(evidence).fold_numbers
    dots = legend(folds, "fold") if len(folds) > 1 else {}
    keys = (*(coloured_dot(name, colour) for name, colour in dots.items()), BOX, FLOOR)
    empty = any(empty_maps(evidence, "mi_correlation", method.name) for method in evidence.methods)
    nor = ", nor do empty maps, which count 0 in the means of the other sections" if empty else ""
    blocks: tuple[Block, ...] = (
        *prose(
            "Every dot is one test case. The box holds the middle half of the cases, the stroke in it is the median, "
            "× the mean. A good mean with dots all over the axis is no promise for the next patient. A case without a "
            f"score has no dot{nor}."
        ),
        Figures(panels, keys, "pair swarms"),
    )
    return Section("distributions", "How do single cases score?", "Case by case", blocks, summary(evidence))


def summary(evidence: Evidence) -> str:
    """How far the cases of the method with the highest MSFI reach."""
    views = msfi_views(evidence)
    scores = case_scores(evidence, "msfi", views[0].condition) if views and "msfi" in evidence.metrics else {}
    known = {method.label: scores[method.name] for method in evidence.methods if method.name in scores}
    if not known:
        return ""
    best = max(known, key=lambda label: _mean(known[label]))
    low, high = np.quantile([value for _, value in known[best]], [0.1, 0.9])
    unit = SCORE.rounded(2)
    return f"{best}: MSFI {number(float(low), unit)} to {number(float(high), unit)} in 8 of 10 cases."


def swarms(evidence: Evidence) -> tuple[Panel, ...]:
    """The plot of modality correlation, and one of MSFI for each importance."""
    views = [("mi_correlation", MsfiView({}, "")), *(("msfi", view) for view in msfi_views(evidence))]
    return tuple(plot for metric, view in views if (plot := _plot(evidence, metric, view)))


def case_scores(evidence: Evidence, metric: str, facts: Condition) -> dict[str, FoldScores]:
    """The defined scores of every case under these facts, by method."""
    folds = {condition_of({**facts, "fold": fold}): fold for fold in manifest(evidence).fold_numbers}
    parts = []
    for group in evidence.run.row_groups("scores", _COLUMNS):
        rows = group.filter(pc.equal(group["metric"].cast(pa.string()), metric))
        rows = rows.filter(pc.is_in(rows["condition"].cast(pa.string()), pa.array(list(folds))))
        parts.append(rows.to_pandas().astype({"method": str, "condition": str}))
    table = pd.concat(parts, ignore_index=True).dropna(subset=["value"]) if parts else pd.DataFrame(columns=_COLUMNS)
    numbers = table["condition"].map(folds).astype(int)
    return {
        str(method): tuple(zip(numbers[rows.index].tolist(), rows["value"].astype(float).tolist(), strict=True))
        for method, rows in table.groupby("method")
    }


def _plot(evidence: Evidence, metric: str, view: MsfiView) -> Panel | None:
    if metric not in evidence.metrics:
        return None
    scores = case_scores(evidence, metric, view.condition)
    measure, shared = evidence.metrics[metric], manifest(evidence).shared
    floors = [floor for floor in evidence.floors if floor.name != UNIFORM]
    shown = [each for each in (*evidence.methods, *floors) if each.name in scores or each.kind == "method"]
    if not any(each.name in scores for each in shown):
        return None
    shown.sort(key=lambda each: -_mean(scores[each.name]) if each.name in scores else math.inf)
    rows = tuple(
        SwarmRow(each.label, scores.get(each.name, ()),
                 ONE_MAP if metric == "mi_correlation" and each.name in shared else NO_SCORE)
        for each in shown
    )  # fmt: skip
    limits = (-1.0, 1.0) if metric == "mi_correlation" else (0.0, 1.0)
    name = f"{measure.label}, {view.label}" if view.label else measure.label
    plot = Swarm(f"{name} of every case, by method", name, rows, limits, _floor(evidence, metric, view))
    return Panel(name, draw(plot), measure.summary)


def _mean(scores: FoldScores) -> float:
    return float(np.mean([value for _, value in scores]))


def _floor(evidence: Evidence, metric: str, view: MsfiView) -> tuple[float, str] | None:
    """The uniform map's mean; for a correlation, no order at all."""
    if metric == "mi_correlation":
        return 0.0, "no order"
    row = msfi_mean(evidence, view, UNIFORM)
    return None if row is None or math.isnan(row.value) else (row.value, "uniform map")
