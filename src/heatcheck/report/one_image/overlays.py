"""Maps laid over their image: a grey picture, a colour scale that fades to nothing, and a description in words."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from heatcheck.core.records import Map
from heatcheck.report.blocks.pictures import RAMP
from heatcheck.report.one_image.slices import Volume

SIDE = 320  # pixels of the longer side of one panel
TOP = 99.5  # the percentile of a map that gets the brightest colour: one hot pixel must not hide all others
SLICES = 3  # of a volume, around the peak
_OPACITY = 0.62  # of the hottest parts: the anatomy below must stay visible
_DIM = 0.85  # of the image's brightness: pale yellow must stand out from bone
Grey = Float[np.ndarray, "row column"]
Colours = UInt8[np.ndarray, "row column rgb"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture of one map and its description."""

    picture: Image.Image
    words: str
    slices: str  # which slices of a volume are shown, and how they lie; nothing for a 2D image
    is_empty: bool  # nothing in the map speaks for the target


def draw(image: Map, values: Map, affine: np.ndarray | None = None) -> Drawn:
    """The map over its image; of a volume, the slices around the peak with the bare slices above them."""
    heat, top = _heat(values)
    if image.ndim == 2 and affine is None:
        picture = _sized(_blend(_grey(image), heat), (1.0, 1.0))
        return Drawn(picture, _in_words(values, heat, top), "", top == 0)
    anatomy, hot = Volume.oriented(_grey(image), affine), Volume.oriented(heat, affine)
    raw = Volume.oriented(values, affine).values
    numbers = _slices(raw)
    above = [_sized(_rgb(anatomy.values[n]), anatomy.pixel) for n in numbers]
    below = [_sized(_blend(anatomy.values[n], hot.values[n]), anatomy.pixel) for n in numbers]
    single = len(raw) == 1
    slices = f"slices {', '.join(str(n + 1) for n in numbers)} of {len(raw)}"
    which = " ".join(filter(None, (hot.plane, "" if single else slices))) + hot.sides
    return Drawn(_tiled([below] if single else [above, below]), _in_words(raw, hot.values, top), which, top == 0)


def bare(image: Map, affine: np.ndarray | None = None) -> Image.Image:
    """The image without a map; of a volume, the middle slice."""
    if image.ndim == 2 and affine is None:
        return _sized(_rgb(_grey(image)), (1.0, 1.0))
    anatomy = Volume.oriented(_grey(image), affine)
    return _sized(_rgb(anatomy.values[len(anatomy.values) // 2]), anatomy.pixel)


def scale(width: int, height: int) -> Image.Image:
    """The colours from nothing to the hottest, over the grey of soft tissue."""
    ramp = np.tile(np.linspace(0, 1, width), (height, 1))
    return Image.fromarray(_blend(np.full((height, width), 0.45), ramp))


def _grey(image: Map) -> Map:
    """Grey values in [0, 1], the darkest and brightest half per cent cut off."""
    low, high = np.percentile(image, [0.5, 99.5])
    return np.clip((image - low) / max(float(high - low), 1e-6), 0, 1).astype(np.float32)


def _heat(values: Map) -> tuple[Map, float]:
    """The map over the value that gets the brightest colour, and that value: 0 where nothing is hot."""
    hot = np.clip(values, 0, None)
    top = float(np.percentile(hot, TOP)) or float(hot.max(initial=0))
    return (np.clip(hot / top, 0, 1) if top > 0 else np.zeros_like(hot)), top


def _rgb(grey: Grey) -> Colours:
    return np.repeat(np.round(grey * 255).astype(np.uint8)[..., None], 3, axis=2)


def _blend(grey: Grey, heat: Grey) -> Colours:
    stops = np.linspace(0, 1, len(RAMP))
    colours = np.stack([np.interp(heat, stops, channel) for channel in zip(*RAMP, strict=True)], axis=-1)
    opacity = (_OPACITY * np.clip((heat - 0.1) * 1.8, 0, 1))[..., None]
    return np.round(_DIM * _rgb(grey) * (1 - opacity) + colours * opacity).astype(np.uint8)


def _sized(colours: Colours, pixel: tuple[float, float]) -> Image.Image:
    """The picture with its longer side at `SIDE`; `pixel` is how tall and how wide one of its pixels is."""
    height, width = colours.shape[0] * pixel[0], colours.shape[1] * pixel[1]
    factor = SIDE / max(height, width)
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return Image.fromarray(np.ascontiguousarray(colours)).resize(size, Image.Resampling.BICUBIC)


def _slices(heat: np.ndarray) -> list[int]:
    """The slice with the peak and its neighbours at an eighth of the volume, in order; the middle of an empty map."""
    depth = len(heat)
    hottest = heat.reshape(depth, -1).max(1)
    peak = int(hottest.argmax()) if hottest.max() > 0 else depth // 2
    step = max(1, depth // 8)
    start = min(max(peak - step, 0), max(0, depth - 1 - step * (SLICES - 1)))
    around = {start + step * n for n in range(SLICES)} | {peak}
    return sorted(sorted((n for n in around if n < depth), key=lambda n: (n != peak, abs(n - peak)))[:SLICES])


def _tiled(rows: list[list[Image.Image]]) -> Image.Image:
    gap = 4
    width = sum(picture.width for picture in rows[0]) + gap * (len(rows[0]) - 1)
    height = sum(row[0].height for row in rows) + gap * (len(rows) - 1)
    sheet = Image.new("RGB", (width, height), (110, 110, 110))
    top = 0
    for row in rows:
        left = 0
        for picture in row:
            sheet.paste(picture, (left, top))
            left += picture.width + gap
        top += row[0].height + gap
    return sheet


def _in_words(values: Map, heat: Map, top: float) -> str:
    """Where the map is hot, for screen readers."""
    if top == 0:
        return "nothing in the image speaks for it"
    peak = np.unravel_index(int(np.argmax(values)), values.shape)
    axes = ("slice", "row", "column")[-len(peak) :]
    position = ", ".join(f"{axis} {i + 1} of {size}" for axis, i, size in zip(axes, peak, values.shape, strict=True))
    return f"hottest at {position}; {100 * float((heat >= 0.5).mean()):.0f} % of the image is at least half as hot"
