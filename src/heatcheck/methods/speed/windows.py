"""Convolutions and pools of volumes, carried out on a part of the grid."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from heatcheck.methods.covering.boxes import Box
from heatcheck.methods.speed.fast_convolution import direct

_LAID_OUT = torch.channels_last_3d
Three = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Needed:
    """What windows look at: the part inside the grid, and how far they reach beyond it at both ends of each axis."""

    inside: Box
    beyond: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """An operation that looks at a window around each position of its answer."""

    kernel: Three
    step: Three
    around: Three  # padding
    apart: Three  # dilation
    apply: Callable[[Tensor, Three], Tensor]  # with so much padding
    padded_with: float

    def whole(self, value: Tensor) -> Tensor:
        """The operation on everything."""
        return self.apply(value, self.around)

    def at(self, part: Tensor, cut: Needed) -> Tensor:
        """The operation on a part of the grid that holds all the windows look at."""
        if any(map(any, cut.beyond)):
            part = functional.pad(part, [n for pair in reversed(cut.beyond) for n in pair], value=self.padded_with)
        return self.apply(part, (0, 0, 0))

    def answered(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        """The grid of the answer."""
        return tuple(
            (grid[axis] + 2 * self.around[axis] - self._reach(axis)) // self.step[axis] + 1 for axis in range(3)
        )

    def reached(self, changed: Box, grid: tuple[int, ...]) -> Box:
        """The part of the answer whose windows meet the change; at least one position, so that there is something."""
        spans = []
        for axis, (start, stop) in enumerate(changed.spans):
            first = -(-(start + self.around[axis] - self._reach(axis) + 1) // self.step[axis])
            last = (stop - 1 + self.around[axis]) // self.step[axis]
            first = min(max(first, 0), grid[axis] - 1)
            spans.append((first, min(max(last, first), grid[axis] - 1) + 1))
        return Box(tuple(spans))

    def needed(self, answer: Box, grid: tuple[int, ...]) -> Needed:
        """What the windows at a part of the answer look at."""
        inside, beyond = [], []
        for axis, (first, last) in enumerate(answer.spans):
            start = first * self.step[axis] - self.around[axis]
            stop = (last - 1) * self.step[axis] - self.around[axis] + self._reach(axis)
            inside.append((max(0, start), min(grid[axis], stop)))
            beyond.append((max(0, -start), max(0, stop - grid[axis])))
        return Needed(Box(tuple(inside)), tuple(beyond))

    def _reach(self, axis: int) -> int:
        return self.apart[axis] * (self.kernel[axis] - 1) + 1


def window_of(name: str, named: dict[str, Any]) -> Window | None:
    """The operation as one of windows; None where it is another, or asked for in an unusual way."""
    if name not in {"conv3d", "max_pool3d"} or named.get("ceil_mode") or isinstance(named.get("padding", 0), str):
        return None
    around, apart = _three(named.get("padding", 0)), _three(named.get("dilation", 1))
    return (_convolution if name == "conv3d" else _maximum)(named, around, apart)


def _convolution(named: dict[str, Any], around: Three, apart: Three) -> Window:
    step, bias, groups = _three(named.get("stride", 1)), named.get("bias"), named.get("groups", 1)
    weight = named["weight"].contiguous(memory_format=_LAID_OUT)  # else torch would lay it out at each call

    def convolve(value: Tensor, padding: Three) -> Tensor:
        value = value.contiguous(memory_format=_LAID_OUT)
        made = direct(value, weight, bias, step, padding, apart, groups)
        return torch.conv3d(value, weight, bias, step, padding, apart, groups) if made is None else made

    return Window(_three(weight.shape[2:]), step, around, apart, convolve, 0.0)


def _maximum(named: dict[str, Any], around: Three, apart: Three) -> Window:
    kernel = _three(named["kernel_size"])
    step = _three(named.get("stride") or kernel)

    def pool(value: Tensor, padding: Three) -> Tensor:
        return functional.max_pool3d(value, kernel, step, padding, apart)

    return Window(kernel, step, around, apart, pool, -math.inf)


def _three(value: Any) -> Three:  # noqa: ANN401 - one number or one an axis
    if isinstance(value, int):
        return (value, value, value)
    first, *others = value
    return (first, *others) if others else (first, first, first)
