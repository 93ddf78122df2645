"""Reads the pixels of a DICOM file as a viewer shows them; no other tag leaves this module.

stored values → modality LUT or rescale → VOI LUT or first window → [0, 1], dark to bright; for the reasons see
`docs/decisions/001-dicom-and-nifti-pixels.md`.
"""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from jaxtyping import Float
from PIL import Image as Pictures
from pydicom import Dataset, dcmread
from pydicom.pixels.processing import apply_color_lut, apply_modality_lut, apply_voi
from pydicom.uid import UID, ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Affine, Image
from heatcheck.sources.files.decoding import decoded

Range = tuple[float, float]
Grey = Float[np.ndarray, "row column"]
SKEW = 0.01  # tolerance for |row direction × column direction| = 1
_MAGIC = 128  # offset of the letters DICM
_FIRST_GROUPS = (b"\x02\x00", b"\x08\x00", b"\x00\x08")  # of a file without preamble, in either byte order
_PIXELS = ("PixelData", "FloatPixelData", "DoubleFloatPixelData")
_LUMINANCE = (0.299, 0.587, 0.114)  # as in Pillow, so that a DICOM image and its PNG have the same grey values


def is_dicom(path: Path) -> bool:
    """Whether the file has the DICOM signature, whatever its ending; the index of a disc is not an image."""
    if path.name.upper() == "DICOMDIR":
        return False
    try:
        with path.open("rb") as file:
            return file.read(_MAGIC + 4)[_MAGIC:] == b"DICM"
    except OSError:
        return False


def read_dicom(path: Path, name: str, colour: str, value_range: Range | None) -> Image:
    """The image as [channel, row, column] in [0, 1], with dark as 0 even if the file is inverted.

    `value_range` replaces the file's window: the modality values that become 0 and 1, unclipped.
    """
    dataset = _opened(path, name, pixels=True)
    _require_one_image(dataset, name)
    if not any(tag in dataset for tag in _PIXELS):
        raise CaseError(f"{name} is a DICOM file without pixels, only a header; export it with its image")
    with _errors_explained(name, f"its pixels, {_syntax(dataset)}, cannot be read"):
        stored = decoded(dataset, path)
        if dataset.get("SamplesPerPixel", 1) > 1:
            return _colour_image(stored, _white(dataset, stored), colour)
        if dataset.PhotometricInterpretation == "PALETTE COLOR":
            rgb = apply_color_lut(stored, _with_readable_palette(dataset))[..., :3]
            return _colour_image(rgb, float(np.iinfo(rgb.dtype).max), colour)
    return _grey_image(dataset, stored, name, value_range)[None].astype(np.float32)


def dicom_shape(path: Path, name: str) -> tuple[int, ...]:
    """Rows and columns, from the header alone."""
    dataset = _opened(path, name, pixels=False)
    _require_one_image(dataset, name)
    return (int(dataset.Rows), int(dataset.Columns))


def states_window(path: Path, name: str) -> bool:
    """Whether the file says which values are shown as black and white; colours need no window."""
    dataset = _opened(path, name, pixels=False)
    with _errors_explained(name, "its header has wrong values"):
        coloured = dataset.get("SamplesPerPixel", 1) > 1 or dataset.get("PhotometricInterpretation") == "PALETTE COLOR"
        return bool(coloured or dataset.get("VOILUTSequence")) or _first_window(dataset) is not None


def dicom_affine(path: Path, name: str) -> Affine | None:
    """From row, column and slice 0 to the patient's right, front and up; None if the file does not state it.

    DICOM PS3.3 C.7.6.2.1.1 counts to the patient's left and back. The third axis has the length of the slice spacing.
    """
    dataset = _opened(path, name, pixels=False)
    with _errors_explained(name, "its position in the patient cannot be read"):
        tags = ("ImageOrientationPatient", "ImagePositionPatient", "PixelSpacing")
        values = [np.array(dataset.get(tag) or [], np.float64) for tag in tags]
        if [len(each) for each in values] != [6, 3, 2] or not all(np.isfinite(each).all() for each in values):
            return None
        orientation, position, (tall, wide) = values
        row_direction, column_direction = orientation[:3], orientation[3:]
        normal = np.cross(column_direction, row_direction)
        if min(tall, wide) <= 0 or abs(float(np.linalg.norm(normal)) - 1) > SKEW:
            return None
        spacing = _first(dataset.get("SpacingBetweenSlices")) or _first(dataset.get("SliceThickness")) or 1.0
    affine = np.eye(4)
    affine[:3] = np.column_stack([column_direction * tall, row_direction * wide, normal * abs(spacing), position])
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine


def _opened(path: Path, name: str, *, pixels: bool) -> Dataset:
    """The data set; a file without preamble is accepted if its first bytes look like DICOM."""
    with path.open("rb") as file:
        start = file.read(_MAGIC + 4)
    without_preamble = start[_MAGIC:] != b"DICM"
    if without_preamble and start[:2] not in _FIRST_GROUPS:
        raise CaseError(f"{name} is not a DICOM file despite its ending; export it again")
    with _errors_explained(name, "its header cannot be read"):
        dataset = dcmread(path, force=without_preamble, stop_before_pixels=not pixels)
        if "TransferSyntaxUID" not in dataset.file_meta:
            dataset.file_meta.TransferSyntaxUID = _uncompressed(dataset)
    return dataset


def _uncompressed(dataset: Dataset) -> UID:
    """The transfer syntax that pydicom inferred from the bytes."""
    implicit, little = dataset.original_encoding
    if implicit:
        return ImplicitVRLittleEndian
    return ExplicitVRLittleEndian if little else ExplicitVRBigEndian


@contextmanager
def _errors_explained(name: str, what: str) -> Iterator[None]:
    """Turns any error in the block into a CaseError of one sentence, without the values of any tag."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd tags do not matter here
            warnings.filterwarnings("error", "End of file reached")  # but truncated pixels do
            yield
    except CaseError:
        raise
    except Exception as error:  # decoders raise anything on damaged bytes
        kind = type(error).__name__
        raise CaseError(f"{name}: {what} ({kind}); copy or export it again, uncompressed if you can") from error


def _syntax(dataset: Dataset) -> str:
    return str(getattr(dataset.file_meta.TransferSyntaxUID, "name", "of unknown encoding"))


def _require_one_image(dataset: Dataset, name: str) -> None:
    if "Rows" not in dataset or "Columns" not in dataset:
        raise CaseError(f"{name} is a DICOM file that holds no image (it may be a report or an index); leave it out")
    with _errors_explained(name, "its header has wrong values"):
        rows, columns = int(dataset.Rows), int(dataset.Columns)
        frames = int(dataset.get("NumberOfFrames") or 1)
    if frames > 1:
        raise CaseError(f"{name} holds {frames} frames; export the one you need as a separate file")
    if rows * columns > (Pictures.MAX_IMAGE_PIXELS or math.inf):
        raise CaseError(f"{name}: {rows}×{columns} pixels are too many; export it smaller")


def _white(dataset: Dataset, stored: np.ndarray) -> float:
    """The largest value that the stored bits can hold."""
    bits = int(dataset.get("BitsStored") or stored.dtype.itemsize * 8)
    return float(2**bits - 1)


def _with_readable_palette(dataset: Dataset) -> Dataset:
    """The data set with its palette in little-endian order, which pydicom expects whatever the file's byte order."""
    names = [f"{colour}PaletteColorLookupTableData" for colour in ("Red", "Green", "Blue")]
    if not dataset.original_encoding[1] and dataset.RedPaletteColorLookupTableDescriptor[2] == 16:
        for name in filter(dataset.__contains__, names):
            setattr(dataset, name, np.frombuffer(dataset[name].value, ">u2").astype("<u2").tobytes())
    return dataset


def _colour_image(stored: np.ndarray, white: float, colour: str) -> Image:
    scaled = np.moveaxis(stored.astype(np.float64) / white, -1, 0)
    if colour == "grey":
        scaled = np.tensordot(_LUMINANCE, scaled, axes=1)[None]
    return np.ascontiguousarray(scaled, np.float32)


def _grey_image(dataset: Dataset, stored: np.ndarray, name: str, value_range: Range | None) -> Grey:
    with _errors_explained(name, "its modality or window cannot be applied"):
        values = apply_modality_lut(stored, dataset)
        displayed = _rescaled(values, *value_range) if value_range else _windowed(dataset, stored, values)
        inverse = dataset.PhotometricInterpretation == "MONOCHROME1"
        displayed = 1 - displayed if inverse else displayed
        displayed[_padding(dataset, stored)] = 0
    return displayed


def _rescaled(values: np.ndarray, low: float, high: float) -> Grey:
    rescaled: Grey = (values.astype(np.float64) - low) / (high - low)
    return rescaled


def _windowed(dataset: Dataset, stored: np.ndarray, values: np.ndarray) -> Grey:
    """The values after the file's VOI LUT or first window; without either, the full range is shown, as in viewers."""
    if dataset.get("VOILUTSequence"):
        bits = int(dataset.VOILUTSequence[0].LUTDescriptor[2])
        return apply_voi(values, dataset).astype(np.float64) / (2**bits - 1)
    window = _first_window(dataset)
    if window is not None:
        return _window(values.astype(np.float64), *window, str(dataset.get("VOILUTFunction") or "LINEAR"))
    real = values[~_padding(dataset, stored)]
    low, high = (float(real.min()), float(real.max())) if real.size else (0.0, 0.0)
    return np.clip(_rescaled(values, low, high), 0, 1) if high > low else np.zeros(values.shape)


def _first_window(dataset: Dataset) -> tuple[float, float] | None:
    """Centre and width; None where the file does not state both."""
    centre, width = _first(dataset.get("WindowCenter")), _first(dataset.get("WindowWidth"))
    return None if centre is None or width is None else (centre, width)


def _window(values: Grey, centre: float, width: float, function: str) -> Grey:
    """The three window functions of DICOM PS3.3 C.11.2.1.2-3, with an output range of 0 to 1."""
    if function == "SIGMOID":
        sigmoid: Grey = 1 / (1 + np.exp(np.clip(-4 * (values - centre) / width, -700, 700)))
        return sigmoid
    if function != "LINEAR_EXACT":  # LINEAR, which is also the default
        centre, width = centre - 0.5, width - 1
    if width <= 0:  # a window of one value is a step
        return (values > centre).astype(np.float64)
    return np.clip((values - centre) / width + 0.5, 0, 1)


def _first(value: object) -> float | None:
    """The first of several values, such as window centres; None without any."""
    if value is None or value == "":
        return None
    first = value if isinstance(value, int | float | str) else next(iter(value), None)  # type: ignore[call-overload]
    return None if first is None else float(first)


def _padding(dataset: Dataset, stored: np.ndarray) -> np.ndarray:
    """The pixels outside the image, marked by a padding value."""
    low = dataset.get("PixelPaddingValue")
    if low is None:
        return np.zeros(stored.shape, bool)
    high = dataset.get("PixelPaddingRangeLimit", low)
    return (stored >= min(low, high)) & (stored <= max(low, high))
