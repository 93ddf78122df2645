"""The segments of an image, which mask methods cover or show as a whole."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from pydantic import ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from heatcheck.methods.covering.boxes import Box

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
Pixels = Float[Tensor, "channel *space"]
Labels = Int[Tensor, "*space"]
_CHECKED = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
CONSTANT = "a constant image has no {kind} segments; a grid was used instead"


@dataclass(frozen=True, slots=True)
class Segments:
    """The index of each pixel's segment; channels have separate segments where `labels` has more than one channel.

    Pixels with the label `count` belong to no segment: they are never covered, and their value is 0.
    """

    labels: Int[Tensor, "channel *space"]  # a single channel where all share the segments
    count: int
    note: str = ""

    def painted(self, values: Float[Tensor, "target segment"]) -> Float[Tensor, "target channel *space"]:
        """A map in which each pixel has its segment's value."""
        return functional.pad(values, (0, 1))[:, self.labels]


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of a regular grid."""

    __pydantic_config__: ClassVar[ConfigDict] = _CHECKED

    kind: Literal["grid"] = "grid"
    cells: Count = 8  # along each axis
    per_channel: bool = False  # each channel has segments of its own, as modalities need

    def labels(self, image: Pixels) -> Labels:
        """The cells, numbered row by row."""
        return grid_segments(tuple(image.shape[1:]), self.cells)


@dataclass(frozen=True, slots=True)
class Slic:
    """About `count` superpixels of similar brightness (Achanta et al. 2012), supervoxels in 3D."""

    __pydantic_config__: ClassVar[ConfigDict] = _CHECKED

    kind: Literal["slic"] = "slic"
    count: Count = 64
    compactness: Positive = 0.1  # higher is squarer; each channel is first scaled to the range 0 to 1
    sigma: Annotated[float, Field(ge=0)] = 0.0  # standard deviation in pixels of the blur before cutting
    nonzero: bool = False  # pixels that are 0 in every channel belong to no segment
    per_channel: bool = False

    def inside(self, image: Pixels) -> Bool[Tensor, "*space"]:
        """The pixels that belong to segments."""
        return (image != 0).any(0) if self.nonzero else torch.ones_like(image[0], dtype=torch.bool)

    def labels(self, image: Pixels) -> Labels | None:
        """The superpixels; None where the image is constant or has no pixels to divide."""
        pixels = math.prod(image.shape[1:])
        if self.count > pixels:
            raise ValueError(f"{self.count} segments are more than the {pixels} pixels of the image; use fewer")
        inside = self.inside(image).cpu().numpy()
        scaled = _unit_range(image, inside)
        if scaled is None:
            return None
        return torch.from_numpy(_superpixels(scaled, None if inside.all() else inside, self))


@dataclass(frozen=True, slots=True)
class Quickshift:
    """Segments by quick shift (Vedaldi and Soatto 2008), with the defaults of the lime package; for 2D images."""

    __pydantic_config__: ClassVar[ConfigDict] = _CHECKED

    kind: Literal["quickshift"] = "quickshift"
    kernel_size: Positive = 4.0  # pixels
    max_dist: Positive = 200.0
    ratio: Annotated[float, Field(ge=0, le=1)] = 0.2  # weight of brightness (0 to 100) against position
    per_channel: bool = False

    def labels(self, image: Pixels) -> Labels | None:
        """The segments; None where the image is constant."""
        if image.ndim != 3:
            raise ValueError("quickshift segments are for 2D images only; use slic or grid for volumes")
        scaled = _unit_range(image, np.ones(image.shape[1:], bool))
        if scaled is None:
            return None
        from skimage.segmentation import quickshift

        values = np.moveaxis(scaled, 0, -1) * (100 / math.sqrt(len(scaled)))
        labels = quickshift(  # type: ignore[no-untyped-call]
            values, self.ratio, self.kernel_size, self.max_dist, convert2lab=False, rng=0, channel_axis=-1
        )
        return torch.from_numpy(np.asarray(labels, np.int64))


@dataclass(frozen=True, slots=True)
class Given:
    """Segments supplied by the user, such as organs; from Python only."""

    __pydantic_config__: ClassVar[ConfigDict] = _CHECKED

    given: Tensor  # an integer for each pixel of the model's grid
    kind: Literal["given"] = "given"
    per_channel: bool = False

    def labels(self, image: Pixels) -> Labels:
        """The given labels, which must lie on the image's grid."""
        if self.given.shape != image.shape[1:]:
            raise ValueError(
                f"the given segments must have the shape of the model's grid {tuple(image.shape[1:])}, "
                f"got {tuple(self.given.shape)}; resize them"
            )
        return self.given


SegmentRule = Annotated[Grid | Slic | Quickshift | Given, Field(discriminator="kind")]
GRID = Grid()


def segments_of(image: Pixels, rule: SegmentRule) -> Segments:
    """The image's segments by that rule, the same at every call; a grid where a constant image has none."""
    by_rule = rule.labels(image)
    note = "" if by_rule is not None else CONSTANT.format(kind=rule.kind)
    labels = numbered(_fallback_grid(rule, image) if by_rule is None else by_rule).to(image.device).unsqueeze(0)
    outside = ~rule.inside(image) if isinstance(rule, Slic) and by_rule is not None else None
    if outside is not None and bool(outside.any()):
        labels = labels - 1  # the pixels outside have the first label
    count = int(labels.max()) + 1
    if rule.per_channel:
        first = count * torch.arange(len(image), device=image.device)
        labels, count = labels + first.reshape(-1, *[1] * (image.ndim - 1)), count * len(image)
    return Segments(labels if outside is None else labels.masked_fill(outside, count), count, note)


def number_of(rule: SegmentRule, shape: tuple[int, ...]) -> int:
    """How many segments an image of this shape has; by rules that look at the image, how many are wanted."""
    channels, *sides = shape
    if isinstance(rule, Given):
        number = len(torch.unique(rule.given))
    elif isinstance(rule, Slic):
        number = rule.count
    else:  # quickshift cuts an image into about as many as the usual grid
        number = (rule.cells if isinstance(rule, Grid) else GRID.cells) ** len(sides)
    return number * (channels if rule.per_channel else 1)


def numbered(labels: Labels) -> Labels:
    """The same segments, numbered from 0 without gaps, in the order of their labels."""
    return torch.unique(labels, return_inverse=True)[1]


def grid_segments(shape: tuple[int, ...], cells: int) -> Labels:
    """The index of each pixel's cell in a grid of `cells` along each axis."""
    if cells > min(shape):
        raise ValueError(f"{cells} cells do not fit on an axis of {min(shape)} pixels; use fewer")
    numbers = torch.zeros(shape, dtype=torch.long)
    for axis, size in enumerate(shape):
        along = torch.arange(size) * cells // size
        numbers = numbers * cells + along.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return numbers


def notes_of(cuts: Sequence[Segments]) -> str:
    """The notes on the segments of several images, each note once."""
    return "; ".join(dict.fromkeys(segments.note for segments in cuts if segments.note))


@dataclass(frozen=True)
class SegmentCovers:
    """Covers that hide segments, stored by segment: as pixels they would not fit into memory."""

    hidden: Bool[Tensor, "cover segment"]
    segments: Segments

    def __len__(self) -> int:
        return len(self.hidden)

    def __getitem__(self, some: slice) -> Bool[Tensor, "some channel *space"]:
        return functional.pad(self.hidden[some], (0, 1))[:, self.segments.labels]

    def region(self, index: int, previous: int | None = None) -> Box | None:
        """A box around the segments that a cover hides, or that differ from a previous one; None where none do."""
        changed = self.hidden[index] if previous is None else self.hidden[index] ^ self.hidden[previous]
        spans = [self._spans[segment] for segment in changed.nonzero().flatten().tolist()]
        if not spans:
            return None
        ends = np.array(spans)  # segment, axis, start and stop
        low, high = ends[..., 0].min(0).tolist(), ends[..., 1].max(0).tolist()
        return Box(tuple(zip(low, high, strict=True)))

    def within(self, index: int, box: Box) -> Bool[Tensor, "1 channel *space"]:
        """The part of a cover inside a box."""
        labels = self.segments.labels[(slice(None), *box.index)]
        return functional.pad(self.hidden[index : index + 1], (0, 1))[:, labels]

    @cached_property
    def _spans(self) -> list[tuple[tuple[int, int], ...]]:
        """The start and stop of each segment along each axis."""
        from scipy.ndimage import find_objects

        boxes = find_objects(self.segments.labels.cpu().numpy() + 1, self.segments.count)
        return [tuple((axis.start, axis.stop) for axis in box[1:]) for box in boxes]


def each_alone(segments: Segments) -> SegmentCovers:
    """One cover per segment, which hides it alone."""
    return SegmentCovers(torch.eye(segments.count, dtype=torch.bool, device=segments.labels.device), segments)


def _fallback_grid(rule: Grid | Slic | Quickshift | Given, image: Pixels) -> Labels:
    """A grid of about as many cells as the rule has segments."""
    shape = tuple(image.shape[1:])
    wanted = rule.count if isinstance(rule, Slic) else GRID.cells ** len(shape)
    return grid_segments(shape, min(max(1, round(wanted ** (1 / len(shape)))), *shape))


def _superpixels(
    scaled: Float[np.ndarray, "channel *space"], mask: Bool[np.ndarray, "*space"] | None, rule: Slic
) -> Int[np.ndarray, "*space"]:
    """The superpixels of scikit-image, from 1; 0 outside the mask."""
    from skimage.segmentation import slic

    voxels = scaled[0].size if mask is None else int(mask.sum())
    with warnings.catch_warnings():
        # seeds are spread evenly in the mask by k-means; a seed without pixels is dropped
        warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
        superpixels = slic(
            np.moveaxis(scaled, 0, -1),
            min(rule.count, voxels),
            # squared distances add up over channels: this makes the setting independent of their number
            rule.compactness * math.sqrt(len(scaled)),
            sigma=rule.sigma,
            convert2lab=False,
            channel_axis=-1,
            start_label=1,
            mask=mask,
        )
    labels = np.asarray(superpixels, np.int64)
    if mask is None:
        return labels
    labels[mask & (labels == 0)] = labels.max() + 1  # far from every seed
    labels[~mask] = 0
    return labels


def _unit_range(image: Pixels, inside: Bool[np.ndarray, "*space"]) -> Float[np.ndarray, "channel *space"] | None:
    """Each channel scaled to 0..1 by its values inside, a constant channel to 0; None where the image is constant."""
    values = image.detach().cpu().double().numpy()
    if not inside.any() or all((channel == channel.flat[0]).all() for channel in values):
        return None
    in_use = values[:, inside]
    axes = (-1, *[1] * (values.ndim - 1))
    low, high = in_use.min(1).reshape(axes), in_use.max(1).reshape(axes)
    return (values - low) / np.where(high > low, high - low, 1.0)
