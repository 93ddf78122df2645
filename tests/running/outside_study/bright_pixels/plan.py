"""From a spec to scores and estimates: the share of bright pixels of every image."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from heatcheck.core.contracts import Source
from heatcheck.core.records import ALL_FINDINGS, Case, CaseKey, CaseRecord, Estimate, Score, ShardTables
from heatcheck.core.seeds import generator_for
from heatcheck.running.cases import read_cases
from heatcheck.running.facts import source_facts
from heatcheck.running.identity import DataIdentity, run_identity
from heatcheck.running.open_source import open_source
from heatcheck.running.progress import Watcher
from heatcheck.running.pseudonyms import pseudonymous
from heatcheck.running.study import RunOptions, Stage
from heatcheck.runs.spec import Spec
from heatcheck.runs.store import RunFolder
from heatcheck.stats.resampling.bootstrap import mean_estimates

METRIC, METHOD = "bright_share", "threshold"


class BrightBody(BaseModel):
    """What a spec of this study may say beside the common part."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: dict[str, Any]
    threshold: float = Field(0.5, ge=0, le=1)
    bootstrap_draws: int = Field(200, ge=1)


@dataclass(frozen=True)
class BrightStage:
    """The images, a few of them a shard."""

    source: Source
    keys: tuple[CaseKey, ...]
    threshold: float
    shard_size: int
    name: str = ""
    what: str = "images"

    @property
    def shards(self) -> int:
        """Into how many parts the work is cut."""
        return -(-len(self.keys) // self.shard_size)

    def cases_in(self, shard: int) -> int:
        """How many images that part has."""
        return len(self._keys(shard))

    def work(self, shard: int) -> ShardTables:
        """The scores of one shard."""
        read = list(read_cases(self.source, self._keys(shard), workers=1))
        cases = [one for one in read if isinstance(one, Case)]
        records = [
            one if isinstance(one, CaseRecord) else CaseRecord(one.key.case, one.key.patient, "ok") for one in read
        ]
        return ShardTables(scores=tuple(map(self._score, cases)), cases=tuple(records))

    def _keys(self, shard: int) -> tuple[CaseKey, ...]:
        return self.keys[shard * self.shard_size : (shard + 1) * self.shard_size]

    def _score(self, case: Case) -> Score:
        share = float((case.image > self.threshold).mean())
        return Score(case.key.case, case.key.patient, ALL_FINDINGS, METHOD, "", METRIC, share)


@dataclass(frozen=True)
class BrightPlan:
    """The study, checked and ready."""

    spec: Spec
    body: BrightBody
    source: Source
    keys: tuple[CaseKey, ...]
    pseudonymised: bool

    @property
    def identity(self) -> Mapping[str, Any]:
        """What must be the same when the run is taken up again."""
        values = {**self.spec.envelope.model_dump(mode="json"), **self.body.model_dump(mode="json")}
        data = DataIdentity(self.keys, self.source.stamp())
        return {**run_identity(values, self.spec.envelope.seed, "", data), "pseudonymised": self.pseudonymised}

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the report says about the run."""
        return {
            "methods": [{"name": METHOD, "label": f"Brighter than {self.body.threshold}"}],
            "metrics": [{"name": METRIC, "label": "Share of bright pixels"}],
            "model": {"name": ""},
            "source": source_facts(self.body.source["name"]),
        }

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:  # noqa: ARG002 - every plan is asked so
        """One stage: the images."""
        yield BrightStage(self.source, self.keys, self.body.threshold, self.spec.envelope.shard_size)

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """The mean over all images, patients drawn again."""
        table = folder.read_table("scores")
        values, patients = table[["value"]].to_numpy(float), table["patient"].to_numpy(str)
        draws, generator = self.body.bootstrap_draws, generator_for(self.spec.envelope.seed, "estimates")
        one = mean_estimates(values, patients, draws, generator)[0]
        rests_on = {"n_cases": one.n_cases, "n_patients": one.n_patients, "reason": one.reason}
        return [Estimate("mean", METRIC, ALL_FINDINGS, METHOD, "", one.value, one.low, one.high, **rests_on)]

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """No pictures."""


def plan_bright(spec: Spec, options: RunOptions, out: Path) -> BrightPlan:
    """The study that the spec describes."""
    body = spec.checked_body(BrightBody)
    source: Source = open_source(body.source, spec.folder, spec.name)
    if options.pseudonymise:
        source = pseudonymous(source, source.index(), out)
    return BrightPlan(spec, body, source, tuple(source.index())[: options.limit], options.pseudonymise)
