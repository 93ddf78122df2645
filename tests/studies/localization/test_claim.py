"""What the demonstration claims: Grad-CAM points better than chance, the centre and the edges."""

import pytest

from heatcheck import read_run, run_study


@pytest.mark.slow
def test_grad_cam_points_better_than_random_centre_and_edges(write_spec, tmp_path):
    source = {"name": "phantom_chest", "patients": 60, "first": 5_000_000, "size": 160, "readers": 0}
    methods = ["grad_cam", "random", "center_prior", "edge"]
    run_study(write_spec(source=source, methods=methods, batch_size=8, shard_size=32, gallery=0), tmp_path / "run")
    estimates = read_run(tmp_path / "run").estimates
    tests = estimates.query("statistic == 'test' and metric == 'hit' and finding == 'All findings'")
    assert set(tests["other_method"]) == {"random", "center_prior", "edge"}
    assert (tests["value"] > 0).all()
    assert (tests["p_adjusted"] < 0.01).all()
