"""Records that carry tensors between the model, method and map stages."""

from dataclasses import dataclass

import torch

from heatcheck.core.geometry import Cells
from heatcheck.core.tensors import MapErrors, MapValues


@dataclass(frozen=True, slots=True)
class MapBatch:
    """Signed maps of one method on its own grid: one per image and target."""

    values: MapValues
    error: MapErrors  # completeness or conservation error; NaN where the method has none
    note: str = ""
    cells: Cells | None = None  # where the grid lies; None where it spans the model's


def without_error(values: MapValues, note: str = "", cells: Cells | None = None) -> MapBatch:
    """A batch of maps of a method that has no completeness or conservation error."""
    return MapBatch(values, torch.full(values.shape[:2], torch.nan), note, cells)
