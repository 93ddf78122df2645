"""CheXlocalize as it is published: CheXpert's films and labels, the radiologists' outlines, the second readers'."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.findings import CHEXPERT, LOCALIZED
from heatcheck.core.records import HUMAN, Case, CaseKey, Mask, Point, Reading, TruthKind
from heatcheck.core.registry import suggest
from heatcheck.core.seeds import seed_for
from heatcheck.sources.files.annotations import Annotations, read_annotations, read_points
from heatcheck.sources.files.label_rows import LabelTable, View, read_label_rows
from heatcheck.sources.files.reading import image_shape, read_image, without_ending
from heatcheck.sources.registry import SOURCES, SourceFacts, SourceSettings

Split = Literal["train", "val", "test"]
Share = Annotated[float, Field(ge=0, le=1)]
_TREES = ("CheXpert", "CheXpert-v1.0", "CheXpert-v1.0-small", "")  # where CheXpert may lie below the root
_SPELT: dict[Split, tuple[str, ...]] = {"train": ("train",), "val": ("val", "valid"), "test": ("test",)}
_MARKS = ("CheXlocalize", "")  # where the outlines may lie: the first edition had them beside the films
_PROBES = 50  # images looked for before their folder is called missing


class CheXlocalizeSettings(SourceSettings):
    """What a spec may say about CheXlocalize."""

    root: Path  # the folder that holds CheXpert/ and CheXlocalize/, or CheXpert's own with train.csv
    split: Split = "test"
    views: Literal["all", "frontal", "lateral"] = "all"
    findings: Literal["localized", "all"] = "localized"  # the ten that were outlined, or every label of CheXpert
    truth: Literal["outlines", "none"] = "outlines"  # none: labels alone, for data without the outlines
    patients: tuple[Share, Share] = (0.0, 1.0)  # those whose number lies here: each has one from 0 to 1, by chance

    @field_validator("patients")
    @classmethod
    def _lower_first(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not value[0] < value[1]:
            raise ValueError("patients must be two numbers from 0 to 1, the lower first")
        return value

    def resolved(self, folder: Path) -> "CheXlocalizeSettings":
        """The same settings with the root taken from `folder`."""
        return self.model_copy(update={"root": folder / self.root})


@dataclass(frozen=True)
class CheXlocalize:
    """One split; the tables are read once, films when asked for."""

    settings: CheXlocalizeSettings

    def __post_init__(self) -> None:
        if not self.settings.root.is_dir():
            raise InputError(f"{self.settings.root}: no such folder; correct the root of the source")
        self._keys  # noqa: B018 - whatever is wrong with the tables is known before work starts
        self._films  # noqa: B018
        if self.settings.truth == "outlines" and self.settings.split != "train" and self._truth is None:
            wanted = f"gt_annotations_{self.settings.split}.json or gt_segmentations_{self.settings.split}.json"
            place = self.settings.root / _MARKS[0]
            raise InputError(f"{place} has no {wanted}; add one, or say `truth: none` to use labels alone")
        named = {case for case in self._all_cases if case}
        for path, images in self._marked():
            if images and not named & set(images):
                raise InputError(f"{path} names none of the images of {self._table.path}; it is another split's")

    def _marked(self) -> Iterator[tuple[Path, Sequence[str]]]:
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
        """Outlines, or masks where only the run-length codes are there."""
        return self._truth.kind if self._truth else "outlines"

    @cached_property
    def _table(self) -> LabelTable:
        names = [name for split in _SPELT[self.settings.split] for name in (f"{split}_labels.csv", f"{split}.csv")]
        places = [Path(tree, name) for tree in _TREES for name in names]
        path = next((self.settings.root / place for place in places if (self.settings.root / place).is_file()), None)
        if path is None:
            looked = ", ".join(map(str, places))
            raise InputError(
                f"{self.settings.root} has no labels of the {self.settings.split} split; looked for {looked}"
            )
        table = read_label_rows(path)
        if not table.chexpert or not table.images:
            raise InputError(f"{path} is not CheXpert's table: it has no column 'Path' or no rows; copy it again")
        for name in table.findings:
            if name not in CHEXPERT:
                raise InputError(f"{path}: {name!r} is no label of CheXpert; {suggest(name, CHEXPERT)}")
        missing = [name for name in LOCALIZED if name not in table.findings]
        if missing:
            raise InputError(f"{path} has no column {missing[0]!r}; copy it again")
        return table

    @cached_property
    def _all_cases(self) -> list[str]:
        """The ids of the table's rows: patient00001_study1_view1_frontal."""
        return [_case_id(name, self._table.path) for name in self._table.images]

    def index(self) -> Sequence[CaseKey]:
        """Every film of the wanted views."""
        return self._keys

    @cached_property
    def _keys(self) -> list[CaseKey]:
        cases, wanted = self._all_cases, self.settings.views
        if wanted != "all":
            cases = [
                case if _view(case, said, self._table.path) == wanted else ""
                for case, said in zip(cases, self._table.views, strict=True)
            ]
        known: dict[str, str] = {}  # one text for all films of a patient
        patients = [known.setdefault(patient, patient) for patient in (case.partition("_")[0] for case in cases)]
        keys = self._table.keys(cases, patients, self.findings)
        if not keys:
            raise InputError(f"{self._table.path} lists no {wanted} film; choose other views")
        low, high = self.settings.patients
        if (low, high) != (0.0, 1.0):
            keys = [key for key in keys if low <= _number(key.patient) < high]
        if not keys:
            raise InputError(f"{self._table.path} has no patient from {low:g} to {high:g}; set wider `patients`")
        return keys

    @cached_property
    def _films(self) -> tuple[Path, tuple[str, ...]]:
        """The folder of the patients, and the endings films have."""
        endings = tuple(dict.fromkeys(name[len(without_ending(name)) :] for name in self._table.images))
        root = self.settings.root
        folders = [root / tree / split for tree in _TREES for split in _SPELT[self.settings.split]]
        probes = self._all_cases[:: max(1, len(self._all_cases) // _PROBES)]
        for folder in (folder for folder in folders if folder.is_dir()):
            if any((folder / _below(case, ending)).is_file() for case in probes for ending in endings):
                return folder, endings
        looked = ", ".join(str(folder.relative_to(root)) for folder in folders)
        example = _below(probes[0], endings[0])
        raise InputError(f"{root} has no films such as {example}; looked below {looked}")

    def _path(self, case: str) -> Path:
        folder, endings = self._films
        paths = [folder / _below(case, ending) for ending in endings]
        return next((path for path in paths if path.is_file()), paths[0])

    @cached_property
    def _truth(self) -> Annotations | None:
        return self._annotations("gt") if self.settings.truth == "outlines" else None

    @cached_property
    def _reader(self) -> Annotations | None:
        return self._annotations("hb") if self.settings.truth == "outlines" else None

    def _annotations(self, whose: str) -> Annotations | None:
        """The outlines, or the run-length codes where they alone are there."""
        path = self._file(f"{whose}_annotations_{{}}.json", f"{whose}_segmentations_{{}}.json")
        if path is None:
            return None
        found = read_annotations(path)
        for name in found.findings:
            if name not in CHEXPERT:
                raise InputError(f"{path}: unknown finding {name!r}; {suggest(name, CHEXPERT)}")
        return found

    @cached_property
    def _points_file(self) -> Path | None:
        return self._file("hb_salient_pt_{}.json") if self.settings.truth == "outlines" else None

    @cached_property
    def _points(self) -> dict[str, dict[str, list[list[float]]]]:
        return read_points(self._points_file) if self._points_file else {}

    def _names(self, *patterns: str) -> list[str]:
        return [pattern.format(split) for pattern in patterns for split in _SPELT[self.settings.split]]

    def _file(self, *patterns: str) -> Path | None:
        paths = [self.settings.root / place / name for name in self._names(*patterns) for place in _MARKS]
        return next((path for path in paths if path.is_file()), None)

    def load(self, key: CaseKey) -> Case:
        """The film with the outlines of radiologists and second readers."""
        image = read_image(self._path(key.case), key.case)
        shape = image.shape[1:]
        truth = self._masks(self._truth, key.case, shape)
        _require_agreement(key, truth)
        counts = {finding: self._truth.instances(key.case, finding) for finding in truth} if self._truth else {}
        drawn = {finding: count for finding, count in counts.items() if count is not None}
        return Case(key, image, truth, self._readings(key.case, shape), instances=drawn)

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The outlines alone."""
        if self._truth is None or key.case not in self._truth.marks:
            return {}
        shape = self._truth.size(key.case) or image_shape(self._path(key.case), key.case)
        truth = self._masks(self._truth, key.case, shape)
        _require_agreement(key, truth)
        return truth

    def _masks(self, marks: Annotations | None, case: str, shape: tuple[int, ...]) -> dict[str, Mask]:
        """What is marked on a film, without the empty masks that are stored for absent findings."""
        stored = marks.findings_of(case) if marks else ()
        masks = {name: marks.mask(case, name, shape) for name in self.findings if marks and name in stored}
        return {name: mask for name, mask in masks.items() if mask.any()}

    def _readings(self, case: str, shape: tuple[int, ...]) -> tuple[Reading, ...]:
        """The second readers as one; a film their file does not name was not outlined by them."""
        if self._reader is None and self._points_file is None:
            return ()
        outlined = self._reader is not None and case in self._reader.marks
        points: Mapping[str, list[list[float]]] = self._points.get(case, {})
        placed = {name: tuple(Point((y, x)) for x, y in points[name]) for name in self.findings if points.get(name)}
        drawn = self._masks(self._reader, case, shape)
        return (Reading(HUMAN, drawn, placed, outlined, self._points_file is not None),)

    def stamp(self) -> str:
        """A hash of the names, sizes and dates of the tables and outlines, and of the films' folder.

        The films of a published data set do not change, and asking for the dates of 224,316 files takes long.
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
        raise InputError(f"{path}: {name!r} is no path such as …/patient00001/study1/view1_frontal.jpg; correct it")
    return "_".join(parts)


def _number(patient: str) -> float:
    """The patient's number: at least 0 and below 1, the same on all machines."""
    return (seed_for("patients", patient) >> 10) / 2**53


def _below(case: str, ending: str) -> str:
    """The path of a film below the folder of its split."""
    return case.replace("_", "/", 2) + ending


def _view(case: str, said: View, path: Path) -> View:
    """Frontal or lateral, as the table says or else as the film's own name does."""
    if said:
        return said
    views: tuple[View, ...] = ("frontal", "lateral")
    named = [view for view in views if view in case.lower()]
    if len(named) != 1:
        raise InputError(f"{path}: nothing says whether {case} is frontal or lateral; ask for all views")
    return named[0]


def _require_agreement(key: CaseKey, truth: Mapping[str, Mask]) -> None:
    for finding in truth:
        if key.labels.get(finding) == 0:
            raise CaseError(f"{key.case} has an outline of {finding}, but its label says 0; correct one of them")


SOURCES.add(
    "chexlocalize",
    SourceFacts(
        name="chexlocalize",
        settings=CheXlocalizeSettings,
        open=CheXlocalize,
        summary="CheXlocalize and CheXpert as published: films, labels, radiologists' outlines and second readers",
        needs="the downloaded folders CheXpert/ and CheXlocalize/, or CheXpert-v1.0 for training",
        published_as="chexlocalize",
    ),
)
