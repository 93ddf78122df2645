"""Means and comparisons of methods as sums over patients: what their intervals and tests are made of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Shaped

from heatcheck.core.records import HUMAN, ONE_VALUE, Estimate
from heatcheck.core.vocabulary import PERCENT_DECREASE
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.estimating.score_values import Values
from heatcheck.judging.patients import judged_together
from heatcheck.metrics import METRICS
from heatcheck.metrics.registry import Needs
from heatcheck.stats.rates import rate_difference_interval, rate_interval
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.clusters import ClusterTotals, totals_by_code
from heatcheck.stats.resampling.studentised import (
    FEWEST_PATIENTS,
    LEVEL,
    TOO_WIDE,
    Linearised,
    contrast,
    linearised_macro,
    linearised_ratios,
    side_by_side,
    simultaneous_intervals,
    studentised_intervals,
    t_intervals,
)
from heatcheck.studies.localization.settings import LocalizationSettings

_SMALLEST_P = 1e-12  # that is looked for


@dataclass(frozen=True, slots=True)
class Measurement:
    """An estimate without its interval: a mean, or what two columns of scores differ by, over one or more findings."""

    template: Estimate  # with everything but value, interval and p-values
    totals: tuple[ClusterTotals, ...]  # of one column or two, by patient and finding
    statistic: Linearised  # one column
    patients: Shaped[np.ndarray, " patients"]  # names, in the order of the totals
    is_rate: bool  # of values that are mostly 0 or 1

    @property
    def findings(self) -> int:
        """Over how many findings it is a mean."""
        return int(self.totals[0].sums.shape[1])

    @property
    def value(self) -> float:
        """The mean, or the difference."""
        return float(self.statistic.values[0])

    def estimate(self, settings: LocalizationSettings) -> Estimate:
        """The estimate with an interval of its own."""
        return self.filled(self._interval(settings))

    def _interval(self, settings: LocalizationSettings) -> Interval:
        exact = self.exact_interval(LEVEL)
        if exact is not None:
            return exact
        if self.findings > 1:
            return self.within_range(t_intervals(self.statistic)[0])
        row = self.template
        generator = settings.generator(row.statistic, row.metric, row.finding, row.other_method, row.method)
        interval = studentised_intervals(self.statistic, settings.draws, generator)[0]
        return self.within_range(self._as_far_as_others_allow(interval))

    def _as_far_as_others_allow(self, interval: Interval) -> Interval:
        """An end at infinity, where one patient alone decides, drawn back to what the other patients allow.

        No score is above 1, so a mean is at most the rate of cases that are not 0, and at least that of cases that are
        1; these rates have intervals. So has a mean of scores that are all 0 or all 1, of which every draw is the same.
        """
        sums, counts = self.totals[-1].sums, self.totals[0].counts
        is_mean = len(self.totals) == 1
        extreme = is_mean and interval.reason == ONE_VALUE and interval.value in (0.0, 1.0)
        unbounded = math.isinf(interval.low) or math.isinf(interval.high)
        if self.template.statistic == PERCENT_DECREASE or not (unbounded or extreme):
            return interval
        if not np.array_equal(counts, self.totals[-1].counts):
            return interval
        moved = sums if is_mean else sums - self.totals[0].sums
        most = self._largest_rate(moved != 0)
        least = 1 - self._largest_rate(sums != counts) if is_mean else -most
        if extreme:
            return Interval(interval.value, least, most)
        low = least if math.isinf(interval.low) else interval.low
        return replace(interval, low=low, high=most if math.isinf(interval.high) else interval.high)

    def _largest_rate(self, is_so: np.ndarray) -> float:
        """The upper limit of the rate of cases of patients for whom something is so."""
        counts = self.totals[0].counts
        return rate_interval(np.where(is_so, counts, 0.0)[:, 0], counts[:, 0], LEVEL).high

    def exact_interval(self, level: float) -> Interval | None:
        """The interval of a rate, or of rates where all patients agree; None for any other statistic.

        Where all patients agree, resampling sees no spread; Korn and Graubard's interval does. Over several findings
        the limits are averaged, which is wider than need be; a finding with one patient may have any rate.
        """
        agree = bool(self.statistic.errors[0] <= 1e-9)
        one_rate = len(self.totals) == 1 and self.findings == 1
        same_cases = np.array_equal(self.totals[0].counts, self.totals[-1].counts)
        if not self.is_rate or self.template.statistic == PERCENT_DECREASE or not same_cases or not (one_rate or agree):
            return None
        each = [_rate_limits(self.totals, finding, level) for finding in range(self.findings)]
        if self.findings == 1:
            return each[0]
        ends = np.array([[interval.low, interval.high] for interval in each])
        low, high = np.where(np.isnan(ends), [self._lowest, 1.0], ends).mean(0).tolist()
        return Interval(float(self.statistic.values[0]), low, high)

    @property
    def _lowest(self) -> float:
        return 0.0 if len(self.totals) == 1 else -1.0

    def within_range(self, interval: Interval) -> Interval:
        """The interval within the values that are possible: means lie between 0 and 1, differences between −1 and 1."""
        if self.template.statistic == PERCENT_DECREASE:
            if math.isinf(interval.low) or math.isinf(interval.high):
                return Interval(interval.value, reason=TOO_WIDE)
            return interval
        low, high = np.clip([interval.low, interval.high], self._lowest, 1.0).tolist()  # NaN stays NaN
        return replace(interval, low=low, high=high)

    def filled(self, interval: Interval) -> Estimate:
        """The estimate with this interval, a decrease in percent."""
        scale = 100.0 if self.template.statistic == PERCENT_DECREASE else 1.0
        row = fill(self.template, interval, joined(interval.reason, self.template.reason))
        return replace(row, value=row.value * scale, low=row.low * scale, high=row.high * scale)


def _rate_limits(totals: tuple[ClusterTotals, ...], finding: int, level: float) -> Interval:
    sums = [part.sums[:, finding] for part in totals]
    counts = totals[0].counts[:, finding]
    if len(sums) == 1:
        return rate_interval(sums[0], counts, level)
    return rate_difference_interval(sums[1], sums[0], counts, level)


def measurement(
    values: Values,
    settings: LocalizationSettings,
    template: Estimate,
    columns: Sequence[str],
    findings: Sequence[str],
    *,
    paired: bool = True,
) -> Measurement | None:
    """The mean of one column, or how the second differs from the first, with equal weight for each finding.

    Two columns are compared on the cases that both have, unless the rules say otherwise or they are not `paired` but
    of other cases. None where no finding has a value in every column.
    """
    cube = values.over_findings(list(columns), list(findings)) if findings else np.zeros((len(columns), 0, 0))
    if len(columns) == 2 and paired and _on_common_cases(template, settings):
        cube = np.where(np.isnan(cube).any(0, keepdims=True), np.nan, cube)  # else the cases would differ as well
    has_case = np.asarray(~np.isnan(cube).all(1).any(0))
    cube = cube[..., has_case]
    if not cube.shape[2]:
        return None
    used = [finding for finding, has in zip(findings, has_case, strict=True) if has]
    patients = values.patients_by_name
    totals = tuple(totals_by_code(column, patients.codes, len(patients.names)) for column in cube)
    note = coverage(len(used), len(settings.findings)) if len(findings) > 1 else ""
    defined = ~np.isnan(cube[-1])
    rows = sum(len(values.by_finding[finding]) for finding in used)
    counted = replace(
        template,
        n_cases=int(defined.sum()),
        n_patients=len(np.unique(patients.codes[defined.any(1)])),
        n_undefined=rows - int(defined.sum()),
        reason=note,
    )
    is_rate = values.metric in METRICS and METRICS[values.metric].needs is Needs.POINT
    return Measurement(counted, totals, _statistic(totals, template), patients.names, is_rate)


def _statistic(totals: tuple[ClusterTotals, ...], template: Estimate) -> Linearised:
    """The mean, the difference or the relative decrease of the totals' columns, over all their findings."""
    parts = [linearised_ratios(part.sums, part.counts) for part in totals]
    findings = totals[0].sums.shape[1]
    if len(parts) == 1:
        return parts[0] if findings == 1 else linearised_macro(parts[0], findings)
    first, second = (float(part.values.mean()) for part in parts)
    if template.statistic != PERCENT_DECREASE:
        compared = contrast(parts[0], parts[1])
        return compared if findings == 1 else linearised_macro(compared, findings)
    if first == 0:
        undefined = contrast(parts[0], parts[1])
        return replace(undefined.only(np.arange(findings) == 0), values=np.array([np.nan]))
    compared = contrast(parts[0], parts[1], (second / first**2, -1 / first))
    compared = compared if findings == 1 else linearised_macro(compared, findings)
    return replace(compared, values=np.array([1 - second / first]))


def simultaneous_rows(
    measurements: Sequence[Measurement], settings: LocalizationSettings, family: str, sizes: Sequence[float]
) -> list[Estimate]:
    """The measurements with intervals that hold together and p-values corrected for one another, judged by the sizes.

    Where no patient differs from the others, the interval is that of a rate at a level that allows for the family.
    """
    if not measurements:
        return []
    first = measurements[0].template
    generator = settings.generator("family", first.statistic, first.metric, family)
    patients = np.unique(np.concatenate([each.patients for each in measurements]))
    statistics = side_by_side([each.statistic.among(np.isin(patients, each.patients)) for each in measurements])
    result = simultaneous_intervals(statistics, settings.draws, generator)
    rows = []
    for each, interval, p_value, p_adjusted in zip(
        measurements, result.intervals, result.p_values, result.p_adjusted, strict=True
    ):
        exact = each.exact_interval(1 - (1 - LEVEL) / len(measurements))
        if exact is None:
            row = replace(
                each.filled(each.within_range(interval)), p_value=float(p_value), p_adjusted=float(p_adjusted)
            )
        else:
            chance = _inverted(each)
            row = replace(each.filled(exact), p_value=chance, p_adjusted=min(1.0, chance * len(measurements)))
        rows.append(replace(row, family=family))
    return judged_together(rows, sizes, statistics.influences, settings.generator("needed", first.metric, family))


def few_patients(measured: Measurement, names: Sequence[str]) -> str:
    """Which of two unpaired groups have too few patients to say how much these differ among themselves; or ""."""
    patients = [int(np.count_nonzero(totals.counts.sum(1))) for totals in measured.totals]
    few = [name for name, number in zip(names, patients, strict=True) if number < FEWEST_PATIENTS]
    return f"fewer than {FEWEST_PATIENTS} patients in {' and in '.join(few)}" if few else ""


def _inverted(measured: Measurement) -> float:
    """The p-value that belongs to an exact interval: the smallest α at which the interval of level 1 − α excludes 0."""
    low, high = _SMALLEST_P, 1.0
    for _ in range(40):
        middle = math.sqrt(low * high)
        interval = measured.exact_interval(1 - middle)
        if interval is not None and (interval.low > 0 or interval.high < 0):
            high = middle
        else:
            low = middle
    return high


def _on_common_cases(template: Estimate, settings: LocalizationSettings) -> bool:
    """Whether two columns are compared on the cases both have; the benchmark takes the readers on their own cases."""
    return settings.rules.human_common_cases or template.other_method != HUMAN
