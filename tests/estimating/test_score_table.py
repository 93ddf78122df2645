"""Scores as tables: the seed or fold leaves the condition, and nothing is averaged or dropped in silence."""

import math

import numpy as np
import pandas as pd
import pytest

from heatcheck.core.records import Score
from heatcheck.core.vocabulary import condition
from heatcheck.estimating.score_table import by_condition, pivoted, positions, read_scores, reasons_by_count
from heatcheck.runs.tables import join_tables, write_table

WORDS = ["case", "patient", "method"]


def score(case, value, method="lime", metric="iou", reason="", **facts):
    return Score(case, f"patient of {case}", "Edema", method, "net", metric, value, condition(**facts), reason=reason)


ROWS = [
    score("b", 0.5, seed=2, arm="align"),
    score("a", 0.25, seed=1, arm="align"),
    score("a", 0.75, arm="align"),
    score("a", 1.0, metric="hit", seed=1),
    score("c", math.nan, method="cam", seed=2),
]


@pytest.fixture
def folder(tmp_path):
    """A run's scores, in more than one part: words have other numbers in each."""
    for number, rows in enumerate((ROWS[:2], ROWS[2:])):
        write_table(tmp_path / f"{number}.parquet", Score, rows)
    join_tables([tmp_path / "0.parquet", tmp_path / "1.parquet"], tmp_path / "scores.parquet", Score)
    return tmp_path


def test_the_seed_becomes_a_column_and_the_rest_stays_the_condition(folder):
    table = read_scores(folder, WORDS, [("metric", "==", "iou")], "seed")
    assert table["case"].tolist() == ["b", "a", "a", "c"]  # in the order of the file
    assert table["seed"].tolist() == [2, 1, 0, 2]
    assert table["condition"].tolist() == [condition(arm="align")] * 3 + [condition()]
    assert table["value"].tolist()[:3] == [0.5, 0.25, 0.75]
    assert table["patient"].tolist()[0] == "patient of b"
    assert {table[name].dtype for name in (*WORDS, "condition")} == {np.dtype(object)}  # no categories


def test_what_a_condition_does_not_have_gets_the_number_for_it(folder):
    table = read_scores(folder, WORDS, [("metric", "==", "iou")], "fold", absent=1)
    assert table["fold"].tolist() == [1, 1, 1, 1]
    assert table["condition"].tolist() == [row.condition for row in ROWS if row.metric == "iou"]


@pytest.mark.parametrize("metric", ["iou", "no such metric"])
def test_without_scores_there_is_an_empty_table_of_the_same_columns(folder, metric):
    full = read_scores(folder, WORDS, [("metric", "==", "iou")], "seed")
    if metric == "iou":
        (folder / "scores.parquet").unlink()
    empty = read_scores(folder, WORDS, [("metric", "==", metric)], "seed")
    assert empty.empty
    assert set(empty.columns) == set(full.columns)
    assert (empty["value"].dtype, empty["seed"].dtype) == (full["value"].dtype, full["seed"].dtype)
    assert by_condition(empty) == {}


def test_conditions_are_split_in_the_order_of_their_text(folder):
    parts = by_condition(read_scores(folder, WORDS, [("metric", "in", ["iou", "hit"])], "seed"))
    assert list(parts) == sorted([condition(arm="align"), condition()])
    assert parts[condition()]["case"].tolist() == ["a", "c"]


def test_a_pivot_has_a_row_and_a_column_for_whatever_was_scored():
    table = pd.DataFrame(
        [("a", 1, "lime", 0.1), ("a", 1, "cam", 0.2), ("b", 2, "cam", 0.3)], columns=["case", "seed", "method", "value"]
    )
    wide = pivoted(table, ["case", "seed"], "method")
    assert wide.index.to_list() == [("a", 1), ("b", 2)]
    assert wide.columns.to_list() == ["cam", "lime"]
    np.testing.assert_array_equal(wide.to_numpy(), [[0.2, 0.1], [0.3, math.nan]])
    both = pivoted(table, ["case"], ["method", "seed"])
    assert sorted(both.columns.to_list()) == [("cam", 1), ("cam", 2), ("lime", 1)]


def test_two_values_for_one_cell_are_refused():
    table = pd.DataFrame({"case": ["a", "a"], "method": ["cam", "cam"], "value": [0.1, 0.3]})
    with pytest.raises(ValueError, match="duplicate"):
        pivoted(table, ["case"], "method")


def test_the_most_common_reason_is_the_last():
    rows = [("cam", "dark"), ("cam", "flat"), ("cam", "flat"), ("lime", "dark"), ("lime", "")]
    table = pd.DataFrame(rows, columns=["method", "reason"]).assign(value=math.nan)
    table.loc[len(table)] = ["lime", "a reason of a value that is defined", 0.5]
    assert reasons_by_count(table, ["method"]) == [("cam", "dark"), ("lime", "dark"), ("cam", "flat")]


def test_names_that_are_not_known_have_no_position():
    names = pd.Series(["b", "x", "a", "b"])
    assert positions(names, ["a", "b"]).tolist() == [1, -1, 0, 1]
    assert positions(names.astype("category"), ["b"]).tolist() == [0, -1, -1, 0]
