"""How well a classifier or an ensemble tells the findings of a source."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.utils.data import DataLoader

from heatcheck.core.contracts import Source
from heatcheck.core.findings import known
from heatcheck.core.records import CaseKey
from heatcheck.core.seeds import generator_for
from heatcheck.fitting.examples import CaseExamples
from heatcheck.metrics.classification import accuracy, auroc, weighted_auroc
from heatcheck.models import Ensemble, NetworkClassifier
from heatcheck.running.progress import Watcher
from heatcheck.stats.resampling.bootstrap import bca_from_case_weights
from heatcheck.training import Examples, readable
from heatcheck.training.batches import unreadable

Views = Literal["each", "max"]
Table = Float[np.ndarray, "case finding"]
_AT_ONCE = 16
_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class TestResult:
    """How well one finding is told on unseen cases."""

    finding: str
    auroc: float
    positives: int
    cases: int


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better the ensemble tells one finding than the best single checkpoint."""

    finding: str
    difference: float  # of the AUROCs
    low: float
    high: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CasePredictions:
    """Labels and probabilities, a row a case or study and a column a finding; the patient of each row."""

    findings: tuple[str, ...]
    labels: Table
    probabilities: Table
    patients: Shaped[np.ndarray, " case"]

    def by_finding(self) -> dict[str, float]:
        """The AUROC of each finding; NaN where it is not defined."""
        return {
            finding: auroc(self.labels[:, i], self.probabilities[:, i]).value for i, finding in enumerate(self.findings)
        }

    @property
    def accuracy(self) -> float:
        """The share of the rows whose most probable class is their one class; NaN where no row has exactly one."""
        return accuracy(self.labels, self.probabilities).value

    def results(self) -> tuple[TestResult, ...]:
        """The AUROC of each finding with the number of positives."""
        positives = np.nansum(self.labels, axis=0)
        return tuple(
            TestResult(finding, value, int(positives[i]), len(self.labels))
            for i, (finding, value) in enumerate(self.by_finding().items())
        )


def study_of(case: str) -> str:
    """The study of an image: its id up to the last `_view`, as in patient00001_study1_view1_frontal; else the id."""
    return case.rpartition("_view")[0] or case


def judged(
    keys: Sequence[CaseKey], labels: Table, probabilities: Table, findings: Sequence[str], views: Views
) -> CasePredictions:
    """Labels and probabilities of cases, or of studies by the view in which a finding is most probable.

    An uncertain label counts as unknown. A study has a finding if one of its views is known to have it.
    """
    truth = np.vectorize(known, otypes=[float])(labels)
    patients = np.array([key.patient for key in keys])
    if views == "each":
        return CasePredictions(tuple(findings), truth, probabilities, patients)
    studies: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        studies.setdefault(study_of(key.case), []).append(place)
    groups = list(studies.values())
    return CasePredictions(
        tuple(findings),
        np.stack([_highest(truth[group]) for group in groups]),
        np.stack([_highest(probabilities[group]) for group in groups]),
        patients[[group[0] for group in groups]],
    )


def _highest(rows: Table) -> Float[np.ndarray, " finding"]:
    """The highest known value of each column; NaN where there is none."""
    values = np.where(np.isnan(rows), -np.inf, rows).max(0)
    return np.where(np.isinf(values), math.nan, values)


@torch.no_grad()
def predicted(
    classifier: NetworkClassifier, examples: Examples, workers: int, watcher: Watcher
) -> tuple[Float[Tensor, "case finding"], Float[Tensor, "case finding"]]:
    """The probability of each finding in each example, and what is known of it; nothing of an unreadable image."""
    probabilities, labels, lost = [], [], 0
    for batch in DataLoader(examples, _AT_ONCE, num_workers=workers):
        lost += int(unreadable(batch[0]).sum())
        images, truth = readable(*batch)
        said = classifier.probabilities(classifier.logits(images.to(classifier.device)))
        probabilities.append(said.cpu())
        labels.append(truth)
        watcher.advance(len(images), f"{lost} could not be read" if lost else "")
    return torch.cat(probabilities), torch.cat(labels)


def told_by(
    model: NetworkClassifier | Ensemble, examples: Examples, workers: int, watcher: Watcher
) -> tuple[Table, Table]:
    """Probabilities and labels of the examples; an ensemble's members are asked one after the other."""
    length = len(examples)  # type: ignore[arg-type]
    if isinstance(model, NetworkClassifier):
        watcher.start("testing", length)
        probabilities, labels = predicted(model, examples, workers, watcher)
        return probabilities.double().numpy(), labels.double().numpy()
    watcher.start("testing ensemble", length * len(model.members))
    total = torch.zeros(length, len(model.outputs), dtype=torch.float64)
    for member in model.members:
        said, labels = predicted(model.loaded(member), examples, workers, watcher)
        total[:, model.columns(member)] += said[:, model.columns(member)]
    return (total / torch.tensor(model.counts)).numpy(), labels.double().numpy()


def evaluate(
    model: NetworkClassifier | Ensemble, source: Source, watcher: Watcher, views: Views = "each", workers: int = 0
) -> tuple[TestResult, ...]:
    """The AUROC of each finding on a source."""
    examples = CaseExamples(source, model.preprocessing)
    probabilities, labels = told_by(model, examples, workers, watcher)
    return judged(examples.keys, labels, probabilities, model.outputs, views).results()


def gains(ensemble: CasePredictions, single: CasePredictions, seed: int) -> tuple[Gain, ...]:
    """The ensemble's AUROC less the single checkpoint's on the same cases, with patients drawn again."""
    return tuple(_gain(ensemble, single, column, seed) for column in range(len(ensemble.findings)))


def _gain(ensemble: CasePredictions, single: CasePredictions, column: int, seed: int) -> Gain:
    finding, truth = ensemble.findings[column], ensemble.labels[:, column]
    rows = ~np.isnan(truth)
    blank = Gain(finding, math.nan, math.nan, math.nan, "needs cases with and without the finding")
    if len(set(truth[rows])) < 2:
        return blank
    pair = [one.probabilities[rows, column] for one in (ensemble, single)]

    def statistic(weights: np.ndarray) -> np.ndarray:
        more, less = (weighted_auroc(truth[rows], said, weights) for said in pair)
        return np.asarray(more - less)

    generator = generator_for(seed, "gain", finding)
    found = bca_from_case_weights(statistic, ensemble.patients[rows], _DRAWS, generator)[0]
    return replace(blank, difference=found.value, low=found.low, high=found.high, reason=found.reason)
