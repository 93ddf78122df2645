"""The human readers' marks, scored like a map's peak."""

import math

from heatcheck.core.records import Mask, Measured, Point
from heatcheck.metrics.undefined import NO_POINT, NO_TRUTH, undefined


def points_inside(points: tuple[Point, ...], truth: Mask) -> Measured:
    """The share of a reader's points that lies in the truth; NaN without points or without truth.

    A point belongs to the pixel that its coordinates round down to; a point outside the image is not inside.
    """
    for point in points:
        _require_position(point, truth.ndim)
    if not truth.any():
        return undefined(NO_TRUTH)
    if not points:
        return undefined(NO_POINT)
    return Measured(sum(_is_inside(point, truth) for point in points) / len(points))


def any_point_inside(points: tuple[Point, ...], truth: Mask) -> Measured:
    """1 if any of a reader's points lies in the truth, else 0, also without points; NaN without truth.

    The rule of the CheXlocalize benchmark; unlike `points_inside`, it rewards a reader for marking many points.
    """
    if not truth.any():
        return undefined(NO_TRUTH)
    share = points_inside(points, truth).value
    return Measured(float(share > 0))  # without points the share is NaN, which is not above 0


def _require_position(point: Point, axes: int) -> None:
    if len(point.position) != axes or not all(map(math.isfinite, point.position)):
        raise ValueError(f"a point must have {axes} finite coordinates, as many as the truth, got {point.position}")


def _is_inside(point: Point, truth: Mask) -> bool:
    pixel = tuple(math.floor(coordinate) for coordinate in point.position)
    in_image = all(0 <= index < size for index, size in zip(pixel, truth.shape, strict=True))
    return in_image and bool(truth[pixel])
