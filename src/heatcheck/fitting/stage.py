"""The stage of a study in which its networks are trained."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heatcheck.core.records import Prediction, Score, ShardTables, Timing
from heatcheck.training import Check

TRAINING = "training"  # the folder of its tables within a run


@dataclass(frozen=True)
class FitTask:
    """One network to be trained."""

    name: str  # in the table of timings
    model: str
    state: Path  # of its fit
    fit: Callable[[], Sequence[Check]]
    scores: Callable[[Sequence[Check]], Iterable[Score]] = lambda _: ()  # of the trained network
    predictions: Callable[[], Iterable[Prediction]] = lambda: ()  # of the trained network


@dataclass(frozen=True)
class FitStage:
    """Networks trained one after the other; a shard is a network."""

    tasks: Sequence[FitTask]
    what: str = "networks"
    name: str = TRAINING

    @property
    def shards(self) -> int:
        """The number of networks."""
        return len(self.tasks)

    def cases_in(self, shard: int) -> int:  # noqa: ARG002 - each is one
        """1: a shard is a network."""
        return 1

    def work(self, shard: int) -> ShardTables:
        """The time of the training, and the scores and predictions of the trained network."""
        self.remove_states(shard)
        task = self.tasks[shard]
        start = time.perf_counter()
        history = task.fit()
        spent = Timing(shard, "training", task.name, 1, time.perf_counter() - start, task.model)
        return ShardTables(tuple(task.scores(history)), tuple(task.predictions()), timings=(spent,))

    def remove_states(self, shards: int | None = None) -> None:
        """Remove the states of the first fits, or of all: once a shard is on disk, its fit is never continued."""
        for task in self.tasks[:shards]:
            task.state.unlink(missing_ok=True)
