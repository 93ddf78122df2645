"""One split of a localization study, shard by shard: every model's maps, scored case by case."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from heatcheck.core.findings import known
from heatcheck.core.records import Case, CaseKey, CaseRecord, Map, Prediction, ShardTables
from heatcheck.explaining.batch import Explained
from heatcheck.explaining.ensemble import EnsembleExplainer
from heatcheck.explaining.kept_maps import KeptMaps
from heatcheck.explaining.study_models import CaseExplainer, Split
from heatcheck.maps.keep import half_precision
from heatcheck.running.case_stage import CaseStage, Part, cut, score_read_cases, timings
from heatcheck.running.cases import success
from heatcheck.running.failed_cases import failure
from heatcheck.runs.spec import Envelope
from heatcheck.scoring.rows import ScoringRule
from heatcheck.scoring.shapes import shapes_of
from heatcheck.studies.localization.answers.views import OtherViews
from heatcheck.studies.localization.scores import score_case

TOGETHER = 16  # cases that an ensemble explains in one call: their images and maps are in memory at the same time


@dataclass(frozen=True)
class ScoringStage(CaseStage[str, CaseKey]):
    """The cases of a split under each model in turn; a shard belongs to one model."""

    name: str  # of the folder that holds its tables; empty for the run's own
    what: str
    split: Split
    rules: Mapping[str, ScoringRule]  # by model, in their order
    explainer: Callable[[str], CaseExplainer]  # of the model of that name
    envelope: Envelope
    workers: int
    to_show: Mapping[str, KeptMaps] = field(default_factory=dict)  # by model: where maps are kept for the gallery
    views: OtherViews | None = None  # where those of one examination give one answer

    @property
    def parts(self) -> list[Part[str, CaseKey]]:
        """The cases of each shard, all of them for each model in turn."""
        return cut(((model, self.split.keys) for model in self.rules), self.envelope.shard_size)

    def work(self, shard: int) -> ShardTables:
        """Scores, predictions and timings of one shard's cases under its model."""
        return self.work_on(shard, self.parts[shard].cases)

    def work_on(self, shard: int, cases: Sequence[CaseKey]) -> ShardTables:
        """The same of some of the shard's cases."""
        part = self.parts[shard]
        explainer = self.explainer(part.group)
        scorer = _ModelScorer(
            shard,
            part.group,
            explainer,
            self.rules[part.group],
            keeps_maps=self.envelope.keep_maps == "all" and not self.name,
            first=part.group == next(iter(self.rules)),
            among_several=len(self.rules) > 1,
            to_show=self.to_show.get(part.group),
            views=replace(self.views, said={}) if self.views else None,  # a shard belongs to one model
        )
        size = cases_per_call(explainer, self.envelope.batch_size)
        rows = score_read_cases(self.split.source, cases, scorer, size, self.workers)
        return rows.sorted_tables()


def cases_per_call(explainer: CaseExplainer, batch_size: int) -> int:
    """How many cases are explained together: a batch, or several by an ensemble, which reads its members each time."""
    return batch_size * max(1, TOGETHER // batch_size) if isinstance(explainer, EnsembleExplainer) else batch_size


@dataclass(frozen=True)
class _ModelScorer:
    """Explains and scores the cases of one shard under its model."""

    shard: int
    model: str
    explainer: CaseExplainer
    rule: ScoringRule
    keeps_maps: bool
    first: bool  # of the models: readers and shapes are recorded with it
    among_several: bool
    to_show: KeptMaps | None
    views: OtherViews | None

    def score(self, batch: Sequence[Case]) -> ShardTables:
        """The rows of the cases' maps by every method."""
        explained, seconds = self.explainer(batch)
        findings = self.explainer.findings
        if self.to_show is not None:
            for each in explained:
                truth = each.case.truth
                self.to_show.keep(each, [column for column, name in enumerate(findings) if name in truth])
        rule = self.rule if self.first else replace(self.rule, readers=False)
        called = self.views.joined(explained, self.explainer) if self.views else explained
        scores = [row for each in called for row in score_case(each, findings, self.model, rule)]
        return ShardTables(
            scores=tuple(scores),
            predictions=tuple(row for each in explained for row in self._predictions(each)),
            cases=tuple(success(case, annotated=bool(case.truth)) for case in batch),
            timings=timings(self.shard, "map", seconds, len(explained) * len(findings), self.model),
            shapes=tuple(
                shape for case in batch if self.first for shape in shapes_of(case) if shape.finding in findings
            ),
            maps=dict(self._named(explained)) if self.keeps_maps else {},
        )

    def failed(self, case: Case, error: Exception) -> CaseRecord:
        """The record of a case that could not be explained or scored; it names the model where there are several."""
        record = failure(case.key, error)
        return replace(record, reason=f"model {self.model}: {record.reason}") if self.among_several else record

    def _predictions(self, explained: Explained) -> Iterator[Prediction]:
        key = explained.case.key
        columns = self.explainer.findings, explained.logits, explained.probabilities
        for finding, logit, probability in zip(*columns, strict=True):
            label = known(key.labels.get(finding, float("nan")))
            yield Prediction(key.case, key.patient, finding, self.model, label, logit, probability)

    def _named(self, explained: Iterable[Explained]) -> Iterator[tuple[str, Map]]:
        """The maps to keep, by "case/finding/method", or by "model/case/finding/method" with several models."""
        start = f"{self.model}/" if self.among_several else ""
        for each in explained:
            for method in each.grids:
                for column, finding in enumerate(self.explainer.findings):
                    values = each.map_of(method, column)
                    if values is not None:
                        yield f"{start}{each.case.key.case}/{finding}/{method}", half_precision(values)
