"""CheXlocalize as published: CheXpert's films and labels, with outlines by radiologists and human readers."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from heatcheck.core.errors import InputError
from heatcheck.core.findings import CHEXPERT, LOCALIZED
from heatcheck.core.records import HUMAN, Case, CaseKey, Mask, Point, Reading, TruthKind
from heatcheck.core.registry import suggest
from heatcheck.core.seeds import seed_for
from heatcheck.sources.files.annotations import Annotations, read_annotations, read_points
from heatcheck.sources.files.label_rows import Contradictions, LabelTable, View, agreeing, read_label_rows
from heatcheck.sources.files.reading import image_shape, read_image, without_ending
from heatcheck.sources.registry import SOURCES, SourceFacts, SourceSettings

Split = Literal["train", "val", "test"]
Share = Annotated[float, Field(ge=0, le=1)]
_TREES = ("CheXpert", "CheXpert-v1.0", "CheXpert-v1.0-small", "")  # where CheXpert may be below the root
_SPLITS: dict[Split, tuple[str, ...]] = {"train": ("train",), "val": ("val", "valid"), "test": ("test",)}
_MARK_FOLDERS = ("CheXlocalize", "")  # where the outlines may be: the first edition had them next to the films
_PROBES = 50  # images searched before their folder counts as missing


class CheXlocalizeSettings(SourceSettings):
    """The settings of CheXlocalize in a spec."""

    root: Path  # the folder with CheXpert/ and CheXlocalize/, or CheXpert's folder with train.csv
    split: Split = "test"
    views: Literal["all", "frontal", "lateral"] = "all"
    findings: Literal["localized", "all"] = "localized"  # the ten that were outlined, or every label of CheXpert
    truth: Literal["outlines", "none"] = "outlines"  # none: only labels, for data without outlines
    patients: tuple[Share, Share] = (0.0, 1.0)  # only patients whose pseudo-random number lies in this range
    contradictions: Contradictions = (
        "fail"  # an outline of a finding with label 0: the film fails, or counts as positive
    )

    @field_validator("patients")
    @classmethod
    def _lower_first(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not value[0] < value[1]:
            raise ValueError("patients must be two numbers from 0 to 1, the lower first")
        return value

    def resolved(self, folder: Path) -> "CheXlocalizeSettings":
        """The settings with the root relative to `folder`."""
        return self.model_copy(update={"root": folder / self.root})


@dataclass(frozen=True)
class CheXlocalize:
    """One split; the tables are read once, films on demand."""

    settings: CheXlocalizeSettings

    def __post_init__(self) -> None:
        if not self.settings.root.is_dir():
            raise InputError(f"{self.settings.root}: no such folder; correct the root of the source")
        if lacking := list(self._lacking()):
            raise InputError("; also ".join(lacking))
        self._keys  # noqa: B018 - reports problems with the tables before work starts
        known = {case for case in self._all_cases if case}
        for path, images in self._marked_images():
            if images and not known & set(images):
                raise InputError(f"{path} names none of the images of {self._table.path}; use the file of this split")

    def _lacking(self) -> Iterator[str]:
        """What is not there of labels, films and outlines, each in a sentence with the remedy."""
        try:
            self._films  # noqa: B018 - the table of labels says which films there are
        except InputError as error:
            yield str(error)
        split = self.settings.split
        if self.settings.truth == "outlines" and split != "train" and self._marks_file("gt") is None:
            names = f"gt_annotations_{split}.json or gt_segmentations_{split}.json"
            folder = self.settings.root / _MARK_FOLDERS[0]
            yield f"{folder} has no {names}; add one, or set `truth: none` to use only labels"

    def _marked_images(self) -> Iterator[tuple[Path, Sequence[str]]]:
        for annotations in filter(None, (self._truth, self._reader)):
            yield annotations.path, annotations.images
        if self._points_file:
            yield self._points_file, list(self._points)

    @property
    def findings(self) -> tuple[str, ...]:
        """The ten findings that were outlined, or every label in the table's order."""
        return LOCALIZED if self.settings.findings == "localized" else self._table.findings

    @property
    def truth_kind(self) -> TruthKind:
        """Outlines, or masks if there are only run-length codes."""
        return self._truth.kind if self._truth else "outlines"

    @cached_property
    def _table(self) -> LabelTable:
        root = self.settings.root
        names = [name for split in _SPLITS[self.settings.split] for name in (f"{split}_labels.csv", f"{split}.csv")]
        candidates = [Path(tree, name) for tree in _TREES for name in names]
        path = next((root / candidate for candidate in candidates if (root / candidate).is_file()), None)
        if path is None:
            tried = ", ".join(map(str, candidates))
            raise InputError(f"{root} has no labels of the {self.settings.split} split; looked for {tried}")
        table = read_label_rows(path)
        if not table.chexpert or not table.images:
            raise InputError(f"{path} is not CheXpert's table: it has no column 'Path' or no rows; copy it again")
        for name in table.findings:
            if name not in CHEXPERT:
                raise InputError(f"{path}: {name!r} is not a label of CheXpert; {suggest(name, CHEXPERT)}")
        missing = [name for name in LOCALIZED if name not in table.findings]
        if missing:
            raise InputError(f"{path} has no column {missing[0]!r}; copy it again")
        stated = zip(table.views, table.images, strict=True)
        views = [view or _view_in(name) for view, name in stated]  # the table of the test films has no such column
        return replace(table, facts={**table.facts, "view": views})

    @cached_property
    def _all_cases(self) -> list[str]:
        """The ids of the table's rows, such as patient00001_study1_view1_frontal."""
        return [_case_id(name, self._table.path) for name in self._table.images]

    def index(self) -> Sequence[CaseKey]:
        """Every film of the selected views and patients."""
        return self._keys

    @cached_property
    def _keys(self) -> list[CaseKey]:
        cases, views = self._all_cases, self.settings.views
        if views != "all":
            cases = [
                case if _view(case, view, self._table.path) == views else ""
                for case, view in zip(cases, self._table.views, strict=True)
            ]
        known: dict[str, str] = {}  # all films of a patient share one string
        patients = [known.setdefault(patient, patient) for patient in (case.partition("_")[0] for case in cases)]
        keys = self._table.keys(cases, patients, self.findings)
        if not keys:
            raise InputError(f"{self._table.path} lists no {views} film; choose other views")
        low, high = self.settings.patients
        if (low, high) != (0.0, 1.0):
            keys = [key for key in keys if low <= _patient_number(key.patient) < high]
        if not keys:
            raise InputError(f"{self._table.path} has no patient from {low:g} to {high:g}; widen `patients`")
        return keys

    @cached_property
    def _films(self) -> tuple[Path, tuple[str, ...]]:
        """The folder of the patients, and the endings of the films."""
        endings = tuple(dict.fromkeys(name[len(without_ending(name)) :] for name in self._table.images))
        root = self.settings.root
        folders = [root / tree / split for tree in _TREES for split in _SPLITS[self.settings.split]]
        probes = self._all_cases[:: max(1, len(self._all_cases) // _PROBES)]
        for folder in (folder for folder in folders if folder.is_dir()):
            if any((folder / _relative_path(case, ending)).is_file() for case in probes for ending in endings):
                return folder, endings
        tried = ", ".join(str(folder.relative_to(root)) for folder in folders)
        example = _relative_path(probes[0], endings[0])
        raise InputError(f"{root} has no films such as {example}; looked below {tried}")

    def _path(self, case: str) -> Path:
        folder, endings = self._films
        paths = [folder / _relative_path(case, ending) for ending in endings]
        return next((path for path in paths if path.is_file()), paths[0])

    @cached_property
    def _truth(self) -> Annotations | None:
        return self._annotations("gt") if self.settings.truth == "outlines" else None

    @cached_property
    def _reader(self) -> Annotations | None:
        return self._annotations("hb") if self.settings.truth == "outlines" else None

    def _annotations(self, whose: str) -> Annotations | None:
        """The outlines, or else the run-length codes; None if there are neither."""
        path = self._marks_file(whose)
        if path is None:
            return None
        annotations = read_annotations(path)
        for name in annotations.findings:
            if name not in CHEXPERT:
                raise InputError(f"{path}: unknown finding {name!r}; {suggest(name, CHEXPERT)}")
        return annotations

    def _marks_file(self, whose: str) -> Path | None:
        return self._file(f"{whose}_annotations_{{}}.json", f"{whose}_segmentations_{{}}.json")

    @cached_property
    def _points_file(self) -> Path | None:
        return self._file("hb_salient_pt_{}.json") if self.settings.truth == "outlines" else None

    @cached_property
    def _points(self) -> dict[str, dict[str, list[list[float]]]]:
        return read_points(self._points_file) if self._points_file else {}

    def _names(self, *patterns: str) -> list[str]:
        return [pattern.format(split) for pattern in patterns for split in _SPLITS[self.settings.split]]

    def _file(self, *patterns: str) -> Path | None:
        paths = [self.settings.root / folder / name for name in self._names(*patterns) for folder in _MARK_FOLDERS]
        return next((path for path in paths if path.is_file()), None)

    def load(self, key: CaseKey) -> Case:
        """The film with the outlines of radiologists and human readers."""
        image = read_image(self._path(key.case), key.case)
        shape = image.shape[1:]
        truth = self._masks(self._truth, key.case, shape)
        key = agreeing(key, truth, "an outline", self.settings.contradictions)
        counts = {finding: self._truth.instances(key.case, finding) for finding in truth} if self._truth else {}
        instances = {finding: count for finding, count in counts.items() if count is not None}
        return Case(key, image, truth, self._readings(key.case, shape), instances=instances)

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The outlines by finding, without reading the film if its size is known."""
        if self._truth is None or key.case not in self._truth.marks:
            return {}
        shape = self._truth.size(key.case) or image_shape(self._path(key.case), key.case)
        truth = self._masks(self._truth, key.case, shape)
        agreeing(key, truth, "an outline", self.settings.contradictions)
        return truth

    def _masks(self, marks: Annotations | None, case: str, shape: tuple[int, ...]) -> dict[str, Mask]:
        """The masks on a film, without the empty ones that are stored for absent findings."""
        stored = marks.findings_of(case) if marks else ()
        masks = {name: marks.mask(case, name, shape) for name in self.findings if marks and name in stored}
        return {name: mask for name, mask in masks.items() if mask.any()}

    def _readings(self, case: str, shape: tuple[int, ...]) -> tuple[Reading, ...]:
        """The human readers as one; a film that their file does not name was not outlined by them."""
        if self._reader is None and self._points_file is None:
            return ()
        outlined = self._reader is not None and case in self._reader.marks
        points: Mapping[str, list[list[float]]] = self._points.get(case, {})
        marked = {name: tuple(Point((y, x)) for x, y in points[name]) for name in self.findings if points.get(name)}
        masks = self._masks(self._reader, case, shape)
        return (Reading(HUMAN, masks, marked, outlined, self._points_file is not None),)

    def stamp(self) -> str:
        """A hash of the names, sizes and dates of the tables and outlines, and of the films' folder.

        The films of a published data set do not change, and reading the dates of 224,316 files takes long.
        """
        files = [self._table.path, self._films[0], self._points_file]
        files += [marks.path for marks in (self._truth, self._reader) if marks]
        digest = hashlib.sha256()
        for path in filter(None, files):
            facts = path.stat()
            digest.update(f"{path.name}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
        return digest.hexdigest()


def _case_id(name: str, path: Path) -> str:
    parts = without_ending(name).split("/")[-3:]
    if len(parts) < 3 or not all(parts) or "_" in parts[0] or "_" in parts[1]:
        raise InputError(f"{path}: {name!r} is not a path such as …/patient00001/study1/view1_frontal.jpg; correct it")
    return "_".join(parts)


def _patient_number(patient: str) -> float:
    """A pseudo-random number in [0, 1) that depends on the patient's id alone."""
    return (seed_for("patients", patient) >> 10) / 2**53


def _relative_path(case: str, ending: str) -> str:
    """The path of a film in the folder of its split."""
    return case.replace("_", "/", 2) + ending


def _view(case: str, stated: View, path: Path) -> View:
    """Frontal or lateral, from the table or else from the film's name."""
    if stated:
        return stated
    view = _view_in(case)
    if not view:
        raise InputError(f"{path}: cannot tell whether {case} is frontal or lateral; use `views: all`")
    return view


def _view_in(name: str) -> View:
    """The view that a film's name states; empty if it states none, or both."""
    views: tuple[View, ...] = ("frontal", "lateral")
    matches = [view for view in views if view in name.rpartition("/")[2].lower()]
    return matches[0] if len(matches) == 1 else ""


SOURCES.add(
    "chexlocalize",
    SourceFacts(
        name="chexlocalize",
        settings=CheXlocalizeSettings,
        open=CheXlocalize,
        summary="CheXlocalize and CheXpert as published: films, labels, outlines of radiologists and human readers",
        needs="the downloaded folders CheXpert/ and CheXlocalize/, or CheXpert-v1.0 for training",
        published_as="chexlocalize",
    ),
)
