"""The parquet tables of a run: their columns come from the records, their rows are sorted and atomic."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from heatcheck.core.atomic_files import replaced
from heatcheck.core.records import CaseRecord, Estimate, Prediction, RegionRecord, Score, Timing, TruthShape
from heatcheck.core.vocabulary import Statistic

TABLES: dict[str, type] = {
    "scores": Score,
    "predictions": Prediction,
    "cases": CaseRecord,
    "timings": Timing,
    "shapes": TruthShape,
    "regions": RegionRecord,
    "estimates": Estimate,
}
GROUP_ROWS = 2**17  # of a row group at least, where there are so many
_TYPES = {str: pa.string(), Statistic: pa.string(), float: pa.float64(), int: pa.int64()}


def schema_of(record: type) -> Any:  # noqa: ANN401 - pyarrow ships no types
    """The arrow schema whose columns are the record's fields, in their order."""
    return pa.schema([(f.name, _TYPES[f.type]) for f in fields(record)])  # type: ignore[index]


def to_table(record: type, rows: Sequence[Any]) -> Any:  # noqa: ANN401 - pyarrow ships no types
    """The records as an arrow table."""
    schema = schema_of(record)
    columns = [pa.array([getattr(row, one.name) for row in rows], one.type) for one in schema]
    return pa.table(columns, schema=schema)


def write_table(path: Path, record: type, rows: Sequence[Any]) -> None:
    """Write the records under a temporary name and rename the complete file."""
    with replaced(path) as temporary:
        pq.write_table(to_table(record, rows), temporary, compression="zstd")


def join_tables(parts: Sequence[Path], target: Path, record: type) -> None:
    """One table holding the rows of all parts in their order, a few parts read at a time.

    Small parts share a row group: every reader begins with the list of all groups.
    """
    with (
        replaced(target) as temporary,
        pq.ParquetWriter(temporary, schema_of(record), compression="zstd") as writer,
    ):
        for group in _groups(parts):
            writer.write_table(pa.concat_tables([pq.read_table(part) for part in group]))


def one_record_per_case(target: Path) -> None:
    """Keep one record per case, which several models may have read; it failed if it failed with any of them."""
    table = pq.read_table(target)
    cases = table.select(["case", "status"]).to_pandas()
    if cases["case"].is_unique:
        return
    failed_first = cases.assign(ok=cases["status"] != "failed").sort_values(["case", "ok"], kind="stable")
    kept = failed_first.index[~failed_first.duplicated("case")]
    with replaced(target) as temporary:
        pq.write_table(table.take(kept.to_numpy()), temporary, compression="zstd")


def records_in(path: Path, record: type, without: Collection[str]) -> tuple[Any, ...]:
    """The records of a table, without those of some cases."""
    rows = pq.read_table(path).to_pylist()
    return tuple(record(**row) for row in rows if row.get("case") not in without)


def _groups(parts: Sequence[Path]) -> Iterator[list[Path]]:
    """The parts, grouped into about one row group each."""
    group: list[Path] = []
    rows = 0
    for part in parts:
        group.append(part)
        rows += pq.read_metadata(part).num_rows
        if rows >= GROUP_ROWS:
            yield group
            group, rows = [], 0
    if group:
        yield group


def read_batches(path: Path, record: type, columns: Sequence[str], wanted: Any) -> Iterator[Any]:  # noqa: ANN401 - pyarrow ships no types
    """Some columns of the wanted rows, a batch at a time and in their order, so that a table need not fit into memory.

    Words come dictionary-encoded. `wanted` is a list of (column, comparison, value), or of several such lists of which
    one must hold.
    """
    # only what is asked for: groups are passed over by their lowest and highest words, if those are read as words
    words = [field.name for field in schema_of(record) if field.name in columns and field.type == pa.string()]
    table = ds.dataset(path, format=ds.ParquetFileFormat(dictionary_columns=words))
    rows = pq.filters_to_expression(wanted)
    for batch in table.to_batches(columns=list(columns), filter=rows, batch_readahead=1, fragment_readahead=1):
        if batch.num_rows:
            yield batch
