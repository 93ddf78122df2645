"""Reads labels of many images from a CSV: your own, or CheXpert's with its column `Path`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float

from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.findings import canonical
from heatcheck.core.records import UNCERTAIN, CaseKey
from heatcheck.sources.files.tables import Rows, csv_rows

View = Literal["frontal", "lateral", ""]
_CODES = {"1": 0, "1.0": 0, "0": 1, "0.0": 1, "": 2, "nan": 2, "-1": 3, "-1.0": 3}
_VALUES = np.array([1, 0, np.nan, UNCERTAIN], np.float32)  # by code
_CHEXPERT_FACTS = ("Sex", "Age", "Frontal/Lateral", "AP/PA")  # columns of CheXpert that are not labels
_VIEW = "Frontal/Lateral"
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

    def keys(self, cases: list[str], patients: list[str], findings: tuple[str, ...]) -> list[CaseKey]:
        """One key per row with the given ids, sorted by case; rows whose case is "" are left out."""
        chosen = self.values[:, [self.findings.index(finding) for finding in findings]]
        columns = {finding: column for column, finding in enumerate(findings)}
        keys = [
            CaseKey(case, patient, RowLabels(columns, chosen, row))
            for row, (case, patient) in enumerate(zip(cases, patients, strict=True))
            if case
        ]
        keys.sort(key=lambda key: key.case)
        for key, following in pairwise(keys):
            if key.case == following.case:
                raise InputError(f"{self.path}: {key.case!r} is listed twice; keep one row")
        return keys


def read_label_rows(path: Path) -> LabelTable:
    """The table of labels: 1 present, 0 absent, −1 uncertain, blank unknown."""
    with csv_rows(path) as (header, rows):
        name = next((name for name in _IMAGE if name in header), None)
        if name is None:
            raise SpecError(f"{path} has no column 'image'; its columns are {', '.join(header)}")
        other_columns = {name, "patient", *(_CHEXPERT_FACTS if name == "Path" else ())}
        columns = {column: canonical(column) for column in header if column not in other_columns}
        findings = tuple(columns.values())
        if len(set(findings)) < len(findings):
            raise InputError(f"{path}: two columns mean one finding ({', '.join(columns)}); keep one")
        indices = [header.index(column) for column in columns]
        return _read(path, header, name, findings, indices, rows)


def _read(
    path: Path, header: list[str], name: str, findings: tuple[str, ...], indices: list[int], rows: Rows
) -> LabelTable:
    images: list[str] = []
    patients: list[str] = []
    views: list[View] = []
    codes = bytearray()
    known: dict[str, str] = {}  # all rows of a patient share one string
    image, patient, view = header.index(name), _column(header, "patient"), _column(header, _VIEW)
    for line, cells in rows:
        if not cells[image].strip():
            raise InputError(f"{path}, line {line}: the image is missing; add it or remove the line")
        images.append(cells[image].strip())
        patient_id = cells[patient].strip() if patient is not None else ""
        patients.append(known.setdefault(patient_id, patient_id))
        views.append(_view(cells[view], f"{path}, line {line}") if view is not None else "")
        try:
            codes.extend([_CODES[cells[index]] for index in indices])
        except KeyError:
            codes.extend(_unusual_codes(cells, indices, findings, f"{path}, line {line}"))
    values = _VALUES[np.frombuffer(bytes(codes), np.uint8)].reshape(len(images), len(findings))
    return LabelTable(path, findings, images, patients, views, values, chexpert=name == "Path")


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
            raise InputError(f"{where}: {finding} is {text!r}; expected 1, 0, blank or -1")
        yield _CODES[text]
