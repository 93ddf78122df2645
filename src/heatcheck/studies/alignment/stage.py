"""The shards of an alignment study: first the ends of the common scale, then one network each."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from heatcheck.core.contracts import Source
from heatcheck.core.errors import UntrainedError
from heatcheck.core.geometry import place
from heatcheck.core.records import HUMAN, Case, CaseRecord, Image, Map, Score, ShardTables, Timing
from heatcheck.core.seeds import generator_for
from heatcheck.core.vocabulary import condition
from heatcheck.explaining.priors import LocationPriors
from heatcheck.maps.resize import to_image
from heatcheck.methods.floors import CenterPrior, EdgeFloor
from heatcheck.models import NetworkClassifier
from heatcheck.running.case_stage import ShardRows, by_finding
from heatcheck.running.cases import read_cases
from heatcheck.scoring.reader_rows import human_rows
from heatcheck.scoring.rows import PLAIN, MapTarget, score_map
from heatcheck.studies.alignment.gallery import map_name
from heatcheck.studies.alignment.images import Images
from heatcheck.studies.alignment.networks import FineTuner, NetworkCell, methods_on
from heatcheck.studies.alignment.scores import RELIANCES, Measuring, NetworkEvaluation
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import FLOOR, HUMAN_ARM, RANDOM

RANDOM_MAPS = 8  # per image; their mean score is its floor
CELLS = 16  # along each axis of a random map, as in the random method


@dataclass(frozen=True)
class ScaleAnchors:
    """Scores floors and readers' marks, the ends of the common scale, on the evaluation images."""

    source: Source
    images: Images
    findings: tuple[str, ...]
    measuring: Measuring
    workers: int
    priors: LocationPriors  # of the fine-tuning images

    def scores(self) -> Iterator[Score]:
        """The floors of every outlined finding, and the readers' scores where the source has readers."""
        most = self.measuring.limit
        outlined = {name: set(self.images.of_patients(self.images.positives(name), most)) for name in self.findings}
        rows = sorted(set().union(*outlined.values()))
        keys = [self.images.keys[row] for row in rows]
        for row, read in zip(rows, read_cases(self.source, keys, self.workers), strict=True):
            if isinstance(read, CaseRecord):
                continue  # it could be read before, so networks have scores on it; only these ends lack it
            for finding in self.findings:
                if row in outlined[finding]:
                    yield from self._floor(read, finding)
                    yield from self._human(read, finding)

    def _floor(self, case: Case, finding: str) -> Iterator[Score]:
        for floor, maps in self._floor_maps(case, finding).items():
            target = MapTarget(case, finding, floor, math.nan)
            drawn = [score_map(target, values, "", self.measuring.rule).rows for values in maps]
            for scores in zip(*drawn, strict=True):  # one metric, all maps
                value = float(np.mean([score.value for score in scores]))
                yield replace(scores[0], value=value, condition=condition(arm=FLOOR))

    def _floor_maps(self, case: Case, finding: str) -> dict[str, list[Map]]:
        """The maps of every floor; several random ones, whose scores are averaged."""
        generator = generator_for(self.measuring.seed, case.key.case, finding, "floor")
        noise = [generator.random((CELLS,) * (case.image.ndim - 1), np.float32) for _ in range(RANDOM_MAPS)]
        grids = {RANDOM: noise, **image_floors(case.image), **self._usual_place(case, finding)}
        return {floor: [on_image(grid, case) for grid in each] for floor, each in grids.items()}

    def _usual_place(self, case: Case, finding: str) -> dict[str, list[Map]]:
        """Where the finding lies in the patients of the fine-tuning images, who are others."""
        prior = self.priors.for_patient(case.key.patient)[self.findings.index(finding)]
        return {} if prior is None else {"location_prior": [prior.astype(np.float32)]}

    def _human(self, case: Case, finding: str) -> Iterator[Score]:
        for score in human_rows(case, finding, self.measuring.rule):
            if score.method == HUMAN and score.condition == PLAIN:
                yield replace(score, condition=condition(arm=HUMAN_ARM))


def image_floors(image: Image) -> dict[str, list[Map]]:
    """The maps of the floors that need no more than the image."""
    pixels = torch.from_numpy(np.ascontiguousarray(image, np.float32))[None]
    target = torch.zeros(1, 1, dtype=torch.long)
    made = {"center_prior": CenterPrior().of(pixels, target), "edge": EdgeFloor().of(pixels, target)}
    return {name: [maps.values[0, 0, 0].numpy()] for name, maps in made.items()}


def on_image(grid: Map, case: Case) -> Map:
    """A map on the image's grid."""
    shape = tuple(case.image.shape[1:])
    resized: Map = to_image(torch.from_numpy(grid)[None], place(shape, grid.shape, "stretch"))[0]
    return resized


@dataclass(frozen=True)
class CellsStage:
    """One shard for the ends of the common scale, then one for each network."""

    tuner: FineTuner
    cells: Sequence[NetworkCell]
    rule: AlignmentSettings
    measuring: Measuring
    ends: ScaleAnchors
    shown: Mapping[str, frozenset[str]]  # cases of each finding whose maps are kept
    name: str = ""
    what: str = "networks"

    @property
    def shards(self) -> int:
        """The number of networks and one."""
        return 1 + len(self.cells)

    def cases_in(self, shard: int) -> int:  # noqa: ARG002 - the same for all
        """One network per shard."""
        return 1

    def work(self, shard: int) -> ShardTables:
        """The tables of one shard."""
        if shard == 0:
            return self._ends()
        cell = self.cells[shard - 1]
        for finished in self.cells[: shard - 1]:  # their shards are on disk
            self.tuner.forget(finished)
        begun = time.perf_counter()
        try:
            classifier = self.tuner.network(cell)
        except UntrainedError as error:
            self.tuner.discard(cell)
            return self._failed(cell, str(error))
        timing = Timing(shard, "training", cell.method or cell.arm, 1, time.perf_counter() - begun, cell.base)
        return self._measured(cell, classifier, timing)

    def _ends(self) -> ShardTables:
        records = [*self.tuner.finetune.records(), *self.tuner.evaluation.records()]
        return ShardRows(scores=list(self.ends.scores()), cases=records).sorted_tables(by_finding)

    def _measured(self, cell: NetworkCell, classifier: NetworkClassifier, timing: Timing) -> ShardTables:
        rows = ShardRows(timings=[timing])
        evaluation = NetworkEvaluation(cell, classifier, self.tuner.evaluation, self.measuring, timing.shard, rows)
        spread = evaluation.predict()
        for finding in cell.findings:
            images = self.tuner.evaluation
            positives = images.of_patients(images.positives(finding), self.measuring.limit)
            for method, through in methods_on(cell, self.rule).items():
                kept = self._kept_maps(cell, finding, method)
                evaluation.score_maps(finding, method, positives, cell.condition(through), kept)
            evaluation.probe(finding, positives, spread[finding])
            if cell.arm == "base":
                evaluation.probe_untrained(finding, positives, self.tuner.untrained(cell.base))
        if cell.arm != "base":
            self._score_learned(replace(evaluation, images=self.tuner.finetune))
        rows.scores.sort(key=by_finding)  # predictions and failures stay in the order of findings and images
        return rows.tables()

    def _score_learned(self, evaluation: NetworkEvaluation) -> None:
        """Add scores on images that the network learned from: if not even these changed, the fine-tuning failed."""
        cell = evaluation.cell
        learned = set(self.tuner.parts(cell).learned.tolist())
        for finding in cell.findings:
            positives = [row for row in evaluation.images.positives(finding) if row in learned]
            positives = evaluation.images.of_patients(positives, self.measuring.limit)
            for method, through in methods_on(cell, self.rule).items():
                evaluation.score_maps(finding, method, positives, cell.condition(through, learned=True), {})

    def _kept_maps(self, cell: NetworkCell, finding: str, method: str) -> Mapping[str, str]:
        """The names under which maps are kept, by case; of the first seed only."""
        if cell.seed > 1 or finding not in self.shown:
            return {}
        return {case: map_name(cell.base, finding, method, cell.arm, case) for case in self.shown[finding]}

    def _failed(self, cell: NetworkCell, reason: str) -> ShardTables:
        """A failed network as a case of its own, and every score that it would have as undefined."""
        images: Images = self.tuner.evaluation
        record = CaseRecord(cell.label, "", "failed", "training", reason)
        metrics = [
            (method, metric, cell.condition(through))
            for method, through in methods_on(cell, self.rule).items()
            for metric in self.measuring.metrics
        ]
        metrics += [(cell.method, metric, cell.condition()) for metric in RELIANCES]
        rows = []
        for finding in cell.findings:
            for row in images.of_patients(images.positives(finding), self.measuring.limit):
                key = images.keys[row]
                rows += [
                    Score(key.case, key.patient, finding, method, cell.base, metric, math.nan, under, reason=reason)
                    for method, metric, under in metrics
                ]
        return ShardTables(scores=tuple(sorted(rows, key=by_finding)), cases=(record,))
