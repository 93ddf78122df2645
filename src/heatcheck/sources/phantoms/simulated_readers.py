"""Simulated readers: inaccurate contours, sometimes missing, and one representative point per finding."""

from dataclasses import dataclass

import cv2
import numpy as np

from heatcheck.core.records import Mask, Point, Reading
from heatcheck.core.seeds import generator_for


@dataclass(frozen=True, slots=True)
class ReaderHabits:
    """How inaccurate one reader's marks are; lengths as a share of the image height."""

    name: str
    displacement: float
    scaling: float  # standard deviation of the log of the size
    bias: float  # mean of the log of the size: some readers draw generously
    misses: float  # share of findings left unmarked


READERS = (
    ReaderHabits("reader 1", displacement=0.010, scaling=0.08, bias=0.08, misses=0.05),
    ReaderHabits("reader 2", displacement=0.016, scaling=0.12, bias=-0.04, misses=0.09),
)


def read_case(truth: dict[str, Mask], habits: ReaderHabits, seed: int, case: str) -> Reading:
    """The reader's marks on the case."""
    masks: dict[str, Mask] = {}
    points: dict[str, tuple[Point, ...]] = {}
    for finding, mask in truth.items():
        generator = generator_for(seed, case, finding, habits.name)
        missed = generator.random() < habits.misses
        drawn = _redraw(mask, habits, generator)
        if missed or not drawn.any():
            continue
        masks[finding] = drawn
        points[finding] = (_representative(mask, habits, generator),)
    return Reading(habits.name, masks, points)


def _redraw(mask: Mask, habits: ReaderHabits, generator: np.random.Generator) -> Mask:
    """The mask with each instance shifted, resized and bent at random."""
    height, width = mask.shape
    count, labels = cv2.connectedComponents(mask.astype(np.uint8))
    spread = habits.displacement * height
    bend = [
        cv2.resize(
            generator.normal(0, spread, (6, 6)).astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC
        )
        for _ in range(2)
    ]
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    drawn = np.zeros(mask.shape, bool)
    for index in range(1, min(count, 9)):
        instance = (labels == index).astype(np.uint8)
        centre_row, centre_column = (axis.mean() for axis in np.nonzero(instance))
        size = np.exp(habits.bias + generator.normal(0, habits.scaling))
        shift_row, shift_column = generator.normal(0, spread, 2)
        source_rows = (rows - centre_row - shift_row + bend[0]) / size + centre_row
        source_columns = (columns - centre_column - shift_column + bend[1]) / size + centre_column
        moved = cv2.remap(
            instance, source_columns.astype(np.float32), source_rows.astype(np.float32), cv2.INTER_NEAREST
        )
        drawn |= moved.astype(bool)
    return drawn


def _representative(mask: Mask, habits: ReaderHabits, generator: np.random.Generator) -> Point:
    """A point near the thickest part of the finding."""
    padded = np.pad(mask.astype(np.uint8), 1)  # so that the border of the film counts as the edge of a finding
    depth = cv2.distanceTransform(padded, cv2.DIST_L2, 5)[1:-1, 1:-1]
    row, column = np.unravel_index(int(depth.argmax()), depth.shape)
    jitter = generator.normal(0, habits.displacement * mask.shape[0] * 0.8, 2)
    return Point((float(row + 0.5 + jitter[0]), float(column + 0.5 + jitter[1])))
