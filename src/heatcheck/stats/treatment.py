"""By how much each level of a factor moves an outcome: least squares with treatment coding.

Every factor has a reference level; a coefficient says how far the outcome lies from it at another level, all other
factors held. The intercept is the outcome where every factor is at its reference.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Shaped

from heatcheck.stats.regression import FEW_PATIENTS, FEWEST_PATIENTS, Fit, few_patients_factor, judged
from heatcheck.stats.resampling.clusters import Clusters, cluster_codes

NO_ROW = "no row has an outcome"
NO_ROW_OF_LEVEL = "no row of this level has an outcome"
TOO_FEW_ROWS = "no more rows than coefficients"
EXACT = "every row is fitted exactly, so nothing says how sure it is"
INTERCEPT = "intercept"


@dataclass(frozen=True, slots=True)
class Factor:
    """What each row has of one kind, such as its method."""

    name: str
    labels: Shaped[np.ndarray, " rows"]
    levels: tuple[str, ...]  # in their order; the first of them that has an outcome is the reference

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.labels.tolist()) - set(self.levels)):
            raise ValueError(f"factor {self.name!r} has rows of a level that it does not name: {unknown[0]!r}")


@dataclass(frozen=True, slots=True)
class Term:
    """One coefficient, with errors as if all rows were independent and with errors clustered by patient."""

    factor: str  # or INTERCEPT
    level: str  # "" for the intercept, and for a factor that is left out
    classical: Fit
    clustered: Fit


@dataclass(frozen=True, slots=True)
class Treatment:
    """The intercept and the levels' coefficients, in their order; and each factor's reference, where it has one."""

    terms: tuple[Term, ...]
    references: Mapping[str, str]


def treatment_effects(outcome: Float[np.ndarray, " rows"], factors: Sequence[Factor], patients: Clusters) -> Treatment:
    """The coefficients of outcome ~ 1 + factors, over the rows that have an outcome.

    A factor of which only one level has an outcome is left out, and its term says so. Where factors cannot be told
    apart (every ViT is pre-trained, and nothing else is), the terms concerned are undefined and name one another; the
    others are not touched. Clustered errors are Liang and Zeger's sandwich with the usual correction for few patients,
    and t with one degree of freedom less than there are patients, as in `stats.regression`.
    """
    if {len(outcome)} != {len(patients), *(len(factor.labels) for factor in factors)}:
        raise ValueError(f"every outcome needs a label of each factor and a patient, got {len(outcome)} outcomes")
    if np.isinf(outcome).any():
        raise ValueError("outcomes must be finite, or NaN where undefined, got infinity")
    rows = ~np.isnan(outcome)
    codes = cluster_codes(patients[rows])
    counts = Fit(
        n_cases=int(rows.sum()), n_patients=int(codes.max(initial=-1)) + 1, n_undefined=int((~rows).sum())
    )  # fmt: skip
    given = {factor.name: _given(factor, rows) for factor in factors}
    columns = [(INTERCEPT, "", rows)]
    for factor in factors:
        columns += [(factor.name, level, factor.labels == level) for level in given[factor.name][1:]]
    design = np.column_stack([column[rows] for *_, column in columns]).astype(float)
    fits = _fits(design, outcome[rows], codes, [f"{name} {level}".strip() for name, level, _ in columns], counts)
    found = {column[:2]: fit for column, fit in zip(columns, fits, strict=True)}
    terms = [Term(INTERCEPT, "", *found[INTERCEPT, ""])]
    for factor in factors:
        terms += _terms(factor, given[factor.name], found, counts)
    return Treatment(tuple(terms), {name: levels[0] for name, levels in given.items() if len(levels) > 1})


def _given(factor: Factor, rows: Bool[np.ndarray, " rows"]) -> list[str]:
    """The levels that have an outcome."""
    seen = set(factor.labels[rows].tolist())
    return [level for level in factor.levels if level in seen]


def _terms(
    factor: Factor, given: list[str], found: Mapping[tuple[str, str], tuple[Fit, Fit]], counts: Fit
) -> Iterator[Term]:
    """A factor's coefficients, or why it has none."""
    if len(given) < 2:
        reason = f"{factor.name} has one level only: {given[0]}" if given else NO_ROW
        yield Term(factor.name, "", *(replace(counts, reason=reason),) * 2)
        return
    for level in factor.levels:
        if level not in given:
            yield Term(factor.name, level, *(replace(counts, reason=NO_ROW_OF_LEVEL),) * 2)
        elif level != given[0]:
            yield Term(factor.name, level, *found[factor.name, level])


def _fits(
    design: Float[np.ndarray, "rows columns"],
    outcome: Float[np.ndarray, " rows"],
    patients: np.ndarray,
    names: list[str],
    counts: Fit,
) -> list[tuple[Fit, Fit]]:
    """Each column's coefficient with both kinds of error."""
    if not len(outcome):
        return [(replace(counts, reason=NO_ROW),) * 2 for _ in names]
    inverse, free = _inverse(design)
    coefficients = inverse @ (design.T @ outcome)
    residuals = outcome - design @ coefficients
    left = float(residuals @ residuals)
    rank = len(names) - free.shape[1]
    freedom = counts.n_cases - rank
    by_patient = np.stack([np.bincount(patients, column) for column in (design * residuals[:, None]).T], 1)
    pulls = ((by_patient @ inverse) ** 2).sum(0)
    few = counts.n_patients < FEWEST_PATIENTS
    fits = []
    for place, value in enumerate(coefficients.tolist()):
        if reason := _why_not(place, free, names) or (TOO_FEW_ROWS if freedom < 1 else ""):
            fits.append((replace(counts, reason=reason),) * 2)
        elif left <= 1e-24 * float(outcome @ outcome):  # rounding
            fits.append((replace(counts, value=value, reason=EXACT),) * 2)
        else:
            error = math.sqrt(left / freedom * float(inverse[place, place]))
            clustered = replace(counts, value=value, reason=FEW_PATIENTS)
            if not few:
                sandwich = math.sqrt(few_patients_factor(counts, rank) * float(pulls[place]))
                clustered = judged(counts, value, sandwich if sandwich > 1e-10 * error else 0.0, counts.n_patients - 1)
            fits.append((judged(counts, value, error, freedom), clustered))
    return fits


def _inverse(
    design: Float[np.ndarray, "rows columns"],
) -> tuple[Float[np.ndarray, "columns columns"], Float[np.ndarray, "columns free"]]:
    """The inverse of the columns' products, and the directions in which coefficients can move without any effect.

    Where there are such directions it is the Moore-Penrose inverse: coefficients that do not move along them are then
    the same as after leaving out any column too many.
    """
    lengths = np.sqrt((design**2).sum(0))
    scaled = design / lengths
    sizes, directions = np.linalg.eigh(scaled.T @ scaled)
    kept = sizes > 1e-10 * sizes[-1]
    inverse = (directions[:, kept] / sizes[kept]) @ directions[:, kept].T
    return inverse / np.outer(lengths, lengths), directions[:, ~kept] / lengths[:, None]


def _why_not(place: int, free: Float[np.ndarray, "columns free"], names: list[str]) -> str:
    """What a coefficient cannot be told apart from, or ""."""
    # the projection onto the free directions does not depend on which of them were found
    mixed = np.linalg.qr(free)[0] if free.size else free
    beside = np.abs(mixed @ mixed[place]) > 1e-8
    if not beside[place]:
        return ""
    others = [name for name, is_mixed in zip(names, beside, strict=True) if is_mixed and name != names[place]]
    return f"cannot be told apart from {' and '.join(others)}"
