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
_INTERPOLATE = ("input", "size", "scale_factor", "mode", "align_corners", "recompute_scale_factor")
_PARAMETERS = PARAMETERS | {
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d"), _AVERAGE),
    **dict.fromkeys(("interpolate", "upsample"), _INTERPOLATE),
    "pad": ("input", "pad"),
}
_EVEN = {f"adaptive_{kind}_pool{axes}d" for kind in ("avg", "max") for axes in (1, 2, 3)}
_RESIZES = {"interpolate", "upsample"}
_POOLS = {f"avg_pool{axes}d" for axes in (1, 2, 3)}
_CHANGES_GRID = CONVOLUTIONS | MAXIMA | _EVEN | _RESIZES | _POOLS | {"pad", "pixel_shuffle", "pixel_unshuffle"}
_LAYS_OUT_ANEW = {"permute", "transpose", "movedim", "swapaxes", "swapdims", "moveaxis", "reshape", "view", "unflatten"}
_MOVES_CELLS = {"flip", "fliplr", "flipud", "roll", "rot90", "unfold", "fold", "gather", "index_select", "take"}


class _Axis(NamedTuple):
    """What a layer does along one axis: the position of its first output among its inputs, and the distance."""

    first: float
    step: float


@dataclass
class KnownCells:
    """Where the cells of every tensor look that the network has computed so far, in model pixels.

    Layers that change the grid move the cells; what keeps it (sums, normalisation, joined channels) leaves them where
    they are, and branches that are joined look where they do on average. A tensor of any other origin is not known.
    """

    by_grid: dict[tuple[int, ...], Cells] = field(default_factory=dict)  # of the last tensor with that grid
    # by the tensor's identity, which stays its own as long as the tensor is kept
    _by_tensor: dict[int, tuple[Tensor, Cells | None]] = field(default_factory=dict)

    def start(self, image: Tensor) -> None:
        """The network gets this image."""
        size = tuple(image.shape[2:])
        self.by_grid[size] = spread_evenly(size, size)
        self._by_tensor[id(image)] = (image, self.by_grid[size])

    def of_tensor(self, tensor: Tensor) -> Cells | None:
        """Where the cells of a tensor look; None where that is not known.

        A part of a tensor, as `chunk` gives, was not seen on its way: its grid says where it lies.
        """
        if id(tensor) in self._by_tensor:
            return self._by_tensor[id(tensor)][1]
        return self.by_grid.get(tuple(tensor.shape[2:]))

    def of_grid(self, grid: tuple[int, ...]) -> Cells | None:
        """Where the tokens of a grid look; None where no layer says so.

        Patch merging halves a grid by slicing: a cell then looks where the two that it joins do.
        """
        if grid in self.by_grid:
            return self.by_grid[grid]
        twice = tuple(2 * side for side in grid)
        if not self.by_grid or any(side > max(map(max, self.by_grid)) for side in twice):
            return None
        finer = self.of_grid(twice)
        if finer is None:
            return None
        return Cells(
            tuple(first + step / 2 for first, step in zip(finer.first, finer.step, strict=True)),
            tuple(2 * step for step in finer.step),
        )

    def follow(self, name: str, positional: Sequence[Any], named: Mapping[str, Any], output: Tensor) -> None:
        """Add the output of an operation."""
        values = dict(zip(_PARAMETERS.get(name, ("input",)), positional, strict=False)) | dict(named)
        source = values.get("input")
        if name in _CHANGES_GRID and isinstance(source, Tensor) and source.ndim == output.ndim:
            found = self._moved(name, values, source, output)
        elif name.strip("_") in _MOVES_CELLS:
            found = None
        else:
            found = self._joined(name.strip("_"), [*positional, *named.values()], output)
        self._by_tensor[id(output)] = (output, found)
        if found is not None:
            self.by_grid[tuple(output.shape[2:])] = found

    def _moved(self, name: str, values: Mapping[str, Any], source: Tensor, output: Tensor) -> Cells | None:
        before = self.of_tensor(source)
        if before is None:
            return None
        parts = list(zip(before.first, before.step, _axes(name, values, source, output), strict=True))
        return Cells(
            tuple(first + step * axis.first for first, step, axis in parts),
            tuple(step * axis.step for _, step, axis in parts),
        )

    def _joined(self, name: str, arguments: Sequence[Any], output: Tensor) -> Cells | None:
        """The mean of the arguments on the same grid; of a tensor laid out anew, what is known of its grid."""
        grid = tuple(output.shape[2:])
        tensors = [part for value in arguments for part in (value if isinstance(value, list | tuple) else [value])]
        same = [t for t in tensors if isinstance(t, Tensor) and t.ndim == output.ndim and tuple(t.shape[2:]) == grid]
        known = [cells for tensor in same if (cells := self.of_tensor(tensor)) is not None]
        if not same:
            return self.by_grid.get(grid) if name in _LAYS_OUT_ANEW else None
        if not known:
            return None
        firsts, steps = ([getattr(cells, part) for cells in known] for part in ("first", "step"))
        return Cells(*(tuple(sum(axis) / len(known) for axis in zip(*each, strict=True)) for each in (firsts, steps)))


def _axes(name: str, values: Mapping[str, Any], source: Tensor, output: Tensor) -> list[_Axis]:
    """What an operation that changes the grid does along each axis."""
    sizes = list(zip(source.shape[2:], output.shape[2:], strict=True))
    if name in _RESIZES:
        return _resized(values, sizes)
    if name in _EVEN or name.startswith("pixel_"):
        return [_Axis(before / after / 2 - 0.5, before / after) for before, after in sizes]
    if name == "pad":
        added = list(values["pad"])[: 2 * len(sizes) : 2]  # before the first element, from the last axis backwards
        added += [0] * (len(sizes) - len(added))
        return [_Axis(-float(before), 1.0) for before in reversed(added)]
    return _windows(name, values, len(sizes))


def _resized(values: Mapping[str, Any], sizes: Sequence[tuple[int, int]]) -> list[_Axis]:
    if values.get("align_corners"):
        return [_Axis(0.0, (before - 1) / max(after - 1, 1)) for before, after in sizes]
    given = values.get("scale_factor")
    if given is None or values.get("recompute_scale_factor"):
        ratios = [before / after for before, after in sizes]
    else:
        ratios = [1 / scale for scale in (given if isinstance(given, list | tuple) else [given] * len(sizes))]
    # to fewer cells, "nearest" takes the first of those that a cell replaces
    first = values.get("mode", "nearest") == "nearest"
    return [_Axis(0.0 if first and ratio > 1 else ratio / 2 - 0.5, ratio) for ratio in ratios]


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
