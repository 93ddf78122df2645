"""Whether something known without the truth warns of a wrong answer: its AUROC among right and wrong answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Shaped

from heatcheck.core.records import ONE_VALUE, Estimate
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.settings import EstimateSettings
from heatcheck.judging.patients import judged_together
from heatcheck.stats.auroc import clustered_auroc
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.studentised import (
    FEWEST_PATIENTS,
    LEVEL,
    Linearised,
    side_by_side,
    simultaneous_intervals,
)

CHANCE = 0.5  # the AUROC of a feature that says nothing
LEAST_WARNING = 0.1  # above chance, for a feature to warn of anything
FEW_WRONG = f"fewer than {FEWEST_PATIENTS} patients with a wrong answer, or with a right one"
NOT_KNOWN = "not known of these answers"
Answers = Float[np.ndarray, " answers"]


@dataclass(frozen=True, slots=True)
class Warner:
    """A feature of the answers of one kind, and the estimate that its AUROC fills in."""

    template: Estimate
    wrong: Answers  # 1 or 0; NaN for answers of other kinds
    risk: Answers  # higher should mean wrong; NaN where it is not known


def warning_estimates(
    warners: Sequence[Warner], patients: Shaped[np.ndarray, " answers"], family: str, settings: EstimateSettings
) -> list[Estimate]:
    """The AUROC of every feature less 0.5, corrected for all of them, judged by the least that warns.

    A feature below chance warns the other way round, which nobody could have known beforehand: it is judged as worse.
    """
    found, rows, undecided, used = list[Linearised](), list[Estimate](), list[Estimate](), list[Warner]()
    for warner in warners:
        labels = np.where(np.isnan(warner.risk), np.nan, warner.wrong)
        template = _counted(warner.template, labels, patients, family)
        counts = [len(np.unique(patients[labels == value])) for value in (0, 1)]
        if min(counts) < FEWEST_PATIENTS:
            undecided.append(replace(template, reason=FEW_WRONG if template.n_cases else NOT_KNOWN))
            continue
        auroc = clustered_auroc(labels, warner.risk, patients)
        rows.append(template)
        used.append(replace(warner, wrong=labels))
        found.append(
            Linearised(
                np.array([auroc.interval.value - CHANCE]),
                auroc.influences[:, None],
                auroc.takes_part[:, None],
                np.array([auroc.error]),
                np.array([auroc.freedom]),
            )
        )
    if not found:
        return undecided
    every = side_by_side(found)
    result = simultaneous_intervals(every, settings.draws, settings.generator("warnings", family))
    level = 1 - (1 - LEVEL) / len(used)
    intervals = [
        _of_perfect(warner, patients, level) if interval.reason == ONE_VALUE else interval
        for warner, interval in zip(used, result.intervals, strict=True)
    ]
    filled = [
        replace(fill(row, _possible(interval)), p_value=float(p), p_adjusted=float(adjusted))
        for row, interval, p, adjusted in zip(rows, intervals, result.p_values, result.p_adjusted, strict=True)
    ]
    sizes = [LEAST_WARNING] * len(filled)
    generator = settings.generator("warnings", family, "decide")
    return judged_together(filled, sizes, every.influences, generator) + undecided


def _possible(interval: Interval) -> Interval:
    """The interval within what an AUROC can be."""
    low, high = np.clip([interval.low, interval.high], -CHANCE, 1 - CHANCE).tolist()  # NaN stays NaN
    return replace(interval, low=low, high=high)


def _of_perfect(warner: Warner, patients: Shaped[np.ndarray, " answers"], level: float) -> Interval:
    """The interval of a feature that separates all answers, of which no draw of these patients knows better."""
    interval = clustered_auroc(warner.wrong, warner.risk, patients, level).interval
    return Interval(interval.value - CHANCE, interval.low - CHANCE, interval.high - CHANCE, interval.reason)


def _counted(template: Estimate, labels: Answers, patients: Shaped[np.ndarray, " answers"], family: str) -> Estimate:
    known = ~np.isnan(labels)
    n_patients = len(np.unique(patients[known]))
    return replace(template, family=family, n_cases=int(known.sum()), n_patients=n_patients)
