"""How well a model's probabilities are calibrated, beside what a perfectly calibrated model would show by chance."""

import numpy as np
from jaxtyping import Float, Shaped

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import CALIBRATION, CHANCE_CALIBRATION
from heatcheck.metrics.classification import calibration_error_by_chance, expected_calibration_error


def calibration_rows(
    labels: Float[np.ndarray, " cases"],
    probabilities: Float[np.ndarray, " cases"],
    patients: Shaped[np.ndarray, " cases"],
    metric: str = "ece",
) -> tuple[Estimate, Estimate]:
    """The expected calibration error, and that of a perfect model: its mean, and what it exceeds in 5 % of runs.

    A label is 1 where what the probability is of came true, else 0, and NaN where it is not known. The first row has no
    interval: the error of few cases is too high even of a perfect model, which is what the second row says.
    """
    error = expected_calibration_error(labels, probabilities)
    known = ~np.isnan(labels)
    row = Estimate(
        CALIBRATION,
        metric,
        value=error.value,
        reason=error.reason,
        n_cases=int(known.sum()),
        n_patients=len(np.unique(patients[known])),
    )
    chance = calibration_error_by_chance(labels, probabilities, patients)
    perfect = Estimate(
        CHANCE_CALIBRATION,
        metric,
        value=chance.mean,
        low=0.0,
        high=chance.high,
        reason=row.reason,
        n_cases=row.n_cases,
        n_patients=row.n_patients,
    )
    return row, perfect
