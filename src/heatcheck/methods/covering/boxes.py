"""Boxes on a grid of voxels."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a grid: along each axis, the first position and the one after the last."""

    spans: tuple[tuple[int, int], ...]

    @property
    def place(self) -> tuple[slice, ...]:
        """The box as an index into the axes of space."""
        return tuple(slice(*span) for span in self.spans)

    def share(self, grid: tuple[int, ...]) -> float:
        """How much of a grid the box takes."""
        return math.prod(stop - start for start, stop in self.spans) / math.prod(grid)

    def holds(self, other: "Box") -> bool:
        """Whether all of the other lies in this one."""
        return all(a <= c and d <= b for (a, b), (c, d) in zip(self.spans, other.spans, strict=True))

    def common(self, other: "Box") -> "Box | None":
        """What both have; None where that is nothing."""
        spans = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(self.spans, other.spans, strict=True))
        return Box(spans) if all(start < stop for start, stop in spans) else None

    def seen_from(self, origin: "Box") -> "Box":
        """The same box with positions counted from the start of another."""
        return Box(tuple((a - c, b - c) for (a, b), (c, _) in zip(self.spans, origin.spans, strict=True)))


def whole(grid: tuple[int, ...]) -> Box:
    """All of a grid."""
    return Box(tuple((0, side) for side in grid))
