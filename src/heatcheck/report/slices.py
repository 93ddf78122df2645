"""Volumes turned the way a radiologist looks at them."""

from dataclasses import dataclass

import numpy as np
from nibabel.orientations import apply_orientation, axcodes2ornt, io_orientation, ornt_transform

_TO_LEFT_BACK_UP = axcodes2ornt(("L", "P", "S"))


@dataclass(frozen=True, slots=True)
class Volume:
    """A stack of slices, each with its first row at the top of the screen."""

    values: np.ndarray  # [slice, row, column]
    pixel: tuple[float, float]  # how tall and how wide a pixel of a slice is
    plane: str
    sides: str = ""  # which side of the patient is where, in words

    @classmethod
    def oriented(cls, values: np.ndarray, affine: np.ndarray | None) -> "Volume":
        """Axial slices with the front at the top and the patient's right on the left; as stored without an affine.

        An image of one slice is shown in its own plane, coronal and sagittal ones with the head up.
        """
        if affine is None:
            return cls(values, (1.0, 1.0), "")
        stack = values[..., None] if values.ndim == 2 else values
        turn = ornt_transform(io_orientation(affine), _TO_LEFT_BACK_UP)
        turned = apply_orientation(stack, turn)  # [left, back, up]
        stored = np.sqrt((np.asarray(affine)[:3, :3] ** 2).sum(0))
        size = [float(stored[int(np.flatnonzero(turn[:, 0] == axis)[0])]) for axis in range(3)]
        if turned.shape[1] == 1 and turned.shape[2] > 1:
            coronal = turned[:, 0, ::-1].T[None]
            return cls(coronal, (size[2], size[0]), "coronal", ", patient's right on the left")
        if turned.shape[0] == 1 and turned.shape[2] > 1:
            sagittal = turned[0, :, ::-1].T[None]
            return cls(sagittal, (size[2], size[1]), "sagittal", ", front on the left")
        return cls(turned.transpose(2, 1, 0), (size[1], size[0]), "axial", ", patient's right on the left")
