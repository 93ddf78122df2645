"""Predictions after temperature scaling, never with a temperature fitted to the case itself."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import expit, logit

from heatcheck.core.records import Measured
from heatcheck.stats.temperature import fitted_temperature, tempered
from heatcheck.studies.model_estimates import Resampling

FOLDS = 5
FEW_PATIENTS = "one patient cannot be held out from the others"
NO_PREDICTIONS = "no prediction"
_SUREST = 1e-12  # a probability of exactly 0 or 1 has no logit; this far from it has


@dataclass(frozen=True, slots=True)
class Scaling:
    """The temperature of each finding and the predictions with it."""

    fitted_on: str  # "validation" or "folds"
    temperatures: dict[str, Measured]
    predictions: pd.DataFrame  # of one model, with a column `scaled`: as it was where a finding has no temperature


def scaled_predictions(predictions: pd.DataFrame, validation: pd.DataFrame | None, rule: Resampling) -> Scaling:
    """The model's predictions with each finding's temperature.

    With validation predictions the temperature is fitted to those. Without, patients are dealt into five folds, and
    each fold is scaled by the temperature of the other four; what is then named as the finding's temperature is the
    geometric mean of the five. A finding for which any of them is undefined has none.
    """
    mine = predictions[predictions["model"] == rule.model].sort_values(["finding", "case"])
    ours = None if validation is None else validation[validation["model"] == rule.model]
    after = mine["probability"].to_numpy(float, copy=True)
    temperatures = {}
    for finding in rule.findings:
        here = (mine["finding"] == finding).to_numpy()
        rows = mine[here]
        if not len(rows):
            temperatures[finding] = Measured(math.nan, NO_PREDICTIONS)
            continue
        if ours is None:
            found, each = _by_folds(rows, rule.generator("folds", finding))
        else:
            found = _fitted(ours[ours["finding"] == finding])
            each = np.full(len(rows), found.value)
        temperatures[finding] = found
        scaled = not math.isnan(found.value)
        after[here] = tempered(logits_of(rows), each) if scaled else rows["probability"].to_numpy(float)
    return Scaling("folds" if ours is None else "validation", temperatures, mine.assign(scaled=after))


def logits_of(rows: pd.DataFrame) -> Float[np.ndarray, " cases"]:
    """The logit behind each probability.

    The stored one where the probability is its sigmoid: it is exact even where the probability has become 1. Else, as
    for an ensemble's mean of probabilities or maps made elsewhere, that of the probability.
    """
    stored = rows["logit"].to_numpy(float)
    said = rows["probability"].to_numpy(float)
    from_said = logit(np.clip(said, _SUREST, 1 - _SUREST))
    is_sigmoid = np.isfinite(stored) & (np.abs(expit(stored) - said) < 1e-5)
    return np.where(is_sigmoid, stored, from_said)


def _fitted(rows: pd.DataFrame) -> Measured:
    logits = logits_of(rows)
    known = np.isfinite(logits)
    return fitted_temperature(rows["label"].to_numpy(float)[known], logits[known])


def _by_folds(rows: pd.DataFrame, generator: np.random.Generator) -> tuple[Measured, Float[np.ndarray, " cases"]]:
    """The mean temperature, and that of each row: fitted without the row's fold."""
    fold = _folds(rows, generator)
    each = np.full(len(rows), np.nan)
    found = []
    for number in range(int(fold.max()) + 1):
        one = _fitted(rows[fold != number]) if fold.max() else Measured(math.nan, FEW_PATIENTS)
        if math.isnan(one.value):
            return one, each
        each[fold == number] = one.value
        found.append(one.value)
    spread = f"{len(found)} folds gave {min(found):.2f} to {max(found):.2f}"
    return Measured(float(np.exp(np.mean(np.log(found)))), spread), each


def _folds(rows: pd.DataFrame, generator: np.random.Generator) -> Int[np.ndarray, " cases"]:
    """The fold of each row: patients with the finding are dealt first, then the others, so that every fold has both."""
    names, codes = np.unique(rows["patient"].to_numpy(str), return_inverse=True)
    has_finding = np.zeros(len(names), bool)
    np.logical_or.at(has_finding, codes, rows["label"].to_numpy(float) == 1)
    order = np.lexsort((generator.permutation(len(names)), ~has_finding))
    fold = np.empty(len(names), np.intp)
    fold[order] = np.arange(len(names)) % FOLDS
    return fold[codes]
