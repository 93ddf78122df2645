"""Means over repeated trainings whose intervals hold together: what is said of the largest of them still holds.

`nested` has the same means with an interval each. Here an interval has two sources of error, the seeds and the
patients, each with its own Student's t at a level that allows for the number of comparisons (Bonferroni).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from heatcheck.core.records import ONE_VALUE
from heatcheck.stats.resampling.bca import NO_VALUE, ONE_PATIENT
from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.resampling.cells import CellTotals, Design, cell_totals, columns_by_pattern, macro
from heatcheck.stats.resampling.nested import (
    NO_SEED,
    ONE_SEED,
    Components,
    NestedEstimate,
    variance_components,
    with_counts,
)
from heatcheck.stats.resampling.studentised import FEW_PATIENTS, FEWEST_PATIENTS
from heatcheck.stats.sandwich import Precision, joint_reach

_PRIOR_SEEDS = 4  # by how many seeds' worth a variance over seeds is drawn towards that of all columns


@dataclass(frozen=True, slots=True)
class JointMean:
    """A mean with an interval that holds together with those of the other columns."""

    estimate: NestedEstimate
    influences: Float[np.ndarray, " patients"]  # of each patient on the mean; they sum to 0
    from_seeds: float  # share of the squared reach of the interval that is due to the seeds


def joint_means(
    values: Float[np.ndarray, "cases columns"],
    design: Design,
    trained: int,
    within: tuple[float, float] = (-math.inf, math.inf),
    *,
    together: bool = True,
) -> tuple[JointMean, ...]:
    """The mean of each column as in `nested_means`, with intervals that all hold together in 95 % of runs.

    Without `together` each holds by itself, and the columns share no more than what they know of the seeds.

    To compare columns, pass their differences per case. `trained` is the number of networks in a seed that were trained
    apart from each other: as many as there are columns, and fewer where these are differences.

    Two or three seeds hardly know their own variance: t would reach 13 or 4 errors, and far more in a family. So the
    variance over seeds is drawn towards that of all columns, as if it had been seen in a few seeds more (Smyth 2004,
    Stat Appl Genet Mol Biol 3:3). With one seed the interval covers differences between images alone.
    """
    n_columns = values.shape[1]
    if not len(values):
        return tuple(JointMean(NestedEstimate(reason=NO_SEED), np.zeros(0), 0.0) for _ in range(n_columns))
    totals = cell_totals(values, design)
    found: dict[int, _Column] = {}
    for columns in columns_by_pattern(totals.counts):
        found |= zip(columns.tolist(), _columns(totals.only(columns)), strict=True)
    level = 1 - (1 - LEVEL) / (n_columns if together else 1)
    known = [each.components for each in found.values() if each.components]
    prior = SeedPrior.of([each.seeds for each in known], [each.n_seeds for each in known], trained)
    by_column = {index: _estimate(each, prior, level, within) for index, each in found.items()}
    counted = with_counts({index: each.estimate for index, each in by_column.items()}, totals)
    return tuple(replace(by_column[index], estimate=estimate) for index, estimate in enumerate(counted))


@dataclass(frozen=True, slots=True)
class _Column:
    """A mean, the influences of its patients and its variances; without the latter, the reason why."""

    value: float
    influences: Float[np.ndarray, " patients"]
    components: Components | None
    reason: str = ""


def _columns(totals: CellTotals) -> list[_Column]:
    """Every column of totals that have values of the same patients in the same cells."""
    n_patients, n_cells, n_columns = totals.counts.shape
    if not n_cells:
        return [_Column(math.nan, np.zeros(0), None, NO_VALUE)] * n_columns
    values = macro(totals.means[None], np.ones((1, n_cells)), totals.cells)[0].tolist()
    in_group = totals.cells.in_group
    of_cells = ((totals.sums - totals.counts * totals.means) / totals.counts.sum(0)).transpose(0, 2, 1)
    influences = (of_cells @ in_group / in_group.sum(0)).mean(2).T
    if n_patients < FEWEST_PATIENTS:
        reason = ONE_PATIENT if n_patients == 1 else FEW_PATIENTS
        return [_Column(value, own, None, reason) for value, own in zip(values, influences, strict=True)]
    parts = zip(values, influences, variance_components(totals), strict=True)
    return [_Column(value, own, components) for value, own, components in parts]


@dataclass(frozen=True, slots=True)
class SeedPrior:
    """The variance of one seed that several means have in common, and the degrees of freedom that it counts for."""

    variance: float = 0.0
    freedom: float = 0.0

    @classmethod
    def of(cls, variances: Sequence[float], n_seeds: Sequence[int], trained: int) -> "SeedPrior":
        """From the variances of means over so many seeds each; a mean alone has none."""
        several = [(each * n, n - 1.0) for each, n in zip(variances, n_seeds, strict=True) if n > 1]
        if len(several) < 2:
            return cls()
        of_one_seed, degrees = np.array(several).T
        others = float(degrees.mean()) * (min(trained, len(several)) - 1)  # a mean's own seeds are counted apart
        return cls(float(degrees @ of_one_seed / degrees.sum()), min(_PRIOR_SEEDS, others))

    def moderated(self, variance: float, n_seeds: int) -> Precision:
        """The precision of a mean over seeds with this variance, drawn towards the common one."""
        freedom = n_seeds - 1 + self.freedom
        return Precision(((n_seeds - 1) * variance + self.freedom * self.variance / n_seeds) / freedom, freedom)


def _estimate(column: _Column, prior: SeedPrior, level: float, within: tuple[float, float]) -> JointMean:
    components = column.components
    if components is None:
        return JointMean(NestedEstimate(column.value, reason=column.reason), column.influences, 0.0)
    sources = [Precision(components.patients, components.n_patients - 1)]
    if components.n_seeds > 1:
        sources.append(prior.moderated(components.seeds, components.n_seeds))
    reach = joint_reach(sources, level)
    if reach <= 1e-12 * max(1.0, abs(column.value)):
        return JointMean(NestedEstimate(column.value, reason=ONE_VALUE), column.influences, 0.0)
    low, high = np.clip([column.value - reach, column.value + reach], *within).tolist()
    note = "" if components.n_seeds > 1 else ONE_SEED
    share = 1 - (sources[0].reach(level) / reach) ** 2
    return JointMean(NestedEstimate(column.value, low, high, note=note), column.influences, share)
