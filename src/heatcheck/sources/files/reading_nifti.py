"""Reads NIfTI images in their units and voxel order; nothing is reoriented or resampled."""

import gzip
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from nibabel.spatialimages import SpatialImage

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Affine

NIFTI_SUFFIXES = (".nii", ".nii.gz")
APART = 0.1  # millimetres by which corresponding voxels of two files may differ


@dataclass(frozen=True, slots=True)
class VoxelGrid:
    """Positions of voxels in the patient, which a viewer needs to overlay a map on its image."""

    shape: tuple[int, ...]  # as in the file, without channels
    affine: Affine


@dataclass(frozen=True, slots=True)
class Placed:
    """A file, by its name in errors, and its voxel grid."""

    name: str
    grid: VoxelGrid


def require_one_grid(one: Placed, other: Placed, remedy: str) -> None:
    """Raise CaseError unless the voxels of two files have the same positions."""
    both = f"{one.name} and {other.name}"
    shape, second = ((*placed.grid.shape, 1)[:3] for placed in (one, other))  # a single slice is a volume of depth 1
    if second != shape:
        sizes = " and ".join("×".join(map(str, each)) for each in (shape, second))
        raise CaseError(f"{both} differ in size ({sizes}); {remedy}")
    corners = np.array([[*corner, 1] for corner in np.ndindex(2, 2, 2)]) * [*(side - 1 for side in shape), 1]
    distance = float(np.abs(corners @ (other.grid.affine - one.grid.affine).T).max())
    if not distance <= APART:
        raise CaseError(
            f"{both} differ in their affines: the same voxels lie up to {distance:.3g} mm apart; {remedy}, or correct "
            "the wrong header"
        )


def is_nifti(path: Path) -> bool:
    """Whether the file has the ending of a NIfTI image."""
    return path.name.lower().endswith(NIFTI_SUFFIXES)


def read_nifti(path: Path, name: str) -> np.ndarray:
    """The voxels as float [channel, *space] after slope and intercept, in the stored order.

    A fourth axis holds the channels. Axes of length 1 after the second are dropped, so that a single slice is a
    2D image.
    """
    return read_with_grid(path, name)[0]


def read_with_grid(path: Path, name: str) -> tuple[np.ndarray, VoxelGrid]:
    """The voxels as from `read_nifti`, and their grid."""
    with _errors_explained(name):
        file = _checked(_unpacked(path), name)
        values = np.asarray(file.get_fdata(dtype=np.float32, caching="unchanged"))
    spatial = _spatial(file.shape, name)
    channels = int(np.prod(file.shape[3:]))
    channels_last = values.reshape(*file.shape[:3], channels)
    voxels = np.ascontiguousarray(np.moveaxis(channels_last, -1, 0).reshape(channels, *spatial))
    return voxels, _grid(file)


def nifti_shape(path: Path, name: str) -> tuple[int, ...]:
    """The lengths of the spatial axes, from the header alone."""
    with _errors_explained(name):
        shape = _loaded(path, name).shape
    return _spatial(shape, name)


def voxel_grid(path: Path, name: str) -> VoxelGrid:
    """The grid of the image, from the header alone."""
    with _errors_explained(name):
        return _grid(_loaded(path, name))


def _grid(file: SpatialImage) -> VoxelGrid:
    return VoxelGrid(tuple(file.shape[:3]), np.asarray(file.affine, np.float64))


def _unpacked(path: Path) -> object:
    """The file; a compressed one is read to its end, because only there gzip detects lost bytes."""
    if path.suffix.lower() == ".gz":
        content = gzip.decompress(path.read_bytes())
        for kind in (nibabel.Nifti1Image, nibabel.Nifti2Image):
            if kind.header_class.may_contain_header(content[:540]):
                return kind.from_bytes(content)
    return nibabel.load(path)


def _loaded(path: Path, name: str) -> SpatialImage:
    return _checked(nibabel.load(path), name)


def _checked(file: Any, name: str) -> SpatialImage:  # noqa: ANN401 - nibabel returns many types
    if not isinstance(file, SpatialImage):
        raise CaseError(f"{name} holds no volume; export it as NIfTI again")
    if file.get_data_dtype().kind not in "iuf":
        raise CaseError(f"{name} holds {file.get_data_dtype()}, not plain numbers; save each channel as numbers")
    return file


def _spatial(shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    if len(shape) < 2 or (len(shape) > 4 and int(np.prod(shape[3:])) != max(shape[3:])):
        raise CaseError(f"{name} has {len(shape)} axes; save two or three spatial axes and at most one of channels")
    space = shape[:3]
    return space[:2] if len(space) == 3 and space[2] == 1 else space


@contextmanager
def _errors_explained(name: str) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd headers do not matter here
            yield
    except CaseError:
        raise
    except Exception as error:  # nibabel and zlib raise anything on damaged bytes
        raise CaseError(f"{name} cannot be read as NIfTI ({type(error).__name__}); copy or export it again") from error
