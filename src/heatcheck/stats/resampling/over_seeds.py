"""Means over seeds of a statistic that is a sum over patients, such as the AUROC of each of several trained networks.

An interval has two sources of error, whose reaches are added as squares: the patients, and the seeds where there are
several. The variance over seeds is drawn towards that of networks that were trained alike (`SeedPrior`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.resampling.joint_means import SeedPrior
from heatcheck.stats.resampling.studentised import Linearised, linearised_macro, side_by_side, t_intervals
from heatcheck.stats.sandwich import Precision


@dataclass(frozen=True, slots=True)
class SeedFigure:
    """A statistic by seed, and its mean over seeds with an interval that draws patients alone."""

    by_seed: Float[np.ndarray, " seeds"]
    mean: Linearised  # one column
    interval: Interval

    @property
    def n_seeds(self) -> int:
        """How many networks there are."""
        return len(self.by_seed)

    @property
    def seed_variance(self) -> float:
        """The variance of the mean that is due to the choice of seeds; 0 of one seed."""
        return float(np.var(self.by_seed, ddof=1)) / self.n_seeds if self.n_seeds > 1 else 0.0

    def of_seeds(self, alike: Sequence["SeedFigure"]) -> Precision | None:
        """How precise the mean is as far as seeds go, given figures trained alike, its own among them.

        None with one seed, of which nothing is known.
        """
        if self.n_seeds < 2:
            return None
        variances, n_seeds = [each.seed_variance for each in alike], [each.n_seeds for each in alike]
        return SeedPrior.of(variances, n_seeds, len(alike)).moderated(self.seed_variance, self.n_seeds)


def widened(interval: Interval, seeds: float, within: tuple[float, float]) -> Interval:
    """The interval with the reach of the seeds added as squares, within the possible values."""
    ends = [
        interval.value - math.hypot(interval.value - interval.low, seeds),
        interval.value + math.hypot(interval.high - interval.value, seeds),
    ]
    low, high = np.clip(ends, *within).tolist()  # NaN stays NaN
    return replace(interval, low=low, high=high)


def figure_interval(
    figure: SeedFigure, alike: Sequence[SeedFigure], within: tuple[float, float], level: float = LEVEL
) -> Interval:
    """The interval of one figure over patients and seeds."""
    of_seeds = figure.of_seeds(alike)
    return widened(figure.interval, of_seeds.reach(level) if of_seeds else 0.0, within)


def macro_interval(
    figures: Sequence[SeedFigure], alike: Sequence[Sequence[SeedFigure]], within: tuple[float, float]
) -> Interval:
    """The interval of the mean of several findings' figures, each with those trained alike.

    The seeds may all err in the same direction. Where no patient differs from the others, limits are averaged instead.
    """
    if len(figures) == 1:
        return figure_interval(figures[0], alike[0], within)
    (interval,) = t_intervals(linearised_macro(side_by_side([figure.mean for figure in figures]), len(figures)))
    interval = replace(interval, value=float(np.mean([figure.interval.value for figure in figures])))
    if interval.reason:
        low, high = np.mean([[figure.interval.low, figure.interval.high] for figure in figures], axis=0).tolist()
        interval = replace(interval, low=low, high=high, reason=interval.reason if math.isnan(low) else "")
    seeds = [each.of_seeds(others) for each, others in zip(figures, alike, strict=True)]
    return widened(interval, float(np.mean([each.reach(LEVEL) if each else 0.0 for each in seeds])), within)
