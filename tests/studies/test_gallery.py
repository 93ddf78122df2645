"""Which cases the gallery shows, and their outlines."""

import cv2
import numpy as np

from heatcheck.core.records import Score
from heatcheck.runs.store import RunFolder
from heatcheck.runs.tables import write_table
from heatcheck.studies.gallery import choose, outlines


def folder_with(tmp_path, rows):
    scores = []
    for case, finding, iou, hit in rows:
        scores += [
            Score(case, case, finding, "grad_cam", "m", name, value) for name, value in (("iou", iou), ("hit", hit))
        ]
        scores += [Score(case, case, finding, "random", "m", name, 0.9) for name in ("iou", "hit")]
    write_table(tmp_path / "scores.parquet", Score, scores)
    return RunFolder(tmp_path)


ROWS = [
    ("a", "f", 0.01, 1.0),
    ("b", "f", 0.60, 0.0),
    ("c", "g", 0.90, 1.0),
    ("d", "g", 0.35, 1.0),
    ("e", "f", 0.00, 0.0),
    ("h", "f", 0.50, 1.0),
]


def test_discordant_best_typical_and_worst_cases_are_chosen_for_the_method_not_the_floor(tmp_path):
    chosen = choose(folder_with(tmp_path, ROWS), "m", ("grad_cam", "random"), 5)
    by_why = {choice.why: choice.case for choice in chosen}
    assert by_why == {
        "low overlap but hit": "a",
        "high overlap but miss": "b",
        "best overlap": "c",
        "typical": "d",
        "worst: low overlap and miss": "e",
    }


def test_no_more_than_asked_for_and_no_case_twice(tmp_path):
    for most in (0, 1, 3, 100):
        chosen = choose(folder_with(tmp_path, ROWS), "m", ("grad_cam",), most)
        assert len(chosen) == min(most, 6)
        assert len({choice.case for choice in chosen}) == len(chosen)


def test_a_run_without_scores_has_no_gallery(tmp_path):
    assert choose(folder_with(tmp_path, []), "m", ("grad_cam",), 5) == []


def test_outlines_enclose_the_mask_they_came_from():
    rows, columns = np.mgrid[:80, :90]
    mask = ((rows - 40) ** 2 + (columns - 50) ** 2 < 30**2) & ~((rows - 40) ** 2 + (columns - 50) ** 2 < 10**2)
    drawn = np.zeros(mask.shape, np.uint8)
    found = outlines(mask)
    assert len(found) == 2  # the rim and the hole
    cv2.drawContours(drawn, [np.array(max(found, key=len))], -1, 1, cv2.FILLED)
    outer = (rows - 40) ** 2 + (columns - 50) ** 2 < 30**2
    assert (drawn.astype(bool) ^ outer).mean() < 0.01
