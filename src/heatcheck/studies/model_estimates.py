"""How good the model itself is: discrimination and calibration, with patients resampled."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pandas as pd
from jaxtyping import Float

from heatcheck.core.records import Estimate, condition
from heatcheck.metrics.classification import expected_calibration_error, reliability_curve, weighted_auroc
from heatcheck.stats.bootstrap import bca_from_case_weights

ALL = "All findings"


class Resampling(Protocol):
    """How often to draw, and with which generator."""

    @property
    def draws(self) -> int:
        """Bootstrap draws."""

    def generator(self, *purpose: str) -> np.random.Generator:
        """The generator of one estimate."""


def model_estimates(predictions: pd.DataFrame, findings: Sequence[str], model: str, rule: Resampling) -> list[Estimate]:
    """AUROC, calibration error and reliability curve of each finding and of all of them."""
    if predictions.empty:
        return []
    labels = _wide(predictions, "label", findings)
    probabilities = _wide(predictions, "probability", findings)
    patients = predictions.drop_duplicates("case").sort_values("case")["patient"].to_numpy(str)
    return [
        *_auroc(labels, probabilities, patients, (findings, model, rule)),
        *_calibration(labels, probabilities, patients, (findings, model)),
    ]


def _wide(predictions: pd.DataFrame, column: str, findings: Sequence[str]) -> Float[np.ndarray, "cases findings"]:
    table = predictions.pivot(index="case", columns="finding", values=column).sort_index()  # noqa: PD010 - it refuses a pair that comes twice
    return table.reindex(columns=list(findings)).to_numpy(float)


def _auroc(
    labels: np.ndarray, probabilities: np.ndarray, patients: np.ndarray, what: tuple[Sequence[str], str, Resampling]
) -> Iterator[Estimate]:
    findings, model, rule = what
    usable = []
    for column, finding in enumerate(findings):
        truth, said = labels[:, column], probabilities[:, column]
        known = ~np.isnan(truth)
        both = len(set(truth[known])) == 2
        if both:
            usable.append(column)
        n_known = int(known.sum())
        if not both:
            reason = "needs cases with and without the finding"
            yield Estimate("auroc", "auroc", finding, "", model, float("nan"), n_cases=n_known, reason=reason)
            continue
        statistic = _weighted(truth[known], said[known])
        generator = rule.generator("auroc", finding)
        one = bca_from_case_weights(statistic, patients[known], rule.draws, generator)[0]
        yield Estimate(
            "auroc", "auroc", finding, "", model, one.value, one.low, one.high, n_cases=n_known,
            n_patients=len(set(patients[known])), n_undefined=int((~known).sum()), reason=one.reason,
        )  # fmt: skip
    if usable:
        columns = [_weighted(labels[:, c], probabilities[:, c]) for c in usable]

        def macro(weights: np.ndarray) -> np.ndarray:
            return np.asarray(np.mean([column(weights) for column in columns], axis=0))

        one = bca_from_case_weights(macro, patients, rule.draws, rule.generator("auroc", ALL))[0]
        note = "" if len(usable) == len(findings) else f"over {len(usable)} of {len(findings)} findings"
        yield Estimate(
            "auroc", "auroc", ALL, "", model, one.value, one.low, one.high, n_cases=len(labels),
            n_patients=len(set(patients)), reason="; ".join(filter(None, (one.reason, note))),
        )  # fmt: skip


def _weighted(labels: np.ndarray, probabilities: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda weights: weighted_auroc(labels, probabilities, weights)


def _calibration(
    labels: np.ndarray, probabilities: np.ndarray, patients: np.ndarray, what: tuple[Sequence[str], str]
) -> Iterator[Estimate]:
    findings, model = what
    columns = [(finding, labels[:, i], probabilities[:, i]) for i, finding in enumerate(findings)]
    for finding, truth, said in [*columns, (ALL, labels.ravel(), probabilities.ravel())]:
        error = expected_calibration_error(truth, said)
        known = int((~np.isnan(truth)).sum())
        n_patients = len(set(patients))
        yield Estimate(
            "calibration",
            "ece",
            finding,
            "",
            model,
            error.value,
            n_cases=known,
            n_patients=n_patients,
            reason=error.reason,
        )
        for number, one in enumerate(reliability_curve(truth, said, bins=10)):
            at = condition(bin=number, predicted=one.predicted)
            yield Estimate("reliability", "observed", finding, "", model, one.observed, condition=at, n_cases=one.n)
