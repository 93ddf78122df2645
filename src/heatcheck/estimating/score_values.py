"""The values of one metric for estimates: for each finding, one row per case and one column per method."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped

from heatcheck.core.records import HUMAN


@dataclass(frozen=True, slots=True)
class Patients:
    """Patients by name, and who of them each case belongs to."""

    names: Shaped[np.ndarray, " patients"]
    codes: Int[np.ndarray, " cases"]


@dataclass(frozen=True)  # without slots: patients and rows are cached for all estimates
class Values:
    """The values of one metric: for each finding, one row per case and one column per method, and for the readers."""

    metric: str
    columns: tuple[str, ...]
    by_finding: dict[str, pd.DataFrame]

    def by_case(self) -> "Values":
        """The same values with every case as its own patient, so that cases are resampled."""
        tables = {f: table.assign(patient=table.index.to_numpy(object)) for f, table in self.by_finding.items()}
        return Values(self.metric, self.columns, tables)

    @cached_property
    def _index(self) -> pd.Index:
        """The cases of all findings."""
        joined = np.concatenate([table.index.to_numpy(object) for table in self.by_finding.values()])
        return pd.Index(np.unique(joined), dtype=object)

    @cached_property
    def patients(self) -> np.ndarray:
        """The patient of each case of `_index`."""
        known = dict(pair for table in self.by_finding.values() for pair in table["patient"].items())
        return np.array([known[case] for case in self._index], str)

    @cached_property
    def patients_by_name(self) -> "Patients":
        """The patients in sorted order, and the number of each case's patient among them."""
        names, codes = np.unique(self.patients, return_inverse=True)
        return Patients(names, np.asarray(codes, np.intp))

    @cached_property
    def _rows(self) -> dict[str, Float[np.ndarray, "cases method"]]:
        columns = list(self.columns)
        return {f: table[columns].reindex(self._index).to_numpy(float) for f, table in self.by_finding.items()}

    def over_findings(self, columns: list[str], findings: list[str]) -> Float[np.ndarray, "method cases finding"]:
        """The values of these columns for every case and finding, NaN if a case does not have the finding."""
        positions = [self.columns.index(column) for column in columns]
        return np.stack([self._rows[finding][:, positions].T for finding in findings], axis=-1)


class Gathered:
    """Rows of scores, added batch by batch and stored as numbers to save memory."""

    def __init__(self, findings: Sequence[str], columns: Sequence[str]) -> None:
        self.findings, self.columns = tuple(findings), tuple(columns)
        self._cases: dict[str, int] = {}
        self._patients: list[str] = []
        self._rows: list[tuple[np.ndarray, ...]] = []  # finding, case, column and value of each row

    def add(self, batch: Any) -> None:  # noqa: ANN401 - pyarrow ships no types
        """Add a batch whose words are dictionary-encoded; other findings and methods are left out."""
        finding, column = (
            _codes(batch[name], dict(zip(known, range(len(known)), strict=True)))
            for name, known in (("finding", self.findings), ("method", self.columns))
        )
        wanted = (finding >= 0) & (column >= 0)
        names = batch["case"].dictionary.to_pylist()
        patients = np.asarray(batch["patient"].dictionary.to_pylist(), object)
        local = batch["case"].indices.to_numpy()
        present, first = np.unique(local, return_index=True)
        patient_of = batch["patient"].indices.to_numpy()[first]
        for code, patient in zip(present.tolist(), patients[patient_of].tolist(), strict=True):
            if names[code] not in self._cases:
                self._cases[names[code]] = len(self._patients)
                self._patients.append(patient)
        case = _codes(batch["case"], self._cases)
        kept = (finding.astype(np.int16), case.astype(np.int32), column.astype(np.int16), batch["value"].to_numpy())
        self._rows.append(tuple(part[wanted] for part in kept))

    def values(self, metric: str) -> Values:
        """The values of all batches, with a column for the readers only if they have a row."""
        empty = (np.zeros(0, np.int16), np.zeros(0, np.int32), np.zeros(0, np.int16), np.zeros(0))
        finding, case, column, value = (np.concatenate(parts) for parts in zip(empty, *self._rows, strict=True))
        self._rows.clear()
        has_readers = HUMAN in self.columns and bool((column == self.columns.index(HUMAN)).any())
        columns = tuple(name for name in self.columns if name != HUMAN or has_readers)
        names = np.array(list(self._cases), object)
        order = np.argsort(names.astype(str), kind="stable") if len(names) else np.zeros(0, int)
        rank = np.empty(len(names), np.int64)
        rank[order] = np.arange(len(names))
        patients = np.array(self._patients, object)
        by_finding = {}
        for number, name in enumerate(self.findings):
            chosen = finding == number
            if not chosen.any():
                continue
            rows, row_of = np.unique(rank[case[chosen]], return_inverse=True)
            matrix = np.full((len(rows), len(columns)), np.nan)
            matrix[row_of, column[chosen]] = value[chosen]
            # plain objects, since pandas' string type is slow to access row by row
            wide = pd.DataFrame(matrix, index=pd.Index(names[order[rows]], dtype=object), columns=list(columns))
            wide["patient"] = pd.Series(patients[order[rows]], wide.index, dtype=object)
            by_finding[name] = wide
        return Values(metric, columns, by_finding)


def _codes(column: Any, known: dict[str, int]) -> np.ndarray:  # noqa: ANN401 - pyarrow ships no types
    """The number of each row's word; -1 for other words."""
    codes = np.array([known.get(word, -1) for word in column.dictionary.to_pylist()], np.int64)
    return np.asarray(codes[column.indices.to_numpy()])
