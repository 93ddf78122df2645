"""Decodes the pixels of a DICOM file so that a crashing decoder does not end the run."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
from pydicom import Dataset
from pydicom.pixels.utils import pixel_array
from pydicom.uid import (
    JPEG2000,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGExtended12Bit,
    JPEGLossless,
    JPEGLosslessSV1,
    JPEGLSLossless,
    JPEGLSNearLossless,
)

_PLUGINS = {
    JPEGBaseline8Bit: "pillow",
    JPEGExtended12Bit: "pillow",
    JPEG2000: "pylibjpeg",
    JPEG2000Lossless: "pylibjpeg",
}
_ONLY_GDCM = (JPEGLossless, JPEGLosslessSV1, JPEGLSLossless, JPEGLSNearLossless)
_SECONDS = 120  # far longer than any image takes; a decoder that hangs must not stop the run
_CHILD = """
import sys
import numpy
from pydicom import dcmread
from pydicom.pixels.utils import pixel_array
numpy.save(sys.stdout.buffer, pixel_array(dcmread(sys.argv[1], force=True), decoding_plugin="gdcm"), allow_pickle=False)
"""


def decoded(dataset: Dataset, path: Path) -> np.ndarray:
    """The stored values of the image, colours as RGB.

    GDCM ends the whole process on some damaged files. It therefore runs in a separate process, which takes a third of
    a second per image, and only for the encodings that no other decoder reads.
    """
    syntax = dataset.file_meta.TransferSyntaxUID
    if syntax in _ONLY_GDCM:
        return _decoded_in_child(path)
    return pixel_array(dataset, decoding_plugin=_PLUGINS.get(syntax, ""))


def _decoded_in_child(path: Path) -> np.ndarray:
    # -P: do not import a numpy.py of the current folder
    command = [sys.executable, "-P", "-W", "ignore", "-c", _CHILD, str(path.absolute())]
    child = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - our own program
    if child.returncode != 0:
        raise ValueError(f"the decoder ended with code {child.returncode}")
    values: np.ndarray = np.lib.format.read_array(io.BytesIO(child.stdout), allow_pickle=False)
    return values
