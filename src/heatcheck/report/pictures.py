"""Pictures small enough to travel inside the page: the image as JPEG, a map as a palette PNG that fades to nothing."""

import base64
import io
from pathlib import Path

import numpy as np
from PIL import Image

IMAGE_SIDE = 512
MAP_SIDE = 160
_LEVELS = 64  # more is not seen through the image, and packs worse

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
    levels = Image.fromarray((grey.astype(np.uint16) * _LEVELS // 256).astype(np.uint8), mode="P")
    colours, alphas = _palette()
    levels.putpalette(colours)
    return _uri(levels, "png", transparency=alphas, optimize=True)


def _opened(folder: Path, name: str, side: int) -> Image.Image:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise PictureError(f"picture {Path(name).name!r} lies outside the gallery")
    try:
        with Image.open(path) as image:
            image.load()
    except (OSError, ValueError) as error:
        raise PictureError(f"picture {Path(name).name!r} is missing or damaged") from error
    image.thumbnail((side, side), Image.Resampling.BOX if side == MAP_SIDE else Image.Resampling.LANCZOS)
    return image


def _palette() -> tuple[bytes, bytes]:
    place = np.linspace(0, 1, _LEVELS)
    stops = np.linspace(0, 1, len(RAMP))
    colours = np.stack([np.interp(place, stops, channel) for channel in zip(*RAMP, strict=True)], axis=1)
    alphas = 255 * np.clip((place - 0.12) * 1.7, 0, 1)
    return colours.round().astype(np.uint8).tobytes(), alphas.round().astype(np.uint8).tobytes()


def _uri(image: Image.Image, kind: str, **options: object) -> str:
    buffer = io.BytesIO()
    image.save(buffer, format=kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
