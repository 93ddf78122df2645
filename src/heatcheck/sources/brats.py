"""BraTS as published: four modalities of a head with a glioma, its segmentation and its grade."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float, UInt8

from heatcheck.core.errors import CaseError
from heatcheck.core.orientation import radiological
from heatcheck.core.records import Affine, Case, CaseKey, Mask, TruthKind
from heatcheck.sources.files.brats_files import (
    GRADES,
    MODALITIES,
    STRAY_MASK,
    CaseFolder,
    case_folders,
    grades_file,
    read_grades,
)
from heatcheck.sources.files.reading_nifti import Placed, read_with_grid, require_one_grid
from heatcheck.sources.registry import SOURCES, SourceFacts, SourceSettings

NECROTIC, OEDEMA = 1, 2
ENHANCING = (4, 3)  # up to 2021, and since
_LABELS = (0, NECROTIC, OEDEMA, *ENHANCING)

Volume = Float[np.ndarray, "x y z"]
Labels = UInt8[np.ndarray, "x y z"]


class BratsSettings(SourceSettings):
    """The settings of BraTS in a spec."""

    root: Path  # the folder of the cases' folders, or one above it
    grades: Path | None = None  # CSV: case, grade; by default the data set's name_mapping.csv
    slices: Literal["all", "largest"] = "all"  # whole volumes, or the axial slice with most of the tumour

    def resolved(self, folder: Path) -> "BratsSettings":
        """The settings with paths relative to `folder`."""
        grades = folder / self.grades if self.grades else None
        return self.model_copy(update={"root": folder / self.root, "grades": grades})


@dataclass(frozen=True)
class Brats:
    """The cases of BraTS 2020 or 2023; folders and grades are read once, volumes on demand.

    Volumes keep their voxel order. A slice is oriented for display: rows from front to back, columns from the
    patient's right to left.
    """

    settings: BratsSettings

    def __post_init__(self) -> None:
        self._keys  # noqa: B018 - reports problems with folders and grades before work starts

    @property
    def findings(self) -> tuple[str, ...]:
        """The two grades; each tumour has one of them."""
        return GRADES

    @property
    def modalities(self) -> tuple[str, ...]:
        """The channels of an image."""
        return MODALITIES

    @property
    def truth_kind(self) -> TruthKind:
        """Always masks."""
        return "masks"

    @cached_property
    def _folders(self) -> dict[str, CaseFolder]:
        return case_folders(self.settings.root)

    @cached_property
    def _table(self) -> Path:
        return grades_file(self.settings.root, self._folders, self.settings.grades)

    @cached_property
    def _keys(self) -> list[CaseKey]:
        grades = read_grades(self._table, self._folders)
        labels = {grade: {name: float(name == grade) for name in GRADES} for grade in GRADES}
        return [CaseKey(case, self._folders[case].patient, labels[grade]) for case, grade in sorted(grades.items())]

    def index(self) -> Sequence[CaseKey]:
        """Every case that has a folder."""
        return self._keys

    def load(self, key: CaseKey) -> Case:
        """The four modalities with the mask of the tumour in each."""
        folder = self._folders[key.case]
        labels, mask = _labels(folder)
        index = self._slice_index(labels, mask)
        channels: list[np.ndarray] = []
        first: Placed | None = None
        for file in [folder.image(modality) for modality in MODALITIES]:
            values, stored = _volume(file)
            require_one_grid(first or stored, stored if first else mask, "register them again")
            first = first or stored
            channels.append(values if index is None else _slice(values, mask.grid.affine, index))
            _require_contrast(channels[-1], file)
        displayed, affine = self._displayed(labels, first.grid.affine if first else mask.grid.affine, index)
        spacing = tuple(float(side) for side in np.sqrt((affine[:3, :3] ** 2).sum(0)))[: displayed.ndim]
        return Case(key, np.stack(channels), _masks(displayed), spacing=spacing, affine=affine)

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The mask of the tumour in each modality, without reading the images."""
        labels, mask = _labels(self._folders[key.case])
        return _masks(self._displayed(labels, mask.grid.affine, self._slice_index(labels, mask))[0])

    def _slice_index(self, labels: Labels, mask: Placed) -> int | None:
        """The index of the selected slice, from below; None for whole volumes."""
        return _largest_slice(labels, mask.grid.affine) if self.settings.slices == "largest" else None

    def _displayed(self, labels: Labels, affine: Affine, index: int | None) -> tuple[np.ndarray, Affine]:
        """The labels of the volume or of its slice, and their affine."""
        if index is None:
            return labels, affine
        oriented = radiological(affine, labels.shape).turned_affine(affine, labels.shape)
        affine_2d = oriented[:, [1, 2, 0, 3]]  # rows, columns, slices
        affine_2d[:, 3] += oriented[:, 0] * index
        return _slice(labels, affine, index), affine_2d

    def stamp(self) -> str:
        """A hash of the names, sizes and dates of all files; it changes if a file is replaced."""
        digest = hashlib.sha256(self._table.read_bytes())
        for _, folder in sorted(self._folders.items()):
            for fact in folder.facts():
                digest.update(fact.encode())
        return digest.hexdigest()


def _volume(path: Path) -> tuple[Volume, Placed]:
    """The volume in a file; raises CaseError unless there is exactly one, with finite voxels."""
    name = _error_name(path)
    values, grid = read_with_grid(path, name)
    if len(values) != 1:
        raise CaseError(f"{name} has four axes, {len(values)} volumes in one file; save the right one separately")
    if values.ndim != 4:
        raise CaseError(f"{name} is a single slice of {'×'.join(map(str, values.shape[1:]))}; a volume is expected")
    if not np.isfinite(values).all():
        raise CaseError(f"{name} has NaN or infinite voxels; repair or remove the case")
    return values[0], Placed(name, grid)


def _labels(folder: CaseFolder) -> tuple[Labels, Placed]:
    """The segmentation; raises CaseError unless it is a mask of one edition of BraTS."""
    path = folder.mask()
    values, stored = _volume(path)
    labels = values.clip(0, 255).astype(np.uint8)
    present = [label for label in _LABELS if (labels == label).any()]
    if labels.max() > max(_LABELS) or not np.array_equal(labels, values):
        odd = next(value for value in np.unique(values).tolist() if value not in _LABELS)
        raise CaseError(f"{_error_name(path)} has the label {odd:g}, expected 0 to 4; use the mask of this data set")
    if not labels.any():
        raise CaseError(f"{_error_name(path)} is empty: no voxel is marked as tumour; repair or remove the case")
    if all(label in present for label in ENHANCING):
        raise CaseError(
            f"{_error_name(path)} has the labels 3 and 4, but an edition uses only one of them; export it again"
        )
    return labels, stored


def _error_name(path: Path) -> str:
    """The file's name in errors; a stray name is masked because it may identify the patient."""
    folder = path.parent.name
    return f"{folder}/{path.name}" if path.name.startswith(folder) else f"{folder}/*{STRAY_MASK}{path.suffix}"


def _require_contrast(values: np.ndarray, path: Path) -> None:
    nonzero = values[values != 0]
    if not nonzero.size or nonzero.min() == nonzero.max():
        detail = "its voxels other than 0 do not differ" if nonzero.size else "every voxel is 0"
        raise CaseError(f"{_error_name(path)} is constant: {detail}; repair or remove the case")


def _largest_slice(labels: Labels, affine: Affine) -> int:
    """The index, from below, of the axial slice with most of the tumour; the lowest in a tie."""
    shown = radiological(affine, labels.shape).turned(labels != 0)
    return int(shown.sum((1, 2)).argmax())


def _slice(values: np.ndarray, affine: Affine, index: int) -> np.ndarray:
    """An axial slice, oriented for display."""
    return np.ascontiguousarray(radiological(affine, values.shape).turned(values)[index])


def _masks(labels: np.ndarray) -> dict[str, Mask]:
    """The tumour in each modality: for T1C the core if it takes up contrast, otherwise the whole tumour."""
    tumour = labels != 0
    enhancing = np.isin(labels, ENHANCING)
    core = enhancing | (labels == NECROTIC) if enhancing.any() else tumour
    return {modality: core if modality == "T1C" else tumour for modality in MODALITIES}


SOURCES.add(
    "brats",
    SourceFacts(
        name="brats",
        settings=BratsSettings,
        open=Brats,
        summary="BraTS 2020 or 2023 as published: T1, T1C, T2 and FLAIR of gliomas with segmentation and grade",
        needs="the downloaded training data with name_mapping.csv; for BraTS 2023 also a CSV of grades",
        published_as="brats",
    ),
)
