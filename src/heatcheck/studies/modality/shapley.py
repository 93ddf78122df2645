"""Every test case shown to its network with each subset of its modalities; shards are of one fold.

Each pass leaves one row a case: whether the class was told right. What the modalities are worth is worked out of these
rows afterwards, under any measure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heatcheck.core.contracts import Source
from heatcheck.core.records import Case, CaseKey, CaseRecord, Score, ShardTables
from heatcheck.core.vocabulary import condition
from heatcheck.running.case_stage import CaseStage, Part, cut, score_read_cases
from heatcheck.running.cases import failure
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality.cases import (
    Ablation,
    MaskRule,
    ModalCase,
    Shown,
    modal_case,
    named,
    require_channels,
    told,
    told_by_coalition,
    views_of,
)
from heatcheck.studies.modality.networks import FoldNetworks
from heatcheck.studies.modality.vocabulary import RIGHT, shown_name


@dataclass(frozen=True)
class FoldCases:
    """The cases that the network of a fold is tested on; `known` is the modality that alone tells their class."""

    fold: int
    source: Source
    keys: Sequence[CaseKey]
    known: str = ""


@dataclass(frozen=True)
class CaseSettings:
    """How cases are seen: their modalities, which masks count, and how many are read and worked on at a time."""

    modalities: tuple[str, ...]
    classes: tuple[str, ...]
    masks: MaskRule
    batch_size: int
    shard_size: int
    workers: int
    seed: int

    def case(self, case: Case) -> ModalCase:
        """The case with its masks."""
        return modal_case(case, self.modalities, self.masks)

    def parts(self, every: Sequence[FoldCases]) -> list[Part[FoldCases, CaseKey]]:
        """The cases of each shard, which is of one fold."""
        return cut(((tested, tested.keys) for tested in every), self.shard_size)


@dataclass(frozen=True)
class ShapleyStage(CaseStage[FoldCases, CaseKey]):
    """Every fold's test cases with every subset, and the cases on which one modality alone tells the class."""

    networks: FoldNetworks
    tested: Sequence[FoldCases]
    seen: CaseSettings
    shown: Shown
    fills: tuple[str, ...]
    name: str = "shapley"
    what: str = "subsets of the modalities"

    @property
    def parts(self) -> list[Part[FoldCases, CaseKey]]:
        """The cases of each shard, which is of one fold."""
        return self.seen.parts(self.tested)

    def work(self, shard: int) -> ShardTables:
        """Whether the network names the class of each case correctly, subset by subset."""
        part = self.parts[shard]
        scorer = _SubsetScorer(self, part.group)
        rows = score_read_cases(part.group.source, part.cases, scorer, self.seen.batch_size, self.seen.workers)
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
        """Whether the class of each case was named, under every condition."""
        said = self._known(batch) if self.tested.known else self._subsets(batch)
        records = tuple(CaseRecord(case.key.case, case.key.patient, "ok") for case in batch)
        return ShardTables(scores=tuple(self._scores(batch, said)), cases=records)

    def failed(self, case: Case, error: Exception) -> CaseRecord:
        """The record of a case that could not be shown."""
        return failure(case.key, named(error, case.key, self.stage.seen.modalities))

    def _known(self, cases: Sequence[Case]) -> dict[str, np.ndarray]:
        classifier = self.stage.networks.classifier(self.tested.fold)
        for case in cases:
            require_channels(case, self.stage.seen.modalities)
        said = told(classifier, classifier.prepare([case.image for case in cases]))
        return {condition(fold=self.tested.fold, known=self.tested.known): said}

    def _subsets(self, cases: Sequence[Case]) -> dict[str, np.ndarray]:
        stage, seen = self.stage, self.stage.seen
        classifier = stage.networks.classifier(self.tested.fold)
        modal = [seen.case(case) for case in cases]
        views = views_of(modal, classifier.preprocessing, stage.fills, seen.seed, classifier.device)
        rows: dict[str, np.ndarray] = {}
        for ablation in views.ablated:
            said = told_by_coalition(classifier, views, ablation, stage.shown)
            for row, one in zip(stage.shown, said, strict=True):
                rows[self._condition(ablation, shown_name(row, seen.modalities))] = one
        return rows

    def _condition(self, ablation: Ablation, shown: str) -> str:
        return condition(ablated=ablation.kind, filled=ablation.fill, fold=self.tested.fold, shown=shown)

    def _scores(self, cases: Sequence[Case], said: Mapping[str, np.ndarray]) -> list[Score]:
        """Whether the class that was said under each condition is the case's."""
        outputs, model = self.stage.networks.contract.outputs, self.stage.networks.body.model.key
        rows: list[Score] = []
        for number, case in enumerate(cases):
            key, true = case.key, next(name for name in outputs if case.key.labels[name] == 1)
            for at, places in said.items():
                right = float(outputs[int(places[number])] == true)
                rows.append(Score(key.case, key.patient, true, "", model, RIGHT, right, at))
        return rows


def _renamed(record: CaseRecord, known: str) -> CaseRecord:
    """The record with the modality in its name: a known source's cases may be called like the tested ones."""
    return replace(record, case=f"{record.case} (known {known})") if known else record
