"""Reads labels of many images, and facts such as sex, from a CSV: your own, or CheXpert's with its column `Path`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float

from heatcheck.core.errors import CaseError, InputError, SpecError
from heatcheck.core.findings import canonical
from heatcheck.core.records import UNCERTAIN, CaseKey, Mask
from heatcheck.sources.files.tables import Rows, csv_rows

View = Literal["frontal", "lateral", ""]
Contradictions = Literal["fail", "ignore"]  # what becomes of a case whose labels deny what is marked
_CODES = {"1": 0, "1.0": 0, "0": 1, "0.0": 1, "": 2, "nan": 2, "-1": 3, "-1.0": 3}
_VALUES = np.array([1, 0, np.nan, UNCERTAIN], np.float32)  # by code
_VIEW = "Frontal/Lateral"
_CHEXPERT_FACTS = {"Sex": "sex", "Age": "age", _VIEW: "view", "AP/PA": "projection"}  # columns that are not labels
# columns of any table that are facts, not findings, whatever their case
_USUAL_FACTS = frozenset(
    {"sex", "gender", "age", "view", "projection", "position", "device", "scanner", "manufacturer", "vendor", "site"}
    | {"hospital", "institution", "centre", "center", "ward", "ethnicity", "race", "year", "study"}
)
_IMAGE = ("image", "Path", "img_id", "Image Index")  # possible names of the image column


class RowLabels(Mapping[str, float]):
    """One row of a label table; 250,000 dictionaries would take a hundred times the memory."""

    __slots__ = ("_columns", "_row", "_values")

    def __init__(self, columns: Mapping[str, int], values: Float[np.ndarray, "image finding"], row: int) -> None:
        self._columns, self._values, self._row = columns, values, row

    def __getitem__(self, finding: str) -> float:
        return float(self._values[self._row, self._columns[finding]])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return repr(dict(self))


class RowFacts(Mapping[str, str]):
    """The facts of one row of a label table, without a dictionary for each row."""

    __slots__ = ("_columns", "_row")

    def __init__(self, columns: Mapping[str, Sequence[str]], row: int) -> None:
        self._columns, self._row = columns, row

    def __getitem__(self, name: str) -> str:
        return self._columns[name][self._row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return repr(dict(self))


@dataclass(frozen=True)
class LabelTable:
    """The rows of a label table in the order of the file."""

    path: Path
    findings: tuple[str, ...]
    images: list[str]  # names as in the file
    patients: list[str]  # "" if unknown
    views: list[View]  # "" if unknown
    values: Float[np.ndarray, "image finding"]
    chexpert: bool  # whether the images are in CheXpert's column `Path`
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)  # columns that are no findings, by name

    def keys(self, cases: list[str], patients: list[str], findings: tuple[str, ...]) -> list[CaseKey]:
        """One key per row with the given ids, sorted by case; rows whose case is "" are left out."""
        chosen = self.values[:, [self.findings.index(finding) for finding in findings]]
        columns = {finding: column for column, finding in enumerate(findings)}
        keys = [
            CaseKey(case, patient, RowLabels(columns, chosen, row), RowFacts(self.facts, row))
            for row, (case, patient) in enumerate(zip(cases, patients, strict=True))
            if case
        ]
        keys.sort(key=lambda key: key.case)
        for key, following in pairwise(keys):
            if key.case == following.case:
                raise InputError(f"{self.path}: {key.case!r} is listed twice; keep one row")
        return keys


def read_label_rows(path: Path, facts: Sequence[str] = ()) -> LabelTable:
    """The table of labels: 1 present, 0 absent, −1 uncertain, blank unknown.

    A column is a finding unless it has a usual name of a fact, such as sex, or is named in `facts` and holds anything
    that is no label. Facts are named in lower case.
    """
    also = _no_labels(path, facts) if facts else frozenset()
    with csv_rows(path) as (header, rows):
        name = next((name for name in _IMAGE if name in header), None)
        if name is None:
            raise SpecError(f"{path} has no column 'image'; its columns are {', '.join(header)}")
        stated = {column: column.lower() for column in header if column.lower() in _USUAL_FACTS | also}
        stated |= {column: _CHEXPERT_FACTS[column] for column in header if name == "Path" and column in _CHEXPERT_FACTS}
        if len(set(stated.values())) < len(stated):
            raise InputError(f"{path}: two columns state the same ({', '.join(stated)}); keep one")
        other_columns = {name, "patient", *stated}
        columns = {column: canonical(column) for column in header if column not in other_columns}
        findings = tuple(columns.values())
        if len(set(findings)) < len(findings):
            raise InputError(f"{path}: two columns mean one finding ({', '.join(columns)}); keep one")
        indices = [header.index(column) for column in columns]
        wanted = _Columns(name, findings, indices, {fact: header.index(column) for column, fact in stated.items()})
        return _read(path, header, wanted, rows)


def _no_labels(path: Path, names: Sequence[str]) -> frozenset[str]:
    """Those of the named columns that hold anything but labels, in lower case."""
    with csv_rows(path) as (header, rows):
        asked = {name.lower() for name in names}
        open_columns = {index: column.lower() for index, column in enumerate(header) if column.lower() in asked}
        found = set()
        for _, cells in rows:
            for index in [i for i in open_columns if cells[i].strip().lower() not in _CODES]:
                found.add(open_columns.pop(index))
            if not open_columns:
                break
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where a table has what."""

    image: str
    findings: tuple[str, ...]
    of_findings: list[int]
    of_facts: Mapping[str, int]


def _read(path: Path, header: list[str], columns: _Columns, rows: Rows) -> LabelTable:
    images: list[str] = []
    patients: list[str] = []
    views: list[View] = []
    facts: dict[str, list[str]] = {name: [] for name in columns.of_facts}
    codes = bytearray()
    known: dict[str, str] = {}  # all rows of a patient share one string, and so do equal facts
    name, findings, indices = columns.image, columns.findings, columns.of_findings
    image, patient, view = header.index(name), _column(header, "patient"), _column(header, _VIEW)
    for line, cells in rows:
        if not cells[image].strip():
            raise InputError(f"{path}, line {line}: the image is missing; add it or remove the line")
        images.append(cells[image].strip())
        patient_id = cells[patient].strip() if patient is not None else ""
        patients.append(known.setdefault(patient_id, patient_id))
        views.append(_view(cells[view], f"{path}, line {line}") if view is not None else "")
        for fact, index in columns.of_facts.items():
            text = cells[index].strip()
            facts[fact].append(known.setdefault(text, text))
        try:
            codes.extend([_CODES[cells[index]] for index in indices])
        except KeyError:
            codes.extend(_unusual_codes(cells, indices, findings, f"{path}, line {line}"))
    values = _VALUES[np.frombuffer(bytes(codes), np.uint8)].reshape(len(images), len(findings))
    return LabelTable(path, findings, images, patients, views, values, name == "Path", facts)


def _column(header: list[str], name: str) -> int | None:
    return header.index(name) if name in header else None


def _view(text: str, where: str) -> View:
    view = text.strip().lower()
    match view:
        case "frontal" | "lateral" | "":
            return view
    raise InputError(f"{where}: {_VIEW} is {text!r}; expected Frontal or Lateral")


def _unusual_codes(cells: list[str], indices: list[int], findings: tuple[str, ...], where: str) -> Iterator[int]:
    """The codes of a row with labels in an unusual or a wrong spelling."""
    for finding, index in zip(findings, indices, strict=True):
        text = cells[index].strip().lower()
        if text not in _CODES:
            remedy = "a column that is no finding is named under `facts` of the source"
            raise InputError(f"{where}: {finding} is {text!r}; expected 1, 0, blank or -1; {remedy}")
        yield _CODES[text]


def agreeing(key: CaseKey, truth: Mapping[str, Mask], what: str, contradictions: Contradictions) -> CaseKey:
    """The case, whose marked findings must not be labelled absent; a contradiction fails it, or its label is ignored.

    Raises:
        CaseError: a finding is marked, but its label is 0; the message calls the mark `what`.
    """
    denied = [finding for finding in truth if key.labels.get(finding) == 0]
    if denied and contradictions == "fail":
        raise CaseError(f"{key.case} has {what} of {denied[0]}, but its label says 0; correct one of them")
    return replace(key, labels={**key.labels, **dict.fromkeys(denied, 1.0)}) if denied else key


def chexpert_patient(case: str) -> str:
    """The patient in the path of a CheXpert image; the path itself where it names none."""
    return next((part for part in case.split("/") if part.startswith("patient")), case)
