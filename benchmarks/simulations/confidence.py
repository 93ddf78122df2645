"""False claims that maps point better, or worse, when the model is sure: noise in place of maps, which knows nothing.

Run with `python -m benchmarks.simulations.confidence [--repetitions N] [--seed S]`. A model with an AUROC of 0.85 looks
for three findings of 30 % of the images; three kinds of noise are cut into regions and compared with outlines whose
size has nothing to do with the model. A run makes a false claim if any slope, corrected with the others, is judged to
rise or to fall: on cases with the finding, as reports fit it, and on all images, as the paper does and reports did.
"""

import numpy as np
import pandas as pd
from benchmarks.simulations.row import is_claim, main_of_claims, views
from scipy.special import expit

from heatcheck.core.records import Prediction, Score
from heatcheck.estimating.slopes import Slope, corrected_slopes
from heatcheck.maps.prepare import prepare
from heatcheck.metrics import METRICS
from heatcheck.regions.points import peaks
from heatcheck.regions.rule import RegionRule, region_of
from heatcheck.runs.tables import to_table
from heatcheck.studies.localization.regressions import confidence_estimates
from heatcheck.studies.localization.score_grid import score_grid
from heatcheck.studies.localization.settings import LocalizationSettings

FINDINGS, METHODS = ("a", "b", "c"), ("noise 1", "noise 2", "noise 3")
PREVALENCE, SEPARATION = 0.3, 1.47  # standard deviations between the classes: an AUROC of 0.85
SIDE, COARSE = 24, 6  # pixels of an image, and cells of the noise
STUDIES = (25, 60, 150)
SETTINGS = LocalizationSettings(FINDINGS, METHODS, METHODS, ("iou", "hit"), "model", draws=0, seed=0)


def false_claims(patients: int, repetitions: int, seed: int) -> dict[str, float]:
    """The share of runs with a false claim, by what is fitted."""
    generator = np.random.default_rng([seed, patients])
    runs = [_claims(*_run(patients, generator)) for _ in range(repetitions)]
    return {name: sum(run[name] for run in runs) / repetitions for name in runs[0]}


def _run(patients: int, generator: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and predictions of one study."""
    scores: list[Score] = []
    predictions: list[Prediction] = []
    luck = generator.normal(size=(patients, len(FINDINGS)))  # of a patient's images with the model
    for number, patient in enumerate(views(patients, generator).tolist()):
        for column, finding in enumerate(FINDINGS):
            present = bool(generator.random() < PREVALENCE)
            logit = SEPARATION * present + 0.6 * luck[patient, column] + 0.8 * generator.normal() - 1
            names = f"c{number}", f"p{patient}", finding
            predictions.append(Prediction(*names, "model", float(present), logit, float(expit(logit))))
            truth = _outline(generator) if present else np.zeros((SIDE, SIDE), bool)
            for method in METHODS:
                values = np.kron(generator.random((COARSE, COARSE)), np.ones((SIDE // COARSE,) * 2)).astype(np.float32)
                marked = {"iou_full": region_of(prepare(values), RegionRule())}
                if present:
                    marked |= {"iou": marked["iou_full"], "hit": peaks(values)}
                for metric, mask in marked.items():
                    value = METRICS[metric].measure(mask, truth).value
                    scores.append(Score(*names, method, "model", metric, value))
    return to_table(Score, scores).to_pandas(), to_table(Prediction, predictions).to_pandas()


def _outline(generator: np.random.Generator) -> np.ndarray:
    """A rectangle of any place and size."""
    truth = np.zeros((SIDE, SIDE), bool)
    height, width = generator.integers(3, SIDE // 2, 2)
    top, left = generator.integers(0, SIDE - height), generator.integers(0, SIDE - width)
    truth[top : top + height, left : left + width] = True
    return truth


def _claims(scores: pd.DataFrame, predictions: pd.DataFrame) -> dict[str, bool]:
    slopes: dict[object, list[Slope]] = {
        metric: confidence_estimates(score_grid(str(metric), rows, SETTINGS), predictions, SETTINGS)
        for metric, rows in scores.groupby("metric")
    }
    fits = {"cases with the finding": slopes["iou"] + slopes["hit"], "all images": slopes["iou_full"]}
    return {name: any(map(is_claim, corrected_slopes(some, name))) for name, some in fits.items()}


if __name__ == "__main__":
    main_of_claims(false_claims, STUDIES, 10)
