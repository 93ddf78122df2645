"""Whether networks still predict after fine-tuning: AUROC and mutual information, means over seeds."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool, Float, Shaped

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import CaseRecord, Estimate, Prediction
from heatcheck.core.vocabulary import AUROC, Statistic, condition
from heatcheck.estimating.estimates import coverage, fill
from heatcheck.metrics.classification import weighted_mean_auroc
from heatcheck.metrics.label_information import information_terms
from heatcheck.metrics.reliance import separation
from heatcheck.metrics.undefined import NO_LABEL, NO_NEGATIVE, NO_POSITIVE
from heatcheck.runs.tables import read_batches
from heatcheck.stats.ratios import Totals, Values, means
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import bca_from_case_weights, bca_interval
from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.studies.alignment.cells import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import (
    ARMS,
    INFORMATION,
    MUTUAL_INFORMATION,
    RELIANCE,
    SEPARATION,
    Arm,
    network_key,
)

FEWEST = 10  # images with the finding, and as many without it, for a finding to count in the mean over findings
NO_PREDICTIONS = "no predictions"
TOO_FEW = f"no finding has {FEWEST} images with it and {FEWEST} without it"


@dataclass(frozen=True, slots=True)
class SeedAnswers:
    """What the seeds of one kind of network say of one finding, on the images that all of them answered."""

    finding: str
    labels: Float[np.ndarray, " cases"]  # NaN where unknown
    probabilities: Float[np.ndarray, "seeds cases"]  # of the seeds that have any
    lacking: int  # seeds that have none
    failure: str = ""  # of one of these

    @property
    def known(self) -> Bool[np.ndarray, " cases"]:
        """Which images have a label."""
        return np.asarray(~np.isnan(self.labels))

    @property
    def why_not(self) -> str:
        """Why nothing can be said, or ""."""
        if not len(self.probabilities):
            return self.failure or NO_PREDICTIONS
        if not self.known.any():
            return NO_LABEL
        lacking = {NO_POSITIVE: 1, NO_NEGATIVE: 0}
        return next((reason for reason, label in lacking.items() if not (self.labels == label).any()), "")

    @property
    def counts(self) -> bool:
        """Whether the finding takes part in the mean over findings."""
        return not self.why_not and min(int((self.labels == label).sum()) for label in (0, 1)) >= FEWEST


@dataclass(frozen=True, slots=True)
class BaseAnswers:
    """The answers of all networks that began as one base, on the same images."""

    patients: Shaped[np.ndarray, " cases"]
    labels: Mapping[str, Float[np.ndarray, " cases"]]  # by finding
    probabilities: Mapping[tuple[str, str], Float[np.ndarray, " cases"]]  # by network and finding

    def of(self, finding: str, networks: Sequence[str], failed: Mapping[str, str]) -> SeedAnswers:
        """What those networks say of a finding."""
        own = [self.probabilities[key, finding] for key in networks if (key, finding) in self.probabilities]
        answers = [each for each in own if not np.isnan(each).all()]
        answered = np.array(answers).reshape(len(answers), len(self.patients))
        labels = np.where(np.isnan(answered).any(0), np.nan, self.labels[finding])
        subjects = (finding, f"{len(self.labels)} findings")  # it was made for one, or for all at once
        failures = [failed.get(f"{network} · {subject}", "") for network in networks for subject in subjects]
        failure = next(filter(None, failures), "")
        return SeedAnswers(finding, labels, answered, len(networks) - len(answered), failure)


@dataclass(frozen=True, slots=True)
class NetworkKind:
    """The networks of one base, arm and method, whatever their seed."""

    blank: Estimate  # that says which
    every: tuple[SeedAnswers, ...]  # a finding each
    patients: Shaped[np.ndarray, " cases"]

    @property
    def usable(self) -> list[SeedAnswers]:
        """The findings of which something can be said."""
        return [answers for answers in self.every if not answers.why_not]

    @property
    def counting(self) -> list[int]:
        """The places, among the usable ones, of the findings that count in the mean over findings."""
        return [place for place, answers in enumerate(self.usable) if answers.counts]

    def purpose(self, metric: str) -> tuple[str, ...]:
        """Of the generator of an estimate."""
        return metric, self.blank.model, self.blank.method, self.blank.condition


def prediction_rows(folder: Path, settings: AlignmentSettings) -> Iterator[Estimate]:
    """AUROC and mutual information with the label of every kind of network, on each finding and over those that count.

    Patients are drawn once for all seeds and findings.
    """
    failed = _failed(folder)
    for base in settings.bases:
        networks = {
            (arm, method): [
                network_key(base.key, arm, seed, method) for seed in ((0,) if arm == "base" else settings.seeds)
            ]
            for arm in (ARMS if base.fine_tuned else ARMS[:1])
            for method in (("",) if arm in {"base", "control"} else settings.methods)
        }
        answers = read_answers(folder, [key for own in networks.values() for key in own], settings)
        for (arm, method), keys in networks.items():
            blank = Estimate(AUROC, AUROC, method=method, model=base.key, condition=condition(arm=arm))
            every = tuple(answers.of(finding, keys, failed) for finding in settings.findings)
            kind = NetworkKind(blank, every, answers.patients)
            yield from _rows(kind, AUROC, AUROC, _aurocs(kind, settings))
            yield from _rows(kind, MUTUAL_INFORMATION, INFORMATION, _informations(kind, settings))


def read_answers(folder: Path, networks: Sequence[str], settings: AlignmentSettings) -> BaseAnswers:
    """The answers of those networks."""
    columns = ["case", "patient", "finding", "model", "label", "probability"]
    wanted = [("model", "in", list(networks)), ("finding", "in", list(settings.findings))]
    batches = list(read_batches(folder / "predictions.parquet", Prediction, columns, wanted))
    if not batches:
        return BaseAnswers(np.array([], str), {finding: np.array([]) for finding in settings.findings}, {})
    table = pa.Table.from_batches(batches).unify_dictionaries().to_pandas()
    cases, row = np.unique(table["case"].to_numpy(str), return_inverse=True)
    patients = np.empty(len(cases), object)
    patients[row] = table["patient"].to_numpy(object)
    said, label = (table[name].to_numpy(float) for name in ("probability", "label"))
    label = np.where(np.isin(label, (0, 1)), label, np.nan)  # uncertain is unknown
    labels = {finding: np.full(len(cases), np.nan) for finding in settings.findings}
    probabilities = {}
    for (model, finding), rows in table.groupby(["model", "finding"], observed=True).indices.items():
        labels[finding][row[rows]] = label[rows]
        own = probabilities[str(model), str(finding)] = np.full(len(cases), np.nan)
        own[row[rows]] = said[rows]
    return BaseAnswers(patients.astype(str), labels, probabilities)


def _failed(folder: Path) -> dict[str, str]:
    """Why networks failed, by their name and finding."""
    wanted = [("status", "==", "failed"), ("stage", "==", "training")]
    batches = read_batches(folder / "cases.parquet", CaseRecord, ["case", "reason"], wanted)
    rows = [row for batch in batches for row in batch.to_pylist()]
    return {row["case"]: row["reason"] for row in rows}


def _aurocs(kind: NetworkKind, settings: AlignmentSettings) -> tuple[Interval, ...]:
    """Of each usable finding, and over those that count."""

    def statistic(weights: Float[np.ndarray, "*draws cases"]) -> Values:
        each = [weighted_mean_auroc(one.labels, one.probabilities, weights) for one in kind.usable]
        return _with_macro(np.stack(each, -1), kind.counting)

    generator = settings.generator(*kind.purpose(AUROC))
    return bca_from_case_weights(statistic, kind.patients, settings.draws, generator) if kind.usable else ()


def _informations(kind: NetworkKind, settings: AlignmentSettings) -> tuple[Interval, ...]:
    """As `_aurocs`. What is drawn are the terms of which mutual information is made, each with its patient.

    Drawing cases and measuring anew would put a case beside itself, which neighbour estimates take for information.
    Neighbours have like terms, for which these intervals are somewhat narrow: those of 95 % held the truth in 90 to
    93 % of simulations with 234 cases.
    """
    generator = settings.generator(*kind.purpose(INFORMATION))
    terms = [
        information_terms(one.labels, own, generator) for one in kind.usable for own in one.probabilities
    ]  # fmt: skip
    starts = np.cumsum([0, *(len(one.probabilities) for one in kind.usable)])
    if not terms:
        return ()

    def statistic(totals: Totals) -> Values:
        each = np.maximum(means(totals), 0)
        by_finding = [each[..., start:end].mean(-1) for start, end in pairwise(starts)]
        return _with_macro(np.stack(by_finding, -1), kind.counting)

    totals = cluster_totals(np.stack(terms, 1), kind.patients).joined
    return bca_interval(totals, statistic, settings.draws, generator)


def _with_macro(each: Values, counting: Sequence[int]) -> Values:
    """The values and, where there are findings that count, their mean."""
    return np.concatenate([each, each[..., counting].mean(-1, keepdims=True)], -1) if counting else each


def _rows(kind: NetworkKind, statistic: Statistic, metric: str, found: Sequence[Interval]) -> Iterator[Estimate]:
    """A row for each finding, and one for those that count together."""
    blank = replace(kind.blank, statistic=statistic, metric=metric)
    usable, counting = kind.usable, kind.counting
    by_finding = {answers.finding: one for answers, one in zip(usable, found, strict=False)}
    for answers in kind.every:
        one = by_finding.get(answers.finding, Interval(math.nan, reason=answers.why_not))
        seeds = len(answers.probabilities) + answers.lacking
        note = coverage(seeds - answers.lacking, seeds, "seeds")
        yield _filled(replace(blank, finding=answers.finding), one, note, answers.known, kind)
    none = Interval(math.nan, reason=TOO_FEW if usable else kind.every[0].why_not)
    note = coverage(len(counting), len(kind.every))
    known = np.any([np.zeros(len(kind.patients), bool), *(usable[place].known for place in counting)], axis=0)
    yield _filled(replace(blank, finding=ALL), found[-1] if counting else none, note, known, kind)


def _filled(
    blank: Estimate, one: Interval, note: str, known: Bool[np.ndarray, " cases"], kind: NetworkKind
) -> Estimate:
    n_cases = int(np.count_nonzero(known))
    n_patients = len(set(kind.patients[known].tolist()))
    counted = replace(blank, n_cases=n_cases, n_patients=n_patients, n_undefined=len(known) - n_cases)
    return fill(counted, one, one.reason or note)


def separation_rows(folder: Path, settings: AlignmentSettings) -> list[Estimate]:
    """The separation of each base, and that of its controls on average, for each finding."""
    networks: dict[tuple[str, Arm], list[str]] = {}
    for base in settings.fine_tuned:
        networks[base.key, "base"] = [network_key(base.key, "base")]
        networks[base.key, "control"] = [network_key(base.key, "control", seed) for seed in settings.seeds]
    table = _logits(folder, sorted({key for keys in networks.values() for key in keys}))
    rows = []
    for (base_key, arm), keys in networks.items():
        for finding in settings.findings:
            logits = table[(table["finding"] == finding) & table["model"].isin(keys)]
            template = Estimate(SEPARATION, RELIANCE, finding, model=base_key, condition=condition(arm=arm))
            rows.append(_separated(logits, template))
    return rows


def _logits(folder: Path, networks: Sequence[str]) -> pd.DataFrame:
    columns = ["case", "finding", "model", "label", "logit"]
    wanted = [("model", "in", list(networks))]
    batches = [one.to_pandas() for one in read_batches(folder / "predictions.parquet", Prediction, columns, wanted)]
    if not batches:
        return pd.DataFrame(columns=columns)
    return pd.concat([batch.astype({"case": str, "finding": str, "model": str}) for batch in batches])


def _separated(table: pd.DataFrame, template: Estimate) -> Estimate:
    """The mean over networks."""
    each = [separation(rows["label"].to_numpy(float), rows["logit"].to_numpy(float))
            for _, rows in table.groupby("model")]  # fmt: skip
    values = [one.value for one in each if not math.isnan(one.value)]
    if not values:
        return replace(template, reason=each[0].reason if each else NO_PREDICTIONS)
    return replace(template, value=float(np.mean(values)), n_cases=int(table["case"].nunique()))
