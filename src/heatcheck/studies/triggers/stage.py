"""Maps of the attacked images and their scores, shard by shard: a shard is of one network, or of real artefacts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from heatcheck.core.records import Case, CaseKey, CaseRecord, Map, Score, ShardTables, Timing
from heatcheck.explaining.batch import Explainer
from heatcheck.maps.keep import for_keeping
from heatcheck.running.cases import failure, one_by_one_if_needed
from heatcheck.studies.triggers.scores import Scorer, Subject


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

    def subjects(self, places: Sequence[int]) -> list[Subject]:
        """The images with what was planted in them; raises CaseError where one cannot be used."""


@dataclass(frozen=True)
class MapsStage:
    """Every exam, cut into shards; the first shard only tells what became of the cases."""

    exams: Sequence[Exam]
    records: Callable[[], list[CaseRecord]]
    batch_size: int
    shard_size: int
    keeps_maps: bool
    name: str = ""
    what: str = "maps and scores"

    @property
    def shards(self) -> int:
        """One for the cases, then as many for each exam as its images are cut into."""
        return 1 + len(self._parts())

    def _parts(self) -> list[tuple[int, slice]]:
        """The exam and the images of each shard but the first."""
        return [
            (number, slice(start, start + self.shard_size))
            for number, exam in enumerate(self.exams)
            for start in range(0, len(exam.places), self.shard_size)
        ]

    def cases_in(self, shard: int) -> int:
        """How many images are explained in that shard."""
        if shard == 0:
            return 0
        number, part = self._parts()[shard - 1]
        return len(self.exams[number].places[part])

    def work(self, shard: int) -> ShardTables:
        """Scores and timings of one shard's images."""
        if shard == 0:
            return ShardTables(cases=tuple(sorted(self.records(), key=lambda record: record.case)))
        number, part = self._parts()[shard - 1]
        exam = self.exams[number]
        collected = _Collected(shard, exam, exam.explainer(), exam.scorer(), self.keeps_maps)
        places = list(exam.places[part])
        for start in range(0, len(places), self.batch_size):
            collected.explain(places[start : start + self.batch_size])
        return collected.tables()


@dataclass
class _Collected:
    """The rows of one shard while it is worked on."""

    shard: int
    exam: Exam
    explainer: Explainer
    scorer: Scorer
    keeps_maps: bool
    scores: list[Score] = field(default_factory=list)
    failed: list[CaseRecord] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    maps: dict[str, Map] = field(default_factory=dict)

    def explain(self, places: Sequence[int]) -> None:
        """Explain and score a batch; when it fails, find the image that is to blame and keep the others."""
        one_by_one_if_needed(places, self._explain, self._blame)

    def _blame(self, place: int, error: Exception) -> None:
        self.failed.append(failure(self.exam.key(place), error))

    def _explain(self, places: Sequence[int]) -> None:
        subjects = self.exam.subjects(places)
        maps, seconds = explained_maps(self.explainer, subjects)
        self.scores += self.scorer.scores(subjects, maps)
        self.timings += [self._timing("map", name, len(places), spent) for name, spent in seconds.items()]
        if self.keeps_maps:
            for subject, own in zip(subjects, maps, strict=True):
                self.maps |= {
                    f"{self.exam.label}/{subject.key.case}/{name}": for_keeping(one) for name, one in own.items()
                }

    def _timing(self, step: str, name: str, n: int, seconds: float) -> Timing:
        return Timing(self.shard, step, name, n, seconds, self.scorer.model)

    def tables(self) -> ShardTables:
        """Everything, in the order of the cases."""
        done = len({row.case for row in self.scores})
        metric = [self._timing("metric", name, done, spent) for name, spent in self.scorer.seconds.items()]
        return ShardTables(
            scores=tuple(sorted(self.scores, key=_score_order)),
            cases=tuple(sorted(self.failed, key=lambda record: record.case)),
            timings=(*self.timings, *metric),
            maps=self.maps,
        )


def explained_maps(explainer: Explainer, subjects: Sequence[Subject]) -> tuple[list[dict[str, Map]], dict[str, float]]:
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


def _score_order(row: Score) -> tuple[str, ...]:
    return row.finding, row.case, row.method, row.metric, row.condition, row.other_method
