"""What readers' ratings say: of each method, whether they go with MSFI, and whether readers agree."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import Estimate, condition
from heatcheck.stats.correlation import correlations
from heatcheck.stats.krippendorff import krippendorff_alpha
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import mean_estimates
from heatcheck.stats.spearman import ranks
from heatcheck.studies.modality_means import of_metric, with_numbers
from heatcheck.studies.modality_ratings import Ratings
from heatcheck.studies.modality_reading import read_scores
from heatcheck.studies.modality_rule import ModalityRule

RATING = "rating"  # the metric of every row here
FEW_MAPS = "no case has three rated methods whose ratings and MSFI differ"


def opinion_rows(folder: Path, ratings: Ratings, rule: ModalityRule) -> Iterator[Estimate]:
    """Every estimate that rests on ratings; a map's rating is the mean over its readers."""
    scores = of_metric(read_scores(folder, ["msfi"], rule.model), "msfi", rule)
    each = ratings.table.merge(scores[["case", "patient"]].drop_duplicates(), on="case", how="left")
    each["patient"] = each["patient"].fillna(each["case"])  # a case that failed has no score to name its patient
    maps = each.groupby(["case", "patient", "method"], sort=True)["rating"].mean().reset_index()
    both = maps.merge(scores[["case", "method", "value"]], on=["case", "method"], how="left")
    yield from _means(maps, rule)
    yield from _correlations(both, rule)
    yield _within_cases(both, rule)
    yield _agreement(each, rule)


def _means(maps: pd.DataFrame, rule: ModalityRule) -> Iterator[Estimate]:
    """What each rated method gets on average."""
    # a pivot refuses two rows for one place, of which a pivot table would make a mean
    table = maps.pivot(index=["case", "patient"], columns="method", values="rating")  # noqa: PD010
    rated = [method for method in rule.methods if method in table.columns]
    patients = table.index.get_level_values("patient").to_numpy()
    found = mean_estimates(table[rated].to_numpy(float), patients, rule.draws, rule.generator("mean", RATING))
    for method, one in zip(rated, found, strict=True):
        # a case that nobody was asked about is not undefined
        yield replace(with_numbers(rule.blank("mean", RATING, method), one), n_undefined=0)


def _correlations(both: pd.DataFrame, rule: ModalityRule) -> Iterator[Estimate]:
    """Spearman's correlation of rating and MSFI over all maps, and over those of each method."""
    rated = [method for method in rule.methods if method in set(both["method"])]
    for method in ("", *rated):
        own = both[both["method"] == method] if method else both
        values, patients = own[["rating", "value"]].to_numpy(float), own["patient"].to_numpy()
        found = correlations(values, patients, rule.draws, rule.generator("correlation", RATING, method))
        blank = replace(
            rule.blank("correlation", RATING, method), condition=condition(**{"with": "msfi", "within": "all"}),
            n_cases=found.n_cases, n_patients=found.n_patients, n_undefined=found.n_undefined,
        )  # fmt: skip
        yield _with_interval(blank, found.spearman[0])


def _within_cases(both: pd.DataFrame, rule: ModalityRule) -> Estimate:
    """The mean over cases of Spearman's correlation over a case's methods: does MSFI tell which map readers prefer?"""
    cases = [_of_case(rows) for _, rows in both.groupby("case", sort=True)]
    patients = both.groupby("case", sort=True)["patient"].first().to_numpy()
    values = np.array(cases)[:, None]
    (one,) = mean_estimates(values, patients, rule.draws, rule.generator("correlation", RATING, "within"))
    under = condition(**{"with": "msfi", "within": "case"})
    return with_numbers(replace(rule.blank("correlation", RATING), condition=under), one, FEW_MAPS)


def _of_case(rows: pd.DataFrame) -> float:
    """Spearman's correlation of a case's ratings and scores; NaN below three maps, or where one of the two is flat."""
    whole = rows.dropna(subset=["rating", "value"])
    if len(whole) < 3:
        return float("nan")
    one, other = (ranks(whole[name].to_numpy(float)) for name in ("rating", "value"))
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 0 else float("nan")


def _agreement(each: pd.DataFrame, rule: ModalityRule) -> Estimate:
    """Krippendorff's alpha of the readers over all maps."""
    table = each.pivot(index=["case", "patient", "method"], columns="reader", values="rating")  # noqa: PD010 - as above
    patients = table.index.get_level_values("patient").to_numpy()
    found = krippendorff_alpha(table.to_numpy(float), patients, rule.draws, rule.generator("alpha", RATING))
    paired = (table.notna().sum(axis=1) >= 2).to_numpy()
    blank = replace(rule.blank("alpha", RATING), n_cases=int(paired.sum()), n_patients=len(np.unique(patients[paired])))
    return _with_interval(blank, found)


def _with_interval(blank: Estimate, found: Interval) -> Estimate:
    return replace(blank, value=found.value, low=found.low, high=found.high, reason=found.reason)
