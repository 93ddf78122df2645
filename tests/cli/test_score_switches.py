"""Single rules of the benchmark, one at a time, on cases where each gives another answer."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.map_material import SHAPE, Files, small_scoring, square, write_map


@pytest.fixture
def files(tmp_path) -> Files:
    files = small_scoring(tmp_path / "given")
    write_map(files.map("p0_study1_view1"), np.zeros(SHAPE, np.float32), 0.9)  # marks nothing, and ties everywhere
    human = {
        image: {"Edema": [[7.5, 8.5], [0.5, 0.5]]} for image in json.loads(files.truth.read_text()) if "p1" not in image
    }
    (files.root / "points.json").write_text(json.dumps(human))
    return files


def scored(heatcheck, files: Files, *switches: str) -> pd.DataFrame:
    flags = [word for switch in switches for word in ("--switch", switch)]
    code, _, error = heatcheck("score", *files.flags("--human-points", files.root / "points.json", *flags), "-q")
    assert code == 0, error
    table = pd.read_parquet(files.root / "out" / "scores.parquet")
    return table[table["condition"] == "{}"].set_index(["case", "method", "metric"])["value"]


EMPTY = "p0_study1_view1", "maps"


def test_without_switches_failures_score_0_ties_share_and_points_share(heatcheck, files) -> None:
    values = scored(heatcheck, files)
    assert {values[*EMPTY, metric] for metric in ("iou", "iou_full", "hit", "mass", "rank")} == {0}
    assert values["p3_study1_view1", "human", "hit"] == 0.5
    assert np.isnan(values["p1_study1_view1", "human", "hit"])


def test_each_switch_changes_its_rule_alone(heatcheck, files) -> None:
    values = scored(heatcheck, files, "empty_region=chexlocalize", "human_points=chexlocalize")
    assert np.isnan(values[*EMPTY, "iou"])
    assert (values[*EMPTY, "iou_full"], values[*EMPTY, "hit"]) == (0, 0)
    assert values["p3_study1_view1", "human", "hit"] == 1
    assert values["p1_study1_view1", "human", "hit"] == 0


def test_the_first_of_tied_pixels_is_the_top_left(heatcheck, files) -> None:
    files.change_truth("p0_study1_view1", Edema=[square(0, 0, 3)])
    assert scored(heatcheck, files, "ties=chexlocalize", "empty_map=chexlocalize")[*EMPTY, "hit"] == 1


def test_an_empty_map_may_be_scored_like_any_other(heatcheck, files) -> None:
    values = scored(heatcheck, files, "empty_map=chexlocalize")
    assert values[*EMPTY, "hit"] == pytest.approx(64 / (SHAPE[0] * SHAPE[1]))
    assert np.isnan(values[*EMPTY, "mass"])


def test_images_drawn_again_give_narrower_intervals_than_patients(heatcheck, files) -> None:
    scored(heatcheck, files)
    by_patient = _width(files)
    (files.root / "out").rename(files.root / "by-patient")
    scored(heatcheck, files, "resampling=chexlocalize")
    table = pd.read_parquet(files.root / "out" / "estimates.parquet")
    mean = table[(table["statistic"] == "mean") & (table["metric"] == "iou") & (table["condition"] == "{}")]
    assert (mean["n_patients"] == mean["n_cases"]).all()
    assert _width(files) != by_patient
    page = (files.root / "out" / "report.html").read_text()
    assert "images, studentised" in page


def _width(files: Files) -> float:
    table = pd.read_parquet(files.root / "out" / "estimates.parquet")
    row = table[(table["statistic"] == "mean") & (table["metric"] == "iou") & (table["condition"] == "{}")].iloc[0]
    return float(row["high"] - row["low"])


@pytest.mark.parametrize(
    ("switch", "problem"), [("ties", "RULE=recommended"), ("tyes=chexlocalize", "did you mean 'ties'")]
)
def test_switches_that_do_not_exist_are_one_line(heatcheck, files, switch, problem) -> None:
    code, _, error = heatcheck("score", *files.flags("--switch", switch), "-q")
    assert code == 2
    assert problem in error


def test_the_benchmark_has_its_own_rules(heatcheck, files) -> None:
    flags = ("--preset", "chexlocalize", "--switch", "ties=recommended")
    code, _, error = heatcheck("score", *files.flags(*flags), "-q")
    assert code == 2
    assert "leave one of the two out" in error
