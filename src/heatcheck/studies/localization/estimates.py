"""From a run's scores to the numbers of its tables: means, and methods against readers, floors and one another."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import COMMON_FINDINGS, HUMAN, Estimate, Score
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, PERCENT_DECREASE, PLAIN, RATIO, TEST, Statistic
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.estimating.score_values import Gathered, Values
from heatcheck.judging.sizes import BEST_SCORE
from heatcheck.metrics import METRICS
from heatcheck.runs.tables import read_batches
from heatcheck.stats.resampling.bca import NO_VALUE
from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.macro import mean_share_interval
from heatcheck.studies.localization.answers.predictions import model_estimates, read_answers
from heatcheck.studies.localization.comparisons import measurement, simultaneous_rows
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import METHOD_PAIR, TESTED

_RATIOS = {
    "precision": ("true_positive_pixels", "false_positive_pixels"),
    "recall": ("true_positive_pixels", "false_negative_pixels"),
    "specificity": ("true_negative_pixels", "false_positive_pixels"),
}


def localization_estimates(folder: Path, settings: LocalizationSettings) -> list[Estimate]:
    """One model's estimates under the recommended rules, from the run's joined tables."""
    rows: list[Estimate] = []
    for metric in settings.metrics:
        values = read_values(folder, metric, settings)
        if not values.by_finding:
            continue
        means = list(mean_rows(values, settings))
        rows += means
        if metric in TESTED:
            rows += distances_from_human(values, settings)
            rows += _tests_against_floors(values, settings, means)
            rows += method_pairs(values, settings)
    rows += _pixel_ratios(folder, settings)
    return rows + model_estimates(read_answers(folder / "predictions.parquet", settings), settings)


def read_values(
    folder: Path, metric: str, settings: LocalizationSettings, under: str = PLAIN, readers_under: str = PLAIN
) -> Values:
    """One metric's values under one condition, for one model and the readers.

    Only these rows are read, and only their numbers kept: a run holds several models and many millions of rows.
    """
    methods = [("condition", "==", under), ("model", "==", settings.model), ("method", "!=", HUMAN)]
    readers = [("condition", "==", readers_under), ("method", "==", HUMAN)]
    wanted = [[("metric", "==", metric), *filters] for filters in (methods, readers)]
    columns = ["case", "patient", "finding", "method", "value"]
    gathered = Gathered(settings.findings, (*settings.methods, HUMAN))
    for batch in read_batches(folder / "scores.parquet", Score, columns, wanted):
        gathered.add(batch)
    values = gathered.values(metric)
    return values if settings.rules.resampling == "patients" else values.by_case()


def mean_rows(values: Values, settings: LocalizationSettings, under: str = PLAIN) -> Iterator[Estimate]:
    """The mean of every method and of the readers, on each finding and over all."""
    template = Estimate(MEAN, values.metric, model=settings.model, condition=under)
    yield from _each_and_all(values, settings, template, [[method] for method in values.columns])


def distances_from_human(
    values: Values,
    settings: LocalizationSettings,
    under: str = PLAIN,
    statistics: Sequence[Statistic] = (DIFFERENCE, PERCENT_DECREASE),
) -> Iterator[Estimate]:
    """Method less readers, and by how many percent it falls short of them, on the cases that both have.

    The differences of all methods have intervals that hold together: whichever method is the best, that of its distance
    is not too narrow.
    """
    if HUMAN not in values.columns:
        return
    for name in statistics:
        template = Estimate(name, values.metric, model=settings.model, other_method=HUMAN, condition=under)
        if name == DIFFERENCE:
            compared = [(HUMAN, method) for method in settings.methods]
            yield from families(values, settings, template, compared, "each method against the readers")
        else:
            yield from _each_and_all(values, settings, template, [[HUMAN, method] for method in settings.methods])


def families(
    values: Values,
    settings: LocalizationSettings,
    template: Estimate,
    compared: Sequence[tuple[str, str]],
    what: str,
) -> Iterator[Estimate]:
    """The second column less the first over all findings, and on each finding: two families of comparisons."""
    size, label = settings.sizes.between_methods(values.metric), METRICS[values.metric].label
    overall = [(first, second, ALL, size) for first, second in compared]
    each = [(first, second, finding, size) for first, second in compared for finding in values.by_finding]
    yield from _family(values, settings, template, overall, f"{label} over all findings, {what}")
    yield from _family(values, settings, template, each, f"{label} on each finding, {what}")


def _each_and_all(
    values: Values, settings: LocalizationSettings, template: Estimate, columns: Sequence[list[str]]
) -> Iterator[Estimate]:
    """The estimates of these columns on each finding and over all, each with an interval of its own."""
    for names in columns:
        for finding, findings in [*((f, [f]) for f in values.by_finding), (ALL, list(values.by_finding))]:
            row = replace(template, finding=finding, method=names[-1])
            measured = measurement(values, settings, row, names, findings)
            if measured is not None:
                yield measured.estimate(settings)
            elif finding != ALL:
                yield replace(row, n_undefined=len(values.by_finding[finding]), reason=NO_VALUE)


def _tests_against_floors(
    values: Values, settings: LocalizationSettings, means: Sequence[Estimate]
) -> Iterator[Estimate]:
    """Each method against every floor over all findings, and against the best floor on each finding."""
    if not settings.floors:
        return
    known = {(row.finding, row.method): row.value for row in means}
    methods = [name for name in settings.methods if name not in settings.floors]
    sizes = {finding: room_that_matters(known, finding, settings) for finding in (*values.by_finding, ALL)}
    overall = [(floor, method, ALL, sizes[ALL]) for method in methods for floor in settings.floors]
    each = [
        (best_floor(known, finding, settings), method, finding, sizes[finding])
        for method in methods
        for finding in values.by_finding
    ]
    label, template = METRICS[values.metric].label, Estimate(TEST, values.metric, model=settings.model)
    against = f"{label} over all findings, each method against each floor"
    yield from _family(values, settings, template, overall, against)
    against = f"{label} on each finding, each method against the best floor there"
    yield from _family(values, settings, template, each, against)


def best_floor(means: Mapping[tuple[str, str], float], finding: str, settings: LocalizationSettings) -> str:
    """The floor with the highest mean."""
    known = {floor: means.get((finding, floor), math.nan) for floor in settings.floors}
    return max(known, key=lambda floor: -math.inf if math.isnan(known[floor]) else known[floor])


def room_that_matters(means: Mapping[tuple[str, str], float], finding: str, settings: LocalizationSettings) -> float:
    """The distance from a floor that matters: a share of the room between the best floor and the readers."""
    floor = means.get((finding, best_floor(means, finding, settings)), math.nan)
    readers = means.get((finding, HUMAN), math.nan)
    return settings.sizes.above_floor(floor, BEST_SCORE if math.isnan(readers) else readers)


def method_pairs(values: Values, settings: LocalizationSettings) -> Iterator[Estimate]:
    """Each method less each other, on the findings that all of them have: who may be the best.

    A method that lacks the hardest finding must not win for it. Where some method lacks some finding, the means on the
    findings of all methods are estimated as well.
    """
    methods = [name for name in settings.methods if name not in settings.floors]
    has = {m: [f for f, table in values.by_finding.items() if table[m].notna().any()] for m in methods}
    scored = [method for method in methods if has[method]]
    common = [f for f in values.by_finding if all(f in has[method] for method in scored)]
    if not common or len(scored) < 2:
        return  # nothing to compare
    finding = ALL if all(has[method] == list(values.by_finding) for method in scored) else COMMON_FINDINGS
    if finding != ALL:
        template = Estimate(MEAN, values.metric, finding, model=settings.model)
        for method in scored:
            measured = measurement(values, settings, replace(template, method=method), [method], common)
            if measured is not None:
                yield measured.estimate(settings)
    template = Estimate(METHOD_PAIR, values.metric, model=settings.model)
    size = settings.sizes.between_methods(values.metric)
    pairs = [(second, first, finding, size) for first, second in combinations(scored, 2)]
    family = f"{METRICS[values.metric].label}, each method against each other"
    yield from _family(values, settings, template, pairs, family, common)


def _family(
    values: Values,
    settings: LocalizationSettings,
    template: Estimate,
    compared: Sequence[tuple[str, str, str, float]],
    family: str,
    findings: Sequence[str] = (),
) -> Iterator[Estimate]:
    """The second column less the first on a finding or on all, each by its size; corrected for one another.

    `findings` are those that a mean is taken over, by default all. A comparison on one finding without a common case
    has a row without numbers.
    """
    measured, sizes, empty = [], [], []
    for first, second, finding, size in compared:
        row = replace(template, finding=finding, method=second, other_method=first)
        over = [finding] if finding in values.by_finding else list(findings or values.by_finding)
        found = measurement(values, settings, row, [first, second], over)
        if found is not None:
            measured.append(found)
            sizes.append(size)
        elif finding in values.by_finding:
            empty.append(replace(row, n_undefined=len(values.by_finding[finding]), family=family, reason=NO_VALUE))
    yield from simultaneous_rows(measured, settings, family, sizes)
    yield from empty


def _pixel_ratios(folder: Path, settings: LocalizationSettings) -> Iterator[Estimate]:
    """Pixel precision, recall and specificity, from counts summed over images."""
    names = dict.fromkeys(name for pair in _RATIOS.values() for name in pair)
    counts = {name: read_values(folder, name, settings) for name in names}
    for metric, (part, rest) in _RATIOS.items():
        for method in counts[part].columns:
            each = [(finding, [finding]) for finding in counts[part].by_finding]
            for name, findings in [*each, (ALL, list(counts[part].by_finding))] if each else []:
                template = Estimate(RATIO, metric, name, method, settings.model)
                yield _ratio([counts[part], counts[rest]], findings, template, settings)


def _ratio(counts: list[Values], findings: list[str], template: Estimate, settings: LocalizationSettings) -> Estimate:
    """The part's share of part and rest on each finding's own cases, averaged over the findings that have any.

    A case counts once, however many of its findings are known.
    """
    both = np.stack([values.over_findings([template.method], findings)[0] for values in counts])
    defined = ~np.isnan(both).any(0)
    has_cases = defined.any(0) | ~defined.any()  # where nothing is known, all of it is undefined
    takes_part = defined.any(1)
    patients = counts[0].patients[takes_part]
    part, rest = np.where(defined, both, np.nan)[:, takes_part][..., has_cases]
    parts, wholes = (cluster_totals(each, patients).sums for each in (part, part + rest))
    generator = settings.generator("ratio", template.metric, template.finding, template.method)
    interval = mean_share_interval(parts, wholes, settings.draws, generator)
    known, every = int(has_cases.sum()), len(settings.findings) if template.finding == ALL else 1
    n_patients, missing = len(np.unique(patients)), int((~takes_part).sum())
    counted = replace(template, n_cases=len(patients), n_patients=n_patients, n_undefined=missing)
    return fill(counted, interval, joined(interval.reason, coverage(known, every)))
