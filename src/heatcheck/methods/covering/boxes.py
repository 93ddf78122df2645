"""Boxes on a grid of pixels or voxels."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a grid: along each axis, the first position and the one after the last."""

    spans: tuple[tuple[int, int], ...]

    @property
    def index(self) -> tuple[slice, ...]:
        """The box as an index into the spatial axes."""
        return tuple(slice(*span) for span in self.spans)

    def share(self, grid: tuple[int, ...]) -> float:
        """The share of a grid that the box covers."""
        return math.prod(stop - start for start, stop in self.spans) / math.prod(grid)

    def contains(self, other: "Box") -> bool:
        """Whether the other box lies in this one."""
        return all(a <= c and d <= b for (a, b), (c, d) in zip(self.spans, other.spans, strict=True))

    def intersection(self, other: "Box") -> "Box | None":
        """The part that both cover; None where they do not meet."""
        spans = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(self.spans, other.spans, strict=True))
        return Box(spans) if all(start < stop for start, stop in spans) else None

    def relative_to(self, origin: "Box") -> "Box":
        """The same box with positions counted from the start of `origin`."""
        return Box(tuple((a - c, b - c) for (a, b), (c, _) in zip(self.spans, origin.spans, strict=True)))


def full_box(grid: tuple[int, ...]) -> Box:
    """The box that covers a whole grid."""
    return Box(tuple((0, side) for side in grid))
