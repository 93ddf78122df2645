"""Changes to the estimates of a made-up modality study, for tests of what its page says."""

import json
from dataclasses import replace

from tests.studies.modality.report.made_estimates import LEVELS, MODEL, all_estimates
from tests.studies.modality.report.material import ModalityPlan

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import condition

SMALL = {"folds": 2, "cases": 20}


def changed(change, **plan):
    """The estimates of a small plan, each through `change`."""
    plan = SMALL | plan
    return {**plan, "rows": [change(row) for row in all_estimates(ModalityPlan(**plan))]}


def with_importances(filled=("zero", "tissue"), spread=0.05, **known):
    """A change that gives modalities these Shapley values; intervals of them and of pairs reach this far."""

    def change(row):
        at = json.loads(row.condition)
        if row.metric != "phi_modality" or at.get("filled") not in filled:
            return row
        names = [at["modality"], *([at["versus"]] if row.statistic == "difference" else [])]
        if row.statistic not in {"shapley", "difference"} or not set(names) <= set(known):
            return row
        value = known[names[0]] - (known[names[1]] if len(names) == 2 else 0)
        return replace(row, value=value, low=value - spread, high=value + spread)

    return change


def with_brightness(floor_msfi, floor_order, methods=("gradient", "guided_backprop")):
    """Changes to a run: the rows of a brightness map, with these values, and every method's differences from it."""
    rows = all_estimates(ModalityPlan(methods=methods))
    primary = {"fold": "all", "importance": "lesion", "weights": "positive"}
    for metric, level, at in (("msfi", floor_msfi, primary), ("mi_correlation", floor_order, {"fold": "all"})):
        rows.append(Estimate("mean", metric, ALL_FINDINGS, "intensity", MODEL, level, level - 0.05, level + 0.05,
                             condition=condition(**at)))  # fmt: skip
    order = condition(fold="all")
    rows.append(Estimate("agreement", "mi_correlation", ALL_FINDINGS, "intensity", MODEL, floor_order, condition=order))
    for method in methods:
        gap, lead = LEVELS[method][0] - floor_msfi, LEVELS[method][1] - floor_order
        rows.append(Estimate("difference", "msfi", ALL_FINDINGS, method, MODEL, gap, gap - 0.04, gap + 0.04,
                             condition=condition(versus="intensity"), size=0.1 * (1 - floor_msfi)))  # fmt: skip
        rows.append(Estimate("agreement", "mi_correlation", ALL_FINDINGS, method, MODEL, lead, lead - 0.04, lead + 0.04,
                             condition=condition(fold="all", versus="intensity"),
                             size=0.1 * (1 - floor_order)))  # fmt: skip
    return {"rows": rows, "methods": methods}
