"""Where an image lies on a model's grid, and the one-step way back for maps."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

Fit = Literal["stretch", "pad"]
ROUNDING = 1e-9
"""Pixels by which a position may be off from the division of sizes; far below what any image resolves."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The part of the model's grid that an image covers, in model pixels.

    The image's first pixel edge lies at `origin`, and one image pixel is `scale` model pixels wide, per axis.
    """

    image_shape: tuple[int, ...]
    model_shape: tuple[int, ...]
    origin: tuple[float, ...]
    scale: tuple[float, ...]

    @property
    def covers_all(self) -> bool:
        """Whether the image fills the model's grid exactly."""
        pairs = zip(self.origin, self.scale, self.image_shape, self.model_shape, strict=True)
        return all(origin == 0 and scale == size / pixels for origin, scale, pixels, size in pairs)


@dataclass(frozen=True, slots=True)
class Cells:
    """Where the cells of a map look: the centre of the first and the distance to the next in model pixels, per axis.

    Positions count from the edge of the model's grid: the centre of its first pixel is at 0.5.
    """

    first: tuple[float, ...]
    step: tuple[float, ...]

    def centres(self, axis: int, number: int) -> Float[Tensor, " cells"]:
        """The centres of that many cells along one axis."""
        return self.first[axis] + self.step[axis] * torch.arange(number, dtype=torch.float64)

    def close_to(self, other: "Cells") -> bool:
        """Whether both are the same but for rounding."""
        pairs = zip((*self.first, *self.step), (*other.first, *other.step), strict=True)
        return all(abs(one - two) < ROUNDING for one, two in pairs)

    def shift(self, grid: tuple[int, ...], size: tuple[int, ...]) -> tuple[float, ...]:
        """By how many model pixels the middle of the map lies beyond the middle of the model's grid, per axis."""
        axes = zip(self.first, self.step, grid, size, strict=True)
        return tuple(first + step * (cells - 1) / 2 - pixels / 2 for first, step, cells, pixels in axes)


@dataclass(frozen=True, slots=True)
class MapGrid:
    """The grid of a method's maps, and where it lies."""

    shape: tuple[int, ...]
    cells: Cells | None = None  # None where it spans the model's


def spread_evenly(grid: tuple[int, ...], size: tuple[int, ...]) -> Cells:
    """The cells of a map that spans the model's grid of that size exactly, as plain resizing takes it to do."""
    steps = tuple(pixels / cells for pixels, cells in zip(size, grid, strict=True))
    return Cells(tuple(step / 2 for step in steps), steps)


def place(image_shape: tuple[int, ...], model_shape: tuple[int, ...], fit: Fit) -> Placement:
    """The placement that stretches the image over the grid, or keeps its proportions and pads it at the centre.

    A padded image covers whole model pixels: its size there is rounded, and its scale follows from that.
    """
    if len(image_shape) != len(model_shape):
        raise ValueError(f"image has {len(image_shape)} axes, the model's grid {len(model_shape)}")
    if fit == "stretch":
        inner = model_shape
    else:
        factor = min(size / pixels for pixels, size in zip(image_shape, model_shape, strict=True))
        inner = tuple(max(1, round(pixels * factor)) for pixels in image_shape)
    origin = tuple(float((size - covered) // 2) for covered, size in zip(inner, model_shape, strict=True))
    scale = tuple(covered / pixels for pixels, covered in zip(image_shape, inner, strict=True))
    return Placement(image_shape, model_shape, origin, scale)


def image_to_model(image: Float[Tensor, "channel *space"], placement: Placement) -> Float[Tensor, "channel *grid"]:
    """The image on the model's grid; what it does not cover is 0.

    Shrinking averages over the pixels that merge (antialiased), so that fine detail does not turn into noise.
    """
    inner = tuple(max(1, round(n * s)) for n, s in zip(placement.image_shape, placement.scale, strict=True))
    resized = _resize(image[None], inner)[0]
    if inner == placement.model_shape:
        return resized
    grid = image.new_zeros(image.shape[0], *placement.model_shape)
    starts = [int(edge) for edge in placement.origin]
    window = tuple(slice(a, a + n) for a, n in zip(starts, inner, strict=True))
    grid[(slice(None), *window)] = resized
    return grid


def _resize(images: Tensor, shape: tuple[int, ...]) -> Tensor:
    if tuple(images.shape[2:]) == shape:
        return images
    if len(shape) == 2:
        return functional.interpolate(images, shape, mode="bilinear", align_corners=False, antialias=True)
    smaller = tuple(min(new, old) for new, old in zip(shape, images.shape[2:], strict=True))
    averaged = functional.adaptive_avg_pool3d(images, smaller)  # type: ignore[arg-type]
    return functional.interpolate(averaged, shape, mode="trilinear", align_corners=False)


def map_to_image(
    values: Float[Tensor, "maps *grid"], placement: Placement, cells: Cells | None = None
) -> Float[Tensor, "maps *space"]:
    """Maps on any grid, resampled once, linearly, onto the image's grid.

    Without `cells` the maps span the model's field of view: for a stretched image this is torch's
    `interpolate(align_corners=False)` to the last bit. Beyond the outermost centres a map keeps its last value.
    """
    if cells is None and placement.covers_all:
        mode = "bilinear" if len(placement.image_shape) == 2 else "trilinear"
        return functional.interpolate(values[None], placement.image_shape, mode=mode, align_corners=False)[0]
    for axis, positions in enumerate(_positions(tuple(values.shape[1:]), placement, cells)):
        values = _sample_axis(values, axis + 1, positions)
    return values


def nearest_cell(
    values: Float[Tensor, "maps *grid"], placement: Placement, cells: Cells | None = None
) -> Float[Tensor, "maps *space"]:
    """As `map_to_image`, but each pixel gets the value of the nearest cell; of two, that of the later one.

    Without `cells` and for a stretched image this is torch's `interpolate(mode="nearest")`.
    """
    if cells is None and placement.covers_all:
        return functional.interpolate(values[None], placement.image_shape)[0]
    for axis, positions in enumerate(_positions(tuple(values.shape[1:]), placement, cells)):
        nearest = (positions + 0.5 + ROUNDING).floor().long().clamp(0, values.shape[axis + 1] - 1)
        values = values.index_select(axis + 1, nearest.to(values.device))
    return values


def _positions(grid: tuple[int, ...], placement: Placement, cells: Cells | None) -> Iterator[Float[Tensor, " pixels"]]:
    """The position of every image pixel among a map's cells, axis by axis."""
    for axis, (pixels, size) in enumerate(zip(placement.image_shape, placement.model_shape, strict=True)):
        centres = placement.origin[axis] + (torch.arange(pixels, dtype=torch.float64) + 0.5) * placement.scale[axis]
        if cells is None:
            yield centres * grid[axis] / size - 0.5
        else:
            yield (centres - cells.first[axis]) / cells.step[axis]


def _sample_axis(values: Tensor, axis: int, positions: Float[Tensor, " samples"]) -> Tensor:
    last = values.shape[axis] - 1
    inside = positions.clamp(0, last)
    low = inside.floor().long()
    shape = [1] * values.ndim
    shape[axis] = -1
    weight = (inside - low).to(values.dtype).reshape(shape).to(values.device)
    lower = values.index_select(axis, low.to(values.device))
    upper = values.index_select(axis, (low + 1).clamp(max=last).to(values.device))
    return lower + (upper - lower) * weight


def mask_to_grid(
    mask: Bool[np.ndarray, "*space"], placement: Placement, grid: tuple[int, ...], cells: Cells | None = None
) -> Bool[np.ndarray, "*grid"]:
    """A mask of the image on a map's grid: at the centre of each cell the nearest image pixel.

    Without `cells` the grid spans the model's field of view.

    A centre on the edge between two pixels belongs to the later one, whatever the division rounds to.
    A mask that lies between all centres keeps one pixel of the grid, the one around the middle pixel of the mask.
    """
    if not mask.any():
        return np.zeros(grid, bool)
    chosen, centred = mask, cells or spread_evenly(grid, placement.model_shape)
    for axis, (pixels, number) in enumerate(zip(placement.image_shape, grid, strict=True)):
        pixel = (centred.centres(axis, number).numpy() - placement.origin[axis]) / placement.scale[axis]
        nearest = np.floor(pixel + ROUNDING).astype(np.intp)
        inside = (nearest >= 0) & (nearest < pixels)
        taken = chosen.take(nearest.clip(0, pixels - 1), axis)
        across = [-1 if other == axis else 1 for other in range(mask.ndim)]
        chosen = taken & inside.reshape(across)
    if chosen.any():
        return np.asarray(chosen)
    middle = np.argwhere(mask)[int(mask.sum()) // 2]
    at = (np.asarray(placement.origin) + (middle + 0.5) * placement.scale - centred.first) / centred.step
    # the cell around the pixel reaches half a step from its centre to either side
    position = np.floor(at + 0.5 + ROUNDING).astype(int).clip(0, np.asarray(grid) - 1)
    kept = np.zeros(grid, bool)
    kept[tuple(position)] = True
    return kept
