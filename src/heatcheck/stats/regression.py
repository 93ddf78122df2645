"""How much a score rises with one feature: coefficients with intervals and p-values.

`least_squares` is the plain regression of the CheXlocalize paper. `clustered_least_squares` gives each finding an
intercept of its own (else easy findings with large outlines would look like an effect of size) and allows for
correlated cases of one patient; `stats.gee` does the same for hits.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import stdtr, stdtrit

from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.sandwich import Precision, clustered_precision

FEWEST_PATIENTS = 10  # the fewest at which slopes of scores were simulated; their intervals covered 93 to 95 %
FEW_CASES = "fewer than three cases"
FEW_PATIENTS = f"fewer than {FEWEST_PATIENTS} patients"
SAME_FEATURE = "the feature does not vary"
SAME_SCORE = "the score does not vary"
NOT_FITTED = "too few cases for so many findings"
ONE_DECIDES = "without one of the patients there would be no slope"
ONE_LINE = "all points lie on one line"


@dataclass(frozen=True, slots=True)
class Fit:
    """A coefficient with its interval and the number of cases used; `reason` says why a part of it is NaN."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    n_cases: int = 0
    n_patients: int = 0
    n_undefined: int = 0
    reason: str = ""
    error: float = math.nan  # the standard error, of which t with these degrees of freedom makes the interval
    freedom: float = math.nan

    def at_level(self, level: float) -> "Fit":
        """The same fit with an interval of another level."""
        reach = float(stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return replace(self, low=self.value - reach, high=self.value + reach)


@dataclass(frozen=True, slots=True)
class Observations:
    """A feature, a score, a group and a patient per row; each group has an intercept of its own."""

    feature: Float[np.ndarray, " rows"]
    scores: Float[np.ndarray, " rows"]
    groups: Int[np.ndarray, " rows"]  # codes from 0, such as those of the findings
    patients: Int[np.ndarray, " rows"]  # codes from 0

    def only(self, rows: Bool[np.ndarray, " rows"]) -> "Observations":
        """The marked rows."""
        return Observations(self.feature[rows], self.scores[rows], self.groups[rows], self.patients[rows])

    def defined(self) -> "Observations":
        """The rows in which feature and score are both defined."""
        if np.isinf(self.feature).any() or np.isinf(self.scores).any():
            raise ValueError("features and scores must be finite, or NaN where undefined, got infinity")
        return self.only(~(np.isnan(self.feature) | np.isnan(self.scores)))

    @property
    def n_patients(self) -> int:
        """How many patients the rows come from."""
        return int(np.count_nonzero(np.bincount(self.patients)))


def min_max(values: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """The values scaled to the range 0 to 1; NaN stays NaN, and all are NaN if the values do not vary."""
    defined = values[~np.isnan(values)]
    low, high = (defined.min(), defined.max()) if defined.size else (0.0, 0.0)
    span = high - low
    return np.asarray((values - low) / span) if span > 0 else np.full(values.shape, np.nan)


def least_squares(feature: Float[np.ndarray, " rows"], scores: Float[np.ndarray, " rows"]) -> Fit:
    """The slope of the least-squares line, as if all rows were independent, with a 95 % t-interval."""
    one_group, one_patient_per_row = np.zeros(len(feature), np.intp), np.arange(len(feature))
    points = Observations(feature, scores, one_group, one_patient_per_row).defined()
    counts = Fit(n_cases=len(points.scores), n_undefined=len(feature) - len(points.scores))
    if counts.n_cases < 3:
        return replace(counts, reason=FEW_CASES)
    line = _line(points)
    if isinstance(line, str):
        return replace(counts, reason=line)
    freedom = counts.n_cases - 2
    error = math.sqrt(float(line.residuals @ line.residuals) / freedom / line.spread)
    return with_interval(counts, line.slope, 0.0 if line.is_exact else error, freedom)


def clustered_least_squares(observations: Observations) -> Fit:
    """The slope common to all groups, each with its own intercept, with errors clustered by patient.

    A few patients with large values of the feature may decide the slope; CR2 allows for that (`stats.sandwich`).
    """
    points = observations.defined()
    counts = row_counts(points, observations)
    if counts.n_patients < FEWEST_PATIENTS:
        return replace(counts, reason=FEW_PATIENTS)
    line = _line(points)
    if isinstance(line, str):
        return replace(counts, reason=line)
    if line.is_exact:
        return with_interval(counts, line.slope, 0.0, 1)
    precision = _precision(points, line)
    if precision is None:
        return replace(counts, value=line.slope, reason=ONE_DECIDES)
    return with_interval(counts, line.slope, precision.error, precision.freedom)


def row_counts(used: Observations, observations: Observations) -> Fit:
    """A Fit that holds only the numbers of rows used and not used."""
    n_cases = len(used.scores)
    return Fit(n_cases=n_cases, n_patients=used.n_patients, n_undefined=len(observations.scores) - n_cases)


def few_patients_factor(counts: Fit, coefficients: int) -> float:
    """The factor that corrects a sandwich variance for few patients and many coefficients; NaN if rows are too few."""
    if counts.n_cases <= coefficients:
        return math.nan
    patients, cases = counts.n_patients, counts.n_cases
    return patients / (patients - 1) * (cases - 1) / (cases - coefficients)


def with_interval(counts: Fit, value: float, error: float, freedom: float) -> Fit:
    """The fit with its t-interval and two-sided p-value from a standard error; neither if the error is 0."""
    if error == 0:
        return replace(counts, value=value, reason=ONE_LINE)
    if not (math.isfinite(value) and math.isfinite(error)):
        return replace(counts, reason=NOT_FITTED)
    p_value = 2 * float(stdtr(freedom, -abs(value / error)))
    return replace(counts, value=value, p_value=p_value, error=error, freedom=freedom).at_level(LEVEL)


def varies(values: Float[np.ndarray, " rows"], groups: Int[np.ndarray, " rows"]) -> Bool[np.ndarray, " groups"]:
    """Whether the values within each group differ; False for a group without rows."""
    high = np.full(groups.max(initial=-1) + 1, -np.inf)
    low = -high
    np.maximum.at(high, groups, values)
    np.minimum.at(low, groups, values)
    return np.asarray(high > low)


@dataclass(frozen=True, slots=True)
class _Slope:
    """A slope, with the feature and the residuals relative to their group's mean."""

    slope: float
    feature: Float[np.ndarray, " rows"]
    residuals: Float[np.ndarray, " rows"]
    spread: float  # sum of squares of the feature
    is_exact: bool


def _line(points: Observations) -> _Slope | str:
    """The least-squares slope within the groups, or the reason why there is none."""
    if not varies(points.feature, points.groups).any():
        return SAME_FEATURE
    if not varies(points.scores, points.groups).any():
        return SAME_SCORE
    # centring each group gives exactly the slope and errors of a regression with a column per group (Frisch and Waugh)
    feature, scores = (_centred(values, points.groups) for values in (points.feature, points.scores))
    spread = float(feature @ feature)
    if spread < 1e-150:  # its square would underflow
        return SAME_FEATURE
    slope = float(feature @ scores) / spread
    residuals = scores - slope * feature
    # residuals this small are rounding: the line is exact
    return _Slope(slope, feature, residuals, spread, float(residuals @ residuals) <= 1e-24 * float(scores @ scores))


def _precision(points: Observations, line: _Slope) -> Precision | None:
    """The precision of a slope, with errors clustered by patient; None if one patient alone gives the slope."""
    _, groups = np.unique(points.groups, return_inverse=True)
    basis = np.zeros((len(groups), 2 + int(groups.max())))  # the feature within groups, then one column per group
    basis[:, 0] = line.feature / math.sqrt(line.spread)
    basis[np.arange(len(groups)), 1 + groups] = 1 / np.sqrt(np.bincount(groups))[groups]
    direction = np.eye(1, basis.shape[1])[0] / math.sqrt(line.spread)
    return clustered_precision(basis, direction, line.residuals, points.patients)


def _centred(values: Float[np.ndarray, " rows"], groups: Int[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    counts = np.bincount(groups)
    means = np.bincount(groups, values) / np.maximum(counts, 1)
    return np.asarray(values - means[groups])
