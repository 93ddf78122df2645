"""From a spec to scores and estimates: the share of bright pixels of every image."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from heatcheck.core.contracts import Source
from heatcheck.core.records import ALL_FINDINGS, Case, CaseKey, CaseRecord, Estimate, Score, ShardTables
from heatcheck.core.seeds import generator_for
from heatcheck.core.vocabulary import MEAN
from heatcheck.estimating.estimates import fill
from heatcheck.running.case_stage import CaseStage, Part, cut, score_read_cases
from heatcheck.running.cases import success
from heatcheck.running.cost import Cost, Work, left
from heatcheck.running.facts import source_facts
from heatcheck.running.failed_cases import failure
from heatcheck.running.identity import DataIdentity, study_identity
from heatcheck.running.open_source import open_source
from heatcheck.running.progress import Watcher
from heatcheck.running.pseudonyms import pseudonymous
from heatcheck.running.study import RunOptions, Stage
from heatcheck.runs.spec import Spec
from heatcheck.runs.store import RunFolder
from heatcheck.stats.resampling.bootstrap import mean_estimates

METRIC, METHOD = "bright_share", "threshold"


class BrightBody(BaseModel, extra="forbid", frozen=True):
    """The part of a spec that only this study has."""

    source: dict[str, Any]
    threshold: float = Field(0.5, ge=0, le=1)
    bootstrap_draws: int = Field(200, ge=1)


@dataclass(frozen=True)
class BrightStage(CaseStage[None, CaseKey]):
    """Scores the images, a few per shard."""

    source: Source
    threshold: float
    parts: Sequence[Part[None, CaseKey]] = ()
    name: str = ""
    what: str = "images"

    def work(self, shard: int) -> ShardTables:
        """The scores of one shard."""
        return score_read_cases(self.source, self.parts[shard].cases, self, size=8, workers=1).sorted_tables()

    def score(self, batch: Sequence[Case]) -> ShardTables:
        """The share of bright pixels of each image."""
        cases = tuple(success(case, annotated=False) for case in batch)
        return ShardTables(scores=tuple(map(self._score, batch)), cases=cases)

    def _score(self, case: Case) -> Score:
        share = float((case.image > self.threshold).mean())
        return Score(case.key.case, case.key.patient, ALL_FINDINGS, METHOD, "", METRIC, share)

    def failed(self, case: Case, error: Exception) -> CaseRecord:
        """The record of an image that could not be scored."""
        return failure(case.key, error)


@dataclass(frozen=True)
class BrightPlan:
    """The study, checked and ready."""

    spec: Spec
    body: BrightBody
    options: RunOptions
    source: Source
    keys: tuple[CaseKey, ...]

    @property
    def identity(self) -> Mapping[str, Any]:
        """What must be the same when the run is continued."""
        data = DataIdentity(self.keys, self.source.stamp())
        return study_identity(self.spec.envelope, self.body, self.options, "", {}, data)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the report says about the run."""
        return {
            "methods": [{"name": METHOD, "label": f"Brighter than {self.body.threshold}"}],
            "metrics": [{"name": METRIC, "label": "Share of bright pixels"}],
            "source": source_facts(self.body.source["name"]),
        }

    def cost(self, folder: RunFolder) -> Cost:
        """The images that are left to read."""
        parts = cut([(None, self.keys)], self.spec.envelope.shard_size)
        return Cost([Work(sum(left(folder, [len(part.cases) for part in parts])), "image", "to read", 0.01)])

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:  # noqa: ARG002 - as in every plan
        """One stage: the images."""
        parts = cut([(None, self.keys)], self.spec.envelope.shard_size)
        yield BrightStage(self.source, self.body.threshold, parts)

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """The mean over all images, with patients resampled."""
        table = folder.read_table("scores")
        values, patients = table[["value"]].to_numpy(float), table["patient"].to_numpy(str)
        generator = generator_for(self.spec.envelope.seed, "estimates")
        (mean,) = mean_estimates(values, patients, self.body.bootstrap_draws, generator)
        return [fill(Estimate(MEAN, METRIC, ALL_FINDINGS, METHOD), mean)]

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """No pictures."""


def plan_bright(spec: Spec, options: RunOptions, out: Path) -> BrightPlan:
    """The study that the spec describes."""
    body = spec.checked_body(BrightBody)
    source: Source = open_source(body.source, spec.folder, spec.name)
    if options.pseudonymise:
        source = pseudonymous(source, source.index(), out)
    return BrightPlan(spec, body, options, source, tuple(source.index())[: options.limit])
