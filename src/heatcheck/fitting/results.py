"""How well a classifier or an ensemble recognises the findings of a source."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.utils.data import DataLoader

from heatcheck.core.contracts import Source
from heatcheck.core.records import UNCERTAIN, CaseKey
from heatcheck.fitting.examples import CaseExamples
from heatcheck.metrics.classification import accuracy, auroc
from heatcheck.models import Ensemble, NetworkClassifier
from heatcheck.running.progress import Watcher
from heatcheck.stats.auroc import auroc_difference
from heatcheck.training import Examples, readable
from heatcheck.training.batches import unreadable

Views = Literal["each", "max"]
Table = Float[np.ndarray, "case finding"]
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class TestResult:
    """The AUROC of one finding on unseen cases."""

    finding: str
    auroc: float
    positives: int
    cases: int


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better the ensemble recognises one finding than the best checkpoint of that finding."""

    finding: str
    difference: float  # of the AUROCs
    low: float
    high: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CasePredictions:
    """Labels and probabilities with one row per case or examination and one column per finding, and the patients."""

    findings: tuple[str, ...]
    labels: Table
    probabilities: Table
    patients: Shaped[np.ndarray, " case"]

    def by_finding(self) -> dict[str, float]:
        """The AUROC of each finding; NaN if undefined."""
        return {
            finding: auroc(self.labels[:, i], self.probabilities[:, i]).value for i, finding in enumerate(self.findings)
        }

    @property
    def accuracy(self) -> float:
        """The share of rows whose most probable class is their class; NaN if no row has exactly one class."""
        return accuracy(self.labels, self.probabilities).value

    def results(self) -> tuple[TestResult, ...]:
        """The AUROC of each finding with the number of positives."""
        positives = np.nansum(self.labels, axis=0)
        return tuple(
            TestResult(finding, value, int(positives[i]), len(self.labels))
            for i, (finding, value) in enumerate(self.by_finding().items())
        )


def judged(
    keys: Sequence[CaseKey], labels: Table, probabilities: Table, findings: Sequence[str], views: Views
) -> CasePredictions:
    """Labels and probabilities of cases, or of examinations by the view in which a finding is most probable.

    An uncertain label counts as unknown. An examination has a finding if one of its views is known to have it.
    """
    truth = np.where(labels == UNCERTAIN, np.nan, labels)
    patients = np.array([key.patient for key in keys])
    if views == "each":
        return CasePredictions(tuple(findings), truth, probabilities, patients)
    examinations: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        examinations.setdefault(key.examination or key.case, []).append(row)
    groups = list(examinations.values())
    return CasePredictions(
        tuple(findings),
        np.stack([_highest(truth[group]) for group in groups]),
        np.stack([_highest(probabilities[group]) for group in groups]),
        patients[[group[0] for group in groups]],
    )


def _highest(rows: Table) -> Float[np.ndarray, " finding"]:
    """The highest known value of each column; NaN if there is none."""
    values = np.where(np.isnan(rows), -np.inf, rows).max(0)
    return np.where(np.isinf(values), math.nan, values)


@torch.no_grad()
def predicted(
    classifier: NetworkClassifier, examples: Examples, workers: int, watcher: Watcher
) -> tuple[Float[Tensor, "case finding"], Float[Tensor, "case finding"]]:
    """The probabilities and labels of the examples, without those of unreadable images."""
    probabilities, labels, lost = [], [], 0
    for batch in DataLoader(examples, _AT_ONCE, num_workers=workers):
        lost += int(unreadable(batch[0]).sum())
        images, truth = readable(*batch)
        probabilities.append(classifier.probabilities(classifier.logits(images.to(classifier.device))).cpu())
        labels.append(truth)
        watcher.advance(len(images), f"{lost} could not be read" if lost else "")
    return torch.cat(probabilities), torch.cat(labels)


def probabilities_of(
    model: NetworkClassifier | Ensemble, examples: Examples, workers: int, watcher: Watcher
) -> tuple[Table, Table]:
    """The probabilities and labels of the examples; of an ensemble, one member after the other is loaded."""
    length = len(examples)  # type: ignore[arg-type]
    if isinstance(model, NetworkClassifier):
        watcher.start("testing", length)
        probabilities, labels = predicted(model, examples, workers, watcher)
        return probabilities.double().numpy(), labels.double().numpy()
    watcher.start("testing ensemble", length * len(model.members))
    total = torch.zeros(length, len(model.outputs), dtype=torch.float64)
    for member in model.members:
        probabilities, labels = predicted(model.loaded(member), examples, workers, watcher)
        total[:, model.columns(member)] += probabilities[:, model.columns(member)]
    return (total / torch.tensor(model.counts)).numpy(), labels.double().numpy()


def evaluate(
    model: NetworkClassifier | Ensemble, source: Source, watcher: Watcher, views: Views = "each", workers: int = 0
) -> tuple[TestResult, ...]:
    """The AUROC of each finding on a source."""
    examples = CaseExamples(source, model.preprocessing)
    probabilities, labels = probabilities_of(model, examples, workers, watcher)
    return judged(examples.keys, labels, probabilities, model.outputs, views).results()


def gains(ensemble: CasePredictions, single: CasePredictions) -> tuple[Gain, ...]:
    """The AUROC of the ensemble minus that of single checkpoints on the same cases, with intervals by patient."""
    return tuple(_gain(ensemble, single, column) for column in range(len(ensemble.findings)))


def _gain(ensemble: CasePredictions, single: CasePredictions, column: int) -> Gain:
    finding, truth = ensemble.findings[column], ensemble.labels[:, column]
    rows = ~np.isnan(truth)
    if len(set(truth[rows])) < 2:
        return Gain(finding, math.nan, math.nan, math.nan, "needs cases with and without the finding")
    interval = auroc_difference(
        truth[rows],
        ensemble.probabilities[rows, column],
        single.probabilities[rows, column],
        ensemble.patients[rows],
    )
    return Gain(finding, interval.value, interval.low, interval.high, interval.reason)
