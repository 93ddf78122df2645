"""Any folder of images, with labels in a CSV and one mask file per image and finding."""

import csv
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from pydantic import Field

from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.records import Case, CaseKey, Mask, Point, Reading
from heatcheck.core.registry import suggest
from heatcheck.sources.reading import IMAGE_SUFFIXES, Colour, image_shape, read_image, read_mask
from heatcheck.sources.registry import SOURCES, SourceFacts, SourceSettings

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
        if not self.findings:
            raise InputError("no findings: give `labels` with a column for each, or `masks` with a folder for each")

    @cached_property
    def _images(self) -> dict[str, Path]:
        """Every image by its id: the path below the folder, without its ending."""
        root = self.settings.images
        images: dict[str, Path] = {}
        for path in sorted(root.rglob("*")):
            if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file():
                case = path.relative_to(root).with_suffix("").as_posix()
                if case in images:
                    raise InputError(f"{images[case].name} and {path.name} are two images with one id; rename one")
                images[case] = path
        return images

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """The columns of the labels, or the folders of the masks."""
        if self.settings.labels:
            return tuple(name for name in self._table[0] if name not in ("image", "patient"))
        folder = self.settings.masks
        return tuple(sorted(path.name for path in folder.iterdir() if path.is_dir())) if folder else ()

    @cached_property
    def _table(self) -> tuple[list[str], list[dict[str, str]]]:
        path = self.settings.labels
        if path is None:
            return [], []
        header, rows = read_csv(path)
        if "image" not in header:
            raise SpecError(f"{path} has no column 'image'; its columns are {', '.join(header)}")
        return header, rows

    def index(self) -> Sequence[CaseKey]:
        """Every row of the labels, or every image when there are none."""
        if self.settings.labels:
            keys = [self._row_key(number, row) for number, row in enumerate(self._table[1], start=2)]
        else:
            keys = [CaseKey(case, case, self._labels_from_masks(case)) for case in self._images]
        keys.sort(key=lambda key: key.case)
        for key, following in pairwise(keys):
            if key.case == following.case:
                raise InputError(f"{self.settings.labels}: {key.case!r} is listed twice; keep one row")
        return keys

    def _row_key(self, number: int, row: Mapping[str, str]) -> CaseKey:
        name = row["image"].strip()
        stem = name[: -len(Path(name).suffix)] if Path(name).suffix.lower() in IMAGE_SUFFIXES else name
        labels = {}
        for finding in self.findings:
            text = (row[finding] or "").strip().lower()
            if text not in _LABELS:
                raise InputError(
                    f"{self.settings.labels}, line {number}: {finding} is {text!r}; expected 1, 0 or blank"
                )
            labels[finding] = _LABELS[text]
        return CaseKey(stem, (row.get("patient") or "").strip() or stem, labels)

    def _labels_from_masks(self, case: str) -> dict[str, float]:
        root = self.settings.masks
        return {f: 1.0 if root and _mask_file(root, f, case) else math.nan for f in self.findings}

    def load(self, key: CaseKey) -> Case:
        """The image with truth and readings."""
        image = read_image(self._path(key), key.case, self.settings.colour)
        truth = self._masks(self.settings.masks, "masks", key, image.shape[1:]) if self.settings.masks else {}
        readings = tuple(
            self._reading(name, root, key, image.shape[1:]) for name, root in self.settings.readers.items()
        )
        return Case(key, image, truth, readings)

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The masks alone."""
        if self.settings.masks is None:
            return {}
        return self._masks(self.settings.masks, "masks", key, image_shape(self._path(key), key.case))

    def _path(self, key: CaseKey) -> Path:
        return self._images.get(key.case, self.settings.images / key.case)

    def _masks(self, root: Path, label: str, key: CaseKey, shape: tuple[int, ...]) -> dict[str, Mask]:
        found = {}
        for finding in self.findings:
            path = _mask_file(root, finding, key.case)
            if path is not None:
                found[finding] = read_mask(path, f"{label}/{finding}/{path.name}", shape)
        return found

    def _reading(self, name: str, root: Path, key: CaseKey, shape: tuple[int, ...]) -> Reading:
        masks = {f: m for f, m in self._masks(root, name, key, shape).items() if m.any()}
        return Reading(name, masks, self._points.get((name, key.case), {}))

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
        for number, row in enumerate(rows, start=2):
            if row["finding"] not in self.findings:
                hint = suggest(row["finding"], self.findings)
                raise InputError(f"{path}, line {number}: unknown finding {row['finding']!r}; {hint}")
            try:
                point = Point((float(row["y"]), float(row["x"])))
            except ValueError as error:
                raise InputError(f"{path}, line {number}: x and y must be numbers; correct them") from error
            of_case = points[row["reader"], row["image"]]
            of_case[row["finding"]] = (*of_case.get(row["finding"], ()), point)
        return dict(points)


def read_csv(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The header and the rows of a CSV file."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
            header = list(reader.fieldnames or [])
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path} is not a readable CSV file ({error}); export it again as UTF-8") from error
    ragged = next((n for n, row in enumerate(rows, start=2) if None in row or None in row.values()), None)
    if ragged is not None:
        raise InputError(f"{path}, line {ragged}: another number of cells than the header; correct the line")
    return header, rows


def _mask_file(root: Path, finding: str, case: str) -> Path | None:
    paths = (root / finding / f"{case}{suffix}" for suffix in _MASK_SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


SOURCES.add(
    "folder",
    SourceFacts(
        name="folder",
        settings=FolderSettings,
        open=FolderSource,
        summary="Your own images, with labels in a CSV and one mask file per image and finding",
        needs="a folder of PNG, JPEG, TIFF, BMP or .npy images",
    ),
)
