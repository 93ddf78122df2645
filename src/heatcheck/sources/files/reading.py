"""Reads one image or mask file; every problem becomes one sentence that names the file."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Num
from PIL import Image as Pictures
from PIL import ImageOps, UnidentifiedImageError

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Affine, Image, Map, Mask
from heatcheck.sources.files.reading_dicom import dicom_affine, dicom_shape, is_dicom, read_dicom, states_window
from heatcheck.sources.files.reading_nifti import NIFTI_SUFFIXES, is_nifti, nifti_shape, read_nifti, voxel_grid

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".npy")
DICOM_SUFFIXES = (".dcm", ".dicom")
IMAGE_SUFFIXES = (*PICTURE_SUFFIXES, *DICOM_SUFFIXES, *NIFTI_SUFFIXES)
_ONE_DOT = {ending for ending in IMAGE_SUFFIXES if ending.count(".") == 1}
FORMATS = "PNG, JPEG, TIFF, BMP, .npy, DICOM or NIfTI"  # in words, for errors
Colour = Literal["grey", "rgb"]
Range = tuple[float, float]
Stored = Num[np.ndarray, "channel *space"]  # values as in the file
_ORIENTATION = 0x0112  # the EXIF tag
_GREY_TOLERANCE = 5  # grey levels by which the channels of a grey image may differ
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # Pillow's names for more than 8 bits


def read_image(path: Path, name: str, colour: Colour = "grey", value_range: Range | None = None) -> Image:
    """The image as float32 [channel, *space]: integers scaled to [0, 1], floats unchanged.

    Errors use `name`, so that no absolute path leaves this machine. `value_range` gives the stored values that become
    0 and 1; without it a 12-bit film in a 16-bit file is nearly black. Without a range, DICOM is shown through its
    window and NIfTI keeps its units (such as Hounsfield).
    """
    if _holds_dicom(path, name):
        return _finite(read_dicom(path, name, colour, value_range), name)
    values = read_nifti(path, name) if is_nifti(path) else _read(path, name, colour)
    if values.size == 0:
        raise CaseError(f"{name} has no pixels; repair or remove it")
    if value_range is not None:
        low, high = value_range
        return _finite(((values.astype(np.float64) - low) / (high - low)).astype(np.float32), name)
    if values.dtype.kind in "iu" and values.dtype.itemsize > 2:
        raise CaseError(
            f"{name} holds {values.dtype}, for which the value of white is unknown; save it as uint8, uint16 or floats"
        )
    scale = np.iinfo(values.dtype).max if values.dtype.kind in "iu" else 1
    with np.errstate(over="ignore"):
        scaled = np.array(values, np.float32, order="C") / np.float32(scale)
    return _finite(scaled, name)


def read_grey_film(path: Path, name: str) -> Image:
    """The 8-bit film as float32 [1, row, column] in [0, 1], stored with one channel or with three equal ones.

    For data sets of 8-bit films: a coloured image is not a film, and in deeper files the value of white is unknown,
    because 12-bit films are stored in 16 bits.
    """
    with _opened(path, name) as picture:
        deep = picture.mode in (*_DEEP, "F") or _is_deep_png(path)
        values = np.asarray(picture if deep or picture.mode == "L" else picture.convert("RGB"))
    if deep:
        raise CaseError(f"{name} has more than 8 bits, so the value of white is unknown; save it as 8-bit grey")
    if values.ndim == 3:
        difference = int(np.ptp(values, axis=2).max(initial=0))
        if difference > _GREY_TOLERANCE:
            raise CaseError(f"{name} is in colour (channels differ by {difference} of 255); save it as 8-bit grey")
        values = np.round(values.mean(2)).astype(np.uint8)
    return np.array(values[None], np.float32, order="C") / np.float32(255)


def _is_deep_png(path: Path) -> bool:
    """Whether the file is a 16-bit PNG, of which Pillow silently drops the lower bits of colours."""
    with path.open("rb") as file:
        head = file.read(25)
    return head.startswith(b"\x89PNG") and head[24:] == b"\x10"


def is_image(path: Path) -> bool:
    """Whether the file is an image by its ending; without an ending it must have the DICOM signature."""
    known = path.name.lower().endswith(IMAGE_SUFFIXES)
    return path.is_file() and (known or (not path.suffix and is_dicom(path)))


def without_ending(name: str) -> str:
    """The name without the ending of an image file; other dots are kept."""
    stem, dot, ending = name.rpartition(".")
    if dot and f".{ending.lower()}" in _ONE_DOT:  # fast path: there may be a quarter of a million names
        return stem
    ending = next((ending for ending in reversed(IMAGE_SUFFIXES) if name.lower().endswith(ending)), "")
    return name[: len(name) - len(ending)]


def _holds_dicom(path: Path, name: str) -> bool:
    """Whether the file is DICOM: by its ending, or without a known ending by its signature."""
    _require_content(path, name)
    lower = path.name.lower()
    return lower.endswith(DICOM_SUFFIXES) or (not lower.endswith(IMAGE_SUFFIXES) and is_dicom(path))


def read_mask(path: Path, name: str, shape: tuple[int, ...] | None) -> Mask:
    """The pixels above 0; raises CaseError unless they have the image's shape, if given."""
    _require_content(path, name)
    if is_nifti(path):
        values = read_nifti(path, name)
    elif path.suffix.lower() == ".npy":  # only the shape of the image distinguishes channels from slices
        values = _with_channels(_array(path, name), 2 if shape is None else len(shape))
    else:
        values = _read_picture(path, name, "grey")
    _finite(values, name)
    if shape is not None and values.shape[1:] != shape:
        raise CaseError(
            f"mask {name} is {_size(values.shape[1:])}, its image {_size(shape)}; export it at the image's size"
        )
    return np.asarray((values > 0).any(0))


def read_alpha(path: Path, name: str) -> Map | None:
    """The share of each pixel of a picture that is not transparent; None where the file has no such channel."""
    if not path.name.lower().endswith((".png", ".tif", ".tiff")):
        return None
    with _opened(path, name) as picture:
        if not picture.has_transparency_data:
            return None
        return np.asarray(picture.convert("RGBA").getchannel("A"), np.float32) / np.float32(255)


def image_shape(path: Path, name: str) -> tuple[int, ...]:
    """Rows and columns of an image, or the axes of a volume, from the header alone."""
    if _holds_dicom(path, name):
        return dicom_shape(path, name)
    if is_nifti(path):
        return nifti_shape(path, name)
    if path.suffix.lower() == ".npy":
        return tuple(_read_array(path, name).shape[1:])
    with _opened(path, name) as picture:
        turned = picture.format == "JPEG" and picture.getexif().get(_ORIENTATION, 1) >= 5  # turned by 90°
        return (picture.width, picture.height) if turned else (picture.height, picture.width)


def require_openable(path: Path, name: str) -> None:
    """Raise CaseError for a file that is seen to be damaged without decoding it: empty, cut off, or no image."""
    image_shape(path, name)
    if path.suffix.lower() == ".png":  # its parts have check sums, which other formats lack
        with _opened(path, name) as picture:
            picture.verify()


def lacks_window(path: Path, name: str) -> bool:
    """Whether the file is DICOM and does not say which values are black and white, from the header alone."""
    return _holds_dicom(path, name) and not states_window(path, name)


def image_affine(path: Path, name: str) -> Affine | None:
    """The position of pixels or voxels in the patient, from the header alone; None if the file does not state it."""
    if _holds_dicom(path, name):
        return dicom_affine(path, name)
    return voxel_grid(path, name).affine if is_nifti(path) else None


def _size(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


def _finite(values: Stored, name: str) -> Stored:
    if not np.isfinite(values).all():
        raise CaseError(f"{name} has NaN or infinite pixels; repair or remove it")
    return values


def _read(path: Path, name: str, colour: Colour) -> Stored:
    return _read_array(path, name) if path.suffix.lower() == ".npy" else _read_picture(path, name, colour)


def _require_content(path: Path, name: str) -> None:
    if not path.is_file():
        raise CaseError(f"{name} does not exist; correct its name or add the file")
    if path.stat().st_size == 0:
        raise CaseError(f"{name} is empty (0 bytes); copy it again")


@contextmanager
def _opened(path: Path, name: str) -> Iterator[Pictures.Image]:
    """The opened image; any error while it is open becomes a CaseError."""
    _require_content(path, name)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"PIL\.")  # odd metadata does not matter here
            with Pictures.open(path) as picture:
                _require_sane_size(picture)
                yield picture
    except UnidentifiedImageError as error:
        raise CaseError(_not_read(path, name)) from error
    except Exception as error:  # decoders raise anything on damaged bytes
        raise CaseError(f"{name} cannot be read ({_reason(error, path, name)}); copy or export it again") from error


def _not_read(path: Path, name: str) -> str:
    """Why a file is no image: its format is not read at all, or its content is not what its ending says."""
    if path.name.lower().endswith(IMAGE_SUFFIXES):
        return f"{name} is not an image despite its ending; export it again"
    if path.suffix.lower() == ".npz":
        return f"{name} is an archive of arrays; save the one that is the image as .npy"
    format_ = f"the format {path.suffix}" if path.suffix else "an unknown format without an ending"
    return f"{name} has {format_}, which is not read; convert it to {FORMATS}"


def _require_sane_size(picture: Pictures.Image) -> None:
    """Raise ValueError for too many pixels: Pillow only warns, and warning filters are not thread-safe."""
    if picture.width * picture.height > (Pictures.MAX_IMAGE_PIXELS or math.inf):
        raise ValueError(f"{_size((picture.height, picture.width))} pixels are too many")


def _reason(error: Exception, path: Path, name: str) -> str:
    return str(error).replace(str(path), name)


def _read_picture(path: Path, name: str, colour: Colour) -> Stored:
    with _opened(path, name) as opened:
        picture = ImageOps.exif_transpose(opened) if opened.format == "JPEG" else opened
        if picture.mode in (*_DEEP, "F"):
            return _narrowed(np.asarray(picture))[None]
        values = np.asarray(picture.convert("L" if colour == "grey" else "RGB"))
    return values[None] if values.ndim == 2 else np.moveaxis(values, -1, 0)


def _narrowed(values: np.ndarray) -> np.ndarray:
    """The values as uint16 if they fit, because Pillow returns some 16-bit images as 32-bit integers."""
    fits = values.dtype.kind == "i" and values.min() >= 0 and values.max() <= np.iinfo(np.uint16).max
    return values.astype(np.uint16) if fits else values


def _read_array(path: Path, name: str) -> Stored:
    return _with_channels(_array(path, name), 2)


def _with_channels(values: np.ndarray, axes: int) -> Stored:
    """The array with a channel axis before its `axes` spatial axes."""
    return values if values.ndim > axes else values[None]


def _array(path: Path, name: str) -> np.ndarray:
    _require_content(path, name)
    try:
        with path.open("rb") as file:
            values = np.lib.format.read_array(file, allow_pickle=False)  # pickled arrays could run code
    except Exception as error:  # NumPy raises anything on damaged bytes
        why = _reason(error, path, name)
        raise CaseError(f"{name} is not a plain .npy array ({why}); save it again with numpy.save") from error
    if values.ndim not in (2, 3, 4):
        raise CaseError(
            f"{name} has {values.ndim} axes; save rows × columns, channels × rows × columns or, for a volume, "
            "channels × its three axes"
        )
    if values.dtype.kind not in "biuf":
        raise CaseError(f"{name} holds {values.dtype}, not numbers; save it again")
    return values
