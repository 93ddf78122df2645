"""One split of a localization study, shard by shard: every model's maps, scored case by case."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from heatcheck.core.findings import known
from heatcheck.core.records import Case, CaseKey, CaseRecord, Map, Prediction, Score, ShardTables, Timing, TruthShape
from heatcheck.explaining.batch import Explained
from heatcheck.explaining.study_models import CaseExplainer, Split
from heatcheck.maps.keep import for_keeping
from heatcheck.running.cases import batches, failure, one_by_one_if_needed, read_cases, readable
from heatcheck.runs.spec import Envelope
from heatcheck.scoring.rows import ScoringRule
from heatcheck.scoring.shapes import shapes_of
from heatcheck.studies.localization.scores import score_case


@dataclass(frozen=True)
class ScoringStage:
    """The cases of a split under each model in turn; a shard belongs to one model."""

    name: str  # of the folder that holds its tables; empty for the run's own
    what: str
    split: Split
    rules: Mapping[str, ScoringRule]  # by model, in their order
    explainer: Callable[[str], CaseExplainer]  # of the model of that name
    envelope: Envelope
    workers: int

    @property
    def shards(self) -> int:
        """As many for each model as the cases are cut into."""
        return len(self.rules) * self._parts

    @property
    def _parts(self) -> int:
        return -(-len(self.split.keys) // self.envelope.shard_size)

    def model_of(self, shard: int) -> str:
        """The model that the shard belongs to."""
        return list(self.rules)[shard // self._parts]

    def is_first(self, shard: int) -> bool:
        """Whether the shard is of the first model, which also speaks for readers and truth."""
        return shard < self._parts

    def _keys(self, shard: int) -> Sequence[CaseKey]:
        start = shard % self._parts * self.envelope.shard_size
        return self.split.keys[start : start + self.envelope.shard_size]

    def cases_in(self, shard: int) -> int:
        """How many cases that part has."""
        return len(self._keys(shard))

    def work(self, shard: int) -> ShardTables:
        """Scores, predictions and timings of one shard's cases under its model."""
        model = self.model_of(shard)
        explain = self.explainer(model)
        rule = self.rules[model] if self.is_first(shard) else replace(self.rules[model], readers=False)
        keeps_maps = self.envelope.keep_maps == "all" and not self.name
        collected = _Collected(shard, model, explain, rule, keeps_maps, self.is_first(shard), len(self.rules) > 1)
        read = read_cases(self.split.source, self._keys(shard), self.workers)
        for batch in batches(readable(read, collected.cases), self.envelope.batch_size):
            collected.explain(batch)
        return collected.tables()


@dataclass
class _Collected:
    """The rows of one shard while it is worked on."""

    shard: int
    model: str
    explainer: CaseExplainer
    rule: ScoringRule
    keeps_maps: bool
    first: bool  # of the models
    among_several: bool
    scores: list[Score] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)
    cases: list[CaseRecord] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    shapes: list[TruthShape] = field(default_factory=list)
    maps: dict[str, Map] = field(default_factory=dict)

    def explain(self, batch: Sequence[Case]) -> None:
        """Explain and score a batch; when it fails, find the case that is to blame and keep the others."""
        one_by_one_if_needed(batch, self._explain, self._blame)

    def _explain(self, batch: Sequence[Case]) -> None:
        explained, seconds = self.explainer(batch)
        scored = [score_case(one, self.explainer.findings, self.model, self.rule) for one in explained]
        for one, rows in zip(explained, scored, strict=True):
            self._add(one, rows)
        maps = len(explained) * len(self.explainer.findings)
        self.timings += [Timing(self.shard, "map", name, maps, spent, self.model) for name, spent in seconds.items()]

    def _blame(self, case: Case, error: Exception) -> None:
        record = failure(case.key, error)
        reason = f"model {self.model}: {record.reason}" if self.among_several else record.reason
        self.cases.append(replace(record, reason=reason))

    def _add(self, one: Explained, rows: list[Score]) -> None:
        key, findings = one.case.key, self.explainer.findings
        self.scores += rows
        shape = "×".join(map(str, one.case.image.shape[1:]))
        self.cases.append(CaseRecord(key.case, key.patient, "ok", shape=shape, annotated=int(bool(one.case.truth))))
        for finding, logit, probability in zip(findings, one.logits, one.probabilities, strict=True):
            label = known(key.labels.get(finding, float("nan")))
            self.predictions.append(Prediction(key.case, key.patient, finding, self.model, label, logit, probability))
        if self.first:
            self.shapes += [shape for shape in shapes_of(one.case) if shape.finding in findings]
        if self.keeps_maps:
            named = named_maps(one, findings)
            self.maps |= (
                {f"{self.model}/{name}": value for name, value in named.items()} if self.among_several else named
            )

    def tables(self) -> ShardTables:
        """Everything, in the order of the cases."""
        return ShardTables(
            scores=tuple(sorted(self.scores, key=_score_order)),
            predictions=tuple(sorted(self.predictions, key=lambda row: (row.case, row.finding))),
            cases=tuple(sorted(self.cases, key=lambda row: row.case)),
            timings=tuple(self.timings),
            shapes=tuple(sorted(self.shapes, key=lambda row: (row.case, row.finding))),
            maps=self.maps,
        )


def named_maps(explained: Explained, findings: Sequence[str]) -> dict[str, Map]:
    """The maps of one case by "case/finding/method", as they are kept."""
    return {
        f"{explained.case.key.case}/{finding}/{method}": for_keeping(values)
        for method in explained.grids
        for column, finding in enumerate(findings)
        if (values := explained.map_of(method, column)) is not None
    }


def _score_order(row: Score) -> tuple[str, ...]:
    return row.case, row.finding, row.method, row.metric, row.condition, row.other_method
