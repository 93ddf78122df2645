"""Every test case shown to its network with each subset of its modalities; shards are of one fold.

Each pass leaves one row a case: whether the class was told right. What the modalities are worth is worked out of these
rows afterwards, under any measure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from heatcheck.core.contracts import Source
from heatcheck.core.records import Case, CaseKey, CaseRecord, Score, ShardTables, condition
from heatcheck.running.cases import batches, failure, one_by_one_if_needed, read_cases, readable
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
class Seen:
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

    def parts(self, every: Sequence[FoldCases]) -> list[tuple[FoldCases, Sequence[CaseKey]]]:
        """The cases of each shard, which is of one fold."""
        return [
            (tested, tested.keys[start : start + self.shard_size])
            for tested in every
            for start in range(0, len(tested.keys), self.shard_size)
        ]


@dataclass(frozen=True)
class ShapleyStage:
    """Every fold's test cases with every subset, and the cases on which one modality alone tells the class."""

    networks: FoldNetworks
    tested: Sequence[FoldCases]
    seen: Seen
    shown: Shown
    fills: tuple[str, ...]
    name: str = "shapley"
    what: str = "subsets of the modalities"

    @property
    def shards(self) -> int:
        """As many as the cases are cut into."""
        return len(self.seen.parts(self.tested))

    def cases_in(self, shard: int) -> int:
        """How many cases that part has."""
        return len(self.seen.parts(self.tested)[shard][1])

    def work(self, shard: int) -> ShardTables:
        """Whether the class of each case is told right, subset by subset."""
        tested, keys = self.seen.parts(self.tested)[shard]
        collected = _Collected(self, tested)
        read = read_cases(tested.source, keys, self.seen.workers)
        for batch in batches(readable(read, collected.records), self.seen.batch_size):
            collected.work(batch)
        return collected.tables()

    @classmethod
    def failures(cls, folder: RunFolder) -> list[CaseRecord]:
        """The cases of a run that failed in this stage."""
        table = folder.within(cls.name).read_table("cases")
        failed = table[table["status"] == "failed"]
        return [CaseRecord(*row) for row in failed.itertuples(index=False, name=None)]


@dataclass
class _Collected:
    """The rows of one shard while it is worked on."""

    stage: ShapleyStage
    tested: FoldCases
    scores: list[Score] = field(default_factory=list)
    records: list[CaseRecord] = field(default_factory=list)

    def work(self, cases: Sequence[Case]) -> None:
        """Show a batch; when it fails, find the case that is to blame and keep the others."""
        show = self._known if self.tested.known else self._subsets
        one_by_one_if_needed(cases, show, self._blame)

    def _blame(self, case: Case, error: Exception) -> None:
        self.records.append(failure(case.key, named(error, case.key, self.stage.seen.modalities)))

    def _known(self, cases: Sequence[Case]) -> None:
        classifier = self.stage.networks.classifier(self.tested.fold)
        for case in cases:
            require_channels(case, self.stage.seen.modalities)
        said = told(classifier, classifier.prepare([case.image for case in cases]))
        self._store(cases, {condition(fold=self.tested.fold, known=self.tested.known): said})

    def _subsets(self, cases: Sequence[Case]) -> None:
        stage, seen = self.stage, self.stage.seen
        classifier = stage.networks.classifier(self.tested.fold)
        modal = [seen.case(case) for case in cases]
        views = views_of(modal, classifier.preprocessing, stage.fills, seen.seed, classifier.device)
        rows: dict[str, np.ndarray] = {}
        for ablation in views.ablated:
            said = told_by_coalition(classifier, views, ablation, stage.shown)
            for row, one in zip(stage.shown, said, strict=True):
                rows[self._condition(ablation, shown_name(row, seen.modalities))] = one
        self._store(cases, rows)

    def _condition(self, ablation: Ablation, shown: str) -> str:
        return condition(ablated=ablation.kind, filled=ablation.fill, fold=self.tested.fold, shown=shown)

    def _store(self, cases: Sequence[Case], said: Mapping[str, np.ndarray]) -> None:
        """Under each condition: whether the place of the class that was said is the case's own."""
        outputs, model = self.stage.networks.contract.outputs, self.stage.networks.body.model.key
        for number, case in enumerate(cases):
            key, true = case.key, next(name for name in outputs if case.key.labels[name] == 1)
            for at, places in said.items():
                right = float(outputs[int(places[number])] == true)
                self.scores.append(Score(key.case, key.patient, true, "", model, RIGHT, right, at))
        self.records += [CaseRecord(case.key.case, case.key.patient, "ok") for case in cases]

    def tables(self) -> ShardTables:
        """Everything, in the order of the cases."""
        return ShardTables(
            scores=tuple(sorted(self.scores, key=lambda row: (row.case, row.condition))),
            cases=tuple(sorted(map(self._told_apart, self.records), key=lambda record: record.case)),
        )

    def _told_apart(self, record: CaseRecord) -> CaseRecord:
        """The record; another source's cases may have the names of the tested ones."""
        known = self.tested.known
        return replace(record, case=f"{record.case} (known {known})") if known else record
