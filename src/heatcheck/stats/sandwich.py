"""Errors of a linear regression whose rows come in clusters, such as those of one patient or one network."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq
from scipy.special import stdtrit

_FULL_LEVERAGE = 1e-9  # what the hat matrix leaves of a direction that one cluster decides, but for rounding
_SMALLEST_P = 1e-12  # that is looked for


@dataclass(frozen=True, slots=True)
class Precision:
    """The variance of a coefficient, and the degrees of freedom of its t."""

    variance: float
    freedom: float

    @property
    def error(self) -> float:
        """The standard error."""
        return math.sqrt(self.variance)

    def reach(self, level: float) -> float:
        """How far an interval of this level reaches from the coefficient."""
        return float(stdtrit(self.freedom, (1 + level) / 2)) * self.error


def joint_reach(sources: Sequence[Precision], level: float) -> float:
    """How far an interval reaches that allows for several independent sources of error.

    The reaches are added as squares, each with its own t. Satterthwaite's degrees of freedom for the sum of variances
    would not do: a source with one degree of freedom often looks small by chance, and the test then takes it as known.
    """
    return math.hypot(*(source.reach(level) for source in sources))


def joint_p_value(sources: Sequence[Precision], value: float) -> float:
    """The two-sided p-value that belongs to `joint_reach`: one less the level at which the interval reaches 0."""
    if joint_reach(sources, 1 - _SMALLEST_P) < abs(value):
        return _SMALLEST_P
    return float(brentq(lambda p: joint_reach(sources, 1 - p) - abs(value), _SMALLEST_P, 1.0))


def clustered_precision(
    basis: Float[np.ndarray, "rows columns"],
    direction: Float[np.ndarray, " columns"],
    residuals: Float[np.ndarray, " rows"],
    clusters: Int[np.ndarray, " rows"],
) -> Precision | None:
    """The precision of the coefficient that the direction gives, by CR2; None if one cluster alone decides it.

    The columns of the basis Q are orthonormal and span the regression's; the coefficient is the direction times Qᵀy.

    Rows of a cluster draw the fit towards themselves: their residuals are small, and a plain sandwich takes this for
    precision. Bell and McCaffrey (2002, Survey Methodology 28:169) scale each cluster's residuals up to what they would
    be without that pull, and take as degrees of freedom of t what the error would have with independent rows: near 1
    where one cluster decides.

    The rows Q_g of a cluster weigh on the coefficient as a_g = (I − Q_g Q_gᵀ)^(−½) Q_g d = Q_g (I − Q_gᵀ Q_g)^(−½) d: a
    matrix per cluster whose size is the number of columns, not of rows. The variance is Σ (a_gᵀ residuals)², a
    quadratic form whose matrix B over clusters is diag(a_gᵀ a_g) − Z Zᵀ with rows z_g = Q_gᵀ a_g; its degrees of
    freedom are (tr B)² / ‖B‖².
    """
    _, codes = np.unique(clusters, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    basis, residuals, codes = basis[order], residuals[order], codes[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    products = np.add.reduceat(basis[:, :, None] * basis[:, None, :], starts, axis=0)
    eigenvalues, directions = np.linalg.eigh(np.eye(basis.shape[1]) - products)
    # a direction that one cluster alone decides has no residuals: it is left out, and matters only if it is asked for
    kept = eigenvalues > _FULL_LEVERAGE
    along = np.einsum("gji,j->gi", directions, direction)
    if np.any(~kept & (along**2 > _FULL_LEVERAGE * float(direction @ direction))):
        return None
    inverse_roots = np.where(kept, 1 / np.sqrt(np.where(kept, eigenvalues, 1)), 0)
    columns = np.einsum("gij,gj->gi", directions, inverse_roots * along)
    weights = np.sum(basis * columns[codes], axis=1)
    sums = np.add.reduceat(weights * residuals, starts)
    squares = np.add.reduceat(weights**2, starts)
    z = np.einsum("gij,gj->gi", products, columns)
    z_squares = np.sum(z**2, axis=1)
    norm = float(squares @ squares - 2 * squares @ z_squares + np.sum((z.T @ z) ** 2))
    trace = float(squares.sum() - z_squares.sum())
    if trace <= _FULL_LEVERAGE * float(squares.sum()):  # the clusters' residuals are 0 whatever the outcome
        return None
    return Precision(float(sums @ sums), trace**2 / norm)
