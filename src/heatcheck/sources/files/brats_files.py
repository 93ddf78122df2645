"""Case folders, file names and tumour grades of a copy of BraTS."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from heatcheck.core.errors import CaseError, InputError, SpecError
from heatcheck.sources.files.reading_nifti import NIFTI_SUFFIXES
from heatcheck.sources.files.tables import read_csv

MODALITIES = ("T1", "T1C", "T2", "FLAIR")
GRADES = ("LGG", "HGG")
TABLE = "name_mapping.csv"
_EXAMPLES = "BraTS20_Training_001 or BraTS-GLI-00001-000"
STRAY_MASK = "_Segm"  # in a public copy the mask of case 355 has kept an old name: W39_1998.09.19_Segm.nii
_DEEPEST = 2  # folders between the root and the cases


@dataclass(frozen=True, slots=True)
class Edition:
    """How one edition of BraTS names cases and files."""

    case: re.Pattern[str]  # its first group is the patient
    separator: str
    images: Mapping[str, str]  # by modality


EDITIONS = (
    Edition(
        re.compile(r"(BraTS20_Training_\d+)"), "_", dict(zip(MODALITIES, ("t1", "t1ce", "t2", "flair"), strict=True))
    ),
    Edition(
        re.compile(r"(BraTS-[A-Za-z]+-\d+)-\d+"), "-", dict(zip(MODALITIES, ("t1n", "t1c", "t2w", "t2f"), strict=True))
    ),
)


@dataclass(frozen=True, slots=True)
class CaseFolder:
    """The files of one case."""

    path: Path
    edition: Edition

    @property
    def patient(self) -> str:
        """The patient's id; in later editions a patient may have several cases."""
        match = self.edition.case.fullmatch(self.path.name)
        return match[1] if match else self.path.name

    def image(self, modality: str) -> Path:
        """The file of a modality; raises CaseError if it is missing."""
        file = self._file(self.edition.images[modality])
        if file is None:
            wanted = self._name(self.edition.images[modality])
            raise CaseError(f"{self.path.name} has no {modality} image ({wanted}.nii or .nii.gz); add the file")
        return file

    def mask(self) -> Path:
        """The file of the segmentation; raises CaseError if it is missing."""
        stray = sorted(self.path.glob(f"*{STRAY_MASK}.nii*"))
        file = self._file("seg") or (stray[0] if len(stray) == 1 else None)
        if file is None:
            raise CaseError(f"{self.path.name} has no mask ({self._name('seg')}.nii or .nii.gz); add the file")
        return file

    def _name(self, suffix: str) -> str:
        return f"{self.path.name}{self.edition.separator}{suffix}"

    def _file(self, suffix: str) -> Path | None:
        paths = (self.path / f"{self._name(suffix)}{ending}" for ending in reversed(NIFTI_SUFFIXES))
        return next((path for path in paths if path.is_file()), None)

    def facts(self) -> Iterator[str]:
        """Name, size and date of each file, sorted by name."""
        with os.scandir(self.path) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                facts = entry.stat()
                yield f"{self.path.name}/{entry.name}\0{facts.st_size}\0{facts.st_mtime_ns}\n"


def case_folders(root: Path) -> dict[str, CaseFolder]:
    """The cases by id: folders in the root or up to two levels below it."""
    if not root.is_dir():
        raise InputError(f"{root}: no such folder; correct the root of the source")
    level = [root]
    for _ in range(_DEEPEST + 1):
        holding = [cases for folder in level if (cases := _cases_in(folder))]
        if len(holding) > 1:
            folders = ", ".join(str(next(iter(cases.values())).path.parent) for cases in holding)
            raise InputError(f"{root} holds several data sets ({folders}); give one of these folders as root")
        if holding:
            return holding[0]
        level = [path for folder in level for path in _folders_in(folder)]
    if _edition(root.name):
        raise InputError(f"{root} is the folder of one case; set `root: {root.parent}`")
    raise InputError(f"{root} holds no cases, which are folders such as {_EXAMPLES}; correct the root of the source")


def _cases_in(folder: Path) -> dict[str, CaseFolder]:
    editions = ((path, _edition(path.name)) for path in _folders_in(folder))
    return {path.name: CaseFolder(path, edition) for path, edition in editions if edition}


def _folders_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:  # a folder without read permission is skipped
        return []


def _edition(name: str) -> Edition | None:
    return next((edition for edition in EDITIONS if edition.case.fullmatch(name)), None)


def grades_file(root: Path, cases: Mapping[str, CaseFolder], given: Path | None) -> Path:
    """The table of grades: the given one, or the one that comes with the data."""
    if given is not None:
        if not given.is_file():
            raise SpecError(f"{given}: no such file; correct `grades` of the source")
        return given
    first = next(iter(cases.values()))
    folder = first.path.parent
    paths = [folder / TABLE, folder.parent / TABLE, root / TABLE]
    table = next((path for path in paths if path.is_file()), None)
    if table is not None:
        return table
    if first.edition is EDITIONS[0]:
        raise InputError(f"{folder} has no {TABLE} with the grades; copy it again, or give its path as `grades`")
    raise SpecError(f"{folder}: this edition has no grades; give a CSV with the columns case and grade as `grades`")


def read_grades(path: Path, cases: Mapping[str, CaseFolder]) -> dict[str, str]:
    """The grade of each case; the table may list further cases, and patients instead of cases."""
    header, rows = read_csv(path)
    by_name = {name.lower(): name for name in header}
    if "grade" not in by_name:
        raise SpecError(f"{path} has no column 'Grade'; its columns are {', '.join(header) or 'none'}")
    grade, case = by_name["grade"], by_name.get("case", header[-1])  # in the published table the newest id comes last
    if case == grade:
        raise SpecError(f"{path} has no column 'case' and no ids in its last column; add a column 'case'")
    listed: dict[str, tuple[int, str]] = {}
    for line, row in rows.items():
        name, value = row[case].strip(), row[grade].strip()
        if name in ("", "NA"):  # a case of another edition only
            continue
        if name in listed:
            raise InputError(f"{path}: {name} is listed twice, in lines {listed[name][0]} and {line}; keep one")
        if value.upper() not in GRADES:
            raise InputError(f"{path}, line {line}: the grade of {name} is {value!r}; expected LGG or HGG")
        listed[name] = line, value.upper()
    grades = {name: listed.get(name) or listed.get(folder.patient) for name, folder in cases.items()}
    lost = [name for name, entry in grades.items() if entry is None]
    if lost:
        which = f"{lost[0]} has" if len(lost) == 1 else f"{len(lost)} of {len(grades)} cases, such as {lost[0]}, have"
        raise InputError(f"{path}: {which} no grade; add a row, or give another table as `grades`")
    return {name: entry[1] for name, entry in grades.items() if entry is not None}
