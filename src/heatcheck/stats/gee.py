"""Logistic regression of hits with correlated rows per patient: generalized estimating equations (Liang, Zeger 1986).

Not taken from statsmodels, with which the tests compare it: its loop over patients takes minutes for each of the
hundreds of fits of a large study, and importing it takes seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import expit, logit

from heatcheck.stats.regression import (
    FEW_PATIENTS,
    FEWEST_PATIENTS,
    SAME_FEATURE,
    SAME_SCORE,
    Fit,
    Observations,
    few_patients_factor,
    row_counts,
    varies,
    with_interval,
)

SEPARATED = "the feature separates hits from misses without an error, so the slope has no bound"
NEARLY_SEPARATED = "the feature separates hits from misses almost without an error, so the slope is hardly bounded"
FEWEST_HITS = 8  # with fewer, noise had p below 0.002 in 2 to 6 % of simulated fits
FEW_HITS = f"fewer than {FEWEST_HITS} patients with a hit, or with a miss"
NOT_CONVERGED = "the fit did not converge"
_STEPS = 50
_CONVERGED = 1e-9  # relative to the coefficients
_EXACT = 1e-20  # squared residuals below this are rounding, as when shared hits lie on one curve
_MOST_LOG_ODDS = 30.0  # beyond these, a probability is 0 or 1 in floating point
_LARGEST_ERROR = 20.0  # log odds per standard deviation of the feature: with this error the slope is unbounded


@dataclass(frozen=True, slots=True)
class _Design:
    """Rows sorted by patient: one column for the feature, one per group."""

    columns: Float[np.ndarray, "rows coefficients"]
    hits: Float[np.ndarray, " rows"]
    starts: Int[np.ndarray, " patients"]  # the first row of each patient
    sizes: Float[np.ndarray, " patients"]

    def patient_sums(self, values: Float[np.ndarray, "rows *any"]) -> Float[np.ndarray, "patients *any"]:
        """The sum over each patient's rows."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=0))


@dataclass(frozen=True, slots=True)
class _Equations:
    """The estimating equations at given coefficients: each patient's score vector, and the (negative) derivative."""

    scores: Float[np.ndarray, "patients coefficients"]
    curvature: Float[np.ndarray, "coefficients coefficients"]


@dataclass(frozen=True, slots=True)
class _RowFit:
    """The fit of every row at given coefficients: the standard deviation of its hit, and its Pearson residual."""

    deviation: Float[np.ndarray, " rows"]
    residuals: Float[np.ndarray, " rows"]


_Correlation = Callable[[np.ndarray], float]  # of two rows of a patient, given all residuals


def logistic_gee(observations: Observations) -> Fit:
    """The change of a hit's log odds per unit of the feature, each group with its own intercept.

    The working correlation is exchangeable: any two rows of a patient are equally correlated. The sandwich errors are
    valid even where that is wrong, with the usual correction for few patients. A hit may be a fraction (tied peaks
    share it): only its mean is modelled, so fractions are as valid as zeros and ones (Papke and Wooldridge 1996).
    Groups in which all rows hit or all miss carry no information on the slope, and their intercept is infinite; they
    are left out.
    """
    points = observations.defined()
    if not np.all((points.scores >= 0) & (points.scores <= 1)):
        raise ValueError("hits must lie between 0 and 1, or be NaN where undefined")
    if len(points.scores) and not varies(points.feature, points.groups).any():
        return replace(row_counts(points, observations), reason=SAME_FEATURE)
    n_undefined = len(observations.scores) - len(points.scores)
    n_groups = int(np.count_nonzero(np.bincount(points.groups)))
    points = points.only(_informative(points)[points.groups])
    counts = replace(row_counts(points, observations), n_undefined=n_undefined)
    n_informative = int(np.count_nonzero(np.bincount(points.groups)))
    if not n_informative:
        return replace(counts, reason=SAME_SCORE)
    if n_informative < n_groups:
        counts = replace(
            counts, reason=f"over {n_informative} of {n_groups} findings: in the others all hit or all miss"
        )
    problem = _problem(points, counts)
    return replace(counts, reason=problem) if problem else _fit(points, counts)


def _informative(points: Observations) -> Bool[np.ndarray, " groups"]:
    """The groups in which not all rows hit and not all miss."""
    n_groups = int(points.groups.max(initial=-1)) + 1
    sums = np.bincount(points.groups, points.scores, n_groups)
    sizes = np.bincount(points.groups, minlength=n_groups)
    return np.asarray((sums > 0) & (sums < sizes))


def _problem(points: Observations, counts: Fit) -> str:
    """The reason why there is no finite slope, or ""."""
    if counts.n_patients < FEWEST_PATIENTS:
        return FEW_PATIENTS
    if not varies(points.feature, points.groups).any():
        return SAME_FEATURE
    if not varies(points.scores, points.groups).any():
        return SAME_SCORE
    if min(_patients_with(points, points.scores), _patients_with(points, 1 - points.scores)) < FEWEST_HITS:
        return FEW_HITS
    upward = _is_separated(points)
    downward = _is_separated(replace(points, feature=-points.feature))
    return SEPARATED if upward or downward else ""


def _patients_with(points: Observations, outcome: Float[np.ndarray, " rows"]) -> float:
    """How many patients have the outcome, a hit or a miss; a patient with half a hit at most counts half."""
    most = np.zeros(int(points.patients.max()) + 1)
    np.maximum.at(most, points.patients, outcome)
    return round(float(most.sum()), 6)


def _is_separated(points: Observations) -> bool:
    """Whether in every group no miss lies above a hit: then a steeper slope always fits better (Albert, Anderson 1984).

    A fractional hit counts as a hit and as a miss at the same value of the feature.
    """
    n_groups = int(points.groups.max()) + 1
    lowest_hit = np.full(n_groups, np.inf)
    highest_miss = np.full(n_groups, -np.inf)
    hit, missed = points.scores > 0, points.scores < 1
    np.minimum.at(lowest_hit, points.groups[hit], points.feature[hit])
    np.maximum.at(highest_miss, points.groups[missed], points.feature[missed])
    return bool(np.all(highest_miss <= lowest_hit))


def _fit(points: Observations, counts: Fit) -> Fit:
    # the feature is standardized for fitting: the equations are then far from singular
    centre, scale = float(points.feature.mean()), float(points.feature.std())
    if not scale > 0:
        return replace(counts, reason=SAME_FEATURE)
    design = _design(replace(points, feature=(points.feature - centre) / scale))
    solution = _solve(design)
    if solution is None:
        return replace(counts, reason=NOT_CONVERGED)
    coefficients, equations = solution
    if np.square(_row_fit(design, coefficients).residuals).mean() < _EXACT:
        return with_interval(counts, float(coefficients[0]) / scale, 0.0, counts.n_patients - 1)
    # the sandwich A⁻¹ (Σ s sᵀ) A⁻¹ of curvature A and scores s: its first diagonal entry is the sum of the squared
    # first components of A⁻¹ s, the influences of the patients on the slope
    influence = np.linalg.solve(equations.curvature, equations.scores.T)[0]
    variance = few_patients_factor(counts, len(coefficients)) * float(influence @ influence)
    error = float(np.sqrt(variance))
    if error > _LARGEST_ERROR:
        return replace(counts, reason=NEARLY_SEPARATED)
    return with_interval(counts, float(coefficients[0]) / scale, error / scale, counts.n_patients - 1)


def _design(points: Observations) -> _Design:
    order = np.argsort(points.patients, kind="stable")
    _, groups = np.unique(points.groups[order], return_inverse=True)
    columns = np.zeros((len(order), 2 + groups.max()))
    columns[:, 0] = points.feature[order]
    columns[np.arange(len(order)), 1 + groups] = 1
    starts = np.flatnonzero(np.diff(points.patients[order], prepend=-1))
    sizes = np.diff(starts, append=len(order)).astype(float)
    return _Design(columns, points.scores[order], starts, sizes)


def _solve(design: _Design) -> tuple[np.ndarray, _Equations] | None:
    """The solution and the equations at it; None if the iteration does not converge.

    Starts from independent rows, then estimates the correlation anew at every step. If the two then alternate without
    converging, the correlation is fixed at its first estimate: it affects only the precision of the slope, and the
    errors are valid for any value.
    """
    in_group = design.columns[:, 1:]
    null_model = np.append(0.0, logit(in_group.T @ design.hits / in_group.sum(0)))
    independent = _iterate(design, null_model, lambda _: 0.0)
    if independent is None:
        return None
    fixed = _correlation(design, _row_fit(design, independent).residuals)
    correlations: tuple[_Correlation, ...] = (lambda residuals: _correlation(design, residuals), lambda _: fixed)
    for correlation in correlations:
        coefficients = _iterate(design, independent, correlation)
        if coefficients is not None:
            return coefficients, _equations(design, coefficients, correlation)
    return None


def _iterate(design: _Design, coefficients: np.ndarray, correlation: _Correlation) -> np.ndarray | None:
    """The solution by Fisher scoring from these coefficients; None if it does not converge."""
    for _ in range(_STEPS):
        equations = _equations(design, coefficients, correlation)
        try:
            step = np.linalg.solve(equations.curvature, equations.scores.sum(0))
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.isfinite(step)):
            return None
        coefficients = coefficients + step
        if np.abs(step).max() <= _CONVERGED * max(1.0, np.abs(coefficients).max()):
            return coefficients
    return None


def _row_fit(design: _Design, coefficients: np.ndarray) -> _RowFit:
    log_odds = np.clip(design.columns @ coefficients, -_MOST_LOG_ODDS, _MOST_LOG_ODDS)
    probabilities = expit(log_odds)
    deviation = np.sqrt(probabilities * expit(-log_odds))  # 1 − p would lose all digits where p is near 1
    return _RowFit(deviation, (design.hits - probabilities) / deviation)


def _equations(design: _Design, coefficients: np.ndarray, correlation: _Correlation) -> _Equations:
    fit = _row_fit(design, coefficients)
    rho = correlation(fit.residuals)
    # per patient, scores = Wᵀ R⁻¹ r and curvature = Wᵀ R⁻¹ W, with W the columns times the deviation, r the residuals
    # and R the exchangeable correlation matrix. R⁻¹ = (I − shared · 1 1ᵀ) / (1 − ρ), so sums over rows suffice and no
    # matrix is inverted.
    weighted = design.columns * fit.deviation[:, None]
    shared = rho / (1 + (design.sizes - 1) * rho)
    sums = design.patient_sums(weighted)
    scores = design.patient_sums(weighted * fit.residuals[:, None])
    scores -= sums * (shared * design.patient_sums(fit.residuals))[:, None]
    curvature = weighted.T @ weighted - sums.T @ (sums * shared[:, None])
    return _Equations(scores / (1 - rho), curvature / (1 - rho))


def _correlation(design: _Design, residuals: Float[np.ndarray, " rows"]) -> float:
    """The correlation of two rows of a patient, by moments: the mean product of residuals over their mean square."""
    rows, coefficients = design.columns.shape
    pairs = float((design.sizes * (design.sizes - 1)).sum() / 2)
    if pairs <= coefficients or rows <= coefficients:
        return 0.0
    squares = residuals**2
    spread = squares.sum() / (rows - coefficients)
    if spread < _EXACT:
        return 0.0
    # Σ over pairs i < j of rᵢ rⱼ = ((Σ r)² − Σ r²) / 2
    products = float((design.patient_sums(residuals) ** 2 - design.patient_sums(squares)).sum()) / 2
    # n rows cannot all be correlated below −1/(n − 1), nor may R become singular; any value between gives valid errors
    lowest = -0.9 / (design.sizes.max() - 1)
    return float(np.clip(products / spread / (pairs - coefficients), lowest, 0.95))
