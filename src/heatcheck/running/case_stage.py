"""Stages that score cases: divided into shards, scored in batches, with the rows of each shard gathered in tables."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from heatcheck.core.contracts import Source
from heatcheck.core.records import (
    Case,
    CaseKey,
    CaseRecord,
    Map,
    Prediction,
    RegionRecord,
    Score,
    ShardTables,
    Timing,
    TruthShape,
)
from heatcheck.running.cases import batches, read_cases
from heatcheck.running.failed_cases import one_by_one_if_needed, readable
from heatcheck.runs.store import SHARD_TABLES

Group = TypeVar("Group")
Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Part(Generic[Group, Item]):
    """The cases of one shard, with the model, network or fold that they share."""

    group: Group
    cases: Sequence[Item]


def cut(groups: Iterable[tuple[Group, Sequence[Item]]], size: int) -> list[Part[Group, Item]]:
    """The groups' cases in parts of `size`; no part holds cases of two groups."""
    return [Part(group, cases[start : start + size]) for group, cases in groups for start in range(0, len(cases), size)]


class CaseStage(ABC, Generic[Group, Item]):
    """A stage with one shard for each part of its cases."""

    @property
    @abstractmethod
    def parts(self) -> Sequence[Part[Group, Item]]:
        """The cases of each shard."""

    @abstractmethod
    def work(self, shard: int) -> ShardTables:
        """The tables of one shard."""

    @property
    def shards(self) -> int:
        """The number of parts."""
        return len(self.parts)

    def cases_in(self, shard: int) -> int:
        """The number of cases of one shard."""
        return len(self.parts[shard].cases)


def by_case(row: Score) -> tuple[str, ...]:
    """The key that sorts scores by case."""
    return row.case, row.finding, row.method, row.metric, row.condition, row.other_method


def by_finding(row: Score) -> tuple[str, ...]:
    """The key that sorts scores by finding, then by case."""
    return row.finding, row.case, row.method, row.metric, row.condition, row.other_method


@dataclass
class ShardRows:
    """The rows of one shard while it is being scored."""

    scores: list[Score] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)
    cases: list[CaseRecord] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    shapes: list[TruthShape] = field(default_factory=list)
    regions: list[RegionRecord] = field(default_factory=list)
    maps: dict[str, Map] = field(default_factory=dict)

    def add(self, rows: ShardTables) -> None:
        """Append the rows of some cases."""
        for name in SHARD_TABLES:
            getattr(self, name).extend(getattr(rows, name))
        self.maps |= rows.maps

    def tables(self) -> ShardTables:
        """Everything in the order in which it was added."""
        return ShardTables(**{name: tuple(getattr(self, name)) for name in SHARD_TABLES}, maps=self.maps)

    def sorted_tables(self, order: Callable[[Score], tuple[str, ...]] = by_case) -> ShardTables:
        """Everything sorted by case, so that the tables do not depend on the batches; scores are sorted by `order`."""
        self.scores.sort(key=order)
        self.predictions.sort(key=lambda row: (row.case, row.finding))
        self.cases.sort(key=lambda row: row.case)
        self.shapes.sort(key=lambda row: (row.case, row.finding))
        return self.tables()


class BatchScorer(Protocol[Item_contra]):
    """How a study scores its cases."""

    def score(self, batch: Sequence[Item_contra]) -> ShardTables:
        """The rows of a batch; if this fails, its cases are scored again one by one."""

    def failed(self, case: Item_contra, error: Exception) -> CaseRecord:
        """The record of a case that could not be scored."""


def score_batches(parts: Iterable[Sequence[Item]], scorer: BatchScorer[Item], rows: ShardRows) -> None:
    """Add the rows of every batch; a case that fails is recorded, and the others keep their scores."""
    for batch in parts:
        one_by_one_if_needed(
            batch,
            lambda some: rows.add(scorer.score(some)),
            lambda case, error: rows.cases.append(scorer.failed(case, error)),
        )


def score_read_cases(
    source: Source, keys: Sequence[CaseKey], scorer: BatchScorer[Case], size: int, workers: int
) -> ShardRows:
    """The rows of the source's cases, scored in batches of `size`; cases that cannot be read are recorded."""
    rows = ShardRows()
    read = readable(read_cases(source, keys, workers), rows.cases)
    score_batches(batches(read, size), scorer, rows)
    return rows


def timings(shard: int, step: str, seconds: Mapping[str, float], maps: int, model: str) -> tuple[Timing, ...]:
    """One row per method or metric: the seconds it took for this number of maps."""
    return tuple(Timing(shard, step, name, maps, spent, model) for name, spent in seconds.items())
