"""Marks of the truth or of human readers in files: polygons, run-length codes, boxes or mask images."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.findings import canonical
from heatcheck.core.records import Mask, TruthKind
from heatcheck.sources.files.annotation_json import chexlocalize_marks, coco_marks, points_by_image, read_json
from heatcheck.sources.files.annotation_tables import box_marks
from heatcheck.sources.files.marks import Marks, MaskFile, Outlines, Polygon
from heatcheck.sources.files.reading import image_shape, without_ending
from heatcheck.sources.files.reading_nifti import NIFTI_SUFFIXES, is_nifti

MASK_SUFFIXES = (".png", ".bmp", ".tif", ".tiff", ".npy", *NIFTI_SUFFIXES)


@dataclass(frozen=True)
class Annotations:
    """The marks on each image in a file or folder; masks are drawn on demand."""

    kind: TruthKind
    path: Path
    marks: Mapping[str, Mapping[str, Marks]] = field(repr=False)  # by image, then by finding
    sizes: Mapping[str, tuple[int, int] | None] = field(default_factory=dict, repr=False)

    @cached_property
    def images(self) -> tuple[str, ...]:
        """Every image in the file, sorted."""
        return tuple(sorted(self.marks))

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """Every finding that any image has an entry for, sorted."""
        return tuple(sorted({finding for of_image in self.marks.values() for finding in of_image}))

    @property
    def named_findings(self) -> tuple[str, ...]:
        """The findings of the marks; for a folder of masks every sub-folder, even an empty one."""
        if not self.path.is_dir():
            return self.findings
        return tuple(sorted(canonical(path.name) for path in self.path.iterdir() if path.is_dir()))

    def findings_of(self, image: str) -> tuple[str, ...]:
        """The findings that the image has entries for, even empty masks; none for an unknown image."""
        return tuple(self.marks.get(image, ()))

    def is_empty(self, image: str, finding: str) -> bool:
        """Whether nothing is marked: the finding has no entry or an empty mask."""
        marks = self._marks(image, finding)
        return marks is None or marks.empty

    def size(self, image: str) -> tuple[int, int] | None:
        """Rows and columns of the image, if the annotations state them."""
        size = self.sizes.get(image)
        if size is None:
            files = (marks for marks in self.marks.get(image, {}).values() if isinstance(marks, MaskFile))
            first = next(files, None)
            size = cast("tuple[int, int]", image_shape(first.path, first.name)) if first else None
        return size

    def mask(self, image: str, finding: str, shape: tuple[int, ...]) -> Mask:
        """The marked pixels on the image's grid; raises CaseError if the marks belong to another grid."""
        stated = self.sizes.get(image)
        if stated is not None and stated != shape:
            sizes = [f"{rows}×{columns}" for rows, columns in (stated, shape)]
            raise CaseError(
                f"{self.path.name} says that {image} is {sizes[0]}, but the image is {sizes[1]}; correct one of them"
            )
        marks = self._marks(image, finding)
        if marks is None:
            return np.zeros(shape, bool)
        mask = marks.mask(shape)
        if self.kind == "boxes" and not mask.any():
            raise CaseError(f"{self.path.name}: the boxes of {finding} lie outside the image {image}; correct them")
        return mask

    def volumes(self, image: str, findings: Collection[str]) -> Iterator[MaskFile]:
        """The masks of these findings that are NIfTI files, which state their position in the patient."""
        for finding in findings:
            marks = self._marks(image, finding)
            if isinstance(marks, MaskFile) and is_nifti(marks.path):
                yield marks

    def instances(self, image: str, finding: str) -> int | None:
        """How many outlines or boxes were drawn; None if the file does not say."""
        marks = self._marks(image, finding)
        return marks.instances if marks is not None else 0

    def outlines(self, image: str, finding: str) -> list[Polygon]:
        """The polygons as drawn; boxes as their corners, nothing for masks."""
        marks = self._marks(image, finding)
        return list(marks.polygons) if marks is not None else []

    def _marks(self, image: str, finding: str) -> Marks | None:
        return self.marks.get(image, {}).get(canonical(finding))


def read_annotations(path: Path) -> Annotations:
    """The annotations in a file or folder; the format follows from the content."""
    if path.is_dir():
        annotations = mask_folder(path)
        if not annotations.marks:
            raise InputError(no_masks(path))
        return annotations
    if not path.is_file():
        raise InputError(f"{path}: no such file or folder; correct the path of the annotations")
    if path.suffix.lower() in (".csv", ".txt"):
        return _not_empty(Annotations("boxes", path, box_marks(path)))
    content = read_json(path)
    if isinstance(content.get("images"), list) or isinstance(content.get("annotations"), list):
        kind, images, sizes = coco_marks(content, path)
        return _not_empty(Annotations(cast("TruthKind", kind), path, images, sizes))
    images, sizes = chexlocalize_marks(content, path)
    drawn = any(isinstance(marks, Outlines) for of_image in images.values() for marks in of_image.values())
    stated = any("img_size" in entry for entry in content.values())
    return _not_empty(Annotations("outlines" if drawn or stated else "masks", path, images, sizes))


def read_points(path: Path) -> dict[str, dict[str, list[list[float]]]]:
    """The points that readers marked, as lists of [x, y], by image and finding."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; correct the path of the points")
    return points_by_image(path)


def _not_empty(annotations: Annotations) -> Annotations:
    if not annotations.marks:
        raise InputError(f"{annotations.path} has no images; export it again")
    return annotations


def no_masks(root: Path) -> str:
    """The error message for a folder without masks."""
    return (
        f"{root} holds no masks; expected {root.name}/<finding>/<image>.png, or with another of the endings "
        f"{', '.join(MASK_SUFFIXES)}"
    )


def mask_folder(root: Path) -> Annotations:
    """The files of masks/<finding>/<image>.png by image and finding; no file is opened.

    A folder may be empty, but it may not hold only files that are not masks.
    """
    images: dict[str, dict[str, Marks]] = {}
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")):
        finding = canonical(folder.name)
        has_masks = False
        for below in _visible(folder):
            if not below.lower().endswith(MASK_SUFFIXES):
                continue
            has_masks = True
            image = without_ending(below)
            if finding in images.setdefault(image, {}):
                raise InputError(f"{root} holds two masks of {finding} for {image}; keep one")
            images[image][finding] = MaskFile(folder / below, f"{root.name}/{folder.name}/{below}")
        other = None if has_masks else next(_visible(folder), None)
        if other is not None:
            raise InputError(
                f"{folder} holds no masks, only files such as {other}; masks end in {', '.join(MASK_SUFFIXES)}"
            )
    if not images and next(_visible(root), None) is not None:  # files, but not in a folder of a finding
        raise InputError(no_masks(root))
    return Annotations("masks", root, images)


def _visible(folder: Path) -> Iterator[str]:
    """The paths of all files below a folder, relative to it and without hidden ones."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                yield Path(parent, name).relative_to(folder).as_posix()
