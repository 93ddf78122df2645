"""The scores of single cases as a table to save."""

import io
import math
from dataclasses import replace

import pandas as pd
import pytest
from tests.report.page_reading import saved_tables

from heatcheck.core.records import Score, ShardTables
from heatcheck.core.vocabulary import condition
from heatcheck.report import case_scores
from heatcheck.report.downloads import piecewise, write_beside
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import RunFolder, read_run
from heatcheck.runs.tables import join_tables

ONE = Score("a", "p", "Edema", "grad_cam", "net", "iou", 0.25)
ROWS = (
    ONE,
    replace(ONE, metric="hit", value=math.nan, reason="no peak in /home/x/a.png"),
    replace(ONE, metric="iou", condition=condition(preset="chexlocalize"), value=0.5),
    replace(ONE, metric="pixels", value=7.0),
    replace(ONE, metric="iou", other_method="lime"),
    replace(ONE, case="b", value=1.0),
)


@pytest.fixture
def run(tmp_path):
    facts = {"study": "localization", "metrics": [{"name": "hit"}, {"name": "iou"}, {"name": "auroc"}]}
    with RunFolder.locked(tmp_path / "run", {}, facts) as folder:
        folder.write_shard(0, ShardTables(scores=ROWS[:1]))
        folder.write_shard(1, ShardTables(scores=ROWS[1:]))
    return read_run(tmp_path / "run")


def test_a_map_is_a_row_and_a_metric_a_column_also_where_a_case_is_split_between_groups(run):
    tables = list(case_scores.case_scores(run))
    table = pd.concat(tables, ignore_index=True)
    assert list(table.columns) == ["case", "patient", "finding", "method", "model", "condition", "hit", "iou", "reason"]
    plain, other, second = table.to_dict("records")
    assert (plain["case"], plain["iou"], plain["reason"]) == ("a", 0.25, "no peak in /home/x/a.png")
    assert math.isnan(plain["hit"])
    assert (other["condition"], other["iou"], other["reason"]) == ('{"preset":"chexlocalize"}', 0.5, "")
    assert (second["case"], second["iou"]) == ("b", 1.0)


def test_only_one_group_of_scores_is_held(run, monkeypatch, tmp_path):
    monkeypatch.setattr("heatcheck.runs.tables.GROUP_ROWS", 1)
    join_tables([run.path / "parts" / f"{i:05d}.parquet" for i in (0, 1)], run.path / "scores.parquet", Score)
    sizes = [len(table) for table in case_scores.case_scores(run)]
    assert sizes == [2, 1]


def test_a_table_that_is_too_large_for_the_page_lies_beside_it(made_run, monkeypatch):
    folder = made_run()
    inside = saved_tables(build_report(folder).read_text())["cases.csv"]
    assert len(pd.read_csv(io.StringIO(inside))) == 20
    assert not (folder / "cases.csv").exists()
    monkeypatch.setattr(case_scores, "LARGEST", 100)
    text = build_report(folder).read_text()
    assert "cases.csv" not in saved_tables(text)
    assert "<b>cases.csv</b> is too large to travel with the page and lies beside it" in text
    assert (folder / "cases.csv").read_text() == inside
    assert build_report(folder).read_text() == text


def test_pieces_are_counted_in_lines_and_kept_only_as_far_as_they_fit(tmp_path):
    small = piecewise("a.csv", "", lambda: ("x\n", "1\n", "2\n"), 100)
    assert (small.rows, bool(small.uri), small.pieces) == (2, True, None)
    large = piecewise("a.csv", "", lambda: ("x\n", "1\n", "2\n"), 4)
    assert (large.rows, large.uri) == (2, "")
    write_beside([small, large], tmp_path)
    assert (tmp_path / "a.csv").read_text() == "x\n1\n2\n"
