"""Maps of the test cases by every method, scored modality by modality; a shard belongs to one fold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from heatcheck.core.records import Case, CaseKey, CaseRecord, Map, Prediction, Score, ShardTables, Timing
from heatcheck.maps.keep import half_precision
from heatcheck.methods import METHODS
from heatcheck.metrics.features import small_copy
from heatcheck.running.case_stage import CaseStage, Part, score_read_cases
from heatcheck.running.cases import success
from heatcheck.running.failed_cases import failure
from heatcheck.studies.modality.cases import ModalCase, with_modality
from heatcheck.studies.modality.explaining import BatchAnswers, ModalBatchMaps, ModalExplainer, ModalMap, on_image
from heatcheck.studies.modality.scores import MapScorer, RemovalTest, removal_rows
from heatcheck.studies.modality.shapley import CaseSettings, FoldCases


@dataclass(frozen=True)
class FoldEvaluation:
    """What the maps of a fold are made and scored with."""

    explainer: ModalExplainer
    scorer: MapScorer
    removal: RemovalTest | None
    shared: frozenset[str]  # methods that make one map for all modalities


Keep = Callable[[str, Mapping[str, Map]], None]  # stores maps under a name


class Export(Protocol):
    """Writes finished maps to files of their own."""

    def __call__(self, case: Case, method: str, values: ModalMap) -> None:
        """Write one map."""

    def remove(self, case: Case) -> None:
        """Delete the maps of a case."""


@dataclass(frozen=True)
class ModalMapsStage(CaseStage[FoldCases, CaseKey]):
    """Every fold's test cases, explained and scored; those that failed before are only recorded."""

    tested: Sequence[FoldCases]
    settings: CaseSettings
    evaluation: Callable[[int], FoldEvaluation]  # of a fold
    failed: Sequence[CaseRecord] = ()  # in an earlier stage, also those of another source
    keep: Keep | None = None
    export: Export | None = None
    name: str = ""
    what: str = "maps and scores"

    @property
    def parts(self) -> list[Part[FoldCases, CaseKey]]:
        """The cases of each shard, all of one fold."""
        return self.settings.parts(self.tested)

    def work(self, shard: int) -> ShardTables:
        """Scores, predictions and timings of one shard's cases."""
        part = self.parts[shard]
        scorer = _ModalScorer(shard, self, self.evaluation(part.group.fold), [key.case for key in part.cases])
        failed = {record.case for record in self.failed}
        keys = [key for key in part.cases if key.case not in failed]
        rows = score_read_cases(part.group.source, keys, scorer, self.settings.batch_size, self.settings.workers)
        rows.cases += self._failed_of(shard, part.cases)
        return rows.sorted_tables()

    def _failed_of(self, shard: int, keys: Sequence[CaseKey]) -> list[CaseRecord]:
        """The failures of the shard's cases; the first shard also has those of cases that are in no shard."""
        cases = {key.case for key in keys}
        if not shard:
            tested = {key.case for each in self.tested for key in each.keys}
            cases |= {record.case for record in self.failed} - tested
        return [record for record in self.failed if record.case in cases]


@dataclass(frozen=True)
class _ModalScorer:
    """Explains and scores the cases of one shard."""

    shard: int
    stage: ModalMapsStage
    evaluation: FoldEvaluation
    names: Sequence[str]  # of the shard's cases

    def failed(self, case: Case, error: Exception) -> CaseRecord:
        """The record of a case that could not be explained or scored."""
        record = failure(case.key, with_modality(error, case.key, self.stage.settings.modalities))
        if self.stage.export is not None:  # an earlier method may have written its map
            self.stage.export.remove(case)
        return record

    def score(self, batch: Sequence[Case]) -> ShardTables:
        """The rows of the cases' maps by every method."""
        modal = [self.stage.settings.case(case) for case in batch]
        explainer, scorer = self.evaluation.explainer, self.evaluation.scorer
        answers = explainer.answers(batch)
        scores = [row for case in modal for row in scorer.floors(case)]
        timings: list[Timing] = []
        maps: dict[str, Map] = {}
        small_maps: list[dict[str, ModalMap]] = [{} for _ in modal]
        test = self.evaluation.removal
        removals = [test.case(answers, index, case) for index, case in enumerate(modal)] if test else []
        for batch_maps in explainer.maps(answers):
            timings.append(Timing(self.shard, "map", batch_maps.method, len(batch), batch_maps.seconds, scorer.model))
            for index, case in enumerate(modal):
                rows, kept, small = self._scored(case, index, batch_maps)
                scores += rows
                maps |= kept
                if small is not None and not METHODS[batch_maps.method].is_floor:
                    small_maps[index][batch_maps.method] = small
            if removals:
                scores += removal_rows(removals, modal, batch_maps, scorer.model, scorer.fold)
        scores += [row for case, each in zip(modal, small_maps, strict=True) for row in scorer.features(case, each)]
        if self.stage.keep is not None:  # at once: a shard of volumes would not fit into memory
            self.stage.keep(f"{self.shard:05d}-{self.names.index(batch[0].key.case):05d}", maps)
        cases = tuple(success(case, annotated=True) for case in batch)
        return ShardTables(tuple(scores), tuple(self._predictions(answers)), cases, tuple(timings))

    def _scored(
        self, case: ModalCase, index: int, batch_maps: ModalBatchMaps
    ) -> tuple[list[Score], Mapping[str, Map], ModalMap | None]:
        """The scores of one map, the map itself where maps are kept, and a small copy of it."""
        evaluation = self.evaluation
        if index in batch_maps.missing:
            return evaluation.scorer.missing(case, batch_maps.method, batch_maps.missing[index]), {}, None
        values = on_image(evaluation.explainer.classifier, case.case, batch_maps.maps.of_case(index), case.head)
        if self.stage.export is not None:
            self.stage.export(case.case, batch_maps.method, values)
        shared = batch_maps.method in evaluation.shared
        kept = (
            {f"{case.case.key.case}/{batch_maps.method}": half_precision(values)} if self.stage.keep is not None else {}
        )
        rows = evaluation.scorer.scores(case, batch_maps.method, values, shared=shared)
        small = np.stack([small_copy(channel) for channel in values])
        return rows, kept, np.broadcast_to(small, (len(case.masks), *small.shape[1:]))  # one channel stands for all

    def _predictions(self, answers: BatchAnswers) -> list[Prediction]:
        outputs, model = self.evaluation.explainer.classifier.outputs, self.evaluation.scorer.model
        rows = zip(answers.cases, answers.logits.tolist(), answers.probabilities.tolist(), strict=True)
        return [
            Prediction(case.key.case, case.key.patient, name, model, case.key.labels[name], logit, probability)
            for case, logits, probabilities in rows
            for name, logit, probability in zip(outputs, logits, probabilities, strict=True)
        ]
