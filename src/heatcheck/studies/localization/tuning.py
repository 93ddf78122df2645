"""What validation data choose: a threshold and a cutoff for each method and finding, and the best model and method.

Everything comes from the tables of the validation stage, so that it can be made again without maps.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from jaxtyping import Float

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import SELECTED, TUNED_CUTOFF, TUNED_THRESHOLD, condition
from heatcheck.estimating.score_values import Values
from heatcheck.metrics.thresholds import THRESHOLDS
from heatcheck.scoring.presets import Rules
from heatcheck.scoring.rows import TunedSettings
from heatcheck.stats.tuning import CUTOFFS, FullSlice, cutoff_curve, first_best, mean_curve
from heatcheck.studies.localization.estimates import read_values
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import BEST_MODEL, BEST_PAIR, CUTOFF_CURVE, THRESHOLD_CURVE

SELECTED_BY = ("iou", "hit")  # each chooses by itself; the first decides which model's results come first
NOTHING_TO_TUNE = "no validation case has a value"
_LATE_START = "Lung Lesion"  # the benchmark's grid of cutoffs starts one step later there
_DECIMALS = 3  # to which the benchmark rounds before it looks for the best cutoff


@dataclass(frozen=True, slots=True)
class TuningSettings:
    """What is chosen, and by which rules."""

    findings: tuple[str, ...]
    methods: tuple[str, ...]
    floors: tuple[str, ...]
    models: tuple[str, ...]
    rules: Rules

    def of(self, model: str) -> LocalizationSettings:
        """What is read of one model."""
        return LocalizationSettings(self.findings, self.methods, self.floors, (), model, draws=0, flips=0, seed=0)


def validation_estimates(folder: Path, settings: TuningSettings) -> list[Estimate]:
    """Curves, chosen thresholds and cutoffs of every model, and which models were best, from the stage's tables."""
    rows: list[Estimate] = []
    for model in settings.models:
        rows += _thresholds(folder, settings, model)
        rows += _cutoffs(folder, settings, model)
    return rows + [row for metric in SELECTED_BY for row in _selected(folder, settings, metric)]


def tuned_for(chosen: Sequence[Estimate], model: str) -> TunedSettings:
    """The thresholds and cutoffs that were chosen for a model."""
    own = [row for row in chosen if row.model == model and not math.isnan(row.value)]
    return TunedSettings(
        {(row.method, row.finding): row.value for row in own if row.statistic == TUNED_THRESHOLD},
        {(row.method, row.finding): row.value for row in own if row.statistic == TUNED_CUTOFF},
    )


def primary_of(chosen: Sequence[Estimate], models: Sequence[str]) -> str:
    """The model of the best pair by overlap; the first of the study's where nothing was chosen."""
    pair = condition(stage=BEST_PAIR)
    best = (
        row.model
        for row in chosen
        if row.statistic == SELECTED and row.metric == SELECTED_BY[0] and row.condition == pair
    )
    return next(best, models[0])


def validation_predictions(folder: Path, model: str) -> pd.DataFrame | None:
    """A model's answers on the validation data of the run in this folder; None where it has none."""
    file = folder / "validation" / "predictions.parquet"
    if not file.exists():
        return None
    return pq.read_table(file, filters=[("model", "==", model)]).to_pandas()


def _thresholds(folder: Path, settings: TuningSettings, model: str) -> Iterator[Estimate]:
    """The mean overlap at each threshold, and the threshold with the highest, the first of equals."""
    at_each = [read_values(folder, "iou", settings.of(model), condition(threshold=t)) for t in THRESHOLDS]
    for method in settings.methods:
        for finding in settings.findings:
            blank = Estimate(THRESHOLD_CURVE, "iou", finding, method, model)
            curve = [_mean(_column(values, finding, method)) for values in at_each]
            n = int((~np.isnan(_column(at_each[0], finding, method))).sum())
            for threshold, value in zip(THRESHOLDS, curve, strict=True):
                yield _point(replace(blank, condition=condition(threshold=threshold), n_cases=n), value)
            yield _best(replace(blank, statistic=TUNED_THRESHOLD, n_cases=n), THRESHOLDS, curve)


def _cutoffs(folder: Path, settings: TuningSettings, model: str) -> Iterator[Estimate]:
    """The full slice's mean overlap at each cutoff, and the cutoff with the highest, the first of equals."""
    full, positive = (read_values(folder, metric, settings.of(model)) for metric in ("iou_full", "iou"))
    answers = pq.read_table(
        folder / "predictions.parquet",
        columns=["case", "finding", "probability"],
        filters=[("model", "==", model)],
        read_dictionary=["case", "finding"],
    ).to_pandas()
    reference = settings.rules.cutoff_tuning == "reference"
    for finding in settings.findings:
        of_finding = answers[answers["finding"] == finding]
        said = pd.Series(of_finding["probability"].to_numpy(), of_finding["case"].astype(object))
        grid = CUTOFFS[1:] if reference and finding == _LATE_START else CUTOFFS
        for method in settings.methods:
            blank = Estimate(CUTOFF_CURVE, "iou_full", finding, method, model)
            ious = full.by_finding[finding][method] if finding in full.by_finding else pd.Series(dtype=float)
            outlined = positive.by_finding[finding][method] if finding in positive.by_finding else ious[:0]
            cases = FullSlice(
                ious.to_numpy(float),
                said.reindex(ious.index).to_numpy(float),
                outlined.reindex(ious.index).notna().to_numpy(),
            )
            exact = cutoff_curve(cases, grid, "above the cutoff" if reference else "from the cutoff")
            curve = (np.round(exact, _DECIMALS) if reference else exact).tolist()
            for cutoff, value in zip(grid, curve, strict=True):
                yield _point(replace(blank, condition=condition(cutoff=cutoff), n_cases=len(ious)), value)
            yield _best(replace(blank, statistic=TUNED_CUTOFF, n_cases=len(ious)), grid, curve)


def _point(blank: Estimate, value: float) -> Estimate:
    return replace(blank, value=value, reason=NOTHING_TO_TUNE if math.isnan(value) else "")


def _best(blank: Estimate, grid: Sequence[float], curve: Sequence[float]) -> Estimate:
    return _point(blank, first_best(grid, np.array(curve)))


def _selected(folder: Path, settings: TuningSettings, metric: str) -> Iterator[Estimate]:
    """The best model for each method, and the best pair of model and method; floors are not chosen among."""
    by_model = {
        model: _macro_means(read_values(folder, metric, settings.of(model)), settings) for model in settings.models
    }
    candidates = [method for method in settings.methods if method not in settings.floors] or list(settings.methods)
    best: list[Estimate] = []
    for method in candidates:
        means = {model: found[method] for model, found in by_model.items() if not math.isnan(found[method])}
        if means:
            model = max(means, key=lambda name: means[name])  # the first of equals
            at = condition(stage=BEST_MODEL)
            best.append(Estimate(SELECTED, metric, ALL, method, model, means[model], condition=at))
    yield from best
    if best:
        yield replace(max(best, key=lambda row: row.value), condition=condition(stage=BEST_PAIR))


def _macro_means(values: Values, settings: TuningSettings) -> dict[str, float]:
    """Each method's mean over the findings' means."""
    return {
        method: _mean(np.array([_mean(_column(values, finding, method)) for finding in settings.findings]))
        for method in settings.methods
    }


def _column(values: Values, finding: str, method: str) -> Float[np.ndarray, " cases"]:
    table = values.by_finding.get(finding)
    return np.zeros(0) if table is None else table[method].to_numpy(float)


def _mean(values: np.ndarray) -> float:
    return float(mean_curve(values[:, None])[0])
