"""Reading one image or mask file; whatever is wrong with it becomes one sentence that names the file."""

import warnings
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image as Pictures
from PIL import UnidentifiedImageError

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Image, Mask

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".npy")
Colour = Literal["grey", "rgb"]
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # Pillow's names for more than 8 bits


def read_image(path: Path, name: str, colour: Colour = "grey") -> Image:
    """The image as float32 [channel, row, column]: integers scaled to [0, 1], floats as they are.

    `name` is what errors call the file, so that no absolute path leaves this machine.
    """
    values = _read_array(path, name) if path.suffix.lower() == ".npy" else _read_picture(path, name, colour)
    if not np.isfinite(values).all():
        raise CaseError(f"{name} has NaN or infinite pixels; repair or remove it")
    if values.size == 0:
        raise CaseError(f"{name} has no pixels; repair or remove it")
    return values


def read_mask(path: Path, name: str, shape: tuple[int, ...]) -> Mask:
    """The pixels above 0, which must lie on the image's grid."""
    values = _read_array(path, name) if path.suffix.lower() == ".npy" else _read_picture(path, name, "grey")
    if values.shape[1:] != shape:
        raise CaseError(
            f"mask {name} is {_size(values.shape[1:])}, its image {_size(shape)}; export it at the image's size"
        )
    return np.asarray(values.max(0) > 0)


def image_shape(path: Path, name: str) -> tuple[int, ...]:
    """Rows and columns of an image, from its header alone."""
    if path.suffix.lower() == ".npy":
        return tuple(_read_array(path, name).shape[1:])
    with _opened(path, name) as picture:
        return picture.height, picture.width


def _size(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


def _opened(path: Path, name: str) -> Pictures.Image:
    if not path.is_file():
        raise CaseError(f"{name} does not exist; correct the list or add the file")
    if path.stat().st_size == 0:
        raise CaseError(f"{name} is empty (0 bytes); copy it again")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Pictures.DecompressionBombWarning)
            return Pictures.open(path)
    except UnidentifiedImageError as error:
        raise CaseError(f"{name} is not an image, whatever its ending says; export it again") from error
    except (OSError, Pictures.DecompressionBombError, Pictures.DecompressionBombWarning) as error:
        raise CaseError(f"{name} cannot be read ({error}); export it again") from error


def _read_picture(path: Path, name: str, colour: Colour) -> Image:
    with _opened(path, name) as picture:
        try:
            picture.load()
        except (OSError, ValueError, SyntaxError, EOFError) as error:
            raise CaseError(f"{name} is damaged ({error}); copy or export it again") from error
        if picture.mode in _DEEP:
            return (np.asarray(picture, dtype=np.float32) / 65535)[None]
        if picture.mode == "F":
            return np.asarray(picture, dtype=np.float32)[None]
        wanted = picture.convert("L" if colour == "grey" else "RGB")
    values = np.asarray(wanted, dtype=np.float32) / 255
    return values[None] if values.ndim == 2 else np.moveaxis(values, -1, 0).copy()


def _read_array(path: Path, name: str) -> Image:
    if not path.is_file():
        raise CaseError(f"{name} does not exist; correct the list or add the file")
    try:
        values = np.load(path, allow_pickle=False)  # pickled arrays could run code
    except (ValueError, OSError, EOFError) as error:
        raise CaseError(f"{name} is not a plain .npy array ({error}); save it again with numpy.save") from error
    if values.ndim not in (2, 3):
        raise CaseError(f"{name} has {values.ndim} axes; expected rows × columns or channels × rows × columns")
    if values.dtype.kind not in "biuf":
        raise CaseError(f"{name} holds {values.dtype}, not numbers; save it again")
    scale = np.iinfo(values.dtype).max if values.dtype.kind in "iu" else 1
    scaled = (values / scale).astype(np.float32) if scale != 1 else values.astype(np.float32)
    return scaled[None] if scaled.ndim == 2 else scaled
