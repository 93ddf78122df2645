"""Labels of many images in a CSV: one's own, or CheXpert's with its `Path` column."""

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
_CHEXPERT_FACTS = ("Sex", "Age", "Frontal/Lateral", "AP/PA")  # columns beside CheXpert's labels
_VIEW = "Frontal/Lateral"
_IMAGE = ("image", "Path", "img_id", "Image Index")  # what the column that names the image may be called


class RowLabels(Mapping[str, float]):
    """One row of a table of labels: a quarter of a million dictionaries would take a hundred times the memory."""

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
    """The rows of a table in the file's order."""

    path: Path
    findings: tuple[str, ...]
    images: list[str]  # as the file names them
    patients: list[str]  # "" where the file does not say
    views: list[View]  # "" where the file does not say
    values: Float[np.ndarray, "image finding"]
    chexpert: bool  # whether images stand in CheXpert's column `Path`

    def keys(self, cases: list[str], patients: list[str], findings: tuple[str, ...]) -> list[CaseKey]:
        """One key a row under the ids given for them, sorted; "" leaves a row out."""
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
    """The labels: 1 present, 0 absent, −1 uncertain, blank unknown."""
    with csv_rows(path) as (header, rows):
        name = next((name for name in _IMAGE if name in header), None)
        if name is None:
            raise SpecError(f"{path} has no column 'image'; its columns are {', '.join(header)}")
        beside = {name, "patient", *(_CHEXPERT_FACTS if name == "Path" else ())}
        columns = {column: canonical(column) for column in header if column not in beside}
        findings = tuple(columns.values())
        if len(set(findings)) < len(findings):
            raise InputError(f"{path}: two columns mean one finding ({', '.join(columns)}); keep one")
        places = [header.index(column) for column in columns]
        return _read(path, header, name, findings, places, rows)


def _read(
    path: Path, header: list[str], name: str, findings: tuple[str, ...], places: list[int], rows: Rows
) -> LabelTable:
    images: list[str] = []
    patients: list[str] = []
    views: list[View] = []
    codes = bytearray()
    known: dict[str, str] = {}  # one text for all rows of a patient
    image, patient, view = header.index(name), _place(header, "patient"), _place(header, _VIEW)
    for line, cells in rows:
        if not cells[image].strip():
            raise InputError(f"{path}, line {line}: no image is named; name one or remove the line")
        images.append(cells[image].strip())
        said = cells[patient].strip() if patient is not None else ""
        patients.append(known.setdefault(said, said))
        views.append(_view(cells[view], f"{path}, line {line}") if view is not None else "")
        try:
            codes.extend([_CODES[cells[place]] for place in places])
        except KeyError:
            codes.extend(_spelt_out(cells, places, findings, f"{path}, line {line}"))
    values = _VALUES[np.frombuffer(bytes(codes), np.uint8)].reshape(len(images), len(findings))
    return LabelTable(path, findings, images, patients, views, values, chexpert=name == "Path")


def _place(header: list[str], name: str) -> int | None:
    return header.index(name) if name in header else None


def _view(text: str, where: str) -> View:
    said = text.strip().lower()
    match said:
        case "frontal" | "lateral" | "":
            return said
    raise InputError(f"{where}: {_VIEW} is {text!r}; expected Frontal or Lateral")


def _spelt_out(cells: list[str], places: list[int], findings: tuple[str, ...], where: str) -> Iterator[int]:
    """The codes of a row whose labels are written in an unusual way, or wrongly."""
    for finding, place in zip(findings, places, strict=True):
        text = cells[place].strip().lower()
        if text not in _CODES:
            raise InputError(f"{where}: {finding} is {text!r}; expected 1, 0, blank or -1")
        yield _CODES[text]
