import math
import os
import stat
from dataclasses import astuple, dataclass, fields

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatcheck.core.atomic_files import replaced
from heatcheck.core.records import Score, Timing
from heatcheck.core.vocabulary import Statistic
from heatcheck.runs.tables import TABLES, join_tables, read_batches, schema_of, to_table, write_table

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
scores = st.builds(
    Score, case=TEXT, patient=TEXT, finding=TEXT, method=TEXT, model=TEXT, metric=TEXT, value=st.floats(), reason=TEXT
)


def score(case, value=0.5):
    return Score(case, "p", "Edema", "grad_cam", "net", "iou", value)


def rows_of(path, record):
    frame = pd.read_parquet(path)
    return [record(*row) for row in frame.itertuples(index=False)]


@pytest.mark.parametrize("name", TABLES)
def test_schema_has_the_fields_of_the_record_in_their_order(name):
    schema = schema_of(TABLES[name])
    assert schema.names == [field.name for field in fields(TABLES[name])]
    wanted = {str: pa.string(), Statistic: pa.string(), float: pa.float64(), int: pa.int64()}
    assert schema.types == [wanted[field.type] for field in fields(TABLES[name])]


def test_field_of_a_type_no_column_can_hold_is_noticed():
    @dataclass
    class Odd:
        names: list

    with pytest.raises(KeyError):
        schema_of(Odd)


@settings(deadline=None, max_examples=25)
@given(rows=st.lists(scores, max_size=6))
def test_records_come_back_as_they_were_written(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "scores.parquet"
    write_table(path, Score, rows)
    seen = rows_of(path, Score)
    # NaN equals nothing, itself included
    assert [repr(astuple(row)) for row in seen] == [repr(astuple(row)) for row in rows]


def test_undefined_value_stays_nan_and_does_not_become_missing(tmp_path):
    write_table(tmp_path / "t.parquet", Score, [score("a", math.nan)])
    column = pq.read_table(tmp_path / "t.parquet")["value"]
    assert column.null_count == 0
    assert math.isnan(column[0].as_py())


def test_table_without_rows_keeps_its_columns_and_types(tmp_path):
    write_table(tmp_path / "t.parquet", Timing, [])
    assert pq.read_table(tmp_path / "t.parquet").schema.equals(schema_of(Timing))
    assert to_table(Timing, []).num_rows == 0


def test_row_with_a_wrong_type_leaves_the_old_table_and_no_temporary_file(tmp_path):
    path = tmp_path / "t.parquet"
    write_table(path, Score, [score("a")])
    with pytest.raises(pa.ArrowInvalid):
        write_table(path, Score, [score("b"), score("c", "high")])
    assert [row.case for row in rows_of(path, Score)] == ["a"]
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]


def test_failing_write_leaves_the_old_file_and_no_temporary_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def half_written():
        with replaced(path) as temporary:
            temporary.write_text("half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half_written()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_file_has_its_name_only_when_it_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    with replaced(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
        assert temporary.parent == tmp_path
        assert temporary.match("a.txt.tmp-*")
    assert path.read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_file_is_as_private_as_the_user_wants_it(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_table(tmp_path / "t.parquet", Score, [score("a")])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t.parquet").stat().st_mode) == mode


def test_joined_table_holds_the_parts_in_the_order_they_are_given(tmp_path):
    parts = [tmp_path / f"{name}.parquet" for name in "zay"]
    for part, cases in zip(parts, ["dc", "", "ab"], strict=True):
        write_table(part, Score, [score(case) for case in cases])
    join_tables(parts, tmp_path / "all.parquet", Score)
    assert [row.case for row in rows_of(tmp_path / "all.parquet", Score)] == ["d", "c", "a", "b"]


def test_no_parts_join_to_a_table_without_rows(tmp_path):
    join_tables([], tmp_path / "all.parquet", Score)
    assert pq.read_table(tmp_path / "all.parquet").schema.equals(schema_of(Score))


def test_missing_part_leaves_the_old_table(tmp_path):
    write_table(tmp_path / "all.parquet", Score, [score("old")])
    write_table(tmp_path / "0.parquet", Score, [score("new")])
    with pytest.raises(FileNotFoundError):
        join_tables([tmp_path / "0.parquet", tmp_path / "1.parquet"], tmp_path / "all.parquet", Score)
    assert [row.case for row in rows_of(tmp_path / "all.parquet", Score)] == ["old"]
    assert not list(tmp_path.glob("*.tmp-*"))


def test_folder_whose_name_looks_like_a_partition_adds_no_column(tmp_path):
    folder = tmp_path / "seed=3"
    folder.mkdir()
    write_table(folder / "0.parquet", Score, [score("a")])
    join_tables([folder / "0.parquet"], folder / "all.parquet", Score)
    assert list(pd.read_parquet(folder / "all.parquet")) == schema_of(Score).names


def test_wanted_rows_are_read_batch_by_batch_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr("heatcheck.runs.tables.GROUP_ROWS", 2)
    parts = [tmp_path / f"{name}.parquet" for name in "abc"]
    for part in parts:
        write_table(part, Score, [score(f"{part.stem}{n}") for n in range(3)])
    join_tables(parts, tmp_path / "all.parquet", Score)
    wanted = [[("case", "==", "b2")], [("case", "in", ["a1", "c0", "nobody"])]]
    batches = list(read_batches(tmp_path / "all.parquet", Score, ["case", "value"], wanted))
    assert [batch["case"].to_pylist() for batch in batches] == [["a1"], ["b2"], ["c0"]]
    assert "nobody" not in batches[0]["case"].dictionary.to_pylist()
    assert list(read_batches(tmp_path / "all.parquet", Score, ["case"], [("case", "==", "nobody")])) == []
