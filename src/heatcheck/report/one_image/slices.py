"""Volumes turned the way a radiologist looks at them."""

from dataclasses import dataclass

import numpy as np

from heatcheck.core.orientation import radiological


@dataclass(frozen=True, slots=True)
class Volume:
    """A stack of slices, each with its first row at the top of the screen."""

    values: np.ndarray  # [slice, row, column]
    pixel: tuple[float, float]  # how tall and how wide a pixel of a slice is
    plane: str
    sides: str = ""  # which side of the patient is where, in words

    @classmethod
    def oriented(cls, values: np.ndarray, affine: np.ndarray | None) -> "Volume":
        """The slices as `core.orientation` has them; as stored without an affine."""
        shown = radiological(affine, values.shape)
        _, tall, wide = shown.voxel
        return cls(shown.turned(values), (tall, wide), shown.plane, f", {shown.sides}" if shown.sides else "")
