"""BraTS as it is published: four modalities of a head with a glioma, its segmentation and its grade."""

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
    """What a spec may say about BraTS."""

    root: Path  # the folder that holds the cases' folders, or one above it
    grades: Path | None = None  # CSV: case, grade; the data's own name_mapping.csv where nothing is said
    slices: Literal["all", "largest"] = "all"  # volumes, or of each the axial slice that shows most of the tumour

    def resolved(self, folder: Path) -> "BratsSettings":
        """The same settings with the paths taken from `folder`."""
        grades = folder / self.grades if self.grades else None
        return self.model_copy(update={"root": folder / self.root, "grades": grades})


@dataclass(frozen=True)
class Brats:
    """The cases of BraTS 2020 or 2023; folders and grades are read once, volumes when asked for.

    Volumes stay in their order of voxels. A slice is turned as it is shown: rows from front to back, columns from the
    patient's right to the left.
    """

    settings: BratsSettings

    def __post_init__(self) -> None:
        self._keys  # noqa: B018 - whatever is wrong with folders and grades is known before work starts

    @property
    def findings(self) -> tuple[str, ...]:
        """The two grades, of which a tumour has one."""
        return GRADES

    @property
    def modalities(self) -> tuple[str, ...]:
        """The channels of an image."""
        return MODALITIES

    @property
    def truth_kind(self) -> TruthKind:
        """Masks."""
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
        """Every case of which there is a folder."""
        return self._keys

    def load(self, key: CaseKey) -> Case:
        """The four modalities, and where the tumour is in each."""
        folder = self._folders[key.case]
        labels, mask = _labels(folder)
        place = self._place(labels, mask)
        channels: list[np.ndarray] = []
        first: Placed | None = None
        for file in [folder.image(modality) for modality in MODALITIES]:
            values, stored = _volume(file)
            require_one_grid(first or stored, stored if first else mask, "register them again")
            first = first or stored
            channels.append(values if place is None else _slice(values, mask.grid.affine, place))
            _require_contrast(channels[-1], file)
        seen, affine = self._seen(labels, first.grid.affine if first else mask.grid.affine, place)
        spacing = tuple(float(side) for side in np.sqrt((affine[:3, :3] ** 2).sum(0)))[: seen.ndim]
        return Case(key, np.stack(channels), _masks(seen), spacing=spacing, affine=affine)

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """Where the tumour is in each modality, without reading these."""
        labels, mask = _labels(self._folders[key.case])
        return _masks(self._seen(labels, mask.grid.affine, self._place(labels, mask))[0])

    def _place(self, labels: Labels, mask: Placed) -> int | None:
        """The place of the slice that is wanted, counted from below; None where all are."""
        return _largest(labels, mask.grid.affine) if self.settings.slices == "largest" else None

    def _seen(self, labels: Labels, affine: Affine, place: int | None) -> tuple[np.ndarray, Affine]:
        """The labels of the volume or of its slice, and where their voxels lie."""
        if place is None:
            return labels, affine
        moved = radiological(affine, labels.shape).turned_affine(affine, labels.shape)
        flat = moved[:, [1, 2, 0, 3]]  # rows, columns, slices
        flat[:, 3] += moved[:, 0] * place
        return _slice(labels, affine, place), flat

    def stamp(self) -> str:
        """A hash of the names, sizes and dates of all files: a mended or exchanged file makes it another one."""
        digest = hashlib.sha256(self._table.read_bytes())
        for _, folder in sorted(self._folders.items()):
            for fact in folder.facts():
                digest.update(fact.encode())
        return digest.hexdigest()


def _volume(path: Path) -> tuple[Volume, Placed]:
    """The one volume of a file."""
    name = _called(path)
    values, grid = read_with_grid(path, name)
    if len(values) != 1:
        raise CaseError(f"{name} has four axes, {len(values)} volumes in one file; save the right one alone")
    if values.ndim != 4:
        raise CaseError(f"{name} is a single slice of {'×'.join(map(str, values.shape[1:]))}; a volume is expected")
    if not np.isfinite(values).all():
        raise CaseError(f"{name} has NaN or infinite voxels; repair or remove the case")
    return values[0], Placed(name, grid)


def _labels(folder: CaseFolder) -> tuple[Labels, Placed]:
    """The segmentation, which must be one."""
    path = folder.mask()
    values, stored = _volume(path)
    labels = values.clip(0, 255).astype(np.uint8)
    found = [label for label in _LABELS if (labels == label).any()]
    if labels.max() > max(_LABELS) or not np.array_equal(labels, values):
        odd = next(value for value in np.unique(values).tolist() if value not in _LABELS)
        raise CaseError(
            f"{_called(path)} has the label {odd:g}; expected 0 to 4, so that it is no mask of this data set"
        )
    if not labels.any():
        raise CaseError(f"{_called(path)} is empty: no voxel is marked as tumour; repair or remove the case")
    if all(label in found for label in ENHANCING):
        raise CaseError(f"{_called(path)} has the labels 3 and 4, and one edition has one of them; export it again")
    return labels, stored


def _called(path: Path) -> str:
    """What errors call a file; one with a name of its own may tell more than the case's."""
    folder = path.parent.name
    return f"{folder}/{path.name}" if path.name.startswith(folder) else f"{folder}/*{STRAY_MASK}{path.suffix}"


def _require_contrast(values: np.ndarray, path: Path) -> None:
    seen = values[values != 0]
    if not seen.size or seen.min() == seen.max():
        what = "is constant: its voxels other than 0 do not differ" if seen.size else "is constant: every voxel is 0"
        raise CaseError(f"{_called(path)} {what}; repair or remove the case")


def _largest(labels: Labels, affine: Affine) -> int:
    """The place of the axial slice, counted from below, that shows most of the tumour; the lowest of several."""
    shown = radiological(affine, labels.shape).turned(labels != 0)
    return int(shown.sum((1, 2)).argmax())


def _slice(values: np.ndarray, affine: Affine, place: int) -> np.ndarray:
    """An axial slice as it is shown."""
    return np.ascontiguousarray(radiological(affine, values.shape).turned(values)[place])


def _masks(labels: np.ndarray) -> dict[str, Mask]:
    """Where each modality shows the tumour: T1C its core, where that takes up contrast, and the others all of it."""
    whole = labels != 0
    enhancing = np.isin(labels, ENHANCING)
    core = enhancing | (labels == NECROTIC) if enhancing.any() else whole
    return {modality: core if modality == "T1C" else whole for modality in MODALITIES}


SOURCES.add(
    "brats",
    SourceFacts(
        name="brats",
        settings=BratsSettings,
        open=Brats,
        summary="BraTS 2020 or 2023 as published: T1, T1C, T2 and FLAIR of gliomas with segmentation and grade",
        needs="the downloaded training data with name_mapping.csv; for BraTS 2023 a CSV of the grades",
        published_as="brats",
    ),
)
