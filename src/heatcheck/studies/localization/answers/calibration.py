"""Temperature scaling, always fitted to other patients, and its effect on calibration and localization."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped
from scipy.special import expit, logit

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate, Measured
from heatcheck.core.vocabulary import CALIBRATION, MEAN, condition
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.metrics.classification import expected_calibration_error
from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.macro import share_intervals
from heatcheck.stats.resampling.studentised import linearised_ratios
from heatcheck.stats.temperature import calibrated_probabilities, fitted_temperature
from heatcheck.studies.localization.answers.predictions import reliability_rows
from heatcheck.studies.localization.score_grid import Grid, ScoreGrid
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import (
    ON_FOLDS,
    ON_VALIDATION,
    SCALED,
    SHOWN_CUTOFFS,
    TEMPERATURE,
)

FOLDS = 5
FEW_PATIENTS = "one patient cannot be held out from the others"
NO_PREDICTIONS = "no prediction"
_MARGIN = 1e-12  # from 0 and 1, which have no logit


@dataclass(frozen=True, slots=True)
class Scaling:
    """The temperature of each finding and the predictions with it."""

    fitted_on: str  # validation data or folds
    temperatures: dict[str, Measured]
    predictions: pd.DataFrame  # of one model, with a column `scaled`: as it was where a finding has no temperature


def scaled_predictions(
    predictions: pd.DataFrame, validation: pd.DataFrame | None, settings: LocalizationSettings
) -> Scaling:
    """The model's predictions with each finding's temperature.

    With validation predictions the temperature is fitted to those. Without, patients are divided into five folds, and
    each fold is scaled by the temperature of the other four; the finding's temperature is then the geometric mean of
    the five. A finding for which any of them is undefined has none.
    """
    scored = predictions[predictions["model"] == settings.model].sort_values(["finding", "case"])
    fitting = None if validation is None else validation[validation["model"] == settings.model]
    after = scored["probability"].to_numpy(float, copy=True)
    temperatures = {}
    for finding in settings.findings:
        is_finding = (scored["finding"] == finding).to_numpy()
        rows = scored[is_finding]
        if not len(rows):
            temperatures[finding] = Measured(math.nan, NO_PREDICTIONS)
            continue
        if fitting is None:
            temperature, per_row = _by_folds(rows, settings.generator("folds", finding))
        else:
            temperature = _fitted(fitting[fitting["finding"] == finding])
            per_row = np.full(len(rows), temperature.value)
        temperatures[finding] = temperature
        if not math.isnan(temperature.value):
            after[is_finding] = calibrated_probabilities(logits_of(rows), per_row)
    return Scaling(ON_FOLDS if fitting is None else ON_VALIDATION, temperatures, scored.assign(scaled=after))


def logits_of(rows: pd.DataFrame) -> Float[np.ndarray, " cases"]:
    """The logit behind each probability.

    The stored one where the probability is its sigmoid: it is exact even where the probability has become 1. Else, as
    for an ensemble's mean of probabilities or maps made elsewhere, that of the probability.
    """
    stored = rows["logit"].to_numpy(float)
    probability = rows["probability"].to_numpy(float)
    recovered = logit(np.clip(probability, _MARGIN, 1 - _MARGIN))
    is_sigmoid = np.isfinite(stored) & (np.abs(expit(stored) - probability) < 1e-5)
    return np.where(is_sigmoid, stored, recovered)


def _fitted(rows: pd.DataFrame) -> Measured:
    logits = logits_of(rows)
    known = np.isfinite(logits)
    return fitted_temperature(rows["label"].to_numpy(float)[known], logits[known])


def _by_folds(rows: pd.DataFrame, generator: np.random.Generator) -> tuple[Measured, Float[np.ndarray, " cases"]]:
    """The mean temperature, and that of each row: fitted without the row's fold."""
    fold = _folds(rows, generator)
    per_row = np.full(len(rows), np.nan)
    fitted = []
    for number in range(int(fold.max()) + 1):
        temperature = _fitted(rows[fold != number]) if fold.max() else Measured(math.nan, FEW_PATIENTS)
        if math.isnan(temperature.value):
            return temperature, per_row
        per_row[fold == number] = temperature.value
        fitted.append(temperature.value)
    spread = f"{len(fitted)} folds gave {min(fitted):.2f} to {max(fitted):.2f}"
    return Measured(float(np.exp(np.mean(np.log(fitted)))), spread), per_row


def _folds(rows: pd.DataFrame, generator: np.random.Generator) -> Int[np.ndarray, " cases"]:
    """The fold of each row; patients with the finding are divided first, then the others: each fold has both."""
    names, codes = np.unique(rows["patient"].to_numpy(str), return_inverse=True)
    has_finding = np.zeros(len(names), bool)
    np.logical_or.at(has_finding, codes, rows["label"].to_numpy(float) == 1)
    order = np.lexsort((generator.permutation(len(names)), ~has_finding))
    fold = np.empty(len(names), np.intp)
    fold[order] = np.arange(len(names)) % FOLDS
    return fold[codes]


def calibration_estimates(scaling: Scaling, settings: LocalizationSettings) -> list[Estimate]:
    """Each finding's temperature, and calibration error and reliability curve after scaling."""
    template = Estimate(TEMPERATURE, "ece", model=settings.model, condition=condition(fitted_on=scaling.fitted_on))
    rows = [
        replace(template, finding=finding, value=temperature.value, reason=temperature.reason)
        for finding, temperature in scaling.temperatures.items()
    ]
    scaled = scaling.predictions[scaling.predictions["finding"].isin(settings.findings)]
    for finding in (*settings.findings, ALL):
        of_finding = scaled if finding == ALL else scaled[scaled["finding"] == finding]
        rows += _calibration(of_finding, finding, scaling, settings)
    return rows


def _calibration(
    rows: pd.DataFrame, finding: str, scaling: Scaling, settings: LocalizationSettings
) -> Iterator[Estimate]:
    unscaled = finding != ALL and math.isnan(scaling.temperatures[finding].value)
    usable = rows[rows["scaled"].notna() & (not unscaled)]
    labels, probabilities = usable["label"].to_numpy(float), usable["scaled"].to_numpy(float)
    error = expected_calibration_error(labels, probabilities)
    known = usable[usable["label"].notna()]
    yield Estimate(
        CALIBRATION, "ece", finding, "", settings.model, error.value, condition=condition(temperature=SCALED),
        n_cases=len(known), n_patients=known["patient"].nunique(), n_undefined=len(rows) - len(known),
        reason=_note(finding, error.reason, scaling),
    )  # fmt: skip
    yield from reliability_rows(labels, probabilities, finding, settings.model, temperature=SCALED)


def _note(finding: str, reason: str, scaling: Scaling) -> str:
    """Why a finding has no value after scaling, or how many of all findings have one."""
    if finding != ALL:
        temperature = scaling.temperatures[finding]
        return temperature.reason if math.isnan(temperature.value) else reason
    fitted = sum(not math.isnan(temperature.value) for temperature in scaling.temperatures.values())
    of_all = f"{fitted} of {len(scaling.temperatures)} findings were scaled, the others are as they were"
    return reason or ("" if fitted == len(scaling.temperatures) else of_all)


def cutoff_estimates(
    grid: ScoreGrid, shapes: pd.DataFrame, scaling: Scaling, settings: LocalizationSettings
) -> list[Estimate]:
    """Mean full-slice IoU when cases below a cutoff get no region, with the probability before and after scaling.

    The maps stay as they are, for they show the logit; what can change is which cases are called positive.
    """
    is_outlined = ~np.isnan(grid.on_grid(shapes, "size"))
    probabilities = [grid.on_grid(scaling.predictions, column) for column in ("probability", "scaled")]
    rows: list[Estimate] = []
    for cutoff in SHOWN_CUTOFFS:
        before, after = (_emptied(grid, is_outlined, probability, cutoff) for probability in probabilities)
        means = list(_means(grid, before, condition(cutoff=cutoff), settings))
        scaled = condition(cutoff=cutoff, temperature=SCALED)
        is_same = all(np.array_equal(before[m], after[m], equal_nan=True) for m in before)
        rows += means
        # equal values need no second bootstrap
        rows += [replace(row, condition=scaled) for row in means] if is_same else _means(grid, after, scaled, settings)
    return rows


def _emptied(grid: ScoreGrid, is_outlined: np.ndarray, probability: Grid, cutoff: float) -> dict[str, Grid]:
    """Each method's values: below the cutoff 0 where there is truth and undefined where there is none."""
    negative = np.where(is_outlined, 0.0, np.nan)
    changed = {}
    for method, values in grid.by_method.items():
        defined = ~np.isnan(values) & ~np.isnan(probability)
        changed[method] = np.where(defined, np.where(probability < cutoff, negative, values), np.nan)
    return changed


def _means(grid: ScoreGrid, values: dict[str, Grid], under: str, settings: LocalizationSettings) -> Iterator[Estimate]:
    methods = [method for method in settings.methods if method in values]
    for column, finding in enumerate(grid.findings):
        of_finding = {method: np.where(grid.is_scored, values[method], np.nan)[:, [column]] for method in methods}
        template = Estimate(MEAN, grid.metric, finding, "", settings.model, condition=under)
        yield from _filled(template, of_finding, grid.patients, int(grid.is_scored[:, column].sum()), settings)
    alike: dict[tuple[int, ...], list[str]] = {}  # methods with values on the same findings share their draws
    for method in methods:
        usable = tuple(np.flatnonzero(~np.isnan(values[method]).all(0)).tolist())
        alike.setdefault(usable, []).append(method)
    for usable, together in alike.items():
        if usable:
            template = Estimate(MEAN, grid.metric, ALL, "", settings.model, condition=under)
            over_findings = {method: values[method][:, list(usable)] for method in together}
            note = coverage(len(usable), len(grid.findings))
            for row in _filled(template, over_findings, grid.patients, int(grid.is_scored.sum()), settings):
                yield replace(row, reason=joined(row.reason, note))


def _filled(
    template: Estimate,
    values: dict[str, Grid],
    patients: Shaped[np.ndarray, " cases"],
    n_scored: int,
    settings: LocalizationSettings,
) -> Iterator[Estimate]:
    """The mean of every method over one finding or several, with its interval."""
    flat = np.hstack(list(values.values()))
    findings = flat.shape[1] // len(values)
    takes_part = ~np.isnan(flat).all(1)
    totals = cluster_totals(flat[takes_part], patients[takes_part])
    by_finding = linearised_ratios(totals.sums, totals.counts)
    generator = settings.generator("cutoff", template.metric, ALL if findings > 1 else "one finding")
    intervals = share_intervals(by_finding, findings, settings.draws, generator)
    for (method, part), interval in zip(values.items(), intervals, strict=True):
        defined = ~np.isnan(part)
        n_patients, n_cases = len(np.unique(patients[defined.any(1)])), int(defined.sum())
        counted = replace(
            template, method=method, n_cases=n_cases, n_patients=n_patients, n_undefined=n_scored - n_cases
        )
        yield fill(counted, interval)
