"""Scores laid out by case and finding."""

import math

import numpy as np
import pandas as pd
from tests.studies.localization.paper_material import rule_of

from heatcheck.core.records import Score
from heatcheck.runs.tables import to_table
from heatcheck.studies.localization.score_grid import score_grid


def frame(*rows):
    return to_table(Score, [Score(*row) for row in rows]).to_pandas()


SCORES = frame(
    ("b", "q", "g", "m", "model", "iou", 0.4),
    ("a", "p", "f", "m", "model", "iou", 0.1),
    ("a", "p", "f", "m", "other", "iou", 0.9),
    ("a", "p", "f", "human", "", "iou", 0.7),
    ("c", "p", "g", "human", "", "iou", 0.8),
    ("a", "p", "g", "m", "model", "iou", math.nan),
    ("a", "p", "unasked", "m", "model", "iou", 0.3),
    ("d", "r", "f", "unasked", "model", "iou", 0.3),
)


def test_rows_of_other_models_methods_and_findings_take_no_part():
    grid = score_grid("iou", SCORES, rule_of(["f", "g"], ["m", "absent"]))
    assert list(grid.cases) == ["a", "b", "c"]
    assert grid.patients.tolist() == [0, 1, 0]
    assert set(grid.by_method) == {"m", "human"}
    np.testing.assert_equal(grid.by_method["m"], [[0.1, math.nan], [math.nan, 0.4], [math.nan, math.nan]])
    np.testing.assert_equal(grid.by_method["human"][:, 0], [0.7, math.nan, math.nan])
    assert grid.is_scored.tolist() == [[True, True], [False, True], [False, False]]


def test_names_as_categories_in_any_order_give_the_same():
    words = SCORES.select_dtypes(exclude="number").columns
    coded = SCORES.assign(**{name: pd.Categorical(SCORES[name], SCORES[name].unique()[::-1]) for name in words})
    one, other = (score_grid("iou", table, rule_of(["f", "g"], ["m"])) for table in (SCORES, coded))
    assert one.cases.equals(other.cases)
    assert one.patients.tolist() == other.patients.tolist()
    np.testing.assert_equal(dict(one.by_method), dict(other.by_method))


def test_a_feature_lies_where_its_case_and_finding_are():
    grid = score_grid("iou", SCORES, rule_of(["f", "g"], ["m"]))
    table = pd.DataFrame({"case": ["b", "a", "z", "a"], "finding": ["g", "f", "f", "unasked"], "x": [1.0, 2, 3, 4]})
    feature = grid.on_grid(table, "x")
    np.testing.assert_equal(feature, [[2, math.nan], [math.nan, 1], [math.nan, math.nan]])
    rows = grid.observations(feature, grid.by_method["m"])
    assert (rows.feature.tolist(), rows.scores.tolist()) == ([2, 1], [0.1, 0.4])
    assert (rows.groups.tolist(), rows.patients.tolist()) == ([0, 1], [0, 1])
    assert grid.observations(feature, grid.by_method["m"], "g").scores.tolist() == [0.4]
