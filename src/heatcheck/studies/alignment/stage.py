"""The work of an alignment study: random maps and readers' outlines first, then one network a shard."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from heatcheck.core.contracts import Source
from heatcheck.core.errors import UntrainedError
from heatcheck.core.geometry import place
from heatcheck.core.records import HUMAN, Case, CaseRecord, Map, Score, ShardTables, Timing
from heatcheck.core.seeds import generator_for
from heatcheck.core.vocabulary import condition
from heatcheck.maps.resize import to_image
from heatcheck.models import NetworkClassifier
from heatcheck.running.case_stage import ShardRows, by_finding
from heatcheck.running.cases import read_cases
from heatcheck.scoring.rows import PLAIN, MapTarget, human_rows, score_map
from heatcheck.studies.alignment.cells import AlignmentSettings, NetworkCell, methods_on
from heatcheck.studies.alignment.gallery import map_name
from heatcheck.studies.alignment.images import Images
from heatcheck.studies.alignment.networks import FineTuner
from heatcheck.studies.alignment.scores import Measuring, NetworkEvaluation
from heatcheck.studies.alignment.vocabulary import FLOOR, FLOOR_METHOD, HUMAN_ARM, PLACEBO, RELIANCE

RANDOM_MAPS = 8  # an image: their mean is its floor
CELLS = 16  # along each axis of a random map, as of the random method


@dataclass(frozen=True)
class ScaleAnchors:
    """Scores the two ends on the evaluation images."""

    source: Source
    images: Images
    findings: tuple[str, ...]
    measuring: Measuring
    workers: int

    def scores(self) -> Iterator[Score]:
        """The floor of every outlined finding, and the readers' scores where the source has readers."""
        most = self.measuring.limit
        outlined = {finding: set(self.images.positives(finding)[:most]) for finding in self.findings}
        rows = sorted(set().union(*outlined.values()))
        keys = [self.images.keys[row] for row in rows]
        for row, read in zip(rows, read_cases(self.source, keys, self.workers), strict=True):
            if isinstance(read, CaseRecord):
                continue  # it was read before; what is wrong with it now concerns only these ends
            for finding in self.findings:
                if row in outlined[finding]:
                    yield from self._floor(read, finding)
                    yield from self._human(read, finding)

    def _floor(self, case: Case, finding: str) -> Iterator[Score]:
        generator = generator_for(self.measuring.seed, case.key.case, finding, "floor")
        drawn = [self._scored(case, finding, _random_map(case, generator)) for _ in range(RANDOM_MAPS)]
        for same in zip(*drawn, strict=True):  # the same metric of each map
            value = float(np.mean([score.value for score in same]))
            yield replace(same[0], value=value, condition=condition(arm=FLOOR))

    def _scored(self, case: Case, finding: str, values: Map) -> Sequence[Score]:
        where = MapTarget(case, finding, FLOOR_METHOD, math.nan)
        return score_map(where, values, "", self.measuring.rule).rows

    def _human(self, case: Case, finding: str) -> Iterator[Score]:
        for score in human_rows(case, finding, self.measuring.rule):
            if score.method == HUMAN and score.condition == PLAIN:
                yield replace(score, condition=condition(arm=HUMAN_ARM))


def _random_map(case: Case, generator: np.random.Generator) -> Map:
    """Uniform noise, as coarse as a class activation map, on the image's grid."""
    shape = tuple(case.image.shape[1:])
    grid = (CELLS,) * len(shape)
    noise = torch.from_numpy(generator.random((1, *grid), np.float32))
    drawn: Map = to_image(noise, place(shape, grid, "stretch"))[0]
    return drawn


@dataclass(frozen=True)
class CellsStage:
    """Every network of the grid; a shard is a network, and the first one the ends of the scale."""

    tuner: FineTuner
    cells: Sequence[NetworkCell]
    rule: AlignmentSettings
    measuring: Measuring
    ends: ScaleAnchors
    shown: Mapping[str, frozenset[str]]  # cases of each finding whose maps are kept to be looked at
    name: str = ""
    what: str = "networks"

    @property
    def shards(self) -> int:
        """One more than there are networks."""
        return 1 + len(self.cells)

    def cases_in(self, shard: int) -> int:  # noqa: ARG002 - each is one
        """One network."""
        return 1

    def work(self, shard: int) -> ShardTables:
        """The tables of the ends, or of one network."""
        if shard == 0:
            return self._ends()
        cell = self.cells[shard - 1]
        for finished in self.cells[: shard - 1]:  # their shards are on disk
            self.tuner.forget(finished)
        begun = time.perf_counter()
        try:
            classifier = self.tuner.made(cell)
        except UntrainedError as error:
            self.tuner.discard(cell)
            return self._lost(cell, str(error))
        spent = Timing(shard, "training", cell.method or cell.arm, 1, time.perf_counter() - begun, cell.base)
        return self._measured(shard, cell, classifier, spent)

    def _ends(self) -> ShardTables:
        records = [*self.tuner.finetune.records(), *self.tuner.evaluation.records()]
        return ShardRows(scores=list(self.ends.scores()), cases=records).sorted_tables(by_finding)

    def _measured(self, shard: int, cell: NetworkCell, classifier: NetworkClassifier, spent: Timing) -> ShardTables:
        collected = ShardRows(timings=[spent])
        here = NetworkEvaluation(cell, classifier, self.tuner.evaluation, self.measuring, shard, collected)
        spread = here.predict()
        for finding in cell.findings:
            positives = self.tuner.evaluation.positives(finding)[: self.measuring.limit]
            for method, through in methods_on(cell, self.rule).items():
                kept = self._kept(cell, finding, method)
                here.score_maps(finding, method, positives, cell.condition(through), kept)
            here.probe(finding, positives, spread[finding])
        if cell.arm != "base":
            self._score_learned(replace(here, images=self.tuner.finetune))
        collected.scores.sort(key=by_finding)  # predictions and failures stay in the order of findings and images
        return collected.tables()

    def _score_learned(self, there: NetworkEvaluation) -> None:
        """Scores on images that the network learned from: where even these did not move, the fine-tuning failed."""
        cell = there.cell
        learned = set(self.tuner.parts(cell).learned.tolist())
        for finding in cell.findings:
            positives = [row for row in there.images.positives(finding) if row in learned][: self.measuring.limit]
            for method, through in methods_on(cell, self.rule).items():
                there.score_maps(finding, method, positives, cell.condition(through, learned=True), {})

    def _kept(self, cell: NetworkCell, finding: str, method: str) -> Mapping[str, str]:
        """The cases whose maps are kept, each with the map's name; of the first seed only."""
        if cell.seed > 1 or finding not in self.shown:
            return {}
        return {case: map_name(cell.base, finding, method, cell.arm, case) for case in self.shown[finding]}

    def _lost(self, cell: NetworkCell, reason: str) -> ShardTables:
        """A network that could not be made: said as such, and every score it would have is undefined."""
        images: Images = self.tuner.evaluation
        record = CaseRecord(cell.label, "", "failed", "training", reason)
        metrics = [
            (method, metric, cell.condition(through))
            for method, through in methods_on(cell, self.rule).items()
            for metric in self.measuring.metrics
        ]
        metrics += [(cell.method, metric, cell.condition()) for metric in (RELIANCE, PLACEBO)]
        rows = [
            Score(key.case, key.patient, finding, method, cell.base, metric, math.nan, at, reason=reason)
            for finding in cell.findings
            for key in (images.keys[row] for row in images.positives(finding)[: self.measuring.limit])
            for method, metric, at in metrics
        ]
        return ShardTables(scores=tuple(sorted(rows, key=by_finding)), cases=(record,))
