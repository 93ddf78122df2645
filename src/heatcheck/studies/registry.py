"""The studies a spec can name, and what each must offer to be run."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from heatcheck.core.records import Estimate, ShardTables
from heatcheck.core.registry import Registry
from heatcheck.runs.spec import Spec
from heatcheck.runs.store import RunFolder
from heatcheck.studies.progress import Watcher


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What differs from call to call without changing what is studied."""

    device: str = "cpu"
    limit: int | None = None  # the first so many cases only
    workers: int = 2  # cases read ahead
    seed: int | None = None  # instead of the spec's
    trust_code: bool = False  # allow python:package.module:factory
    pseudonymise: bool = False  # replace case and patient ids by salted hashes


class Stage(Protocol):
    """Shards that do not depend on one another; what comes of them may decide on the next stage's."""

    @property
    def name(self) -> str:
        """The folder within the run's that holds the stage's tables; empty for the run's own."""

    @property
    def what(self) -> str:
        """What is done, for whoever watches."""

    @property
    def shards(self) -> int:
        """Into how many parts the work is cut."""

    def cases_in(self, shard: int) -> int:
        """How many cases that part has."""

    def work(self, shard: int) -> ShardTables:
        """The tables of one shard."""


class Plan(Protocol):
    """A study that was checked and is ready to run."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What must be the same when the run is taken up again."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the report says about the run."""

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:
        """The stages in their order; each is asked for when the tables of the one before are joined."""

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """The estimates, from the run's joined tables."""

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """Pictures for the report."""


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """A kind of study."""

    name: str
    summary: str
    question: str
    paper: str
    plan: Callable[[Spec, RunOptions, Path], Plan]


STUDIES: Registry[StudyFacts] = Registry("study")
