"""Any folder of images, with labels in a CSV and one mask file per image and finding."""

import difflib
import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from heatcheck.core.errors import CaseError, InputError, SpecError
from heatcheck.core.findings import canonical, spellings
from heatcheck.core.records import Case, CaseKey, Mask, Point, Reading
from heatcheck.core.registry import suggest
from heatcheck.sources.reading import (
    IMAGE_SUFFIXES,
    Colour,
    image_shape,
    is_image,
    read_image,
    read_mask,
    without_ending,
)
from heatcheck.sources.registry import SOURCES, SourceFacts, SourceSettings
from heatcheck.sources.tables import read_csv

_LABELS = {"1": 1.0, "1.0": 1.0, "0": 0.0, "0.0": 0.0, "": math.nan, "-1": math.nan, "-1.0": math.nan, "nan": math.nan}
_MASK_SUFFIXES = (".png", ".bmp", ".tif", ".tiff", ".npy")


class FolderSettings(SourceSettings):
    """What a spec may say about a folder of images."""

    images: Path  # searched through all sub-folders
    labels: Path | None = None  # CSV: image, optionally patient, then one column a finding (1, 0 or blank)
    masks: Path | None = None  # masks/<finding>/<image>.png
    readers: dict[str, Path] = Field(default_factory=dict)  # a reader's name and a folder laid out like `masks`
    points: Path | None = None  # CSV: reader, image, finding, x, y
    colour: Colour = "grey"
    value_range: tuple[float, float] | None = None  # stored values that mean 0 and 1, e.g. [0, 4095] for 12 bits

    @model_validator(mode="after")
    def _range_rises(self) -> Self:
        if self.value_range is not None and not self.value_range[0] < self.value_range[1]:
            raise ValueError("value_range must be two numbers, the lower first")
        return self

    def resolved(self, folder: Path) -> "FolderSettings":
        """The same settings with every path taken from `folder`."""
        return self.model_copy(
            update={
                "images": folder / self.images,
                "labels": folder / self.labels if self.labels else None,
                "masks": folder / self.masks if self.masks else None,
                "readers": {name: folder / path for name, path in self.readers.items()},
                "points": folder / self.points if self.points else None,
            }
        )


@dataclass(frozen=True)
class FolderSource:
    """Images below a folder; the index is read once, pixels when asked for."""

    settings: FolderSettings

    def __post_init__(self) -> None:
        folders = [self.settings.images, *([self.settings.masks] if self.settings.masks else [])]
        for folder in [*folders, *self.settings.readers.values()]:
            if not folder.is_dir():
                raise InputError(f"{folder}: no such folder; correct the source in the spec")
        for file in (self.settings.labels, self.settings.points):
            if file is not None and not file.is_file():
                raise InputError(f"{file}: no such file; correct the source in the spec")
        if not self._images:
            raise InputError(f"{self.settings.images} holds no images ({', '.join(IMAGE_SUFFIXES)})")
        if len(set(self.findings)) < len(self.findings):
            raise InputError(f"two columns or folders mean one finding ({', '.join(self.findings)}); keep one")
        if not self.findings:
            raise InputError("no findings: give `labels` with a column for each, or `masks` with a folder for each")
        for folder in [*folders[1:], *self.settings.readers.values()]:
            self._require_known_folders(folder)
            self._require_known_masks(folder)
        self._points  # noqa: B018 - a wrong file of points is known before work starts

    def _require_known_folders(self, root: Path) -> None:
        """Refuse a folder of masks whose name is nearly a finding's: its masks would be lost without a word."""
        names = {canonical(path.name) for path in root.iterdir() if path.is_dir()}
        for name in sorted(names - set(self.findings)):
            near = difflib.get_close_matches(name, [f for f in self.findings if f not in names], n=1, cutoff=0.7)
            if near:
                raise InputError(f"{root / name} is named like no finding; did you mean {near[0]!r}?")

    def _require_known_masks(self, root: Path) -> None:
        """Refuse a folder in which no mask is named like an image."""
        stray = None
        for path in sorted(root.glob("*/**/*")):
            if path.suffix.lower() in _MASK_SUFFIXES:
                if Path(*path.relative_to(root).parts[1:]).with_suffix("").as_posix() in self._images:
                    return
                stray = stray or path
        if stray:
            raise InputError(f"no mask in {root} is named like an image, e.g. {stray.name}; name masks as their images")

    @cached_property
    def _images(self) -> dict[str, Path]:
        """Every image by its id: the path below the folder, without its ending."""
        root = self.settings.images
        images: dict[str, Path] = {}
        for path in sorted(root.rglob("*")):
            below = path.relative_to(root)
            hidden = any(part.startswith(".") for part in below.parts)  # what file managers and notebooks leave behind
            if not hidden and is_image(path):
                case = without_ending(below.as_posix())
                if case in images:
                    raise InputError(f"{images[case].name} and {path.name} are two images with one id; rename one")
                images[case] = path
        return images

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """The columns of the labels, or the folders of the masks."""
        if self.settings.labels:
            return tuple(canonical(name) for name in self._table[0] if name not in ("image", "patient"))
        folder = self.settings.masks
        return tuple(sorted(canonical(path.name) for path in folder.iterdir() if path.is_dir())) if folder else ()

    @cached_property
    def _table(self) -> tuple[list[str], dict[int, dict[str, str]]]:
        path = self.settings.labels
        if path is None:
            return [], {}
        header, rows = read_csv(path)
        if "image" not in header:
            raise SpecError(f"{path} has no column 'image'; its columns are {', '.join(header)}")
        return header, rows

    def index(self) -> Sequence[CaseKey]:
        """Every row of the labels, or every image when there are none."""
        if self.settings.labels:
            keys = [self._row_key(number, row) for number, row in self._table[1].items()]
        else:
            keys = [CaseKey(case, case, self._labels_from_masks(case)) for case in self._images]
        keys.sort(key=lambda key: key.case)
        for key, following in pairwise(keys):
            if key.case == following.case:
                raise InputError(f"{self.settings.labels}: {key.case!r} is listed twice; keep one row")
        return keys

    def _row_key(self, number: int, row: Mapping[str, str]) -> CaseKey:
        case = _case_id(row["image"])
        if not case:
            raise InputError(f"{self.settings.labels}, line {number}: no image is named; name one or remove the line")
        labels = {}
        for finding in self.findings:
            text = next(row[name] for name in spellings(finding) if name in row).strip().lower()
            if text not in _LABELS:
                raise InputError(
                    f"{self.settings.labels}, line {number}: {finding} is {text!r}; expected 1, 0, blank or -1"
                )
            labels[finding] = _LABELS[text]
        return CaseKey(case, (row.get("patient") or "").strip() or case, labels)

    def _labels_from_masks(self, case: str) -> dict[str, float]:
        """1 where the mask holds something, 0 where it is empty, unknown without a mask or with one nobody can read."""
        found = dict.fromkeys(self.findings, math.nan)
        try:
            masks = self.truth_files(case)
        except CaseError:
            return found
        return found | {finding: float(mask.any()) for finding, mask in masks.items()}

    def truth_files(self, case: str) -> dict[str, Mask]:
        """Every truth mask of the case, empty ones too."""
        root = self.settings.masks
        path = self._images.get(case, self.settings.images / case)
        return _read_masks(root, "masks", case, self.findings, image_shape(path, case)) if root else {}

    def load(self, key: CaseKey) -> Case:
        """The image with truth and readings."""
        image = read_image(self._path(key), key.case, self.settings.colour, self.settings.value_range)
        truth = self.truth(key)
        readings = tuple(
            self._reading(name, root, key, image.shape[1:]) for name, root in self.settings.readers.items()
        )
        return Case(key, image, truth, readings)

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The masks alone, without the empty ones that many exports hold for absent findings."""
        masks = {finding: mask for finding, mask in self.truth_files(key.case).items() if mask.any()}
        for finding in masks:
            if key.labels.get(finding) == 0:
                raise CaseError(f"{key.case} has a mask of {finding}, but its label says 0; correct one of them")
        return masks

    def stamp(self) -> str:
        """A hash of the names, sizes and dates of all files: a mended or exchanged file makes it another one."""
        digest = hashlib.sha256()
        settings = self.settings
        folders = [settings.images, *([settings.masks] if settings.masks else []), *settings.readers.values()]
        files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
        for path in [*files, *filter(None, (settings.labels, settings.points))]:
            facts = path.stat()
            digest.update(f"{path.name}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def _path(self, key: CaseKey) -> Path:
        return self._images.get(key.case, self.settings.images / key.case)

    def _reading(self, name: str, root: Path, key: CaseKey, shape: tuple[int, ...]) -> Reading:
        """A reader's marks; without any mask file, even an empty one, the reader did not outline this image."""
        files = _read_masks(root, name, key.case, self.findings, shape)
        masks = {finding: mask for finding, mask in files.items() if mask.any()}
        return Reading(name, masks, self._points.get((name, key.case), {}), outlined=bool(files))

    @cached_property
    def _points(self) -> dict[tuple[str, str], dict[str, tuple[Point, ...]]]:
        """The readers' points by (reader, case), then by finding."""
        path = self.settings.points
        if path is None:
            return {}
        header, rows = read_csv(path)
        for column in ("reader", "image", "finding", "x", "y"):
            if column not in header:
                raise SpecError(f"{path} has no column {column!r}; its columns are {', '.join(header)}")
        points: dict[tuple[str, str], dict[str, tuple[Point, ...]]] = defaultdict(dict)
        for number, row in rows.items():
            row["finding"] = canonical(row["finding"])
            for column, known in (("finding", self.findings), ("reader", self.settings.readers)):
                if row[column] not in known:
                    hint = suggest(row[column], known)
                    raise InputError(f"{path}, line {number}: unknown {column} {row[column]!r}; {hint}")
            if _case_id(row["image"]) not in self._images:
                raise InputError(f"{path}, line {number}: no image {row['image']!r}; correct the name")
            of_case = points[row["reader"], _case_id(row["image"])]
            of_case[row["finding"]] = (*of_case.get(row["finding"], ()), _point(row, f"{path}, line {number}"))
        return dict(points)


def _point(row: Mapping[str, str], where: str) -> Point:
    try:
        position = float(row["y"]), float(row["x"])
    except ValueError:
        position = math.nan, math.nan
    if not all(map(math.isfinite, position)):
        raise InputError(f"{where}: x and y must be numbers; correct them")
    return Point(position)


def _case_id(name: str) -> str:
    """The id of the image a table names with or without its ending."""
    return without_ending(name.strip())


def _read_masks(root: Path, label: str, case: str, findings: Sequence[str], shape: tuple[int, ...]) -> dict[str, Mask]:
    files = {finding: _mask_file(root, finding, case) for finding in findings}
    return {f: read_mask(path, f"{label}/{f}/{case}{path.suffix}", shape) for f, path in files.items() if path}


def _mask_file(root: Path, finding: str, case: str) -> Path | None:
    paths = (root / name / f"{case}{suffix}" for name in spellings(finding) for suffix in _MASK_SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


SOURCES.add(
    "folder",
    SourceFacts(
        name="folder",
        settings=FolderSettings,
        open=FolderSource,
        summary="Your own images, with labels in a CSV and one mask file per image and finding",
        needs="a folder of PNG, JPEG, TIFF, BMP, .npy, DICOM or NIfTI images",
    ),
)
