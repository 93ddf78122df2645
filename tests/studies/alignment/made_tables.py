"""The tables of a small alignment run, from values in a row, and its estimates by their fields."""

from dataclasses import dataclass

from heatcheck.core.records import CaseRecord, Prediction, Score
from heatcheck.core.vocabulary import condition
from heatcheck.runs.tables import write_table
from heatcheck.studies.alignment.estimates import alignment_estimates
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import Base

CNN, VIT = (
    Base("cnn", "densenet_compact", "DenseNet", "random", False),
    Base("vit", "vit_compact", "ViT", "given", True),
)


def rule_of(**changed):
    """Two bases, two findings, two methods and two seeds, unless changed."""
    usual = {
        "bases": (CNN, VIT),
        "findings": ("Nodule", "Effusion"),
        "methods": ("gradient", "lrp"),
        "judged": (),
        "through": "gradient",
        "seeds": (1, 2),
        "metrics": ("mass", "rank"),
        "draws": 100,
        "seed": 3,
        "human": "readers",
    }
    return AlignmentSettings(**{**usual, **changed})


def scored(values, arm, seed=None, *, model="cnn", method="gradient", metric="mass", finding="Nodule", **more):
    """One network's scores on one finding, an image of a patient each; `reason` is that of undefined ones."""
    reason = more.pop("reason", "no positive relevance")
    at = condition(arm=arm, **({} if seed is None else {"seed": seed}), **more)
    return [
        Score(f"c{n}", f"p{n}", finding, method, model, metric, value, at, reason="" if value == value else reason)  # noqa: PLR0124 - NaN
        for n, value in enumerate(values)
    ]


def said(network, labels, probabilities, finding="Nodule"):
    """One network's answers, an image of a patient each."""
    return [
        Prediction(f"c{n}", f"p{n}", finding, network, label, 0.0, probability)
        for n, (label, probability) in enumerate(zip(labels, probabilities, strict=True))
    ]


@dataclass
class Found:
    """Estimates that are asked for by their fields."""

    every: list

    def all(self, **wanted):
        return [one for one in self.every if all(getattr(one, name) == value for name, value in wanted.items())]

    def one(self, **wanted):
        (found,) = self.all(**{"condition": "{}", **wanted})
        return found


def estimated(folder, rule, *scores, predictions=(), failed=()):
    """The estimates of a run with these tables."""
    write_table(folder / "scores.parquet", Score, [row for part in scores for row in part])
    write_table(folder / "predictions.parquet", Prediction, [row for part in predictions for row in part])
    write_table(folder / "cases.parquet", CaseRecord, list(failed))
    return Found(alignment_estimates(folder, rule))
