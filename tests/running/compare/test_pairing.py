"""Two runs side by side."""

import pandas as pd
import pytest

from heatcheck import run_study
from heatcheck.core.errors import InputError, RunFolderError
from heatcheck.running.compare import compare_runs
from heatcheck.running.study import RunOptions

FEWER = {"findings": ["Airspace Opacity", "Atelectasis"], "bootstrap_draws": 100, "gallery": 0}


def test_a_run_and_a_shorter_one_with_another_seed_agree_where_chance_plays_no_part(write_spec, tmp_path):
    run_study(write_spec(**FEWER), tmp_path / "a", RunOptions(limit=6))
    run_study(write_spec(**FEWER, seed=4), tmp_path / "b", RunOptions(limit=4))
    comparison = compare_runs(tmp_path / "a", tmp_path / "b", draws=100)
    assert comparison.sentences[0] == "Specs differ in seed."
    cases = pd.read_parquet(tmp_path / "b" / "cases.parquet")
    assert cases["patient"].nunique() == 4
    assert f"{len(cases)} cases are in both runs" in comparison.sentences[-1]
    by_method = {}
    for row in comparison.rows:
        by_method.setdefault(row.method, []).append(abs(row.difference))
    assert max(by_method["grad_cam"]) < 1e-6
    assert max(by_method["human"]) == 0
    assert max(by_method["random"]) > 0


def test_different_images_of_one_name_are_not_compared(write_spec, tmp_path):
    source = {"name": "phantom_chest", "patients": 9, "first": 400, "size": 80}
    run_study(write_spec(**FEWER), tmp_path / "a", RunOptions(limit=4))
    run_study(write_spec(**FEWER, source={**source, "seed": 21}), tmp_path / "b", RunOptions(limit=4))
    with pytest.raises(InputError, match="cannot be compared"):
        compare_runs(tmp_path / "a", tmp_path / "b")


def test_folders_that_are_no_finished_runs_are_refused(write_spec, tmp_path):
    with pytest.raises(RunFolderError, match="not a run folder"):
        compare_runs(tmp_path / "a", tmp_path)
    run_study(write_spec(**FEWER), tmp_path / "a", RunOptions(limit=2))
    manifest = tmp_path / "a" / "run.json"
    manifest.write_text(manifest.read_text().replace('"complete"', '"running"'))
    with pytest.raises(InputError, match="not finished"):
        compare_runs(tmp_path / "a", tmp_path / "a")
