"""What validation data choose: thresholds, cutoffs and smoothing, and the best model and method.

Everything is computed from the tables of the validation stage, so it can be repeated without maps.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from jaxtyping import Float

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import PLAIN, SELECTED, TUNED_CUTOFF, TUNED_THRESHOLD, condition, condition_of, facts_of
from heatcheck.estimating.score_values import Values
from heatcheck.metrics.thresholds import THRESHOLDS
from heatcheck.scoring.presets import CHEXLOCALIZE, Rules
from heatcheck.scoring.rows import REFERENCE, TunedSettings
from heatcheck.stats.tuning import CUTOFFS, FullSlice, cutoff_curve, first_best, mean_curve
from heatcheck.studies.localization.answers.views import views_in
from heatcheck.studies.localization.estimates import read_values
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import (
    BEST_MODEL,
    BEST_PAIR,
    CUTOFF_CURVE,
    SMOOTHING_CURVE,
    TESTED,
    THRESHOLD_CURVE,
    TUNED_SMOOTHING,
)

NOTHING_TO_TUNE = "no validation case has a value"
_LATE_START = "Lung Lesion"  # for which the benchmark leaves out the first cutoff
_DECIMALS = 3  # to which the benchmark rounds before it looks for the best cutoff


@dataclass(frozen=True, slots=True)
class TuningSettings:
    """What is chosen, and by which rules."""

    findings: tuple[str, ...]
    methods: tuple[str, ...]
    floors: tuple[str, ...]
    models: tuple[str, ...]
    rules: Rules
    eligible: tuple[str, ...]  # models among which the best is chosen: the ensembles, where there are any
    smooths: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # tried beside none, by method
    views: Literal["each", "max"] = "each"

    def for_model(self, model: str) -> LocalizationSettings:
        """The settings for reading one model's scores."""
        return LocalizationSettings(
            self.findings, self.methods, self.floors, (), model, draws=0, seed=0, views=self.views
        )


def validation_estimates(folder: Path, settings: TuningSettings) -> list[Estimate]:
    """Curves, chosen thresholds and cutoffs of every model, and which models were best, from the stage's tables."""
    rows: list[Estimate] = []
    for model in settings.models:
        rows += _thresholds(folder, settings, model)
        rows += _smoothing(folder, settings, model)
    smoothing = {model: smoothing_for(rows, model) for model in settings.models}
    for model in settings.models:
        rows += _cutoffs(folder, settings, model, smoothing[model])
    return rows + [row for metric in TESTED for row in _selected(folder, settings, metric, smoothing)]


def tuned_for(chosen: Sequence[Estimate], model: str) -> TunedSettings:
    """The thresholds and cutoffs that were chosen for a model."""
    rows = [row for row in chosen if row.model == model and not math.isnan(row.value)]
    wanted = ((TUNED_THRESHOLD, PLAIN), (TUNED_CUTOFF, PLAIN), (TUNED_CUTOFF, REFERENCE))
    return TunedSettings(
        *({(r.method, r.finding): r.value for r in rows if (r.statistic, r.condition) == one} for one in wanted)
    )


def smoothing_for(chosen: Sequence[Estimate], model: str) -> dict[str, float]:
    """The smoothing that was chosen for a model's maps, by method."""
    rows = (row for row in chosen if row.model == model and row.statistic == TUNED_SMOOTHING)
    return {row.method: 0.0 if math.isnan(row.value) else row.value for row in rows}


def primary_of(chosen: Sequence[Estimate], models: Sequence[str]) -> str:
    """The model of the best pair by overlap; the study's first model where nothing was chosen."""
    pair = condition(stage=BEST_PAIR)
    best = (
        row.model for row in chosen if row.statistic == SELECTED and row.metric == TESTED[0] and row.condition == pair
    )
    return next(best, models[0])


def validation_predictions(folder: Path, settings: LocalizationSettings) -> pd.DataFrame | None:
    """A model's predictions on the validation data of the run in this folder; None without such data."""
    file = folder / "validation" / "predictions.parquet"
    if not file.exists():
        return None
    answers = pq.read_table(file, filters=[("model", "==", settings.model)]).to_pandas()
    views = views_in(file.parent, settings)
    return views.joined(answers) if views else answers


def _thresholds(folder: Path, settings: TuningSettings, model: str) -> Iterator[Estimate]:
    """The mean overlap at each threshold, and the threshold with the highest, the first of equals."""
    by_threshold = [
        read_values(folder, "iou", settings.for_model(model), condition(threshold=threshold))
        for threshold in THRESHOLDS
    ]
    for method in settings.methods:
        for finding in settings.findings:
            curve = np.array([_mean(_column(values, finding, method)) for values in by_threshold])
            n = int((~np.isnan(_column(by_threshold[0], finding, method))).sum())
            template = Estimate(THRESHOLD_CURVE, "iou", finding, method, model, n_cases=n)
            for threshold, value in zip(THRESHOLDS, curve.tolist(), strict=True):
                yield _point(replace(template, condition=condition(threshold=threshold)), value)
            yield _point(replace(template, statistic=TUNED_THRESHOLD), first_best(THRESHOLDS, curve))


def _smoothing(folder: Path, settings: TuningSettings, model: str) -> Iterator[Estimate]:
    """The mean overlap with each smoothing, and the one whose mean over the findings is highest, the first of equals.

    A method has one smoothing for all findings, as in the paper.
    """
    for method, tried in settings.smooths.items():
        every = (0.0, *sorted(tried))
        means = [
            _finding_means(_smoothed_values(folder, "iou", settings, model, {method: smooth}), settings, method)
            for smooth in every
        ]
        template = Estimate(SMOOTHING_CURVE, "iou", ALL, method, model)
        for smooth, by_finding in zip(every, means, strict=True):
            for finding, mean in {**by_finding, ALL: _mean(np.array(list(by_finding.values())))}.items():
                yield _point(replace(template, finding=finding, condition=condition(smooth=smooth)), mean)
        curve = np.array([_mean(np.array(list(by_finding.values()))) for by_finding in means])
        yield _point(replace(template, statistic=TUNED_SMOOTHING), first_best(every, curve))


def _smoothed_values(
    folder: Path, metric: str, settings: TuningSettings, model: str, smoothing: Mapping[str, float], under: str = PLAIN
) -> Values:
    """One metric's values of a model's maps, with the smoothing of those methods that have one.

    Where a spec names the box of the benchmark's regions, these do not follow the smoothing that is tried.
    """
    values = read_values(folder, metric, settings.for_model(model), under)
    if metric == "hit":  # where a map points does not depend on its region
        return values
    for smooth in {smooth for smooth in smoothing.values() if smooth}:
        smoothed = read_values(
            folder, metric, settings.for_model(model), condition_of({**facts_of(under), "smooth": smooth})
        )
        methods = [method for method, chosen in smoothing.items() if chosen == smooth]
        tables = {}
        for finding, table in values.by_finding.items():
            columns = {method: _by_case(smoothed, finding, method).dropna() for method in methods}
            tables[finding] = table.assign(**{method: column for method, column in columns.items() if len(column)})
        values = replace(values, by_finding=tables)
    return values


def _cutoffs(folder: Path, settings: TuningSettings, model: str, smoothing: Mapping[str, float]) -> Iterator[Estimate]:
    """The mean overlap on all images at each cutoff, and the cutoff with the highest, the first of equals.

    The benchmark's regions of the same maps have cutoffs of their own, tuned as the benchmark tunes them.
    """
    full, positive = (_smoothed_values(folder, name, settings, model, smoothing) for name in ("iou_full", "iou"))
    theirs = _smoothed_values(folder, "iou_full", settings, model, smoothing, REFERENCE)
    answers = pq.read_table(
        folder / "predictions.parquet",
        columns=["case", "finding", "probability", "label"],
        filters=[("model", "==", model)],
        read_dictionary=["case", "finding"],
    ).to_pandas()
    views = views_in(folder, settings.for_model(model))
    answers = views.spread(answers) if views else answers
    for finding in settings.findings:
        of_finding = answers[answers["finding"] == finding]
        probability = pd.Series(of_finding["probability"].to_numpy(), of_finding["case"].astype(object))
        for method in settings.methods:
            outlined = _by_case(positive, finding, method)
            cases = _full_slice(_by_case(full, finding, method), probability, outlined)
            grid, curve = cutoff_tuning(cases, finding, settings.rules)
            template = Estimate(CUTOFF_CURVE, "iou_full", finding, method, model, n_cases=len(cases.ious))
            for cutoff, value in zip(grid, curve.tolist(), strict=True):
                yield _point(replace(template, condition=condition(cutoff=cutoff)), value)
            chosen = replace(template, statistic=TUNED_CUTOFF)
            yield _point(chosen, first_best(grid, curve))
            cases = _full_slice(_by_case(theirs, finding, method).dropna(), probability, outlined)
            if len(cases.ious):
                best = first_best(*cutoff_tuning(cases, finding, CHEXLOCALIZE))
                yield _point(replace(chosen, condition=REFERENCE, n_cases=len(cases.ious)), best)


def _by_case(values: Values, finding: str, method: str) -> pd.Series:
    """A method's values on one finding, by case."""
    return values.by_finding[finding][method] if finding in values.by_finding else pd.Series(dtype=float)


def _full_slice(ious: pd.Series, probability: pd.Series, outlined: pd.Series) -> FullSlice:
    """These overlaps with the probabilities of their cases, and whether each has an outline."""
    probabilities = probability.reindex(ious.index).to_numpy(float)
    return FullSlice(ious.to_numpy(float), probabilities, outlined.reindex(ious.index).notna().to_numpy())


def cutoff_tuning(
    cases: FullSlice, finding: str, rules: Rules
) -> tuple[tuple[float, ...], Float[np.ndarray, " cutoffs"]]:
    """The cutoffs that are tried for a finding, and the mean overlap at each."""
    if rules.cutoff_tuning != "reference":
        return CUTOFFS, cutoff_curve(cases, CUTOFFS, "from the cutoff")
    grid = CUTOFFS[1:] if finding == _LATE_START else CUTOFFS
    return grid, np.round(cutoff_curve(cases, grid, "above the cutoff"), _DECIMALS)


def _point(template: Estimate, value: float) -> Estimate:
    return replace(template, value=value, reason=NOTHING_TO_TUNE if math.isnan(value) else "")


def _selected(
    folder: Path, settings: TuningSettings, metric: str, smoothing: Mapping[str, Mapping[str, float]]
) -> Iterator[Estimate]:
    """The best model for each method, and the best pair of model and method; floors are left out.

    Where the study has ensembles, its single checkpoints are there for comparison and take no part.
    """
    by_model = {
        model: _macro_means(_smoothed_values(folder, metric, settings, model, smoothing[model]), settings)
        for model in settings.eligible
    }
    candidates = [method for method in settings.methods if method not in settings.floors] or list(settings.methods)
    best: list[Estimate] = []
    for method in candidates:
        defined = {model: means[method] for model, means in by_model.items() if not math.isnan(means[method])}
        if defined:
            model = max(defined, key=lambda name: defined[name])  # the first of equals
            under = condition(stage=BEST_MODEL)
            best.append(Estimate(SELECTED, metric, ALL, method, model, defined[model], condition=under))
    yield from best
    if best:
        yield replace(max(best, key=lambda row: row.value), condition=condition(stage=BEST_PAIR))


def _macro_means(values: Values, settings: TuningSettings) -> dict[str, float]:
    """Each method's mean over the findings' means."""
    return {
        method: _mean(np.array(list(_finding_means(values, settings, method).values()))) for method in settings.methods
    }


def _finding_means(values: Values, settings: TuningSettings, method: str) -> dict[str, float]:
    return {finding: _mean(_column(values, finding, method)) for finding in settings.findings}


def _column(values: Values, finding: str, method: str) -> Float[np.ndarray, " cases"]:
    table = values.by_finding.get(finding)
    return np.zeros(0) if table is None else table[method].to_numpy(float)


def _mean(values: np.ndarray) -> float:
    return float(mean_curve(values[:, None])[0])
