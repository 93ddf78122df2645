"""Writes maps as files that other programs can read; a file is written completely or not at all."""

import gzip
import io
from pathlib import Path
from typing import Any

import nibabel
import numpy as np

from heatcheck.core.atomic_files import replaced
from heatcheck.core.errors import InputError
from heatcheck.core.records import Affine, Map


def npz_bytes(**arrays: Any) -> bytes:  # noqa: ANN401 - anything NumPy can store without pickling
    """The named arrays and texts as a compressed .npz file that `numpy.load` opens without pickles."""
    plain = {name: np.asarray(value) for name, value in arrays.items()}
    for name, value in plain.items():
        if value.dtype.hasobject:
            raise TypeError(f"{name} can only be stored as a pickle; pass numbers or text")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **plain)
    return buffer.getvalue()


def nifti_bytes(values: np.ndarray, affine: np.ndarray | None, *, compressed: bool, about: str = "") -> bytes:
    """The maps as a NIfTI file on the image's grid: [*space], or [*space, target] for several targets.

    A 2D grid gets a third axis of length 1, as single slices have. Without an affine, voxels are 1 mm wide.
    """
    file = nibabel.Nifti1Image(np.asarray(values, np.float32), np.eye(4) if affine is None else affine)
    file.header.set_xyzt_units("mm")
    file.header["descrip"] = about.encode("ascii", "replace")[:79]
    plain: bytes = file.to_bytes()
    if not compressed:
        return plain
    return gzip.compress(plain, mtime=0)  # without a date, equal maps give equal files


def share_nifti_bytes(values: Map, affine: Affine | None, about: str = "") -> bytes:
    """A map between 0 and 1 as a compressed NIfTI file on the image's grid, in steps of 1/32767.

    Integers take half the space of floats and a tenth of the time, and a study writes many maps. A 2D map gets a
    third axis of length 1. Both affines of NIfTI are set because viewers differ in which one they read.
    """
    if not (values.min(initial=0) >= 0 and values.max(initial=0) <= 1):
        raise ValueError(
            f"map values must lie between 0 and 1, got {values.min():g} to {values.max():g}; normalise the map"
        )
    stack = values[..., None] if values.ndim == 2 else values
    steps = np.iinfo(np.int16).max
    grid_to_mm = np.eye(4) if affine is None else np.asarray(affine, np.float64)
    file = nibabel.Nifti1Image(np.round(stack * steps).astype(np.int16), grid_to_mm)
    file.set_sform(grid_to_mm, code="scanner")
    file.set_qform(grid_to_mm, code="scanner")
    file.header.set_slope_inter(1 / steps, 0)
    file.header.set_xyzt_units("mm")
    file.header["descrip"] = about.encode("ascii", "replace")[:79]
    return gzip.compress(file.to_bytes(), compresslevel=1, mtime=0)


def write_atomically(path: Path, content: bytes) -> None:
    """Write the file in one step; an interrupted write leaves nothing behind."""
    if not path.parent.is_dir():
        raise InputError(f"{path.parent}: no such folder; create it first")
    with replaced(path) as temporary:
        temporary.write_bytes(content)
