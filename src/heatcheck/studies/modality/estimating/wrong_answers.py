"""Maps on wrong answers: what they show there, and whether anything known without the truth warns of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from jaxtyping import Float, Shaped
from scipy.special import entr

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import MEAN, condition, condition_of
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.score_table import pivoted
from heatcheck.estimating.warnings import Warner, warning_estimates
from heatcheck.methods import METHODS
from heatcheck.stats.resampling.bca import Interval
from heatcheck.studies.modality.estimating.means import ends_of, studentised_means, within
from heatcheck.studies.modality.estimating.score_tables import counted, wide
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import ANSWERS, MAP_FEATURES, PROBABILITY, WARNING

SHOWN = ("msfi", "lesion_share", *MAP_FEATURES)
FAMILY = "every feature, for all answers and those of each class"


@dataclass(frozen=True)
class Answered:
    """The network's answer to each case."""

    cases: pd.Index
    patients: Shaped[np.ndarray, " cases"]
    said: Shaped[np.ndarray, " cases"]  # the class
    probability: Float[np.ndarray, " cases"]  # of that class
    wrong: Float[np.ndarray, " cases"]  # 1 or 0
    entropy: Float[np.ndarray, " cases"]  # of the probabilities of all classes: 0 where sure, 1 where all are equal

    @classmethod
    def read(cls, folder: Path, settings: ModalitySettings) -> "Answered | None":
        """The answers of a run; None where it has none."""
        path = folder / "predictions.parquet"
        table = pq.read_table(path).to_pandas() if path.exists() else pd.DataFrame()
        if table.empty:
            return None
        table = table[table["model"] == settings.model].astype({"case": str, "patient": str, "finding": str})
        tables = [pivoted(table, ["case"], "finding", name) for name in ("probability", "label")]
        likely, labels = (each.reindex(columns=list(settings.classes)) for each in tables)
        best = likely.to_numpy(float).argmax(1)
        rows = np.arange(len(likely))
        patients = table.groupby("case")["patient"].first().reindex(likely.index).to_numpy(str)
        wrong = (labels.to_numpy(float)[rows, best] != 1).astype(float)
        said = np.array(settings.classes, object)[best]
        probabilities = likely.to_numpy(float)
        entropy = entr(probabilities).sum(1) / np.log(probabilities.shape[1])
        return cls(likely.index, patients, said, probabilities[rows, best], wrong, entropy)

    def kinds(self, classes: tuple[str, ...]) -> Iterator[tuple[str, Float[np.ndarray, " cases"]]]:
        """All answers, then those that name each class: a wrong one is a false positive of it, and misses another."""
        yield ALL, self.wrong
        for name in classes:
            yield name, np.where(self.said == name, self.wrong, np.nan)


def wrong_answer_rows(folder: Path, scores: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """Counts of right and wrong answers, scores of maps on either, and how well each feature warns."""
    answered = Answered.read(folder, settings)
    if answered is None or scores.empty:
        return
    methods = [name for name in settings.methods if not METHODS[name].is_floor]
    by_score = {metric: _by_case(scores, metric, methods, answered, settings) for metric in SHOWN}
    for finding, wrong in answered.kinds(settings.classes):
        for call, value in (("right", 0), ("wrong", 1)):
            chosen = wrong == value
            text = condition_of({"call": call})
            yield Estimate(ANSWERS, "answers", finding, "", settings.model, float(chosen.sum()), condition=text)
            for metric, table in by_score.items():
                if chosen.any():
                    yield from _means(table[chosen], answered.patients[chosen], metric, (finding, text), settings)
    yield from warning_estimates(_warners(by_score, answered, settings), answered.patients, FAMILY, settings)


def _by_case(
    scores: pd.DataFrame, metric: str, methods: list[str], answered: Answered, settings: ModalitySettings
) -> pd.DataFrame:
    """One metric's primary scores, a row for each answer and a column for each method."""
    text = condition(**settings.primary(metric))
    rows = scores[(scores["metric"] == metric) & (scores["condition"] == text)]
    if rows.empty:
        return pd.DataFrame(np.nan, answered.cases, methods)
    table = wide(counted(rows), ["method"]).droplevel(["fold", "patient"])
    return table.reindex(index=answered.cases, columns=methods)


def _means(
    table: pd.DataFrame, patients: np.ndarray, metric: str, where: tuple[str, str], settings: ModalitySettings
) -> Iterator[Estimate]:
    finding, text = where
    generator = settings.generator("answers", metric, finding, text)
    means = studentised_means(table.to_numpy(float), patients, settings.draws, generator)
    for method, mean in zip(table.columns, means, strict=True):
        if mean.n_cases:
            row = fill(Estimate(MEAN, metric, finding, str(method), settings.model, condition=text), mean)
            interval = within(Interval(mean.value, mean.low, mean.high, mean.reason), ends_of(metric))
            yield fill(row, interval)


def _warners(by_score: dict[str, pd.DataFrame], answered: Answered, settings: ModalitySettings) -> list[Warner]:
    """The probability of the answer first; then each method's map. The direction is fixed beforehand: low warns."""
    warners = []
    for finding, wrong in answered.kinds(settings.classes):
        row = Estimate(WARNING, PROBABILITY, finding, "", settings.model)
        warners.append(Warner(row, wrong, -answered.probability))
        for name in MAP_FEATURES:
            for method, values in by_score[name].items():
                row = Estimate(WARNING, name, finding, str(method), settings.model)
                warners.append(Warner(row, wrong, -values.to_numpy(float)))
    return warners
