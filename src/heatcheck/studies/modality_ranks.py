"""How methods rank over the patients: Friedman's test, Nemenyi's comparisons, and who is among the best."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import pandas as pd

from heatcheck.core.records import Estimate, condition
from heatcheck.metrics.modality.shares import UNINFORMATIVE
from heatcheck.metrics.registry import METRIC_FACTS
from heatcheck.stats.ranks import RankComparison, compare_ranks, top_marks
from heatcheck.studies.modality_means import EMPTY, of_metric
from heatcheck.studies.modality_reading import wide
from heatcheck.studies.modality_rule import RANKED, ModalityRule

SAYS_NOTHING = (UNINFORMATIVE, *EMPTY)
_DIGITS = 12  # sums in another order must not break a tie


def rank_rows(scores: pd.DataFrame, rule: ModalityRule) -> Iterator[Estimate]:
    """The mean rank of every method by each metric, over the patients of all folds.

    Cases of one patient are not independent, so their scores are averaged first and patients are the blocks.

    What is undefined because of the map itself counts 0: leaving those cases out would reward a map that says nothing.
    A case with another undefined score is left out.
    """
    for metric in RANKED:
        rows = of_metric(scores, metric, rule)
        if rows.empty:
            continue
        counted = rows["value"].mask(rows["reason"].isin(SAYS_NOTHING), 0.0)
        table = wide(rows.assign(value=counted), ["method"]).reindex(columns=list(rule.methods))
        whole = table.dropna()
        patients = whole.groupby(level="patient").mean().round(_DIGITS).to_numpy(float)
        blank = replace(rule.blank("rank", metric), n_cases=len(whole), n_undefined=len(table) - len(whole))
        better = METRIC_FACTS[metric].higher_is_better
        yield from _ranked(compare_ranks(patients, higher_is_better=better), blank, rule)


def _ranked(found: RankComparison, blank: Estimate, rule: ModalityRule) -> Iterator[Estimate]:
    blank = replace(blank, n_patients=found.n_blocks)
    tested = {} if math.isnan(found.chi_squared) else {"chi_squared": found.chi_squared}
    for method, rank, top in zip(rule.methods, found.mean_ranks, top_marks(found), strict=True):
        yield replace(
            blank, method=method, value=float(rank), p_value=found.p_value, reason=found.reason,
            condition=condition(top=int(top), **tested),
        )  # fmt: skip
    if found.reason:
        return
    yield replace(blank, statistic="critical_difference", value=found.critical_difference)
    for one, other in combinations(range(len(rule.methods)), 2):
        yield replace(
            blank, statistic="pair", method=rule.methods[one], other_method=rule.methods[other],
            value=float(found.mean_ranks[one] - found.mean_ranks[other]),
            p_adjusted=float(found.p_values[one, other]), family=f"{blank.metric}: methods in pairs",
        )  # fmt: skip
