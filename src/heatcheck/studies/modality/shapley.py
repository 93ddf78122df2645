"""Every test case shown to its network with each subset of its modalities; a shard belongs to one fold.

Each pass gives one row per case: whether the predicted class is correct. The importances are computed from these rows
afterwards, by any measure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heatcheck.core.contracts import Source
from heatcheck.core.records import Case, CaseKey, CaseRecord, Score, ShardTables
from heatcheck.core.vocabulary import condition
from heatcheck.running.case_stage import CaseStage, Part, cut, score_read_cases
from heatcheck.running.failed_cases import failure
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality.cases import (
    MaskRule,
    ModalCase,
    Subsets,
    modal_case,
    predicted_by_subset,
    predicted_classes,
    require_channels,
    views_of,
    with_modality,
)
from heatcheck.studies.modality.networks import FoldNetworks
from heatcheck.studies.modality.vocabulary import RIGHT, Fill, shown_name


@dataclass(frozen=True)
class FoldCases:
    """The cases that the network of a fold is tested on; `known` is the only informative modality, if there is one."""

    fold: int
    source: Source
    keys: Sequence[CaseKey]
    known: str = ""


@dataclass(frozen=True)
class CaseSettings:
    """How cases are read: their modalities and masks, and the sizes of batches and shards."""

    modalities: tuple[str, ...]
    masks: MaskRule
    batch_size: int
    shard_size: int
    workers: int
    seed: int

    def case(self, case: Case) -> ModalCase:
        """The case with its masks."""
        return modal_case(case, self.modalities, self.masks)

    def parts(self, every: Sequence[FoldCases]) -> list[Part[FoldCases, CaseKey]]:
        """The cases of each shard, all of one fold."""
        return cut(((tested, tested.keys) for tested in every), self.shard_size)


@dataclass(frozen=True)
class ShapleyStage(CaseStage[FoldCases, CaseKey]):
    """Every fold's test cases with every subset, and the cases in which only one modality is informative."""

    networks: FoldNetworks
    tested: Sequence[FoldCases]
    settings: CaseSettings
    subsets: Subsets
    fills: tuple[Fill, ...]
    name: str = "shapley"
    what: str = "subsets of the modalities"

    @property
    def parts(self) -> list[Part[FoldCases, CaseKey]]:
        """The cases of each shard, all of one fold."""
        return self.settings.parts(self.tested)

    def work(self, shard: int) -> ShardTables:
        """Whether the predicted class of each case is correct, subset by subset."""
        part = self.parts[shard]
        scorer = _SubsetScorer(self, part.group)
        rows = score_read_cases(part.group.source, part.cases, scorer, self.settings.batch_size, self.settings.workers)
        rows.cases = [_renamed(record, part.group.known) for record in rows.cases]
        return rows.sorted_tables()

    @classmethod
    def failures(cls, folder: RunFolder) -> list[CaseRecord]:
        """The cases of a run that failed in this stage."""
        table = folder.within(cls.name).read_table("cases")
        failed = table[table["status"] == "failed"]
        return [CaseRecord(*row) for row in failed.itertuples(index=False, name=None)]


@dataclass(frozen=True)
class _SubsetScorer:
    """Shows the cases of one fold to its network."""

    stage: ShapleyStage
    tested: FoldCases

    def score(self, batch: Sequence[Case]) -> ShardTables:
        """Whether the predicted class of each case is correct, under every condition."""
        predicted = self._known(batch) if self.tested.known else self._subsets(batch)
        records = tuple(CaseRecord(case.key.case, case.key.patient, "ok") for case in batch)
        return ShardTables(scores=tuple(self._scores(batch, predicted)), cases=records)

    def failed(self, case: Case, error: Exception) -> CaseRecord:
        """The record of a case that could not be shown."""
        return failure(case.key, with_modality(error, case.key, self.stage.settings.modalities))

    def _known(self, cases: Sequence[Case]) -> dict[str, np.ndarray]:
        classifier = self.stage.networks.classifier(self.tested.fold)
        for case in cases:
            require_channels(case, self.stage.settings.modalities)
        predicted = predicted_classes(classifier, classifier.prepare([case.image for case in cases]))
        return {condition(fold=self.tested.fold, known=self.tested.known): predicted}

    def _subsets(self, cases: Sequence[Case]) -> dict[str, np.ndarray]:
        stage, settings, fold = self.stage, self.stage.settings, self.tested.fold
        classifier = stage.networks.classifier(fold)
        modal = [settings.case(case) for case in cases]
        views = views_of(modal, classifier.preprocessing, stage.fills, settings.seed, classifier.device)
        predicted: dict[str, np.ndarray] = {}
        for ablation in views.ablated:
            by_subset = predicted_by_subset(classifier, views, ablation, stage.subsets)
            for subset, classes in zip(stage.subsets, by_subset, strict=True):
                shown = shown_name(subset, settings.modalities)
                predicted[condition(ablated=ablation.kind, filled=ablation.fill, fold=fold, shown=shown)] = classes
        return predicted

    def _scores(self, cases: Sequence[Case], predicted: Mapping[str, np.ndarray]) -> list[Score]:
        """Whether the class predicted under each condition is the case's."""
        outputs, model = self.stage.networks.contract.outputs, self.stage.networks.body.model.key
        rows: list[Score] = []
        for number, case in enumerate(cases):
            key, true = case.key, next(name for name in outputs if case.key.labels[name] == 1)
            for text, classes in predicted.items():
                right = float(outputs[int(classes[number])] == true)
                rows.append(Score(key.case, key.patient, true, "", model, RIGHT, right, text))
        return rows


def _renamed(record: CaseRecord, known: str) -> CaseRecord:
    """The record with the modality in its name: a known source's cases may have the names of tested ones."""
    return replace(record, case=f"{record.case} (known {known})") if known else record
