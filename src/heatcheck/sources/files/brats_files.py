"""Where a copy of BraTS has its cases, what their files are called, and which grade each tumour has."""

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
STRAY_MASK = "_Segm"  # the mask of case 355 kept its first name in a public copy: W39_1998.09.19_Segm.nii
_DEEPEST = 2  # folders between the one that is named and the cases


@dataclass(frozen=True, slots=True)
class Edition:
    """How one edition names cases and files."""

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
        """Whose it is: of the later editions a patient may have been examined several times."""
        match = self.edition.case.fullmatch(self.path.name)
        return match[1] if match else self.path.name

    def image(self, modality: str) -> Path:
        """The file of a modality."""
        found = self._file(self.edition.images[modality])
        if found is None:
            wanted = self._name(self.edition.images[modality])
            raise CaseError(f"{self.path.name} has no {modality} image ({wanted}.nii or .nii.gz); add the file")
        return found

    def mask(self) -> Path:
        """The file of the segmentation."""
        stray = sorted(self.path.glob(f"*{STRAY_MASK}.nii*"))
        found = self._file("seg") or (stray[0] if len(stray) == 1 else None)
        if found is None:
            raise CaseError(f"{self.path.name} has no mask ({self._name('seg')}.nii or .nii.gz); add the file")
        return found

    def _name(self, what: str) -> str:
        return f"{self.path.name}{self.edition.separator}{what}"

    def _file(self, what: str) -> Path | None:
        places = (self.path / f"{self._name(what)}{ending}" for ending in reversed(NIFTI_SUFFIXES))
        return next((place for place in places if place.is_file()), None)

    def facts(self) -> Iterator[str]:
        """Name, size and date of each file, in a fixed order."""
        with os.scandir(self.path) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                facts = entry.stat()
                yield f"{self.path.name}/{entry.name}\0{facts.st_size}\0{facts.st_mtime_ns}\n"


def case_folders(root: Path) -> dict[str, CaseFolder]:
    """The cases by their ids: folders in the root, or in one that lies in it."""
    if not root.is_dir():
        raise InputError(f"{root}: no such folder; correct the root of the source")
    level = [root]
    for _ in range(_DEEPEST + 1):
        holding = [found for folder in level if (found := _cases_in(folder))]
        if len(holding) > 1:
            places = ", ".join(str(next(iter(found.values())).path.parent) for found in holding)
            raise InputError(f"{root} holds several data sets ({places}); name one of these folders as root")
        if holding:
            return holding[0]
        level = [path for folder in level for path in _folders_in(folder)]
    if _edition(root.name):
        raise InputError(f"{root} is the folder of one case; say `root: {root.parent}`")
    raise InputError(f"{root} holds no cases, which are folders such as {_EXAMPLES}; correct the root of the source")


def _cases_in(folder: Path) -> dict[str, CaseFolder]:
    named = ((path, _edition(path.name)) for path in _folders_in(folder))
    return {path.name: CaseFolder(path, edition) for path, edition in named if edition}


def _folders_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:  # one that may not be looked into holds nothing for us
        return []


def _edition(name: str) -> Edition | None:
    return next((edition for edition in EDITIONS if edition.case.fullmatch(name)), None)


def grades_file(root: Path, cases: Mapping[str, CaseFolder], named: Path | None) -> Path:
    """The table with the grades: the one that is named, or the one that comes with the data."""
    if named is not None:
        if not named.is_file():
            raise SpecError(f"{named}: no such file of grades; correct `grades` of the source")
        return named
    first = next(iter(cases.values()))
    folder = first.path.parent
    places = [folder / TABLE, folder.parent / TABLE, root / TABLE]
    found = next((place for place in places if place.is_file()), None)
    if found is not None:
        return found
    if first.edition is EDITIONS[0]:
        raise InputError(f"{folder} has no {TABLE}, which says the grades; copy it again, or name it under `grades`")
    raise SpecError(f"{folder}: this edition says no grades; name a CSV with the columns case and grade under `grades`")


def read_grades(path: Path, cases: Mapping[str, CaseFolder]) -> dict[str, str]:
    """The grade of each case that there is; the table may speak of more, and of patients instead of cases."""
    header, rows = read_csv(path)
    by_name = {name.lower(): name for name in header}
    if "grade" not in by_name:
        raise SpecError(f"{path} has no column 'Grade'; its columns are {', '.join(header) or 'none'}")
    grade, case = by_name["grade"], by_name.get("case", header[-1])  # published: the newest id comes last
    if case == grade:
        raise SpecError(f"{path} has no column 'case', nor ids in its last column; add one")
    said: dict[str, tuple[int, str]] = {}
    for line, row in rows.items():
        name, text = row[case].strip(), row[grade].strip()
        if name in ("", "NA"):  # of another edition alone
            continue
        if name in said:
            raise InputError(f"{path}: {name} is listed twice, in lines {said[name][0]} and {line}; keep one")
        if text.upper() not in GRADES:
            raise InputError(f"{path}, line {line}: the grade of {name} is {text!r}; expected LGG or HGG")
        said[name] = line, text.upper()
    found = {name: said.get(name) or said.get(folder.patient) for name, folder in cases.items()}
    lost = [name for name, one in found.items() if one is None]
    if lost:
        which = f"{lost[0]} has" if len(lost) == 1 else f"{len(lost)} of {len(found)} cases, such as {lost[0]}, have"
        raise InputError(f"{path}: {which} no grade there; add a row, or name another table under `grades`")
    return {name: one[1] for name, one in found.items() if one is not None}
