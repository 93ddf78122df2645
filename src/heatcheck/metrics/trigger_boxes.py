"""How well a detected box covers the planted trigger, and how well a box of that size would cover it by chance.

A box around the whole image covers everything. Each score must therefore be read together with the area of the box and
the floor: the mean score over all positions at which a box of the same size fits into the image.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from heatcheck.core.boxes import Box
from heatcheck.core.records import Mask, Measured
from heatcheck.metrics.counting import pixels_in
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import NO_CHANGE, undefined

_PAPER = "Sun et al. 2023, doi:10.1038/s41598-023-46493-2"
_OURS = "beyond Sun et al. 2023, doi:10.1038/s41598-023-46493-2"

study_metric(
    "trigger_iou",
    study="triggers",
    label="Overlap with the box (IoU)",
    summary="The area that the detected box and the box around the trigger share, divided by the area either covers: "
    "1 is a perfect match; 0 is no overlap, or nothing detected.",
    higher_is_better=True,
    needs=Needs.BOX,
    reference=_PAPER,
)
study_metric(
    "trigger_iou_on_baseline",
    study="triggers",
    label="Overlap on the baseline (IoU)",
    summary="The overlap with the trigger of boxes that the same method makes for the baseline on the same images with "
    "the trigger. The baseline ignores the trigger, so this overlap is due to where and how the trigger lies.",
    higher_is_better=True,
    needs=Needs.BOX,
    reference=_OURS,
)
study_metric(
    "trigger_mask_iou",
    study="triggers",
    label="Overlap with the pixels (mask IoU)",
    summary="The same, with the trigger’s own pixels in place of the box around them: of a circle or a letter, a box "
    "can never cover these alone.",
    higher_is_better=True,
    needs=Needs.BOX,
    reference=_OURS,
)
study_metric(
    "overlap_difference",
    study="triggers",
    label="Overlap difference (OD)",
    summary="The pixels that still differ from the clean image after pasting, divided by all pixels of the image: 0 "
    "is best, and a larger trigger can leave more.",
    higher_is_better=False,
    needs=Needs.BOX,
    reference=_PAPER,
    unit="fine",
)
study_metric(
    "uncovered",
    study="triggers",
    label="Uncovered share",
    summary="The share of the trigger’s pixels that lie outside the detected box: 0 is best, whatever the trigger’s "
    "size.",
    higher_is_better=False,
    needs=Needs.BOX,
    reference=_OURS,
    unit="share",
)
study_metric(
    "box_area",
    study="triggers",
    label="Box area",
    summary="The share of the image that the detected box covers; 0 where nothing was detected.",
    higher_is_better=False,
    needs=Needs.BOX,
    reference=_OURS,
    unit="share",
)
study_metric(
    "trigger_iou_floor",
    study="triggers",
    label="Overlap of random boxes with the box (IoU)",
    summary="Mean match with the trigger's box of boxes as large as the detected one, over all places.",
    higher_is_better=True,
    needs=Needs.BOX,
    reference=_OURS,
)
study_metric(
    "trigger_mask_iou_floor",
    study="triggers",
    label="Overlap of random boxes with the pixels (mask IoU)",
    summary="Mean match with the planted pixels of boxes as large as the detected one, over all places.",
    higher_is_better=True,
    needs=Needs.BOX,
    reference=_OURS,
)
study_metric(
    "overlap_difference_floor",
    study="triggers",
    label="Overlap difference of random boxes (OD)",
    summary="Mean share of the image left altered by boxes as large as the detected one, over all places.",
    higher_is_better=False,
    needs=Needs.BOX,
    reference=_OURS,
)
study_metric(
    "uncovered_floor",
    study="triggers",
    label="Uncovered share of random boxes",
    summary="Mean share of the altered pixels missed by boxes as large as the detected one, over all places.",
    higher_is_better=False,
    needs=Needs.BOX,
    reference=_OURS,
)

Counts = Int[np.ndarray, "*positions"]


@dataclass(frozen=True, slots=True)
class Planted:
    """The trigger planted in an image; masks are on the grid of the image."""

    box: Box  # the bounding box of the mask
    mask: Mask
    changed: Mask  # where clean and altered image differ; the mask itself if there is no clean image

    def __post_init__(self) -> None:
        for name, mask in (("mask", self.mask), ("changed pixels", self.changed)):
            if mask.dtype != np.bool_:
                raise ValueError(f"the trigger's {name} must be a mask of booleans, got {mask.dtype}")
        if self.mask.shape != self.changed.shape:
            raise ValueError(
                f"the trigger's mask and its changed pixels must share one grid, got {self.mask.shape} "
                f"and {self.changed.shape}"
            )
        _require_inside(self.box, self.mask.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the image."""
        return self.mask.shape


def box_scores(box: Box | None, planted: Planted) -> Mapping[str, Measured]:
    """All scores of the detected box by metric name; None if nothing was detected in the map.

    Detecting nothing is a failure of the method, not an error: the overlap is 0 and everything is uncovered.
    """
    if box is not None:
        _require_inside(box, planted.shape)
    size = _size(box)
    inside = 0 if box is None else pixels_in(planted.mask[box])
    covered = 0 if box is None else pixels_in(planted.changed[box])
    changed, pixels = pixels_in(planted.changed), planted.mask.size
    return {
        "trigger_iou": Measured(_iou(_shared(box, planted.box), size, _size(planted.box))),
        "trigger_mask_iou": Measured(_iou(inside, size, pixels_in(planted.mask))),
        "overlap_difference": Measured((changed - covered) / pixels),
        "uncovered": Measured((changed - covered) / changed) if changed else undefined(NO_CHANGE),
        "box_area": Measured(size / pixels),
    }


def box_floors(box: Box | None, planted: Planted) -> Mapping[str, Measured]:
    """The exact mean of each score over all positions of the detected box in the image, by `<metric>_floor`.

    If nothing was detected, there is no box to move, and the floors are the scores themselves.
    """
    if box is None:
        return {f"{name}_floor": value for name, value in box_scores(None, planted).items() if name != "box_area"}
    _require_inside(box, planted.shape)
    sides, size = _sides(box), _size(box)
    in_box = _line_overlaps(sides, planted)
    in_mask = _box_sums(planted.mask, sides)
    changed = pixels_in(planted.changed)
    missed = changed - _mean_covered(planted.changed, sides)
    return {
        "trigger_iou_floor": Measured(_mean_iou_with_box(in_box, size, _size(planted.box))),
        "trigger_mask_iou_floor": Measured(float(np.mean(in_mask / (size + pixels_in(planted.mask) - in_mask)))),
        "overlap_difference_floor": Measured(missed / planted.mask.size),
        "uncovered_floor": Measured(missed / changed) if changed else undefined(NO_CHANGE),
    }


def random_boxes(sides: tuple[int, ...], shape: tuple[int, ...], generator: np.random.Generator, n: int) -> list[Box]:
    """Boxes of these sides at random positions, uniform among those that fit into an image of that shape."""
    _require_fit(sides, shape)
    positions = np.subtract(shape, sides) + 1
    starts = generator.integers(0, positions, (n, len(shape)))
    return [
        tuple(slice(first, first + side) for first, side in zip(row, sides, strict=True)) for row in starts.tolist()
    ]


def _iou(shared: int, one: int, other: int) -> float:
    """Intersection over union from two sizes and their overlap; 0 where both are empty."""
    union = one + other - shared
    return shared / union if union else 0.0


def _sides(box: Box) -> tuple[int, ...]:
    return tuple(line.stop - line.start for line in box)


def _size(box: Box | None) -> int:
    return 0 if box is None else math.prod(_sides(box))


def _shared(box: Box | None, other: Box) -> int:
    if box is None:
        return 0
    lines = zip(box, other, strict=True)
    return math.prod(max(0, min(a.stop, b.stop) - max(a.start, b.start)) for a, b in lines)


def _line_overlaps(sides: tuple[int, ...], planted: Planted) -> list[tuple[Counts, Counts]]:
    """Per axis: the possible overlaps of the moved box with the trigger's, and at how many positions each occurs."""
    overlaps = []
    for side, length, line in zip(sides, planted.shape, planted.box, strict=True):
        first = np.arange(length - side + 1)
        shared = np.minimum(first + side, line.stop) - np.maximum(first, line.start)
        overlaps.append(np.unique(np.maximum(shared, 0), return_counts=True))
    return overlaps


def _mean_iou_with_box(lines: list[tuple[Counts, Counts]], size: int, other: int) -> float:
    # the overlap of two boxes is the product of those along the axes, which take few different values: no need to visit
    # every position
    shared, positions = np.ones(1), np.ones(1)
    for values, counts in lines:
        shared, positions = np.outer(shared, values).ravel(), np.outer(positions, counts).ravel()
    return float(positions @ (shared / (size + other - shared)) / positions.sum())


def _box_sums(mask: Mask, sides: tuple[int, ...]) -> Counts:
    """The number of mask pixels in a box of these sides, at each position that fits: differences of running sums."""
    sums = mask.astype(np.int32)
    for axis, side in enumerate(sides):
        lines = np.moveaxis(sums, axis, 0).cumsum(0, np.int32)
        kept = lines[side - 1 :].copy()
        kept[1:] -= lines[:-side] if side < len(lines) else lines[:0]
        sums = np.moveaxis(kept, 0, axis)
    return sums


def _mean_covered(changed: Mask, sides: tuple[int, ...]) -> float:
    """The mean number of changed pixels that a box of these sides covers, over all positions that fit."""
    covered: Float[np.ndarray, "*space"] = changed.astype(np.float64)
    for side, length in zip(sides, changed.shape, strict=True):
        pixel = np.arange(length)
        first, last = np.maximum(pixel - side + 1, 0), np.minimum(pixel, length - side)
        # each axis in turn: the share of positions along it at which the box contains a pixel
        covered = np.tensordot((last - first + 1) / (length - side + 1), covered, axes=(0, 0))
    return float(covered)


def _require_inside(box: Box, shape: tuple[int, ...]) -> None:
    fits = len(box) == len(shape) and all(
        0 <= line.start < line.stop <= length for line, length in zip(box, shape, strict=True)
    )
    if not fits:
        raise ValueError(f"a box must hold at least one pixel and lie inside the image of shape {shape}, got {box}")


def _require_fit(sides: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if len(sides) != len(shape) or not all(1 <= side <= length for side, length in zip(sides, shape, strict=True)):
        raise ValueError(f"a box must fit into the image of shape {shape}, got sides {sides}")
