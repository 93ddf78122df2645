"""How an image in the patient's space is turned so that it is shown as radiologists look at it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Shaped
from nibabel.orientations import axcodes2ornt, io_orientation, ornt_transform

from heatcheck.core.records import Affine

_TO_LEFT_BACK_UP = axcodes2ornt(("L", "P", "S"))
_LEFT, _BACK, _UP = range(3)


@dataclass(frozen=True, slots=True)
class Display:
    """Which axes of an array are slices, rows and columns on the screen, and which of them run the other way.

    The axes are those of a volume; a picture's third one has the length 1.
    """

    axes: tuple[int, int, int]  # of slices, rows, columns
    flips: tuple[bool, bool, bool] = (False, False, False)
    voxel: tuple[float, float, float] = (1.0, 1.0, 1.0)  # millimetres along slices, rows and columns, where known
    plane: str = ""
    sides: str = ""  # which side of the patient is where, in words

    def turned(self, values: Shaped[np.ndarray, "*space"]) -> Shaped[np.ndarray, "slice row column"]:
        """The array as slices, each with its first row at the top of the screen; a view of it."""
        stack = values[..., None] if values.ndim == 2 else values
        ways = tuple(slice(None, None, -1 if flip else 1) for flip in self.flips)
        return stack.transpose(self.axes)[ways]

    def turned_affine(self, affine: Affine, shape: tuple[int, ...]) -> Affine:
        """Where the voxels of the turned array lie; `affine` and `shape` are those of the array as it was."""
        lengths = (*shape, 1)[:3]
        back = np.zeros((4, 4))
        back[3, 3] = 1
        for index, (axis, flip) in enumerate(zip(self.axes, self.flips, strict=True)):
            back[axis, index] = -1 if flip else 1
            back[axis, 3] = lengths[axis] - 1 if flip else 0
        return np.asarray(affine, np.float64) @ back


def radiological(affine: Affine | None, shape: tuple[int, ...]) -> Display:
    """Axial slices from below upwards, the front at the top and the patient's right on the left.

    An image of one slice is shown in its own plane, coronal and sagittal ones with the head up. Without an affine, or
    with one that leaves an axis without a direction, everything is shown as it is stored, the first axis as slices.
    """
    if affine is None or np.isnan(stored := io_orientation(affine)).any():
        return Display((0, 1, 2) if len(shape) == 3 else (2, 0, 1))
    turn = ornt_transform(stored, _TO_LEFT_BACK_UP)
    axis = {int(patient): index for index, patient in enumerate(turn[:, 0])}
    flip = {int(patient): bool(way < 0) for patient, way in turn}
    length = {patient: (*shape, 1)[axis[patient]] for patient in axis}
    plane, sides, wanted, upside_down = "axial", "patient's right on the left", (_UP, _BACK, _LEFT), False
    if length[_BACK] == 1 and length[_UP] > 1:
        plane, wanted, upside_down = "coronal", (_BACK, _UP, _LEFT), True
    elif length[_LEFT] == 1 and length[_UP] > 1:
        plane, sides, wanted, upside_down = "sagittal", "front on the left", (_LEFT, _UP, _BACK), True
    size = np.sqrt((np.asarray(affine)[:3, :3] ** 2).sum(0))
    slices, rows, columns = wanted
    return Display(
        (axis[slices], axis[rows], axis[columns]),
        (flip[slices], flip[rows] != upside_down, flip[columns]),
        (float(size[axis[slices]]), float(size[axis[rows]]), float(size[axis[columns]])),
        plane,
        sides,
    )
