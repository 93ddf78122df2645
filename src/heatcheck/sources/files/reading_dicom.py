"""Pixels of a DICOM file as a reader sees them on a screen; no other tag leaves this module.

stored values → modality LUT or rescale → VOI LUT or first window → [0, 1], dark to bright; the decision note
`docs/decisions/001-dicom-and-nifti-pixels.md` says why.
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
SKEW = 0.01  # by which the area of rows and columns of length 1 may differ from 1
_MAGIC = 128  # where the letters DICM stand
_FIRST_GROUPS = (b"\x02\x00", b"\x08\x00", b"\x00\x08")  # of a file without preamble, in either byte order
_LUMINANCE = (0.299, 0.587, 0.114)  # as Pillow's, so that a picture is as grey as its PNG


def is_dicom(path: Path) -> bool:
    """Whether the file says it is DICOM, whatever its ending; the index of a disc is not an image."""
    if path.name.upper() == "DICOMDIR":
        return False
    try:
        with path.open("rb") as file:
            return file.read(_MAGIC + 4)[_MAGIC:] == b"DICM"
    except OSError:
        return False


def read_dicom(path: Path, name: str, colour: str, value_range: Range | None) -> Image:
    """The picture as [channel, row, column] in [0, 1]: dark is 0, also where the file has it the other way round.

    `value_range` replaces the file's own window: the modality values that become 0 and 1, unclipped.
    """
    dataset = _opened(path, name, pixels=True)
    _require_one_picture(dataset, name)
    with _explained(name, f"its pixels, {_syntax(dataset)}, cannot be read"):
        stored = decoded(dataset, path)
        if dataset.get("SamplesPerPixel", 1) > 1:
            return _coloured(stored, _white(dataset, stored), colour)
        if dataset.PhotometricInterpretation == "PALETTE COLOR":
            looked_up = apply_color_lut(stored, _with_readable_palette(dataset))[..., :3]
            return _coloured(looked_up, float(np.iinfo(looked_up.dtype).max), colour)
    return _grey(dataset, stored, name, value_range)[None].astype(np.float32)


def dicom_shape(path: Path, name: str) -> tuple[int, ...]:
    """Rows and columns, from the header alone."""
    dataset = _opened(path, name, pixels=False)
    _require_one_picture(dataset, name)
    return (int(dataset.Rows), int(dataset.Columns))


def dicom_affine(path: Path, name: str) -> Affine | None:
    """From row, column and slice 0 to the patient's right, front and up; None where the file does not say it.

    DICOM PS3.3 C.7.6.2.1.1 counts to the patient's left and back. The third axis is as long as the slice is thick.
    """
    dataset = _opened(path, name, pixels=False)
    with _explained(name, "its place in the patient cannot be read"):
        tags = ("ImageOrientationPatient", "ImagePositionPatient", "PixelSpacing")
        values = [np.array(dataset.get(tag) or [], np.float64) for tag in tags]
        if [len(each) for each in values] != [6, 3, 2] or not all(np.isfinite(each).all() for each in values):
            return None
        orientation, position, (tall, wide) = values
        along_row, along_column = orientation[:3], orientation[3:]
        across = np.cross(along_column, along_row)
        if min(tall, wide) <= 0 or abs(float(np.linalg.norm(across)) - 1) > SKEW:
            return None
        thick = _first(dataset.get("SpacingBetweenSlices")) or _first(dataset.get("SliceThickness")) or 1.0
    affine = np.eye(4)
    affine[:3] = np.column_stack([along_column * tall, along_row * wide, across * abs(thick), position])
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine


def _opened(path: Path, name: str, *, pixels: bool) -> Dataset:
    """The data set; a file without preamble is read when its first bytes look like DICOM."""
    with path.open("rb") as file:
        start = file.read(_MAGIC + 4)
    bare = start[_MAGIC:] != b"DICM"
    if bare and start[:2] not in _FIRST_GROUPS:
        raise CaseError(f"{name} is not a DICOM file, whatever its ending says; export it again")
    with _explained(name, "its header cannot be read"):
        dataset = dcmread(path, force=bare, stop_before_pixels=not pixels)
        if "TransferSyntaxUID" not in dataset.file_meta:
            dataset.file_meta.TransferSyntaxUID = _uncompressed(dataset)
    return dataset


def _uncompressed(dataset: Dataset) -> UID:
    """The transfer syntax that pydicom found by looking at the bytes."""
    implicit, little = dataset.original_encoding
    if implicit:
        return ImplicitVRLittleEndian
    return ExplicitVRLittleEndian if little else ExplicitVRBigEndian


@contextmanager
def _explained(name: str, what: str) -> Iterator[None]:
    """A block in which whatever goes wrong becomes one sentence, without the values of any tag."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd tags do not concern the reader
            warnings.filterwarnings("error", "End of file reached")  # half a picture does
            yield
    except CaseError:
        raise
    except Exception as error:  # damaged bytes make decoders raise anything
        kind = type(error).__name__
        raise CaseError(f"{name}: {what} ({kind}); copy or export it again, uncompressed if you can") from error


def _syntax(dataset: Dataset) -> str:
    return str(getattr(dataset.file_meta.TransferSyntaxUID, "name", "of unknown encoding"))


def _require_one_picture(dataset: Dataset, name: str) -> None:
    if "Rows" not in dataset or "Columns" not in dataset:
        raise CaseError(f"{name} holds no picture (it may be a report or an index); leave it out")
    with _explained(name, "its header has wrong values"):
        rows, columns = int(dataset.Rows), int(dataset.Columns)
        frames = int(dataset.get("NumberOfFrames") or 1)
    if frames > 1:
        raise CaseError(f"{name} holds {frames} frames; export the one you mean as a file of its own")
    if rows * columns > (Pictures.MAX_IMAGE_PIXELS or math.inf):
        raise CaseError(f"{name}: {rows}×{columns} pixels are too many; export it smaller")


def _white(dataset: Dataset, stored: np.ndarray) -> float:
    """The largest value the stored bits can hold."""
    bits = int(dataset.get("BitsStored") or stored.dtype.itemsize * 8)
    return float(2**bits - 1)


def _with_readable_palette(dataset: Dataset) -> Dataset:
    """The data set with a palette in the byte order pydicom expects: it does not look at the file's own."""
    names = [f"{colour}PaletteColorLookupTableData" for colour in ("Red", "Green", "Blue")]
    if not dataset.original_encoding[1] and dataset.RedPaletteColorLookupTableDescriptor[2] == 16:
        for name in filter(dataset.__contains__, names):
            setattr(dataset, name, np.frombuffer(dataset[name].value, ">u2").astype("<u2").tobytes())
    return dataset


def _coloured(stored: np.ndarray, white: float, colour: str) -> Image:
    scaled = np.moveaxis(stored.astype(np.float64) / white, -1, 0)
    if colour == "grey":
        scaled = np.tensordot(_LUMINANCE, scaled, axes=1)[None]
    return np.ascontiguousarray(scaled, np.float32)


def _grey(dataset: Dataset, stored: np.ndarray, name: str, value_range: Range | None) -> Grey:
    with _explained(name, "its modality or window cannot be applied"):
        values = apply_modality_lut(stored, dataset)
        shown = _spread(values, *value_range) if value_range else _windowed(dataset, stored, values)
        inverse = dataset.PhotometricInterpretation == "MONOCHROME1"
        shown = 1 - shown if inverse else shown
        shown[_padding(dataset, stored)] = 0
    return shown


def _spread(values: np.ndarray, low: float, high: float) -> Grey:
    spread: Grey = (values.astype(np.float64) - low) / (high - low)
    return spread


def _windowed(dataset: Dataset, stored: np.ndarray, values: np.ndarray) -> Grey:
    """What the file's VOI LUT or first window makes of the values; without either, as viewers do, all that occur."""
    if dataset.get("VOILUTSequence"):
        bits = int(dataset.VOILUTSequence[0].LUTDescriptor[2])
        return apply_voi(values, dataset).astype(np.float64) / (2**bits - 1)
    centre, width = _first(dataset.get("WindowCenter")), _first(dataset.get("WindowWidth"))
    if centre is not None and width is not None:
        return _window(values.astype(np.float64), centre, width, str(dataset.get("VOILUTFunction") or "LINEAR"))
    real = values[~_padding(dataset, stored)]
    low, high = (float(real.min()), float(real.max())) if real.size else (0.0, 0.0)
    return np.clip(_spread(values, low, high), 0, 1) if high > low else np.zeros(values.shape)


def _window(values: Grey, centre: float, width: float, function: str) -> Grey:
    """The three functions of DICOM PS3.3 C.11.2.1.2-3, with 0 and 1 as the output's ends."""
    if function == "SIGMOID":
        sigmoid: Grey = 1 / (1 + np.exp(np.clip(-4 * (values - centre) / width, -700, 700)))
        return sigmoid
    if function != "LINEAR_EXACT":  # LINEAR, also where the file names none
        centre, width = centre - 0.5, width - 1
    if width <= 0:  # a window of one value is a step
        return (values > centre).astype(np.float64)
    return np.clip((values - centre) / width + 0.5, 0, 1)


def _first(value: object) -> float | None:
    """The first of the windows a file may offer."""
    if value is None or value == "":
        return None
    first = value if isinstance(value, int | float | str) else next(iter(value), None)  # type: ignore[call-overload]
    return None if first is None else float(first)


def _padding(dataset: Dataset, stored: np.ndarray) -> np.ndarray:
    """Where the picture was filled up with a value that means nothing."""
    low = dataset.get("PixelPaddingValue")
    if low is None:
        return np.zeros(stored.shape, bool)
    high = dataset.get("PixelPaddingRangeLimit", low)
    return (stored >= min(low, high)) & (stored <= max(low, high))
