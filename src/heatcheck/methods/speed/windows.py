"""Convolutions and pooling of volumes, computed on a part of the grid."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from heatcheck.methods.covering.boxes import Box
from heatcheck.methods.speed.fast_convolution import Three, direct, three

_LAYOUT = torch.channels_last_3d


@dataclass(frozen=True, slots=True)
class Needed:
    """The part of the grid that windows read, and how far they reach beyond it at both ends of each axis."""

    inside: Box
    beyond: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """An operation that reads a window around each position of its output."""

    kernel: Three
    stride: Three
    padding: Three
    dilation: Three
    apply: Callable[[Tensor, Three], Tensor]  # to a value, with the given padding
    padding_value: float

    def on_grid(self, value: Tensor) -> Tensor:
        """The operation on the whole grid."""
        return self.apply(value, self.padding)

    def on_part(self, part: Tensor, needed: Needed) -> Tensor:
        """The operation on the part of the grid that its windows need."""
        if any(map(any, needed.beyond)):
            part = functional.pad(part, [n for pair in reversed(needed.beyond) for n in pair], value=self.padding_value)
        return self.apply(part, (0, 0, 0))

    def output_grid(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        """The grid of the output."""
        return tuple(
            (grid[axis] + 2 * self.padding[axis] - self._reach(axis)) // self.stride[axis] + 1 for axis in range(3)
        )

    def reached(self, changed: Box, grid: tuple[int, ...]) -> Box:
        """The part of the output whose windows meet the change; never empty, so that there is something to compute."""
        spans = []
        for axis, (start, stop) in enumerate(changed.spans):
            first = -(-(start + self.padding[axis] - self._reach(axis) + 1) // self.stride[axis])
            last = (stop - 1 + self.padding[axis]) // self.stride[axis]
            first = min(max(first, 0), grid[axis] - 1)
            spans.append((first, min(max(last, first), grid[axis] - 1) + 1))
        return Box(tuple(spans))

    def needed(self, output: Box, grid: tuple[int, ...]) -> Needed:
        """What the windows of a part of the output read."""
        inside, beyond = [], []
        for axis, (first, last) in enumerate(output.spans):
            start = first * self.stride[axis] - self.padding[axis]
            stop = (last - 1) * self.stride[axis] - self.padding[axis] + self._reach(axis)
            inside.append((max(0, start), min(grid[axis], stop)))
            beyond.append((max(0, -start), max(0, stop - grid[axis])))
        return Needed(Box(tuple(inside)), tuple(beyond))

    def _reach(self, axis: int) -> int:
        return self.dilation[axis] * (self.kernel[axis] - 1) + 1


def window_of(name: str, named: dict[str, Any]) -> Window | None:
    """The operation as a window; None for other operations and for unusual arguments."""
    if name not in {"conv3d", "max_pool3d"} or named.get("ceil_mode") or isinstance(named.get("padding", 0), str):
        return None
    padding, dilation = three(named.get("padding", 0)), three(named.get("dilation", 1))
    return (_convolution if name == "conv3d" else _maximum)(named, padding, dilation)


def _convolution(named: dict[str, Any], around: Three, dilation: Three) -> Window:
    stride, bias, groups = three(named.get("stride", 1)), named.get("bias"), named.get("groups", 1)
    weight = named["weight"].contiguous(memory_format=_LAYOUT)  # else torch would copy it at each call

    def convolve(value: Tensor, padding: Three) -> Tensor:
        value = value.contiguous(memory_format=_LAYOUT)
        output = direct(value, weight, bias, stride, padding, dilation, groups)
        return torch.conv3d(value, weight, bias, stride, padding, dilation, groups) if output is None else output

    return Window(three(weight.shape[2:]), stride, around, dilation, convolve, 0.0)


def _maximum(named: dict[str, Any], around: Three, dilation: Three) -> Window:
    kernel = three(named["kernel_size"])
    stride = three(named.get("stride") or kernel)

    def pool(value: Tensor, padding: Three) -> Tensor:
        return functional.max_pool3d(value, kernel, stride, padding, dilation)

    return Window(kernel, stride, around, dilation, pool, -math.inf)
