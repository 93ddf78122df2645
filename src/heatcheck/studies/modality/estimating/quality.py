"""Where maps are better: their scores against the network's answers, its uncertainty and the size of the lesion."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import SLOPE, condition
from heatcheck.estimating.slopes import Slope, corrected_slopes, usual_range
from heatcheck.estimating.warnings import FEW_WRONG
from heatcheck.methods import METHODS
from heatcheck.stats.regression import Fit, Observations, clustered_least_squares, min_max
from heatcheck.stats.resampling.studentised import FEWEST_PATIENTS
from heatcheck.studies.modality.estimating.means import ends_of
from heatcheck.studies.modality.estimating.score_tables import counted, of_metric, wide
from heatcheck.studies.modality.estimating.wrong_answers import Answered
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import CORRECT, LESION_SIZE, QUALITY, UNCERTAINTY, UNIFORM

FAMILY = "every method's scores on answer, uncertainty and lesion size"


@dataclass(frozen=True)
class CaseFeatures:
    """What may go with the quality of a case's map, in the order of the answers."""

    answered: Answered
    folds: Int[np.ndarray, " cases"]  # codes from 0: each network has a level of its own
    features: dict[str, Float[np.ndarray, " cases"]]  # by name; 0 to 1 from the smallest to the largest

    @classmethod
    def of(cls, answered: Answered, scores: pd.DataFrame) -> "CaseFeatures":
        """The features of every case with an answer."""
        sizes = scores[(scores["metric"] == "lesion_share") & (scores["method"] == UNIFORM)].set_index("case")
        by_case = scores.drop_duplicates("case").set_index("case")["fold"].reindex(answered.cases)
        # the share of a map of the whole head that lies in the lesion is how much of the head the lesion fills
        size = sizes["value"].reindex(answered.cases).to_numpy(float)
        features = {CORRECT: 1 - answered.wrong, UNCERTAINTY: answered.entropy, LESION_SIZE: size}
        codes = np.unique(by_case.fillna(0).to_numpy(int), return_inverse=True)[1]
        return cls(answered, codes, {name: min_max(values) for name, values in features.items()})

    def fit(self, feature: str, values: Float[np.ndarray, " cases"]) -> Fit:
        """The slope of a score within networks, with errors clustered by patient (CR2)."""
        patients = np.unique(self.answered.patients, return_inverse=True)[1]
        if feature == CORRECT and not self._has_both(values):
            return Fit(reason=FEW_WRONG)
        return clustered_least_squares(Observations(self.features[feature], values, self.folds, patients))

    def _has_both(self, values: Float[np.ndarray, " cases"]) -> bool:
        """Whether enough patients have a score on a wrong answer, and on a right one."""
        patients, known = self.answered.patients, ~np.isnan(values)
        counts = [len(np.unique(patients[known & (self.answered.wrong == value)])) for value in (0, 1)]
        return min(counts) >= FEWEST_PATIENTS


def quality_rows(folder: Path, scores: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """The slope of each method's scores on each feature, corrected for all of them, with the slope that matters.

    A slope is the change from the smallest to the largest value of the feature. It matters where the score changes,
    over the feature's usual range, by what matters between two methods. That of the uniform head follows, of which
    nothing is claimed: the larger a lesion, the more of any map falls into it.
    """
    answered = Answered.read(folder, settings)
    if answered is None or scores.empty:
        return
    cases = CaseFeatures.of(answered, scores)
    methods = [method for method in settings.methods if not METHODS[method].is_floor]
    yield from corrected_slopes(list(_slopes(cases, scores, methods, settings)), FAMILY)
    yield from (replace(slope.row, size=math.nan) for slope in _slopes(cases, scores, [UNIFORM], settings))


def _slopes(
    cases: CaseFeatures, scores: pd.DataFrame, methods: list[str], settings: ModalitySettings
) -> Iterator[Slope]:
    for metric in QUALITY:
        rows = of_metric(scores, metric, settings)
        if rows.empty:
            continue
        lowest, highest = ends_of(metric)
        table = wide(counted(rows), ["method"]).droplevel(["fold", "patient"]).reindex(index=cases.answered.cases)
        for method in methods:
            if method not in table or not table[method].notna().any():
                continue
            for feature, values in cases.features.items():
                template = Estimate(
                    SLOPE, metric, ALL, method, settings.model, condition=condition(feature=feature),
                    size=settings.sizes.between_methods(metric) / usual_range(values),
                )  # fmt: skip
                yield Slope(template, cases.fit(feature, table[method].to_numpy(float)), highest - lowest)
