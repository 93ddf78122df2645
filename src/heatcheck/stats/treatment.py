"""How much each level of a factor changes an outcome: least squares with treatment coding.

Every factor has a reference level; a coefficient is the difference in outcome between another level and the reference,
all other factors held fixed. The intercept is the outcome where every factor is at its reference.

A factor may belong to networks rather than to images: then what one network does differently by the luck of its
training looks like an effect of the factor, however many images there are. Such factors are tested over networks.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Shaped

from heatcheck.stats.regression import FEW_PATIENTS, FEWEST_PATIENTS, ONE_LINE, Fit, with_interval
from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.resampling.clusters import Clusters, cluster_codes
from heatcheck.stats.sandwich import clustered_precision, joint_p_value, joint_reach

NO_ROW = "no row has an outcome"
NO_ROW_OF_LEVEL = "no row of this level has an outcome"
TOO_FEW_ROWS = "no more rows than coefficients"
EXACT = "every row is fitted exactly"
ONE_NETWORK = "one network decides it, and its luck cannot be separated from the effect: no test over networks"
ONE_PATIENT_DECIDES = "without one of the patients there would be no coefficient"
INTERCEPT = "intercept"
_ROUNDING = 1e-10


@dataclass(frozen=True, slots=True)
class Factor:
    """A categorical variable, such as the method, with its value in each row."""

    name: str
    labels: Shaped[np.ndarray, " rows"]
    levels: tuple[str, ...]  # in the order of the terms; the first with an outcome is the reference

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.labels.tolist()) - set(self.levels)):
            raise ValueError(f"labels of factor {self.name!r} must be among its levels, got {unknown[0]!r}")


@dataclass(frozen=True, slots=True)
class RegressionTerm:
    """One coefficient, with errors that take all rows as independent, and with those of a test over networks."""

    factor: str  # or INTERCEPT
    level: str  # "" for the intercept, and for a factor that is left out
    classical: Fit
    networks: Fit


@dataclass(frozen=True, slots=True)
class Treatment:
    """The intercept and the coefficients in the order of the levels, and the reference of each factor that has one."""

    terms: tuple[RegressionTerm, ...]
    references: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """The patient and the network of each row."""

    patients: Clusters
    networks: Clusters

    def only(self, rows: Bool[np.ndarray, " rows"]) -> "RowOrigin":
        """The marked rows, their patients and networks coded from 0."""
        return RowOrigin(cluster_codes(self.patients[rows]), cluster_codes(self.networks[rows]))


def treatment_effects(outcome: Float[np.ndarray, " rows"], factors: Sequence[Factor], origin: RowOrigin) -> Treatment:
    """The coefficients of outcome ~ 1 + factors, over the rows that have an outcome.

    A factor with outcomes at only one level is left out, and its term gives the reason. Where factors are confounded
    (every ViT is pre-trained, and no other model is), the terms concerned are undefined and name each other; all other
    terms are unaffected.

    The test over networks has two sources of error: rows are clustered by network, and by patient, since all networks
    see the same patients. Both errors are CR2 (`stats.sandwich`); what is neither the network's nor the patient's
    counts in both, which widens the interval. A coefficient that one network decides has no test.
    """
    lengths = {len(outcome), len(origin.patients), len(origin.networks), *(len(factor.labels) for factor in factors)}
    if len(lengths) > 1:
        raise ValueError(f"outcomes, patients, networks and labels must have the same length, got {sorted(lengths)}")
    if np.isinf(outcome).any():
        raise ValueError("outcomes must be finite, or NaN where undefined, got infinity")
    rows = ~np.isnan(outcome)
    codes = origin.only(rows)
    n_patients = int(codes.patients.max(initial=-1)) + 1
    counts = Fit(n_cases=int(rows.sum()), n_patients=n_patients, n_undefined=int((~rows).sum()))
    present = {factor.name: _present_levels(factor, rows) for factor in factors}
    columns = [(INTERCEPT, "", rows)]
    for factor in factors:
        columns += [(factor.name, level, factor.labels == level) for level in present[factor.name][1:]]
    design = np.column_stack([column[rows] for *_, column in columns]).astype(float)
    fits = _fits(design, outcome[rows], codes, [f"{name} {level}".strip() for name, level, _ in columns], counts)
    fit_of = {column[:2]: fit for column, fit in zip(columns, fits, strict=True)}
    terms = [RegressionTerm(INTERCEPT, "", *fit_of[INTERCEPT, ""])]
    for factor in factors:
        terms += _terms(factor, present[factor.name], fit_of, counts)
    return Treatment(tuple(terms), {name: levels[0] for name, levels in present.items() if len(levels) > 1})


def _present_levels(factor: Factor, rows: Bool[np.ndarray, " rows"]) -> list[str]:
    """The levels that have an outcome, in their order."""
    labels = set(factor.labels[rows].tolist())
    return [level for level in factor.levels if level in labels]


def _terms(
    factor: Factor, present: list[str], fit_of: Mapping[tuple[str, str], tuple[Fit, Fit]], counts: Fit
) -> Iterator[RegressionTerm]:
    """The coefficients of a factor, or one term with the reason why it has none."""
    if len(present) < 2:
        reason = f"nothing to compare: {factor.name} is \u201c{present[0]}\u201d throughout" if present else NO_ROW
        yield RegressionTerm(factor.name, "", *(replace(counts, reason=reason),) * 2)
        return
    for level in factor.levels:
        if level not in present:
            yield RegressionTerm(factor.name, level, *(replace(counts, reason=NO_ROW_OF_LEVEL),) * 2)
        elif level != present[0]:
            yield RegressionTerm(factor.name, level, *fit_of[factor.name, level])


def _fits(
    design: Float[np.ndarray, "rows columns"],
    outcome: Float[np.ndarray, " rows"],
    origin: RowOrigin,
    names: list[str],
    counts: Fit,
) -> list[tuple[Fit, Fit]]:
    """The coefficient of each column with both kinds of error."""
    if not len(outcome):
        return [(replace(counts, reason=NO_ROW),) * 2 for _ in names]
    inverse, null_space = _inverse(design)
    coefficients = inverse @ (design.T @ outcome)
    residuals = outcome - design @ coefficients
    squares = float(residuals @ residuals)
    rank = len(names) - null_space.shape[1]
    freedom = counts.n_cases - rank
    basis = np.linalg.svd(design, full_matrices=False)[0][:, :rank]
    directions = inverse @ (design.T @ basis)  # the coefficients are these times the basis' products with the outcome
    fits = []
    for index, value in enumerate(coefficients.tolist()):
        if reason := _confounded_with(index, null_space, names) or (TOO_FEW_ROWS if freedom < 1 else ""):
            fits.append((replace(counts, reason=reason),) * 2)
        elif squares <= 1e-24 * float(outcome @ outcome):  # rounding
            fits.append((replace(counts, value=value, reason=EXACT),) * 2)
        else:
            error = math.sqrt(squares / freedom * float(inverse[index, index]))
            given = replace(counts, value=value)
            over_networks = _over_networks(basis, directions[index], residuals, given, origin)
            fits.append((with_interval(counts, value, error, freedom), over_networks))
    return fits


def _over_networks(
    basis: Float[np.ndarray, "rows columns"],
    direction: Float[np.ndarray, " columns"],
    residuals: Float[np.ndarray, " rows"],
    counts: Fit,
    origin: RowOrigin,
) -> Fit:
    """The coefficient with its test over networks and patients, or the reason why there is none."""
    of_networks = clustered_precision(basis, direction, residuals, origin.networks)
    if of_networks is None:
        return replace(counts, reason=ONE_NETWORK)
    if counts.n_patients < FEWEST_PATIENTS:
        return replace(counts, reason=FEW_PATIENTS)
    of_patients = clustered_precision(basis, direction, residuals, origin.patients)
    if of_patients is None:
        return replace(counts, reason=ONE_PATIENT_DECIDES)
    sources = of_networks, of_patients
    reach = joint_reach(sources, LEVEL)
    if reach <= _ROUNDING * float(np.abs(residuals).max()):
        return replace(counts, reason=ONE_LINE)
    value = counts.value
    error = math.hypot(*(source.error for source in sources))
    return replace(counts, low=value - reach, high=value + reach, p_value=joint_p_value(sources, value), error=error)


def _inverse(
    design: Float[np.ndarray, "rows columns"],
) -> tuple[Float[np.ndarray, "columns columns"], Float[np.ndarray, "columns null"]]:
    """The Moore-Penrose inverse of XᵀX, and a basis of the null space of X: changes of coefficients without effect.

    A coefficient that no direction of the null space touches is the same as after dropping redundant columns, so
    confounded factors do not spoil the others.
    """
    lengths = np.sqrt((design**2).sum(0))
    scaled = design / lengths  # columns of unit length: the threshold below then does not depend on their counts
    eigenvalues, directions = np.linalg.eigh(scaled.T @ scaled)
    kept = eigenvalues > 1e-10 * eigenvalues[-1]
    inverse = (directions[:, kept] / eigenvalues[kept]) @ directions[:, kept].T
    return inverse / np.outer(lengths, lengths), directions[:, ~kept] / lengths[:, None]


def _confounded_with(index: int, null_space: Float[np.ndarray, "columns null"], names: list[str]) -> str:
    """The reason why a coefficient is not identified, with the names it is confounded with; or ""."""
    # the projection onto the null space does not depend on the choice of its basis
    basis = np.linalg.qr(null_space)[0] if null_space.size else null_space
    confounded = np.abs(basis @ basis[index]) > 1e-8
    if not confounded[index]:
        return ""
    others = [
        name for name, is_confounded in zip(names, confounded, strict=True) if is_confounded and name != names[index]
    ]
    return f"cannot be separated from {' and '.join(others)}"
