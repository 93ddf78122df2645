"""The two ends of the scale on which maps are put: maps drawn at random, and the readers' own outlines."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from heatcheck.core.contracts import Source
from heatcheck.core.geometry import place
from heatcheck.core.records import HUMAN, Case, CaseRecord, Map, Score, condition
from heatcheck.core.seeds import generator_for
from heatcheck.maps.resize import to_image
from heatcheck.running.cases import read_cases
from heatcheck.scoring.rows import PLAIN, Place, human_rows, score_map
from heatcheck.studies.alignment_images import Images
from heatcheck.studies.alignment_rule import FLOOR, FLOOR_METHOD, HUMAN_ARM
from heatcheck.studies.alignment_scores import Measuring

RANDOM_MAPS = 8  # an image: their mean is its floor
CELLS = 16  # along each axis of a random map, as of the random method


@dataclass(frozen=True)
class Ends:
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
        where = Place(case, finding, FLOOR_METHOD, math.nan)
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
