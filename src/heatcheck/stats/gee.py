"""Logistic regression of hits whose rows come in patients: generalized estimating equations (Liang and Zeger 1986).

Written out instead of taken from statsmodels, which the tests compare it with: its loop over patients takes minutes
for each of the hundreds of fits that a large study has, and importing it takes seconds.
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
    counted,
    few_patients_factor,
    judged,
    varies,
)

SEPARATED = "the feature separates hits from misses without an error, so the slope has no bound"
NEARLY_SEPARATED = "the feature separates hits from misses almost without an error, so the slope is hardly bounded"
NOT_CONVERGED = "the fit did not settle"
_STEPS = 50
_SETTLED = 1e-9  # relative to the coefficients
_EXACT = 1e-20  # squared residuals that are rounding only, as when shared hits lie on one curve
_STEEPEST = 30.0  # log odds beyond which a probability is 0 or 1 to the computer


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
    """The estimating equations at some coefficients: each patient's pull, and how the pulls change."""

    pulls: Float[np.ndarray, "patients coefficients"]
    curvature: Float[np.ndarray, "coefficients coefficients"]


@dataclass(frozen=True, slots=True)
class _Chances:
    """What some coefficients say about every row: the standard deviation of its hit, and how many it is off by."""

    deviation: Float[np.ndarray, " rows"]
    residuals: Float[np.ndarray, " rows"]


_WILD = 20.0  # log odds per standard deviation of the feature: an error of this size bounds nothing
_Correlation = Callable[[np.ndarray], float]  # of a patient's rows, given all residuals


def logistic_gee(given: Observations) -> Fit:
    """The change of a hit's log odds per unit of the feature, each group with its own level.

    Any two rows of a patient are equally alike (exchangeable); the errors hold even where they are not, with the same
    correction for few patients as in `clustered_least_squares`. A hit may be a share (tied peaks share it): only the
    mean is modelled, so shares are as good as zeros and ones (Papke and Wooldridge 1996). Groups in which all rows hit
    or all miss say nothing about the slope and are left out: their level has no bound.
    """
    points = given.defined()
    if not np.all((points.scores >= 0) & (points.scores <= 1)):
        raise ValueError("hits must lie between 0 and 1, or be NaN where undefined")
    n_undefined = len(given.scores) - len(points.scores)
    n_groups = int(np.count_nonzero(np.bincount(points.groups)))
    points = points.kept(_informative(points)[points.groups])
    counts = replace(counted(points, given), n_undefined=n_undefined)
    left = int(np.count_nonzero(np.bincount(points.groups)))
    if not left:
        return replace(counts, reason=SAME_SCORE)
    if left < n_groups:
        counts = replace(counts, reason=f"over {left} of {n_groups} findings: in the others all hit or all miss")
    problem = _problem(points, counts)
    return replace(counts, reason=problem) if problem else _fit(points, counts)


def _informative(points: Observations) -> Bool[np.ndarray, " groups"]:
    """The groups in which not all rows hit and not all miss."""
    n_groups = int(points.groups.max(initial=-1)) + 1
    sums = np.bincount(points.groups, points.scores, n_groups)
    sizes = np.bincount(points.groups, minlength=n_groups)
    return np.asarray((sums > 0) & (sums < sizes))


def _problem(points: Observations, counts: Fit) -> str:
    """Why there cannot be a slope, if so."""
    if counts.n_patients < FEWEST_PATIENTS:
        return FEW_PATIENTS
    if not varies(points.feature, points.groups).any():
        return SAME_FEATURE
    if not varies(points.scores, points.groups).any():
        return SAME_SCORE
    upward = _is_separated(points)
    downward = _is_separated(replace(points, feature=-points.feature))
    return SEPARATED if upward or downward else ""


def _is_separated(points: Observations) -> bool:
    """Whether in every group no miss lies above a hit: then a steeper slope always fits better (Albert, Anderson 1984).

    A shared hit is a hit and a miss at the same place.
    """
    n_groups = int(points.groups.max()) + 1
    lowest_hit = np.full(n_groups, np.inf)
    highest_miss = np.full(n_groups, -np.inf)
    hit, missed = points.scores > 0, points.scores < 1
    np.minimum.at(lowest_hit, points.groups[hit], points.feature[hit])
    np.maximum.at(highest_miss, points.groups[missed], points.feature[missed])
    return bool(np.all(highest_miss <= lowest_hit))


def _fit(points: Observations, counts: Fit) -> Fit:
    # the feature is centred and scaled while fitting: the equations are then far from singular
    centre, scale = float(points.feature.mean()), float(points.feature.std())
    if not scale > 0:
        return replace(counts, reason=SAME_FEATURE)
    design = _design(replace(points, feature=(points.feature - centre) / scale))
    solved = _solve(design)
    if solved is None:
        return replace(counts, reason=NOT_CONVERGED)
    coefficients, equations = solved
    if np.square(_chances(design, coefficients).residuals).mean() < _EXACT:
        return judged(counts, float(coefficients[0]) / scale, 0.0, counts.n_patients - 1)
    influence = np.linalg.solve(equations.curvature, equations.pulls.T)[0]  # of each patient on the slope
    variance = few_patients_factor(counts, len(coefficients)) * float(influence @ influence)
    error = float(np.sqrt(variance))
    if error > _WILD:
        return replace(counts, reason=NEARLY_SEPARATED)
    return judged(counts, float(coefficients[0]) / scale, error / scale, counts.n_patients - 1)


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
    """The coefficients and the equations there; None where they do not settle.

    First as if rows were independent, then with their correlation estimated at every step. Where the two chase each
    other it is held at last: it only makes the slope more precise, and the errors are valid whatever it is.
    """
    in_group = design.columns[:, 1:]
    coefficients = np.append(0.0, logit(in_group.T @ design.hits / in_group.sum(0)))
    start = _settled(design, coefficients, lambda _: 0.0)
    if start is None:
        return None
    correlated = _settled(design, start, lambda residuals: _correlation(design, residuals))
    if correlated is not None:
        return correlated, _equations(design, correlated, lambda residuals: _correlation(design, residuals))
    alike = _correlation(design, _chances(design, start).residuals)
    held = _settled(design, start, lambda _: alike)
    return None if held is None else (held, _equations(design, held, lambda _: alike))


def _settled(design: _Design, coefficients: np.ndarray, correlation: _Correlation) -> np.ndarray | None:
    """Where the equations' steps end, if they do."""
    for _ in range(_STEPS):
        equations = _equations(design, coefficients, correlation)
        try:
            step = np.linalg.solve(equations.curvature, equations.pulls.sum(0))
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.isfinite(step)):
            return None
        coefficients = coefficients + step
        if np.abs(step).max() <= _SETTLED * max(1.0, np.abs(coefficients).max()):
            return coefficients
    return None


def _chances(design: _Design, coefficients: np.ndarray) -> _Chances:
    odds = np.clip(design.columns @ coefficients, -_STEEPEST, _STEEPEST)
    chances = expit(odds)
    deviation = np.sqrt(chances * expit(-odds))
    return _Chances(deviation, (design.hits - chances) / deviation)


def _equations(design: _Design, coefficients: np.ndarray, correlation: _Correlation) -> _Equations:
    at = _chances(design, coefficients)
    alike = correlation(at.residuals)
    weighted = design.columns * at.deviation[:, None]
    # the inverse of an exchangeable correlation matrix: a multiple of the identity less a multiple of all ones
    shared = alike / (1 + (design.sizes - 1) * alike)
    sums = design.patient_sums(weighted)
    pulls = design.patient_sums(weighted * at.residuals[:, None])
    pulls -= sums * (shared * design.patient_sums(at.residuals))[:, None]
    curvature = weighted.T @ weighted - sums.T @ (sums * shared[:, None])
    return _Equations(pulls / (1 - alike), curvature / (1 - alike))


def _correlation(design: _Design, residuals: Float[np.ndarray, " rows"]) -> float:
    """How alike two rows of a patient are, by moments.

    Kept to where it could be the correlation of the largest patient's rows; any such value gives valid errors.
    """
    rows, coefficients = design.columns.shape
    pairs = float((design.sizes * (design.sizes - 1)).sum() / 2)
    if pairs <= coefficients or rows <= coefficients:
        return 0.0
    squares = residuals**2
    spread = squares.sum() / (rows - coefficients)
    if spread < _EXACT:
        return 0.0
    products = float((design.patient_sums(residuals) ** 2 - design.patient_sums(squares)).sum()) / 2
    lowest = -0.9 / (design.sizes.max() - 1)
    return float(np.clip(products / spread / (pairs - coefficients), lowest, 0.95))
