"""The order of the methods by how much their maps agree, and whether it is the order by the known truth.

On each image a method gets the share of the other methods that agree less with the rest than it does, averaged over
the measures of agreement; its consensus is the mean over images, seeds and triggers. Floors have no part in it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import PLAIN, condition
from heatcheck.estimating.estimates import fill
from heatcheck.methods import METHODS
from heatcheck.stats.orders import Order, agreement_of_orders
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.cells import cell_totals, macro
from heatcheck.stats.resampling.nested import ONE_SEED
from heatcheck.stats.resampling.nested_studentised import separate_means, simultaneous_means
from heatcheck.studies.triggers.estimating.comparisons import design_of, metric_scores, wide
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.vocabulary import AGREEMENT_MEASURES, CONSENSUS, TAU_THAT_MATTERS

TRUTH = "trigger_iou"


def consensus_estimates(folder: Path, settings: TriggerSettings) -> Iterator[Estimate]:
    """Each method's consensus, its place by consensus and by truth, and how much the two orders agree."""
    truth = metric_scores(folder, TRUTH, settings)
    truth = wide(truth[truth["condition"] == PLAIN], settings.methods)
    methods = [name for name in settings.methods if not METHODS[name].is_floor and truth[name].notna().any()]
    agreements = {measure: _with_others(folder, measure, methods, settings) for measure in AGREEMENT_MEASURES}
    agreements = {measure: table for measure, table in agreements.items() if not table.empty}
    if len(methods) < 2 or not agreements:
        return
    images = truth[methods].dropna().index
    for table in agreements.values():
        images = images.intersection(table.dropna().index)
    if images.empty:
        return
    truth, shares = truth.loc[images, methods], _shares({m: table.loc[images] for m, table in agreements.items()})
    yield from _orders(shares, truth, settings)
    for measure, table in agreements.items():
        tau = agreement_of_orders(*_ordered(table.loc[images], truth, measure, settings))
        yield replace(_filled(_template(truth, settings), tau), condition=condition(measure=measure))


def _with_others(folder: Path, measure: str, methods: Sequence[str], settings: TriggerSettings) -> pd.DataFrame:
    """How alike each method's map of an image is to those of the other methods, on average."""
    scores = metric_scores(folder, measure, settings)
    scores = scores[(scores["condition"] == PLAIN) & scores["method"].isin(methods)]
    scores = scores[scores["other_method"].isin(methods)]
    if scores.empty:
        return pd.DataFrame()
    pairs = list(combinations(methods, 2))
    table = wide(
        scores.assign(method=scores["method"] + " and " + scores["other_method"]), [" and ".join(p) for p in pairs]
    )
    return pd.DataFrame(
        {
            name: table[[" and ".join(pair) for pair in pairs if name in pair]].mean(axis=1, skipna=False)
            for name in methods
        }
    )


def _shares(agreements: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The share of the other methods that agree less with the rest, image by image, averaged over the measures."""
    first = next(iter(agreements.values()))
    ranks = [table.rank(axis=1).to_numpy(float) for table in agreements.values()]  # equal ones share their places
    shares = (np.mean(ranks, axis=0) - 1) / (first.shape[1] - 1)
    return pd.DataFrame(shares, first.index, first.columns)


def _orders(shares: pd.DataFrame, truth: pd.DataFrame, settings: TriggerSettings) -> Iterator[Estimate]:
    """The consensus of each method, its places, and the agreement of both orders, judged from two seeds on."""
    template = _template(truth, settings)
    means = separate_means(
        shares.to_numpy(float), design_of(shares), settings.draws, settings.generator("consensus"), (0.0, 1.0)
    )
    for method, mean in zip(shares, means, strict=True):
        yield fill(replace(template, metric="consensus", method=str(method)), mean, mean.reason or mean.note)
    orders = _ordered(shares, truth, "consensus", settings)
    for metric, order in zip(("consensus_rank", "truth_rank"), orders, strict=True):
        for method, place in zip(shares, order.places, strict=True):
            yield fill(replace(template, metric=metric, method=str(method)), place, template.reason)
    tau = _filled(template, agreement_of_orders(*orders))
    yield replace(tau, size=math.nan if template.reason else TAU_THAT_MATTERS)


def _template(truth: pd.DataFrame, settings: TriggerSettings) -> Estimate:
    """An estimate of all that these images say; of one training it says so."""
    seeds, patients = (set(truth.index.get_level_values(name)) for name in ("seed", "patient"))
    note = ONE_SEED if len(seeds) == 1 else ""
    template = Estimate(CONSENSUS, "rank_agreement", ALL, model=settings.model, reason=note)
    return replace(template, n_cases=len(truth), n_patients=len(patients))


def _filled(template: Estimate, tau: Interval) -> Estimate:
    return fill(template, tau, tau.reason or template.reason)


def _ordered(one: pd.DataFrame, other: pd.DataFrame, name: str, settings: TriggerSettings) -> tuple[Order, Order]:
    """The order of the columns of both tables; their pairs are one family, so that all clear ones hold together."""
    pairs = list(combinations(one.columns, 2))
    differences = np.stack([table[a] - table[b] for table in (one, other) for a, b in pairs], axis=1)
    generator = settings.generator("order", name)
    found = simultaneous_means(differences, design_of(one), settings.draws, generator)
    clear = np.array([int(each.mean.low > 0) - int(each.mean.high < 0) for each in found])  # NaN is not clear
    return tuple(  # type: ignore[return-value] # of two
        Order(_means(table), part) for table, part in zip((one, other), np.split(clear, 2), strict=True)
    )


def _means(table: pd.DataFrame) -> np.ndarray:
    totals = cell_totals(table.to_numpy(float), design_of(table))
    return np.asarray(macro(totals.means[None], np.ones((1, len(totals.cells.seeds))), totals.cells)[0])
