"""The regression tables of the CheXlocalize paper's scripts, to the last character.

Every table has a row per image (the index) and a column per finding. Images and findings are matched by name.
"""

import math
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from heatcheck.stats.regression import Fit, least_squares, min_max
from heatcheck.stats.spearman import spearman

OVERALL = "Overall"
SLOPES = "Linear regression coefficients"
CORRELATIONS = "Spearman correlations"
LIMITS = (0.05, 0.01, 0.001)  # a star for each that the p-value is below
FEATURES = ("n_instance", "area_ratio", "elongation", "irrectangularity")  # the names in the paper's files


@dataclass(frozen=True, slots=True)
class ShapeTables:
    """The geometry of the truth, one table per feature; 0 instances where a finding was not annotated."""

    instances: pd.DataFrame
    size: pd.DataFrame
    elongation: pd.DataFrame
    irrectangularity: pd.DataFrame


def feature_regressions(scores: pd.DataFrame, shapes: ShapeTables) -> pd.DataFrame:
    """The table of regression_features_*.csv: the scores on each feature, over all findings at once.

    The files on the distance from the readers take their scores less the method's. A feature is scaled by its range
    over all annotated findings, before those without a score are dropped. With four features, stars mark p-values
    below a quarter of the limits.
    """
    rows = []
    annotated = _long(shapes.instances) > 0
    for name, field in zip(FEATURES, fields(ShapeTables), strict=True):
        feature = _long(getattr(shapes, field.name)).where(annotated).dropna()
        scaled = pd.Series(min_max(feature.to_numpy(float)), feature.index)
        fit = least_squares(*_joined(scaled, _long(scores)))
        rows.append((OVERALL, name, _cell(fit, tests=len(FEATURES))))
    return pd.DataFrame(rows, columns=["task", "feature", SLOPES])


def probability_regressions(scores: pd.DataFrame, probabilities: pd.DataFrame) -> pd.DataFrame:
    """The table of regression_modelprob_*.csv: the scores on the model's probability, per finding and over all."""
    rows = []
    for finding in [*scores.columns, OVERALL]:
        chosen = list(scores.columns) if finding == OVERALL else [finding]
        feature, values = _joined(_long(probabilities[chosen]), _long(scores[chosen]))
        slope, rank = least_squares(feature, values), spearman(feature, values)
        rows.append((finding, float(slope.n_cases), _cell(slope), _cell(rank)))
    return pd.DataFrame(rows, columns=["task", "n", SLOPES, CORRELATIONS])


def _long(table: pd.DataFrame) -> pd.Series:
    """The cells by finding and image, in that order."""
    cells = pd.MultiIndex.from_product([table.columns, table.index])
    return pd.Series(table.to_numpy(float).ravel(order="F"), cells)


def _joined(feature: pd.Series, scores: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """The cells that both have and that have a score."""
    defined = scores.dropna()
    both = defined.index.intersection(feature.index, sort=False)
    return feature[both].to_numpy(float), defined[both].to_numpy(float)


def _cell(fit: Fit, tests: int = 1) -> str:
    value, low, high = (round(number, 3) for number in (fit.value, fit.low, fit.high))
    stars = "" if math.isnan(fit.p_value) else "*" * sum(fit.p_value < limit / tests for limit in LIMITS)
    return f"{value}, ({low}, {high}){stars}"
