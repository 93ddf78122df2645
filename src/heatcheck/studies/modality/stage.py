"""Maps of the test cases by every method, scored modality by modality; shards are of one fold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from heatcheck.core.records import Case, CaseKey, CaseRecord, Map, Prediction, Score, ShardTables, Timing
from heatcheck.maps.keep import for_keeping
from heatcheck.running.case_stage import CaseStage, Part, score_read_cases
from heatcheck.running.cases import failure, success
from heatcheck.studies.modality.cases import ModalCase, named
from heatcheck.studies.modality.explaining import Answered, MadeMaps, ModalExplainer, ModalMap, on_image
from heatcheck.studies.modality.scores import MapScorer, RemovalCase, RemovalTest, removal_rows
from heatcheck.studies.modality.shapley import CaseSettings, FoldCases


@dataclass(frozen=True)
class Judging:
    """What the maps of a fold are made and scored with."""

    explainer: ModalExplainer
    scorer: MapScorer
    removal: RemovalTest | None
    shared: frozenset[str]  # methods that make one map for all modalities


Keep = Callable[[str, Mapping[str, Map]], None]  # whoever stores maps under a name


class Export(Protocol):
    """Whoever writes finished maps to files of their own."""

    def __call__(self, case: Case, method: str, values: ModalMap) -> None:
        """Write one."""

    def remove(self, case: Case) -> None:
        """Take back what was written of a case."""


@dataclass(frozen=True)
class ModalMapsStage(CaseStage[FoldCases, CaseKey]):
    """Every fold's test cases, explained and scored; those that failed before are recorded, and left alone."""

    tested: Sequence[FoldCases]
    seen: CaseSettings
    judging: Callable[[int], Judging]  # of a fold
    failed: Sequence[CaseRecord] = ()  # in an earlier stage, and be they of another source
    keep: Keep | None = None
    export: Export | None = None
    name: str = ""
    what: str = "maps and scores"

    @property
    def parts(self) -> list[Part[FoldCases, CaseKey]]:
        """The cases of each shard, which is of one fold."""
        return self.seen.parts(self.tested)

    def work(self, shard: int) -> ShardTables:
        """Scores, predictions and timings of one shard's cases."""
        part = self.parts[shard]
        scorer = _ModalScorer(shard, self, self.judging(part.group.fold), [key.case for key in part.cases])
        lost = {record.case for record in self.failed}
        keys = [key for key in part.cases if key.case not in lost]
        rows = score_read_cases(part.group.source, keys, scorer, self.seen.batch_size, self.seen.workers)
        rows.cases += self._failed_of(shard, part.cases)
        return rows.sorted_tables()

    def _failed_of(self, shard: int, keys: Sequence[CaseKey]) -> list[CaseRecord]:
        """The failures of the shard's cases; the first one also tells those of cases that are in no shard."""
        own = {key.case for key in keys}
        if not shard:
            tested = {key.case for each in self.tested for key in each.keys}
            own |= {record.case for record in self.failed} - tested
        return [record for record in self.failed if record.case in own]


@dataclass(frozen=True)
class _ModalScorer:
    """Explains and scores the cases of one shard."""

    shard: int
    stage: ModalMapsStage
    judging: Judging
    names: Sequence[str]  # of the shard's cases

    def failed(self, case: Case, error: Exception) -> CaseRecord:
        """The record of a case that could not be explained or scored."""
        record = failure(case.key, named(error, case.key, self.stage.seen.modalities))
        if self.stage.export is not None:  # an earlier method may have written its map
            self.stage.export.remove(case)
        return record

    def score(self, batch: Sequence[Case]) -> ShardTables:
        """The rows of the cases' maps by every method."""
        modal = [self.stage.seen.case(case) for case in batch]
        answered = self.judging.explainer.answers(batch)
        scores = [row for case in modal for row in self.judging.scorer.floor(case)]
        timings: list[Timing] = []
        maps: dict[str, Map] = {}
        subjects = self._subjects(answered, modal)
        for made in self.judging.explainer.maps(answered):
            timings.append(Timing(self.shard, "map", made.method, len(batch), made.seconds, self._model))
            for place, case in enumerate(modal):
                rows, kept = self._scored(case, place, made)
                scores += rows
                maps |= kept
            if subjects:
                scores += removal_rows(subjects, modal, made, self._model, self.judging.scorer.fold)
        if self.stage.keep is not None:  # at once: a shard of volumes would not fit into memory
            self.stage.keep(f"{self.shard:05d}-{self.names.index(batch[0].key.case):05d}", maps)
        cases = tuple(success(case, annotated=True) for case in batch)
        return ShardTables(tuple(scores), tuple(self._predictions(answered)), cases, tuple(timings))

    @property
    def _model(self) -> str:
        return self.judging.scorer.model

    def _subjects(self, answered: Answered, modal: Sequence[ModalCase]) -> list[RemovalCase]:
        """The cases whose voxels are taken away; none where that is not asked for."""
        test = self.judging.removal
        return [] if test is None else [test.subject(answered, place, case) for place, case in enumerate(modal)]

    def _scored(self, case: ModalCase, place: int, made: MadeMaps) -> tuple[list[Score], Mapping[str, Map]]:
        """The scores of one map, and the map itself where maps are kept."""
        if place in made.missing:
            return self.judging.scorer.missing(case, made.method, made.missing[place]), {}
        classifier = self.judging.explainer.classifier
        values = on_image(classifier, case.case, made.values[place], case.head)
        if self.stage.export is not None:
            self.stage.export(case.case, made.method, values)
        shared = made.method in self.judging.shared
        kept = {f"{case.case.key.case}/{made.method}": for_keeping(values)} if self.stage.keep is not None else {}
        return self.judging.scorer.scores(case, made.method, values, shared=shared), kept

    def _predictions(self, answered: Answered) -> list[Prediction]:
        outputs = self.judging.explainer.classifier.outputs
        rows = zip(answered.cases, answered.logits.tolist(), answered.probabilities.tolist(), strict=True)
        return [
            Prediction(case.key.case, case.key.patient, name, self._model, case.key.labels[name], logit, probability)
            for case, logits, probabilities in rows
            for name, logit, probability in zip(outputs, logits, probabilities, strict=True)
        ]
