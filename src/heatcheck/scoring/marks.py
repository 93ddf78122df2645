"""What a map marks, and the same beside the truth: all that metrics compare."""

from dataclasses import dataclass

import numpy as np

from heatcheck.core.records import Map, Mask, Measured
from heatcheck.metrics.counting import Overlap, overlap
from heatcheck.metrics.grids import require_masks
from heatcheck.metrics.registry import Metric, Needs


@dataclass(frozen=True, slots=True)
class MapMarks:
    """A map, its region and its peaks; each metric compares one of them with the truth."""

    map: Map
    region: Mask
    peaks: Mask
    empty: bool = False  # the map has one value everywhere

    def against(self, truth: Mask | None) -> "MarksAndTruth":
        """These marks with the truth; None means that the finding is absent."""
        if truth is not None:
            require_masks(self.region, truth)
        return MarksAndTruth(self, truth, overlap(self.region, truth))


@dataclass(frozen=True, slots=True)
class MarksAndTruth:
    """Marks with the truth; shared pixels are counted once for all metrics of overlap."""

    marks: MapMarks
    truth: Mask | None
    shared: Overlap

    def measure(self, metric: Metric) -> Measured:
        """The metric's value for these marks."""
        if metric.of_overlap is not None:
            return metric.of_overlap(self.shared)
        marks = self.marks
        values = {Needs.MAP: marks.map, Needs.REGION: marks.region, Needs.POINT: marks.peaks}[metric.needs]
        return metric.measure(values, np.zeros(values.shape, bool) if self.truth is None else self.truth)
