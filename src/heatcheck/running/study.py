"""The parts of a study: its plan, its stages and its page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heatcheck.core.errors import InputError, briefly
from heatcheck.core.records import Estimate, ShardTables
from heatcheck.estimating.compared_scores import Compared, compared_by_case, seed_conditions
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import StudyPage
from heatcheck.running.cost import Cost
from heatcheck.running.progress import Watcher
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.spec import Spec
from heatcheck.runs.store import Run, RunFolder


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of one call that do not change what is studied.

    Args:
        device: where to compute: cpu, cuda, cuda:1, mps …
        limit: use the cases of so many patients only, spread over the findings.
        workers: the number of cases to read in advance.
        seed: a random seed instead of the spec's.
        trust_code: allow models that are your own Python code, python:package.module:factory.
        pseudonymise: replace case and patient ids by salted hashes.
        retry_failed: run the failed cases of a finished run again, after they were repaired.
    """

    device: str = "cpu"
    limit: int | None = None
    workers: int = 2
    seed: int | None = None
    trust_code: bool = False
    pseudonymise: bool = False
    retry_failed: bool = False


class Stage(Protocol):
    """Shards that do not depend on one another; the next stage may depend on their results."""

    @property
    def name(self) -> str:
        """The subfolder of the run that holds the stage's tables; empty for the run folder itself."""

    @property
    def what(self) -> str:
        """Label in the progress output."""

    @property
    def shards(self) -> int:
        """The number of shards."""

    def cases_in(self, shard: int) -> int:
        """The number of cases of one shard."""

    def work(self, shard: int) -> ShardTables:
        """The tables of one shard."""


class Plan(Protocol):
    """A study that was checked and is ready to run."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What must be the same when the run is continued."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the report says about the run."""

    def cost(self, folder: RunFolder) -> Cost:
        """What the work that the folder does not hold yet will cost on this machine; measured within seconds."""

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:
        """The stages in order; each is requested after the tables of the previous one are joined."""

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """The estimates, from the run's joined tables."""

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """Write the pictures of the report."""


@runtime_checkable
class Previewed(Protocol):
    """A plan with networks, which can show what they are given."""

    def preview(self, folder: RunFolder) -> None:
        """Write the picture of what the networks are given; called before the work begins."""


@runtime_checkable
class DatedPlan(Protocol):
    """A plan that knows which of its files changed, for the message that refuses a folder."""

    def changed_since(self, moment: str) -> str:
        """The first file of the data that is newer; empty where none is, or where it is not known."""


@dataclass(frozen=True, slots=True)
class Study:
    """A kind of study: its question, and where its parts are.

    Parts are written "package.module:function" and imported when first needed, so that listing studies or building a
    report imports neither torch nor another study.
    """

    name: str
    summary: str
    question: str
    paper: str
    plan: str  # spec, options and folder → Plan
    page: str  # Evidence → StudyPage; its module loads without torch
    compare: str = ""  # finished runs and the number of draws → Compared; empty: scores are paired case by case
    demo: int = 0  # position in the demonstration, which runs the spec NAME-demo; 0: no demo

    def make_plan(self, spec: Spec, options: RunOptions, out: Path) -> Plan:
        """The study that a spec describes, checked and ready to run."""
        _part(self.page)  # an error in the page is raised before any work
        plan: Plan = _part(self.plan)(spec, options, out)
        return plan

    def make_page(self, evidence: Evidence) -> StudyPage:
        """The page of a run's report."""
        page: StudyPage = _part(self.page)(evidence)
        return page

    def compare_runs(self, runs: Sequence[Run], draws: int) -> Compared:
        """The differences of the scores of finished runs of this study from those of the first."""
        if not self.compare:
            return compared_by_case(runs, seed_conditions(runs[0].manifest_as(Manifest).seeds), draws)
        compared: Compared = _part(self.compare)(runs, draws)
        return compared


def _part(address: str) -> Callable[..., Any]:
    """The function at "package.module:function"."""
    module, _, name = address.partition(":")
    try:
        part: Callable[..., Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"{address}, a part of the study, cannot be loaded ({briefly(error)}); update its package"
        ) from error
    return part
