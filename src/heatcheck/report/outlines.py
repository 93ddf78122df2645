"""Contours in image pixels become short SVG paths in the frame of the picture that is shown."""

from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.report.pictures import IMAGE_SIDE

Contour = Sequence[Sequence[float]]  # (x, y) pairs; (0, 0) is the centre of the first pixel


@dataclass(frozen=True, slots=True)
class Frame:
    """The drawing's width and height, and how many of its units one image pixel is."""

    width: float
    height: float
    scale: float

    def place(self, point: Sequence[float]) -> tuple[float, float]:
        """The pixel's centre in the drawing, to a tenth of a unit."""
        return round((point[0] + 0.5) * self.scale, 1), round((point[1] + 0.5) * self.scale, 1)


def frame_for(shape: Sequence[float]) -> Frame:
    """The frame of an image of this height and width."""
    height, width = shape
    scale = IMAGE_SIDE / max(height, width)
    return Frame(round(width * scale, 1), round(height * scale, 1), scale)


def path_data(contours: Sequence[Contour], frame: Frame) -> str:
    """The contours as one path; points that change nothing the eye could see are left out."""
    return "".join(_closed(simplified([frame.place(point) for point in contour])) for contour in contours)


def simplified(points: Sequence[tuple[float, float]], tolerance: float = 0.6) -> list[tuple[float, float]]:
    """The fewest of the points such that none of the others lies further than the tolerance from their line.

    Douglas and Peucker's way, with a stack instead of recursion because a contour may have thousands of points.
    """
    if len(points) < 4:
        return list(points)
    keep = {0, len(points) - 1}
    pending = [(0, len(points) - 1)]
    while pending:
        first, last = pending.pop()
        distance, furthest = max(
            ((_distance(points[i], points[first], points[last]), i) for i in range(first + 1, last)), default=(0.0, 0)
        )
        if distance > tolerance:
            keep.add(furthest)
            pending += [(first, furthest), (furthest, last)]
    return [points[i] for i in sorted(keep)]


def _distance(point: tuple[float, float], start: tuple[float, float], end: tuple[float, float]) -> float:
    along = (end[0] - start[0], end[1] - start[1])
    offset = (point[0] - start[0], point[1] - start[1])
    squared = along[0] ** 2 + along[1] ** 2
    share = 0.0 if squared == 0 else min(1.0, max(0.0, (offset[0] * along[0] + offset[1] * along[1]) / squared))
    return float(((offset[0] - share * along[0]) ** 2 + (offset[1] - share * along[1]) ** 2) ** 0.5)


def _closed(points: Sequence[tuple[float, float]]) -> str:
    if not points:
        return ""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) + "Z"
