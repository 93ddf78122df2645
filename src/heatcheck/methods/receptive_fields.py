"""Where the cells of a network's feature maps look, from the strides and paddings of its layers.

A cell reads the pixels of its receptive field. Resizing a map plainly takes the cells to tile the image, but a padded
convolution with a stride of 2 looks at every second pixel from the first one on: half a pixel further to the left and
up than a tile's centre, at every halving twice as far as before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from heatcheck.core.geometry import Cells, spread_evenly
from heatcheck.methods.speed.operations import CONVOLUTIONS, MAXIMA, PARAMETERS

_AVERAGE = ("input", "kernel_size", "stride", "padding")
_INTERPOLATE = ("input", "size", "scale_factor", "mode", "align_corners")
_PARAMETERS = PARAMETERS | {
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d"), _AVERAGE),
    **dict.fromkeys(("interpolate", "upsample"), _INTERPOLATE),
    "pad": ("input", "pad"),
}
_EVEN = {f"adaptive_{kind}_pool{axes}d" for kind in ("avg", "max") for axes in (1, 2, 3)}


class _Axis(NamedTuple):
    """What a layer does along one axis: the position of its first output among its inputs, and the distance."""

    first: float
    step: float


@dataclass
class KnownCells:
    """Where the cells of every grid look that the layers so far have made, in model pixels.

    Grids are told apart by their shape: everything between two changes of the grid (sums, normalisation, channels)
    leaves the cells where they are, whatever it does to the tensors. Branches that are joined have one shape; the last
    that made it says where it lies.
    """

    by_grid: dict[tuple[int, ...], Cells] = field(default_factory=dict)

    def start(self, size: tuple[int, ...]) -> None:
        """The network gets an image of that size."""
        self.by_grid[size] = spread_evenly(size, size)

    def of(self, grid: tuple[int, ...]) -> Cells | None:
        """Where the cells of a grid look; None where no layer says so.

        Patch merging halves a grid by slicing: a cell then looks where the two that it joins do.
        """
        if grid in self.by_grid:
            return self.by_grid[grid]
        twice = tuple(2 * side for side in grid)
        if not self.by_grid or all(side > max(map(max, self.by_grid)) for side in twice):
            return None
        finer = self.of(twice)
        if finer is None:
            return None
        return Cells(
            tuple(first + step / 2 for first, step in zip(finer.first, finer.step, strict=True)),
            tuple(2 * step for step in finer.step),
        )

    def follow(self, name: str, positional: Sequence[Any], named: Mapping[str, Any], output: Tensor) -> None:
        """Add the grid that an operation made from another."""
        values = dict(zip(_PARAMETERS.get(name, ("input",)), positional, strict=False)) | dict(named)
        source, grid = values.get("input"), tuple(output.shape[2:])
        if not isinstance(source, Tensor) or source.ndim != output.ndim:
            return
        before = self.by_grid.get(tuple(source.shape[2:]))
        axes = None if before is None else _axes(name, values, source, output)
        if before is not None and axes is not None:
            parts = list(zip(before.first, before.step, axes, strict=True))
            self.by_grid[grid] = Cells(
                tuple(first + step * axis.first for first, step, axis in parts),
                tuple(step * axis.step for _, step, axis in parts),
            )


def _axes(name: str, values: Mapping[str, Any], source: Tensor, output: Tensor) -> list[_Axis] | None:
    """What the operation does along each axis; None for one that is not known to keep a grid."""
    sizes = list(zip(source.shape[2:], output.shape[2:], strict=True))
    if name in CONVOLUTIONS or name in MAXIMA - _EVEN or (name in _PARAMETERS and "avg_pool" in name):
        return _windows(name, values, len(sizes))
    if name in _EVEN or (name in ("interpolate", "upsample") and not values.get("align_corners")):
        return [_Axis(before / after / 2 - 0.5, before / after) for before, after in sizes]
    if name in ("interpolate", "upsample"):
        return [_Axis(0.0, (before - 1) / max(after - 1, 1)) for before, after in sizes]
    if name == "pad":
        added = list(values["pad"])[: 2 * len(sizes) : 2]  # before the first element, from the last axis backwards
        added += [0] * (len(sizes) - len(added))
        return [_Axis(-float(before), 1.0) for before in reversed(added)]
    return None


def _windows(name: str, values: Mapping[str, Any], axes: int) -> list[_Axis]:
    """A window of `kernel` inputs that moves by the stride and begins in the padding."""
    weight = values.get("weight")
    kernels = list(weight.shape[2:]) if isinstance(weight, Tensor) else _each(values["kernel_size"], axes)
    strides = _each(values.get("stride") or (1 if weight is not None else kernels), axes)
    dilations = _each(values.get("dilation", 1), axes)
    reaches = [dilation * (kernel - 1) for kernel, dilation in zip(kernels, dilations, strict=True)]
    padding = values.get("padding", 0)
    if isinstance(padding, str):
        paddings = [reach // 2 if padding == "same" else 0 for reach in reaches]
    else:
        paddings = _each(padding, axes)
    parts = zip(reaches, strides, paddings, strict=True)
    if "transpose" in name:  # the layer whose windows go the other way
        return [_Axis((padded - reach / 2) / stride, 1 / stride) for reach, stride, padded in parts]
    return [_Axis(reach / 2 - padded, float(stride)) for reach, stride, padded in parts]


def _each(value: Any, axes: int) -> list[int]:  # noqa: ANN401 - a number or one per axis, as torch takes it
    numbers = [value] if isinstance(value, int) else list(value)
    return numbers * axes if len(numbers) == 1 else numbers
