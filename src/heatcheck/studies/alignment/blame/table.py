"""From the estimates of an alignment run to its blame table: a reading for each model, method and finding."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, ONE_VALUE, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, Condition, Statistic, condition
from heatcheck.methods import METHODS
from heatcheck.stats.resampling.nested import ONE_SEED
from heatcheck.studies.alignment.blame.evidence import (
    Arm,
    BlameEvidence,
    EstimateWithInterval,
    Marks,
    Part,
    Use,
    reliance_part,
    score_part,
)
from heatcheck.studies.alignment.blame.readings import needed, read
from heatcheck.studies.alignment.blame.sentences import SentenceParts, sentence
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import (
    ADDED,
    BLAME,
    DIRECTIONS,
    FINETUNE,
    FLOOR,
    FLOORS,
    HUMAN_ARM,
    RANDOM,
    RELIANCE,
    SEPARATION,
    UNTRAINED,
    Direction,
)

NO_ESTIMATE = "there is no such estimate"
_ROUNDING = 1e-12
_Key = tuple[Statistic, str, str, str, str, str]


def blame_rows(estimates: Sequence[Estimate], settings: AlignmentSettings) -> list[Estimate]:
    """The blame table; every number that it rests on is one of the estimates."""
    table = {_key(row): row for row in estimates}
    return [
        _Combination(table, settings, base.key, method, finding).row()
        for base in settings.fine_tuned
        for method in (*settings.methods, *settings.judged)
        for finding in (*settings.findings, *((ALL,) if len(settings.findings) > 1 else ()))
    ]


def _key(row: Estimate) -> _Key:
    return row.statistic, row.metric, row.finding, row.method, row.model, row.condition


@dataclass(frozen=True)
class _Combination:
    """One model, method and finding."""

    table: Mapping[_Key, Estimate]
    settings: AlignmentSettings
    model: str
    method: str
    finding: str

    def row(self) -> Estimate:
        """Its row of the blame table."""
        reliance = self._reliance(RELIANCE, "base")
        evidence = self._evidence()
        reading = read(evidence)
        changes = {direction: self._score_change(direction) for direction in DIRECTIONS}
        parts = SentenceParts(
            evidence,
            reading,
            metric=self.settings.blame_metric,
            through=self.settings.through if self._judged else "",
            top="a perfect map's marks" if self.settings.human == "truth" else "the readers' marks",
            top_score=self._top,
            best_score=self._floor(evidence.marks.best or RANDOM),
            is_floor=self.method in METHODS and METHODS[self.method].is_floor,
            reasons={
                "reliance": reliance.reason,
                "score": self._gain(evidence.marks.best or RANDOM).reason,
                "separation": self._separation("base").reason,
                **{direction: change.reason for direction, change in changes.items()},
            },
        )
        return Estimate(
            BLAME,
            self.settings.blame_metric,
            self.finding,
            self.method,
            self.model,
            condition=condition(before=reading.before, under=reading.under),
            n_cases=reliance.n_cases,
            n_patients=reliance.n_patients,
            n_undefined=reliance.n_undefined,
            n_needed=needed(evidence, reading),
            reason=sentence(parts),
        )

    @property
    def _one_training(self) -> bool:
        """Whether the change of a direction's maps rests on one seed."""
        changes = (self._score_change(direction) for direction in DIRECTIONS)
        return len(self.settings.seeds) == 1 or any(ONE_SEED in change.reason for change in changes)

    @property
    def _judged(self) -> bool:
        return self.method in self.settings.judged

    def _evidence(self) -> BlameEvidence:
        metric = self.settings.blame_metric
        learned = Part()
        if not self._judged:
            learned = self._of_room(
                self._find(DIFFERENCE, metric, self.method, arm="align", versus="control", split=FINETUNE)
            )
        return BlameEvidence(
            use=self._use(),
            marks=self._marks(),
            arms=tuple(self._arm(direction) for direction in DIRECTIONS),
            learned=learned,
            judged=self._judged,
            one_training=self._one_training,
        )

    def _use(self) -> Use:
        reliance, added = (self._of_separation(self._reliance(metric, "base"), "base") for metric in (RELIANCE, ADDED))
        untrained = self._find(DIFFERENCE, RELIANCE, "", arm="base", versus=UNTRAINED)
        return Use(reliance, added, None if untrained.reason == NO_ESTIMATE else interval_of(untrained))

    def _marks(self) -> Marks:
        """The map against every floor; the best is the one with the highest score."""
        scores = {floor: self._floor(floor) for floor in FLOORS}
        known = {floor: score for floor, score in scores.items() if not math.isnan(score)}
        best = max(known, key=lambda floor: known[floor]) if known else ""
        return Marks({floor: self._of_room(self._gain(floor), floor) for floor in known}, best)

    def _arm(self, direction: Direction) -> Arm:
        """How the score and the reliance of a direction's networks differ from the control's."""
        networks = self.settings.through if self._judged else self.method
        reliance = self._find(DIFFERENCE, RELIANCE, networks, arm=direction, versus="control")
        change = self._of_room(self._score_change(direction))
        return Arm(direction, change, self._of_separation(reliance, "control"))

    def _score_change(self, direction: Direction) -> Estimate:
        facts: Condition = {"arm": direction, "versus": "control"}
        if self._judged:
            facts["through"] = self.settings.through
        return self._find(DIFFERENCE, self.settings.blame_metric, self.method, **facts)

    def _gain(self, floor: str) -> Estimate:
        """By how much the base's maps score above a floor."""
        return self._find(DIFFERENCE, self.settings.blame_metric, self.method, arm="base", versus=floor)

    def _of_room(self, row: Estimate, floor: str = RANDOM) -> Part:
        """A distance from a floor, or a change, as a part of the room between that floor and the human marks."""
        return score_part(interval_of(row), self._floor(floor), self._top, self.settings.sizes, row.n_needed)

    @property
    def _top(self) -> float:
        """What the human marks score."""
        if self.settings.human == "truth":
            return 1.0
        return self._find(MEAN, self.settings.blame_metric, HUMAN, "", arm=HUMAN_ARM).value

    def _of_separation(self, row: Estimate, arm: str) -> Part:
        return reliance_part(interval_of(row), self._separation(arm).value, self.settings.sizes, row.n_needed)

    def _floor(self, floor: str) -> float:
        return self._find(MEAN, self.settings.blame_metric, floor, "", arm=FLOOR).value

    def _reliance(self, metric: str, arm: str) -> Estimate:
        return self._find(MEAN, metric, "", arm=arm)

    def _separation(self, arm: str) -> Estimate:
        return self._find(SEPARATION, RELIANCE, "", arm=arm)

    def _find(
        self, statistic: Statistic, metric: str, method: str, model: str | None = None, **facts: Unpack[Condition]
    ) -> Estimate:
        """The estimate of the finding on this model, unless another is named; an empty one where there is none."""
        model = self.model if model is None else model
        under = condition(**facts)
        empty = Estimate(statistic, metric, self.finding, method, model, condition=under, reason=NO_ESTIMATE)
        return self.table.get(_key(empty), empty)


def interval_of(row: Estimate) -> EstimateWithInterval:
    """The estimate with its interval; that is known, and of no width, where every image has a 0."""
    if row.reason == ONE_VALUE and abs(row.value) <= _ROUNDING:
        return EstimateWithInterval(0.0, 0.0, 0.0)
    return EstimateWithInterval(row.value, row.low, row.high)
