"""The predictions of an alignment run's networks: by base, kind of network and finding, over the seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool, Float, Shaped

from heatcheck.core.records import Estimate, Prediction
from heatcheck.metrics.undefined import NO_LABEL, NO_NEGATIVE, NO_POSITIVE
from heatcheck.runs.tables import read_batches

FEWEST = 10  # images with a finding, and without it, for the finding to count in the mean over findings
NO_PREDICTIONS = "no predictions"
TOO_FEW = f"no finding has {FEWEST} images with it and {FEWEST} without it"


@dataclass(frozen=True, slots=True)
class SeedAnswers:
    """The predictions of one finding by the seeds of one kind of network, on images that all seeds predicted."""

    finding: str
    labels: Float[np.ndarray, " cases"]  # NaN where unknown
    probabilities: Float[np.ndarray, "seeds cases"]  # of the seeds with predictions
    lacking: int  # seeds without
    failure: str = ""  # why one of these has none

    @property
    def known(self) -> Bool[np.ndarray, " cases"]:
        """Which images have a label."""
        return np.asarray(~np.isnan(self.labels))

    @property
    def why_not(self) -> str:
        """Why nothing can be estimated; empty where it can."""
        if not len(self.probabilities):
            return self.failure or NO_PREDICTIONS
        if not self.known.any():
            return NO_LABEL
        needed = {NO_POSITIVE: 1, NO_NEGATIVE: 0}
        return next((reason for reason, label in needed.items() if not (self.labels == label).any()), "")

    @property
    def counts(self) -> bool:
        """Whether the finding counts in the mean over findings."""
        return not self.why_not and min(int((self.labels == label).sum()) for label in (0, 1)) >= FEWEST


@dataclass(frozen=True, slots=True)
class BaseAnswers:
    """The predictions of one base and all networks fine-tuned from it, on the same images."""

    patients: Shaped[np.ndarray, " cases"]
    labels: Mapping[str, Float[np.ndarray, " cases"]]  # by finding
    probabilities: Mapping[tuple[str, str], Float[np.ndarray, " cases"]]  # by network and finding

    def of_networks(self, finding: str, networks: Sequence[str], failed: Mapping[str, str]) -> SeedAnswers:
        """The predictions of one finding by these networks."""
        each = [self.probabilities[key, finding] for key in networks if (key, finding) in self.probabilities]
        known = [probabilities for probabilities in each if not np.isnan(probabilities).all()]
        by_seed = np.array(known).reshape(len(known), len(self.patients))
        labels = np.where(np.isnan(by_seed).any(0), np.nan, self.labels[finding])
        subjects = (finding, f"{len(self.labels)} findings")  # a network has one finding, or all
        failures = [failed.get(f"{network} · {subject}", "") for network in networks for subject in subjects]
        failure = next(filter(None, failures), "")
        return SeedAnswers(finding, labels, by_seed, len(networks) - len(by_seed), failure)


@dataclass(frozen=True, slots=True)
class NetworkKind:
    """The networks of one base, arm and method, whatever their seed."""

    arm: str
    template: Estimate  # with model, method and condition
    every: tuple[SeedAnswers, ...]  # one per finding
    patients: Shaped[np.ndarray, " cases"]

    @property
    def usable(self) -> list[SeedAnswers]:
        """The findings for which something can be estimated."""
        return [answers for answers in self.every if not answers.why_not]

    @property
    def counting(self) -> list[str]:
        """The findings that count in the mean over findings."""
        return [answers.finding for answers in self.usable if answers.counts]

    def purpose(self, metric: str) -> tuple[str, ...]:
        """What names the generator of an estimate."""
        return metric, self.template.model, self.template.method, self.template.condition


def read_answers(path: Path, networks: Sequence[str], findings: Sequence[str] = ()) -> BaseAnswers:
    """The predictions of these networks in a table, of these findings or of all that it has."""
    columns = ["case", "patient", "finding", "model", "label", "probability"]
    wanted = [("model", "in", list(networks)), *([("finding", "in", list(findings))] if findings else [])]
    batches = list(read_batches(path, Prediction, columns, wanted))
    if not batches:
        return BaseAnswers(np.array([], str), {finding: np.array([]) for finding in findings}, {})
    table = pa.Table.from_batches(batches).unify_dictionaries().to_pandas()
    cases, row = np.unique(table["case"].to_numpy(str), return_inverse=True)
    patients = np.empty(len(cases), object)
    patients[row] = table["patient"].to_numpy(object)
    probability, label = (table[name].to_numpy(float) for name in ("probability", "label"))
    label = np.where(np.isin(label, (0, 1)), label, np.nan)  # uncertain is unknown
    every = findings or table["finding"].unique().tolist()
    labels = {finding: np.full(len(cases), np.nan) for finding in every}
    probabilities = {}
    for (model, finding), rows in table.groupby(["model", "finding"], observed=True).indices.items():
        labels[finding][row[rows]] = label[rows]
        values = probabilities[str(model), str(finding)] = np.full(len(cases), np.nan)
        values[row[rows]] = probability[rows]
    return BaseAnswers(patients.astype(str), labels, probabilities)


def failed_networks(folder: Path) -> dict[str, str]:
    """Why networks failed, by label."""
    wanted = [("status", "==", "failed"), ("stage", "==", "training")]
    table = pd.read_parquet(folder / "cases.parquet", columns=["case", "reason"], filters=wanted)
    return dict(zip(table["case"], table["reason"], strict=True))
