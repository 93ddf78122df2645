"""Pictures small enough to travel inside the page, and outlines as SVG paths in the frame of the picture shown."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

IMAGE_SIDE = 512
MAP_SIDE = 160
_LEVELS = 64  # more cannot be distinguished over the image and compresses worse
# Dark violet over red to pale yellow: brightness rises all the way, so it reads without colour vision too.
RAMP = ((20, 11, 53), (101, 21, 110), (188, 55, 84), (237, 105, 37), (252, 194, 60), (252, 255, 164))


class PictureError(Exception):
    """A picture is missing or cannot be read; the gallery leaves its case out and counts it."""


def image_uri(folder: Path, name: str) -> str:
    """The image as a data URI, at most `IMAGE_SIDE` pixels on its longer side."""
    image = _opened(folder, name, IMAGE_SIDE)
    if image.mode not in {"L", "RGB"}:
        image = image.convert("L" if image.mode in {"1", "I", "I;16", "F", "LA"} else "RGB")
    return _uri(image, "jpeg", quality=85, optimize=True)


def map_uri(folder: Path, name: str, top: float = 100.0) -> str:
    """A grey map as a coloured overlay: cold parts are transparent, hot parts are bright.

    The brightest colour is that of the percentile `top`: below 100, one hot pixel cannot hide all others.
    """
    grey = np.asarray(_opened(folder, name, MAP_SIDE).convert("L"))
    high = np.percentile(grey, top)
    if 0 < high < grey.max():
        grey = np.minimum(grey * (255 / high), 255)
    return _coloured(grey, _LEVELS)


@dataclass(frozen=True, slots=True)
class SliceStrip:
    """How a strip of slices side by side is shown: how many there are, which are kept, and how finely."""

    slices: int
    kept: tuple[int, ...]
    side: int  # pixels of the longer side of a slice, at most
    levels: int = _LEVELS  # of a map

    def image_uri(self, folder: Path, name: str) -> str:
        """The kept slices of an image as a data URI."""
        return _uri(self._cut(folder, name, Image.Resampling.LANCZOS), "jpeg", quality=82, optimize=True)

    def map_uri(self, folder: Path, name: str, full: float = 255.0) -> str:
        """The kept slices of a map as a coloured overlay; from grey `full` on it has the hottest colour."""
        grey = np.asarray(self._cut(folder, name, Image.Resampling.BOX))
        return _coloured(np.minimum(grey * (255 / full), 255), self.levels)

    def _cut(self, folder: Path, name: str, filtered: Image.Resampling) -> Image.Image:
        """Slices are scaled one by one so that none bleeds into its neighbour."""
        strip = _loaded(folder, name).convert("L")
        width = strip.width // self.slices
        if width * self.slices != strip.width:
            raise PictureError(f"picture {Path(name).name!r} is not a strip of {self.slices} slices")
        factor = min(1.0, self.side / max(width, strip.height))
        size = (max(1, round(width * factor)), max(1, round(strip.height * factor)))
        sheet = Image.new("L", (size[0] * len(self.kept), size[1]))
        for index, number in enumerate(self.kept):
            part = strip.crop((number * width, 0, (number + 1) * width, strip.height))
            sheet.paste(part.resize(size, filtered) if factor < 1 else part, (index * size[0], 0))
        return sheet


def hottest(folder: Path, names: Sequence[str], top: float = 99.5) -> float:
    """The grey value above which the hottest parts of these maps lie together, of all that is not cold.

    By default these are the hottest 0.5 %. It is 255 where the maps are cold everywhere.
    """
    grey = np.concatenate([np.asarray(_loaded(folder, name).convert("L")).ravel() for name in names])
    hot = grey[grey > 0]
    return float(np.percentile(hot, top)) if hot.size else 255.0


def _coloured(grey: np.ndarray, levels: int) -> str:
    picture = Image.fromarray((grey.astype(np.uint16) * levels // 256).astype(np.uint8), mode="P")
    colours, alphas = _palette(levels)
    picture.putpalette(colours)
    return _uri(picture, "png", transparency=alphas, optimize=True)


def _opened(folder: Path, name: str, side: int) -> Image.Image:
    image = _loaded(folder, name)
    image.thumbnail((side, side), Image.Resampling.BOX if side == MAP_SIDE else Image.Resampling.LANCZOS)
    return image


def _loaded(folder: Path, name: str) -> Image.Image:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise PictureError(f"picture {Path(name).name!r} lies outside the gallery")
    try:
        with Image.open(path) as image:
            image.load()
    except (OSError, ValueError) as error:
        raise PictureError(f"picture {Path(name).name!r} is missing or damaged") from error
    return image


def _palette(levels: int) -> tuple[bytes, bytes]:
    heat = np.linspace(0, 1, levels)
    stops = np.linspace(0, 1, len(RAMP))
    colours = np.stack([np.interp(heat, stops, channel) for channel in zip(*RAMP, strict=True)], axis=1)
    alphas = 255 * np.clip((heat - 0.12) * 1.7, 0, 1)
    return colours.round().astype(np.uint8).tobytes(), alphas.round().astype(np.uint8).tobytes()


def _uri(image: Image.Image, kind: str, **options: object) -> str:
    buffer = io.BytesIO()
    image.save(buffer, format=kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


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
    """The contours as one path; points whose absence cannot be seen are left out."""
    return "".join(_closed(simplified([frame.place(point) for point in contour])) for contour in contours)


def simplified(points: Sequence[tuple[float, float]], tolerance: float = 0.6) -> list[tuple[float, float]]:
    """The contour with fewer points, all others within the tolerance of its line (Douglas and Peucker).

    A stack replaces recursion because a contour may have thousands of points.
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
