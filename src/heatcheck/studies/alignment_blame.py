"""From the estimates of an alignment run to its blame table: a row for each model, method and finding."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import HUMAN, ONE_VALUE, Estimate, Prediction, condition
from heatcheck.metrics.reliance import separation
from heatcheck.runs.tables import read_batches
from heatcheck.stats.blame import Arm, Direction, Evidence, Interval, Use, read
from heatcheck.studies.alignment_rule import FINETUNE, FLOOR, FLOOR_METHOD, HUMAN_ARM, AlignmentRule, blank, network_key
from heatcheck.studies.alignment_sentences import Told, sentence

SEPARATION = "separation"  # the statistic that says how far a model tells positive from negative images
DIRECTIONS: tuple[Direction, ...] = ("align", "misalign")
NO_ESTIMATE = "there is no such estimate"
_ZERO = 1e-12  # as near as rounding comes


def separation_rows(folder: Path, rule: AlignmentRule) -> list[Estimate]:
    """How far each base, and the controls of each on average, tell images with a finding from those without."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for base in rule.fine_tuned:
        wanted[base.key, "base"] = [network_key(base.key, "base")]
        wanted[base.key, "control"] = [network_key(base.key, "control", seed) for seed in rule.seeds]
    keys = sorted({key for own in wanted.values() for key in own})
    table = _predictions(folder, keys)
    rows = []
    for (base_key, arm), networks in wanted.items():
        for finding in rule.findings:
            own = table[(table["finding"] == finding) & table["model"].isin(networks)]
            made = replace(blank(SEPARATION, "reliance", base_key), finding=finding, condition=condition(arm=arm))
            rows.append(_separated(own, made))
    return rows


def _predictions(folder: Path, networks: Sequence[str]) -> pd.DataFrame:
    columns = ["case", "finding", "model", "label", "logit"]
    only = [("model", "in", list(networks))]
    batches = [one.to_pandas() for one in read_batches(folder / "predictions.parquet", Prediction, columns, only)]
    if not batches:
        return pd.DataFrame(columns=columns)
    return pd.concat([batch.astype({"case": str, "finding": str, "model": str}) for batch in batches])


def _separated(table: pd.DataFrame, made: Estimate) -> Estimate:
    """The mean over networks."""
    found = [
        separation(own["label"].to_numpy(float), own["logit"].to_numpy(float)) for _, own in table.groupby("model")
    ]
    values = [one.value for one in found if not math.isnan(one.value)]
    if not values:
        return replace(made, reason=found[0].reason if found else NO_ESTIMATE)
    return replace(made, value=float(np.mean(values)), n_cases=int(table["case"].nunique()))


def blame_rows(estimates: Sequence[Estimate], rule: AlignmentRule) -> list[Estimate]:
    """The blame table; every number in it is one of the estimates, among them those of `separation_rows`."""
    table = _Table.of(estimates)
    return [
        _Place(table, rule, base.key, method, finding).row()
        for base in rule.fine_tuned
        for method in (*rule.methods, *rule.judged)
        for finding in rule.findings
    ]


@dataclass(frozen=True)
class _Table:
    """The estimates by what they are of."""

    rows: Mapping[tuple[str, ...], Estimate]

    @classmethod
    def of(cls, estimates: Sequence[Estimate]) -> "_Table":
        """The table of these estimates."""
        return cls({(e.statistic, e.metric, e.finding, e.method, e.model, e.condition): e for e in estimates})

    def find(self, what: tuple[str, str, str], method: str, model: str, **facts: str) -> Estimate:
        """The estimate of a statistic, metric and finding under a condition; else one that is blank."""
        under = condition(**facts)
        found = self.rows.get((*what, method, model, under))
        return found or Estimate(*what, method, model, math.nan, condition=under, reason=NO_ESTIMATE)


@dataclass(frozen=True)
class _Place:
    """One model, method and finding."""

    table: _Table
    rule: AlignmentRule
    model: str
    method: str
    finding: str

    def row(self) -> Estimate:
        """Its row of the blame table."""
        used = self._mean("reliance", "", "base")
        evidence = self._evidence()
        reading = read(evidence)
        told = Told(
            evidence,
            reading,
            metric=self.rule.blame_metric,
            through=self.rule.through if self._judged else "",
            reasons={
                "reliance": used.reason,
                "score": self._difference(self.rule.blame_metric, "base", FLOOR).reason,
                "separation": self._separation("base").reason,
                **{direction: self._changes(direction)[0].reason for direction in DIRECTIONS},
            },
        )
        return replace(
            blank("blame", self.rule.blame_metric, self.model),
            finding=self.finding,
            method=self.method,
            condition=condition(before=reading.before, under=reading.under),
            n_cases=used.n_cases,
            n_patients=used.n_patients,
            n_undefined=used.n_undefined,
            reason=sentence(told),
        )

    @property
    def _judged(self) -> bool:
        return self.method in self.rule.judged

    def _evidence(self) -> Evidence:
        metric = self.rule.blame_metric
        learned = Interval()
        if not self._judged:
            learned = interval_of(self._difference(metric, "align", "control", split=FINETUNE))
        return Evidence(
            base=self._use("base"),
            gain=interval_of(self._difference(metric, "base", FLOOR)),
            room=self._room(),
            control=self._use("control"),
            control_score=interval_of(self._mean(metric, self.method, "control")),
            arms=tuple(self._arms()),
            learned=learned,
            judged=self._judged,
        )

    def _use(self, arm: str) -> Use:
        return Use(
            interval_of(self._mean("reliance", "", arm)),
            interval_of(self._mean("reliance_placebo", "", arm)),
            self._separation(arm).value,
        )

    def _arms(self) -> Iterator[Arm]:
        for direction in DIRECTIONS:
            score, reliance = self._changes(direction)
            yield Arm(direction, interval_of(score), interval_of(reliance))

    def _changes(self, direction: str) -> tuple[Estimate, Estimate]:
        """How the score and the reliance of a direction's networks differ from the control's."""
        facts = {"through": self.rule.through} if self._judged else {}
        score = self._difference(self.rule.blame_metric, direction, "control", **facts)
        networks = self.rule.through if self._judged else self.method
        what = ("difference", "reliance", self.finding)
        return score, self.table.find(what, networks, self.model, arm=direction, versus="control")

    def _room(self) -> float:
        """What a perfect map would have above one drawn at random."""
        what = ("mean", self.rule.blame_metric, self.finding)
        floor = self.table.find(what, FLOOR_METHOD, "", arm=FLOOR).value
        if self.rule.human == "truth":
            return 1.0 - floor
        return self.table.find(what, HUMAN, "", arm=HUMAN_ARM).value - floor

    def _mean(self, metric: str, method: str, arm: str) -> Estimate:
        return self.table.find(("mean", metric, self.finding), method, self.model, arm=arm)

    def _separation(self, arm: str) -> Estimate:
        return self.table.find((SEPARATION, "reliance", self.finding), "", self.model, arm=arm)

    def _difference(self, metric: str, arm: str, versus: str, **facts: str) -> Estimate:
        what = ("difference", metric, self.finding)
        return self.table.find(what, self.method, self.model, arm=arm, versus=versus, **facts)


def interval_of(row: Estimate) -> Interval:
    """The estimate's interval; where resampling gave none because every image has a 0, that is what is known."""
    if row.reason == ONE_VALUE and abs(row.value) <= _ZERO:
        return Interval(0.0, 0.0, 0.0)
    return Interval(row.value, row.low, row.high)
