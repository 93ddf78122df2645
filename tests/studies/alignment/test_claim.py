"""On unseen patients of the phantom, the networks that come with heatcheck can be pulled toward the masks and away."""

import pytest
import yaml

from heatcheck import read_run, run_study
from heatcheck.core.vocabulary import condition

FINDING = "Edema"
FILMS = {"name": "phantom_chest", "size": 192, "second_view": 0, "readers": 0}
STUDY = {
    "study": "alignment",
    "seed": 5,
    "batch_size": 16,
    "threads": 1,
    "keep_maps": "none",
    "gallery": 0,
    "finetune": {**FILMS, "patients": 120, "first": 6000000},
    "evaluation": {**FILMS, "patients": 64, "first": 6016800},
    "findings": [FINDING],
    "alpha": 5,
    "seeds": 1,
    "fit": {"epochs": 5, "batch_size": 8, "learning_rate": 0.0004},
    "reliance": {"shifts": 2},
    "bootstrap_draws": 1000,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "methods"), [("phantom_chest_densenet", ["gradient", "grad_cam"]), ("phantom_chest_vit", ["gradient"])]
)
def test_aligned_lies_above_control_above_misaligned_and_the_prediction_stays(tmp_path, model, methods):
    spec = tmp_path / "claim.yaml"
    spec.write_text(yaml.safe_dump({**STUDY, "models": [model], "methods": methods}))
    run_study(spec, tmp_path / "run")
    estimates = read_run(tmp_path / "run").estimates.query(f"finding == {FINDING!r}")

    def found(statistic, metric, method, arm):
        of_arm = (estimates["statistic"] == statistic) & (estimates["condition"] == condition(arm=arm))
        return estimates[of_arm & (estimates["metric"] == metric) & (estimates["method"] == method)].iloc[0]

    base = found("auroc", "auroc", "", "base")["value"]
    for method in methods:
        aligned, control, misaligned = (found("mean", "mass", method, arm) for arm in ("align", "control", "misalign"))
        assert aligned["low"] > control["high"], method
        assert control["low"] > misaligned["high"], method
        for arm in ("align", "misalign"):
            assert found("auroc", "auroc", method, arm)["value"] > base - 0.05, (method, arm)
