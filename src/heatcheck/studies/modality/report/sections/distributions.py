"""How single cases score: modality correlation and MSFI of every method as swarms and boxes, with the uniform floor."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from heatcheck.report.charts.swarm import Swarm, SwarmRow, draw, legend
from heatcheck.report.evidence import Evidence
from heatcheck.studies.modality.report.facts import EVERY, Facts, estimate, folds_of, shared_of, silent
from heatcheck.studies.modality.report.scores import case_scores
from heatcheck.studies.modality.report.words import IMPORTANCES, msfi_views
from heatcheck.studies.modality.vocabulary import UNIFORM

ONE_MAP = "one map for all modalities: nothing to compare"
NO_SCORE = "no defined score"


@dataclass(frozen=True, slots=True)
class Distribution:
    """One measure's plot."""

    name: str
    sentence: str
    plot: Markup


def distributions(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on single cases shows; None when there are no scores."""
    made = [_plot(evidence, "mi_correlation", {}, "")]
    views = msfi_views(evidence)
    made += [_plot(evidence, "msfi", facts, IMPORTANCES[str(facts["importance"])] if len(views) > 1 else "")
             for facts in views]  # fmt: skip
    shown = [each for each in made if each]
    folds = folds_of(evidence)
    if not shown:
        return None
    empty = any(silent(evidence, "mi_correlation", method.name) for method in evidence.methods)
    return {"plots": shown, "legend": legend(folds, "fold") if len(folds) > 1 else {}, "empty": empty}


def _plot(evidence: Evidence, metric: str, facts: Facts, aside: str) -> Distribution | None:
    if metric not in evidence.measures:
        return None
    scores = case_scores(evidence, metric, facts)
    measure, shared = evidence.measures[metric], shared_of(evidence)
    rows = [
        SwarmRow(method.label, values,
                 ONE_MAP if metric == "mi_correlation" and method.name in shared else NO_SCORE)
        for method in (*evidence.methods, *(floor for floor in evidence.floors if floor.name != UNIFORM))
        if (values := scores.of(method.name)) or method.kind == "method"
    ]  # fmt: skip
    if not any(row.values for row in rows):
        return None
    rows.sort(key=lambda row: -float(np.mean([value for _, value in row.values])) if row.values else math.inf)
    limits = (-1.0, 1.0) if metric == "mi_correlation" else (0.0, 1.0)
    name = f"{measure.label}, {aside}" if aside else measure.label
    plot = Swarm(f"{name} of every case, by method", name, tuple(rows), limits, _floor(evidence, metric, facts))
    return Distribution(name, measure.summary, draw(plot))


def _floor(evidence: Evidence, metric: str, facts: Facts) -> tuple[float, str] | None:
    """The uniform map's mean; for a correlation, no order at all."""
    if metric == "mi_correlation":
        return 0.0, "no order"
    row = estimate(evidence, ("mean", metric), {**facts, "fold": EVERY}, UNIFORM)
    return None if row is None or math.isnan(row.value) else (row.value, "uniform map")
