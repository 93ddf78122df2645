"""Maps of the attacked images and their scores: each shard belongs to one network, or to one kind of artefact."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from heatcheck.core.records import Case, CaseRecord, Map, ShardTables
from heatcheck.explaining.batch import Explainer
from heatcheck.maps.keep import half_precision
from heatcheck.running.case_stage import CaseStage, Part, ShardRows, by_finding, cut, score_batches, timings
from heatcheck.running.cases import batches
from heatcheck.running.failed_cases import failure
from heatcheck.studies.triggers.evaluations import Evaluation
from heatcheck.studies.triggers.scores import AttackedImage, Scorer


@dataclass(frozen=True)
class MapsStage(CaseStage[Evaluation | None, int]):
    """Every evaluation, cut into shards; the first shard only records the cases."""

    evaluations: Sequence[Evaluation]
    records: Callable[[], list[CaseRecord]]
    batch_size: int
    shard_size: int
    keeps_maps: bool
    name: str = ""
    what: str = "maps and scores"

    @property
    def parts(self) -> list[Part[Evaluation | None, int]]:
        """An empty one for the records of the cases, then the images of each evaluation."""
        groups = ((evaluation, evaluation.positions) for evaluation in self.evaluations)
        images: list[Part[Evaluation | None, int]] = cut(groups, self.shard_size)
        return [Part(None, ()), *images]

    def work(self, shard: int) -> ShardTables:
        """Scores and timings of one shard's images."""
        part = self.parts[shard]
        if part.group is None:
            return ShardRows(cases=[*self.records()]).sorted_tables()
        scorer = part.group.scorer()
        rows = ShardRows()
        score_batches(
            batches(part.cases, self.batch_size),
            _BatchScorer(
                shard, part.group, part.group.explainer(), part.group.control(), scorer, keeps_maps=self.keeps_maps
            ),
            rows,
        )
        rows.timings += timings(shard, "metric", scorer.seconds, len({row.case for row in rows.scores}), scorer.model)
        return rows.sorted_tables(by_finding)


@dataclass(frozen=True)
class _BatchScorer:
    """Explains and scores images of one evaluation."""

    shard: int
    evaluation: Evaluation
    explainer: Explainer
    control: Explainer | None  # its maps are neither timed nor kept
    scorer: Scorer
    keeps_maps: bool

    def score(self, batch: Sequence[int]) -> ShardTables:
        """The rows of the images' maps by every method."""
        images = self.evaluation.images(batch)
        maps, seconds = explained_maps(self.explainer, images)
        rows = self.scorer.scores(images, maps)
        if self.control is not None:
            rows += self.scorer.control_scores(images, explained_maps(self.control, images)[0])
        return ShardTables(
            scores=tuple(rows),
            timings=timings(self.shard, "map", seconds, len(batch), self.scorer.model),
            maps=self._named(images, maps) if self.keeps_maps else {},
        )

    def failed(self, case: int, error: Exception) -> CaseRecord:
        """The record of an image that could not be explained or scored."""
        return failure(self.evaluation.key(case), error)

    def _named(self, images: Sequence[AttackedImage], maps: Sequence[Mapping[str, Map]]) -> dict[str, Map]:
        return {
            f"{self.evaluation.label}/{image.key.case}/{method}": half_precision(values)
            for image, by_method in zip(images, maps, strict=True)
            for method, values in by_method.items()
        }


def explained_maps(
    explainer: Explainer, images: Sequence[AttackedImage]
) -> tuple[list[dict[str, Map]], dict[str, float]]:
    """Each image's maps of its class by method, and each method's seconds."""
    maps: list[dict[str, Map]] = [{} for _ in images]
    seconds: dict[str, float] = {}
    for finding in dict.fromkeys(image.finding for image in images):
        indices = [index for index, image in enumerate(images) if image.finding == finding]
        cases = [Case(images[index].key, images[index].image, {}) for index in indices]
        explained, spent = replace(explainer, findings=(finding,))(cases)
        for index, case in zip(indices, explained, strict=True):
            by_method = {name: case.map_of(name, 0) for name in explainer.methods}
            maps[index] = {name: values for name, values in by_method.items() if values is not None}
        seconds = {name: seconds.get(name, 0.0) + more for name, more in spent.items()}
    return maps, seconds
