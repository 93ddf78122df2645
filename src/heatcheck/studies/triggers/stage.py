"""Maps of the attacked images and their scores, shard by shard: a shard is of one network, or of real artefacts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from heatcheck.core.records import Case, CaseKey, CaseRecord, Map, ShardTables, Timing
from heatcheck.explaining.batch import Explainer
from heatcheck.maps.keep import for_keeping
from heatcheck.running.case_stage import CaseStage, Part, ShardRows, by_finding, cut, score_batches, timings
from heatcheck.running.cases import batches, failure
from heatcheck.studies.triggers.scores import AttackedImage, Scorer


class Exam(Protocol):
    """One network with the images on which the methods are graded."""

    @property
    def label(self) -> str:
        """What its maps are called where they are kept."""

    @property
    def places(self) -> Sequence[int]:
        """Which images, as the exam counts them."""

    def explainer(self) -> Explainer:
        """The network with the methods."""

    def scorer(self) -> Scorer:
        """Who scores the maps."""

    def key(self, place: int) -> CaseKey:
        """Which case it is."""

    def subjects(self, places: Sequence[int]) -> list[AttackedImage]:
        """The images with what was planted in them; raises CaseError where one cannot be used."""


@dataclass(frozen=True)
class MapsStage(CaseStage[Exam | None, int]):
    """Every exam, cut into shards; the first shard only tells what became of the cases."""

    exams: Sequence[Exam]
    records: Callable[[], list[CaseRecord]]
    batch_size: int
    shard_size: int
    keeps_maps: bool
    name: str = ""
    what: str = "maps and scores"

    @property
    def parts(self) -> list[Part[Exam | None, int]]:
        """An empty one for the records of the cases, then the images of each exam."""
        exams: list[Part[Exam | None, int]] = cut(((exam, exam.places) for exam in self.exams), self.shard_size)
        return [Part(None, ()), *exams]

    def work(self, shard: int) -> ShardTables:
        """Scores and timings of one shard's images."""
        part = self.parts[shard]
        if part.group is None:
            return ShardRows(cases=[*self.records()]).sorted_tables()
        scorer = _ExamScorer(shard, part.group, part.group.explainer(), part.group.scorer(), self.keeps_maps)
        rows = ShardRows()
        score_batches(batches(part.cases, self.batch_size), scorer, rows)
        rows.timings += scorer.metric_timings(len({row.case for row in rows.scores}))
        return rows.sorted_tables(by_finding)


@dataclass(frozen=True)
class _ExamScorer:
    """Explains and scores the images of one exam."""

    shard: int
    exam: Exam
    explainer: Explainer
    scorer: Scorer
    keeps_maps: bool

    def score(self, batch: Sequence[int]) -> ShardTables:
        """The rows of the images' maps by every method."""
        subjects = self.exam.subjects(batch)
        maps, seconds = explained_maps(self.explainer, subjects)
        return ShardTables(
            scores=tuple(self.scorer.scores(subjects, maps)),
            timings=timings(self.shard, "map", seconds, len(batch), self.scorer.model),
            maps=self._named(subjects, maps) if self.keeps_maps else {},
        )

    def failed(self, case: int, error: Exception) -> CaseRecord:
        """The record of an image that could not be explained or scored."""
        return failure(self.exam.key(case), error)

    def _named(self, subjects: Sequence[AttackedImage], maps: Sequence[Mapping[str, Map]]) -> dict[str, Map]:
        return {
            f"{self.exam.label}/{subject.key.case}/{method}": for_keeping(values)
            for subject, by_method in zip(subjects, maps, strict=True)
            for method, values in by_method.items()
        }

    def metric_timings(self, images: int) -> tuple[Timing, ...]:
        """How long each metric took for so many images."""
        return timings(self.shard, "metric", self.scorer.seconds, images, self.scorer.model)


def explained_maps(
    explainer: Explainer, subjects: Sequence[AttackedImage]
) -> tuple[list[dict[str, Map]], dict[str, float]]:
    """Each subject's maps of the class it is asked about, by method, and each method's seconds."""
    maps: list[dict[str, Map]] = [{} for _ in subjects]
    seconds: dict[str, float] = {}
    for finding in dict.fromkeys(subject.finding for subject in subjects):
        places = [place for place, subject in enumerate(subjects) if subject.finding == finding]
        cases = [Case(subjects[place].key, subjects[place].image, {}) for place in places]
        explained, spent = replace(explainer, findings=(finding,))(cases)
        for place, one in zip(places, explained, strict=True):
            found = {name: one.map_of(name, 0) for name in explainer.methods}
            maps[place] = {name: values for name, values in found.items() if values is not None}
        seconds = {name: seconds.get(name, 0.0) + more for name, more in spent.items()}
    return maps, seconds
