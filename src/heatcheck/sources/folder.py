"""Any folder of images, with labels in a CSV and marks as masks, outlines or boxes."""

import difflib
import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.findings import canonical
from heatcheck.core.records import Case, CaseKey, Mask, Point, Reading, TruthKind
from heatcheck.core.registry import suggest
from heatcheck.core.settings.lists import Several
from heatcheck.sources.files.annotations import (
    MASK_SUFFIXES,
    Annotations,
    mask_folder,
    no_masks,
    read_annotations,
)
from heatcheck.sources.files.file_facts import file_facts, is_named_after, require_paths
from heatcheck.sources.files.folder_cautions import (
    impossible_pictures,
    without_outline,
    without_rows,
    without_use,
    without_window,
)
from heatcheck.sources.files.image_folder import ImageFolder, no_images
from heatcheck.sources.files.label_rows import (
    Contradictions,
    LabelTable,
    agreeing,
    chexpert_patient,
    read_label_rows,
)
from heatcheck.sources.files.reader_points import point_rows
from heatcheck.sources.files.reading import (
    PICTURE_SUFFIXES,
    Colour,
    image_affine,
    image_shape,
    read_image,
    without_ending,
)
from heatcheck.sources.files.reading_nifti import NIFTI_SUFFIXES, Placed, VoxelGrid, require_one_grid, voxel_grid
from heatcheck.sources.registry import SOURCES, SourceFacts, SourceSettings

_NEVER_DICOM = (*PICTURE_SUFFIXES, *NIFTI_SUFFIXES)
Points = dict[tuple[str, str], dict[str, tuple[Point, ...]]]  # by reader and case, then by finding


class FolderSettings(SourceSettings):
    """The settings of a folder of images in a spec."""

    images: Path  # including all sub-folders
    labels: Path | None = None  # CSV: image, optionally patient, then one column per finding (1, 0, -1 or blank)
    masks: Path | None = None  # masks/<finding>/<image>.png
    truth: Path | None = None  # instead of masks: polygons or run-length codes (JSON), COCO, or a CSV of boxes
    readers: dict[str, Path] = Field(default_factory=dict)  # by reader: a folder or file as for the truth
    points: Path | None = None  # CSV: reader, image, finding, x, y; or one reader's JSON
    modalities: Several[str] = ()  # names of the channels, if they are modalities; masks may then be by modality
    facts: Several[str] = ()  # columns of the labels that are no findings; usual ones, such as sex, need no mention
    colour: Colour = "grey"
    value_range: tuple[float, float] | None = None  # stored values that mean 0 and 1, e.g. [0, 4095] for 12 bits
    contradictions: Contradictions = "fail"  # a mask of a finding with label 0: the image fails, or counts as positive

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.value_range is not None and not self.value_range[0] < self.value_range[1]:
            raise ValueError("value_range must be two numbers, the lower first")
        if self.masks is not None and self.truth is not None:
            raise ValueError("give masks or truth, not both")
        if self.modalities and self.labels is None:
            raise ValueError("with `modalities` the masks do not define the findings; give `labels`")
        return self

    def resolved(self, folder: Path) -> "FolderSettings":
        """The settings with every path relative to `folder`."""
        return self.model_copy(
            update={
                "images": folder / self.images,
                "labels": folder / self.labels if self.labels else None,
                "masks": folder / self.masks if self.masks else None,
                "truth": folder / self.truth if self.truth else None,
                "readers": {name: folder / path for name, path in self.readers.items()},
                "points": folder / self.points if self.points else None,
            }
        )


@dataclass(frozen=True)
class _Marks:
    """The marks of the truth or of one reader, by image id."""

    annotations: Annotations
    names: Mapping[str, str]  # the image name in the annotations, by case

    def masks(self, case: str, findings: Sequence[str], shape: tuple[int, ...]) -> dict[str, Mask]:
        """Every stored mask of the case, including empty ones."""
        name = self.names.get(case, "")
        stored = set(self.annotations.findings_of(name))
        return {finding: self.annotations.mask(name, finding, shape) for finding in findings if finding in stored}

    def instances(self, case: str, findings: Sequence[str]) -> dict[str, int]:
        """The number of outlines or boxes by finding, where known."""
        counts = {finding: self.annotations.instances(self.names[case], finding) for finding in findings}
        return {finding: count for finding, count in counts.items() if count is not None}


@dataclass(frozen=True)
class FolderSource:
    """Images below a folder; the index is read once, pixels on demand."""

    settings: FolderSettings

    def __post_init__(self) -> None:
        settings = self.settings
        require_paths(Path.is_dir, "no such folder", settings.images, settings.masks)
        require_paths(Path.is_file, "no such file", settings.labels, settings.points)
        require_paths(Path.exists, "no such folder or file", settings.truth, *settings.readers.values())
        if not self._images.endings:
            raise InputError(no_images(settings.images))
        if len(set(self.findings)) < len(self.findings):
            raise InputError(f"two columns or folders are the same finding ({', '.join(self.findings)}); keep one")
        if not self.findings:
            raise InputError("no findings: give `labels` with a column for each, or masks or truth that name them")
        for marks in filter(None, (self._truth, *self._readers.values())):
            if not self.modalities:
                self._require_known_names(marks.annotations)
        self._require_every_modality()
        self._points  # noqa: B018 - reports problems with the points before work starts

    def _require_every_modality(self) -> None:
        """Raise InputError if only some modalities have masks: those of the others would seem empty."""
        available = self._truth.annotations.named_findings if self._truth else ()
        missing = [name for name in self.modalities if canonical(name) not in available]
        if missing and len(missing) < len(self.modalities):
            path = self.settings.masks or self.settings.truth
            raise InputError(
                f"{path} has no masks of {', '.join(missing)}; it has {', '.join(available)}. Add them, correct "
                "`modalities`, or put one mask for all into a folder of another name"
            )

    def _require_known_names(self, marks: Annotations) -> None:
        """Raise InputError for a misspelt finding, whose marks would otherwise be ignored silently."""
        names = set(marks.named_findings)
        for name in sorted(names - set(self.findings)):
            near = difflib.get_close_matches(name, [f for f in self.findings if f not in names], n=1, cutoff=0.7)
            if near:
                raise InputError(f"{marks.path / name} does not name a finding; did you mean {near[0]!r}?")

    @cached_property
    def _images(self) -> ImageFolder:
        return ImageFolder(self.settings.images)

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """The columns of the labels, or else the findings of masks or truth."""
        if self._table:
            return self._table.findings
        return self._truth.annotations.named_findings if self._truth else ()

    @property
    def modalities(self) -> tuple[str, ...]:
        """The names of the channels, if they are modalities."""
        return self.settings.modalities

    @property
    def truth_kind(self) -> TruthKind:
        """The form in which the truth is stored."""
        return self._truth.annotations.kind if self._truth else "masks"

    @cached_property
    def _table(self) -> LabelTable | None:
        return read_label_rows(self.settings.labels, self.settings.facts) if self.settings.labels else None

    @cached_property
    def _truth(self) -> _Marks | None:
        path = self.settings.masks or self.settings.truth
        marks = self._marks(path) if path else None
        if marks and self.modalities and not marks.names:
            raise InputError(no_masks(marks.annotations.path))
        return marks

    @cached_property
    def _readers(self) -> dict[str, _Marks]:
        return {name: self._marks(path) for name, path in self.settings.readers.items()}

    def _marks(self, path: Path) -> _Marks:
        """The marks in a file or folder, by case; raises InputError if none belongs to an image."""
        annotations = mask_folder(path) if path.is_dir() else read_annotations(path)
        names: dict[str, str] = {}
        for name in annotations.images:
            case = self._images.id_of(name)
            if case in names:
                raise InputError(f"{path}: {names[case]!r} and {name!r} mark the same image; keep one")
            names[case] = name
        if names and not names.keys() & self._images.endings.keys():
            example = annotations.images[0]
            if path.is_dir():
                raise InputError(
                    f"no mask in {path} is named like an image, e.g. {example}; give masks the names of their images "
                    f"and one of the endings {', '.join(MASK_SUFFIXES)}"
                )
            raise InputError(f"{path} names none of the images, e.g. {example}; use the names of the image files")
        return _Marks(annotations, names)

    def index(self) -> Sequence[CaseKey]:
        """Every row of the labels, or every image if there are no labels."""
        return self._keys

    @cached_property
    def _keys(self) -> list[CaseKey]:
        if self._table is None:
            return [CaseKey(case, case, self._labels_from_marks(case)) for case in self._images.endings]
        cases = self._cases_of(self._table)
        patients = [
            patient or (chexpert_patient(case) if self._table.chexpert else case)
            for patient, case in zip(self._table.patients, cases, strict=True)
        ]
        return self._table.keys(cases, patients, self.findings)

    def cautions(self, *, named: bool = True) -> tuple[str, ...]:
        """What a user should know before the work begins: images and marks that take no part or cannot be right.

        Images are named only where `named`.
        """
        keys = {key.case: key for key in self.index() if key.case in self._images.endings}
        labels, said = self.settings.labels, []
        if labels:
            said.append(without_rows(self._images.endings, list(keys), self.settings.images, labels, named=named))
        if self._truth and labels and not self.modalities:
            marks = self._truth.annotations, self._truth.names
            said += without_outline(list(keys.values()), self.findings, *marks)
            said += without_use(self._images.endings, self.findings, *marks)
        paths = {case: self._images.path(case) for case in keys}
        said += impossible_pictures(paths, {case: key.patient for case, key in keys.items()}, named=named)
        if self.settings.value_range is None:
            dicom = [case for case in keys if self._images.endings[case].lower() not in _NEVER_DICOM]
            said.append(without_window([paths[case] for case in dicom]))
        return tuple(filter(None, said))

    def without_truth(self, findings: Sequence[str]) -> str:
        """That no image has an outline of any of these findings; empty where one has."""
        if self._truth is None:
            return "the source names neither `masks` nor `truth`, so there is no outline to compare a map with; add one"
        marks = self._truth.annotations
        wanted = set(findings)
        names = (self._truth.names.get(key.case, "") for key in self.index())
        if any(wanted.intersection(marks.findings_of(name)) for name in names):
            return ""
        if not marks.images and marks.path.is_dir():
            return no_masks(marks.path)
        return f"{marks.path} marks none of {', '.join(findings)} on any image; correct the names, or `findings`"

    def _cases_of(self, table: LabelTable) -> list[str]:
        """The ids of the images in a table; CheXpert's paths may begin with folders that do not exist here."""
        if not table.chexpert:
            return [self._images.id_of(name) for name in table.images]
        depth = self._images.depth_of(table.images)
        prefixes = {tuple(name.split("/")[:depth]) for name in table.images}
        if len(prefixes) > 1:
            first, second = ("/".join(parts) for parts in sorted(prefixes)[:2])
            raise InputError(f"{table.path}: paths begin with {first} and {second}; keep the rows of one of them")
        return [without_ending("/".join(name.split("/")[depth:])) for name in table.images]

    def _labels_from_marks(self, case: str) -> dict[str, float]:
        """1 if the finding is marked, 0 if its mask is empty, unknown if the mask is missing or unreadable."""
        labels = dict.fromkeys(self.findings, math.nan)
        if self._truth is None:
            return labels
        name = self._truth.names.get(case, "")
        stored = self._truth.annotations
        try:
            return labels | {finding: float(not stored.is_empty(name, finding)) for finding in stored.findings_of(name)}
        except CaseError:
            return labels

    def load(self, key: CaseKey) -> Case:
        """The image with truth and readings of the human readers."""
        path = self._images.path(key.case)
        if key.case not in self._images.endings and (near := self._images.near(key.case)):
            raise CaseError(f"{key.case} does not exist; did you mean {near!r}? Correct the name in the labels")
        image = read_image(path, key.case, self.settings.colour, self.settings.value_range)
        truth = self._masks_of(key, image.shape[1:])
        key = self._agreeing(key, truth)
        readings = tuple(self._reading(name, key, image.shape[1:]) for name in self._readers)
        instances = self._truth.instances(key.case, list(truth)) if self._truth else {}
        return Case(key, image, truth, readings, instances=instances, affine=image_affine(path, key.case))

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The masks by finding, without the empty ones that many exports store for absent findings."""
        truth = self._masks_of(key, image_shape(self._images.path(key.case), key.case))
        self._agreeing(key, truth)
        return truth

    def _masks_of(self, key: CaseKey, shape: tuple[int, ...]) -> dict[str, Mask]:
        if self.modalities and self._truth:  # masks are named by modality or by any other folder name
            return self._stored(self._truth, key, self._truth.annotations.named_findings, shape)
        stored = self._stored(self._truth, key, self.findings, shape) if self._truth else {}
        return {finding: mask for finding, mask in stored.items() if mask.any()}

    def _agreeing(self, key: CaseKey, truth: Mapping[str, Mask]) -> CaseKey:
        of_findings = {} if self.modalities else truth  # else masks may be of modalities
        return agreeing(key, of_findings, "a mask", self.settings.contradictions)

    def _stored(self, marks: _Marks, key: CaseKey, findings: Sequence[str], shape: tuple[int, ...]) -> dict[str, Mask]:
        """Every stored mask of the case; one with an affine must have the voxel positions of its image."""
        masks = marks.masks(key.case, findings, shape)
        volumes = list(marks.annotations.volumes(marks.names.get(key.case, ""), masks))
        affine = image_affine(self._images.path(key.case), key.case) if volumes else None
        if affine is not None:
            image = Placed(f"{key.case}{self._images.endings[key.case]}", VoxelGrid(shape, affine))
            for file in volumes:
                mask = Placed(f"mask {file.name}", voxel_grid(file.path, file.name))
                require_one_grid(image, mask, "export the mask on the image's grid")
        return masks

    @property
    def _files(self) -> Sequence[Path]:
        """All files and folders that the cases are read from."""
        spec = self.settings
        paths = (spec.images, spec.masks, spec.truth, *spec.readers.values(), spec.labels, spec.points)
        return [path for path in paths if path]

    def stamp(self) -> str:
        """A hash of the names, sizes and dates of all files; it changes if a file is replaced."""
        digest = hashlib.sha256()
        for path in self._files:
            for _, name, size, date in file_facts(path):
                digest.update(f"{name}\0{size}\0{date}\n".encode())
        return digest.hexdigest()

    def changed_since(self, moment: str) -> str:
        """The first file that is newer than the moment, in the order of the stamp; empty where none is."""
        try:
            start = (datetime.fromisoformat(moment).timestamp() + 1) * 1e9  # the moment is in whole seconds
        except ValueError:
            return ""
        for path in self._files:
            for folder, name, _, date in file_facts(path):
                if date > start:
                    return str(path.parent / name if not folder else Path(folder, name))
        return ""

    def stamp_without(self, cases: Collection[str]) -> str:
        """The stamp of all files but those named after these cases; the labels are in the index, case by case."""
        marks = [each for each in (self._truth, *self._readers.values()) if each]
        names = {*cases, *(each.names[case] for each in marks for case in cases if case in each.names)}
        names = {without_ending(name) for name in names}
        digest = hashlib.sha256()
        for path in (each for each in self._files if each != self.settings.labels):
            for folder, name, size, date in file_facts(path):
                if not is_named_after(Path(folder, name).relative_to(path) if folder else Path(name), names):
                    digest.update(f"{folder}\0{name}\0{size}\0{date}\n".encode())
        return digest.hexdigest()

    def _reading(self, name: str, key: CaseKey, shape: tuple[int, ...]) -> Reading:
        """A reader's marks; an image without an entry was not outlined by that reader."""
        marks = self._readers[name]
        stored = self._stored(marks, key, self.findings, shape)
        masks = {finding: mask for finding, mask in stored.items() if mask.any()}
        points = self._points.get((name, key.case), {})
        return Reading(name, masks, points, key.case in marks.names, self.settings.points is not None)

    @cached_property
    def _points(self) -> Points:
        path = self.settings.points
        if path is None:
            return {}
        points: Points = defaultdict(dict)
        for where, reader, name, finding, point in point_rows(path, tuple(self.settings.readers)):
            for kind, value, known in (("finding", finding, self.findings), ("reader", reader, self.settings.readers)):
                if value not in known:
                    raise InputError(f"{where}: unknown {kind} {value!r}; {suggest(value, known)}")
            case = self._images.id_of(name)
            if case not in self._images.endings:
                raise InputError(f"{where}: no image {name!r}; correct the name")
            by_finding = points[reader, case]
            by_finding[finding] = (*by_finding.get(finding, ()), point)
        return dict(points)


SOURCES.add(
    "folder",
    SourceFacts(
        name="folder",
        settings=FolderSettings,
        open=FolderSource,
        summary="Your own images, with labels in a CSV and masks, outlines or boxes in files",
        needs="a folder of PNG, JPEG, TIFF, BMP, .npy, DICOM or NIfTI images",
    ),
)
