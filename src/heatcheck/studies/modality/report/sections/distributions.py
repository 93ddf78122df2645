"""How single cases score: modality correlation and MSFI of every method as swarms and boxes, with the uniform floor."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from heatcheck.core.vocabulary import Condition, condition_of
from heatcheck.report.charts.swarm import Swarm, SwarmRow, draw, legend
from heatcheck.report.evidence import Evidence
from heatcheck.studies.modality.report.facts import MsfiView, empty_maps, manifest, msfi_mean, msfi_views
from heatcheck.studies.modality.vocabulary import UNIFORM

ONE_MAP = "one map for all modalities: nothing to compare"
NO_SCORE = "no defined score"
_COLUMNS = ["method", "metric", "condition", "value"]
FoldScores = tuple[tuple[int, float], ...]  # the fold and the score of each case


@dataclass(frozen=True, slots=True)
class Distribution:
    """The plot of one metric."""

    name: str
    sentence: str
    plot: Markup


def distributions(evidence: Evidence) -> Mapping[str, object] | None:
    """The content of the section on single cases; None when there are no scores."""
    views = [("mi_correlation", MsfiView({}, "")), *(("msfi", view) for view in msfi_views(evidence))]
    plots = [plot for metric, view in views if (plot := _plot(evidence, metric, view))]
    if not plots:
        return None
    folds = manifest(evidence).fold_numbers
    empty = any(empty_maps(evidence, "mi_correlation", method.name) for method in evidence.methods)
    return {"plots": plots, "legend": legend(folds, "fold") if len(folds) > 1 else {}, "empty": empty}


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


def _plot(evidence: Evidence, metric: str, view: MsfiView) -> Distribution | None:
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
    return Distribution(name, measure.summary, draw(plot))


def _mean(scores: FoldScores) -> float:
    return float(np.mean([value for _, value in scores]))


def _floor(evidence: Evidence, metric: str, view: MsfiView) -> tuple[float, str] | None:
    """The uniform map's mean; for a correlation, no order at all."""
    if metric == "mi_correlation":
        return 0.0, "no order"
    row = msfi_mean(evidence, view, UNIFORM)
    return None if row is None or math.isnan(row.value) else (row.value, "uniform map")
