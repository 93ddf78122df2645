"""The whole paper, small: uncertain labels → checkpoints → ensemble → maps → choice on validation data → report."""

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import ndimage
from skimage.filters import threshold_otsu
from tests.fitting.material import PROTOCOL, training_spec
from tests.scoring.test_rows import smoothed_colours

from heatcheck.core.vocabulary import condition
from heatcheck.fitting.train import train
from heatcheck.running.progress import Silent
from heatcheck.running.run import run_study
from heatcheck.runs.store import RunFolder, read_run
from heatcheck.sources.phantoms.phantom_chest import PhantomChest, PhantomChestSettings

pytestmark = pytest.mark.usefixtures("plain_curves")
FINDINGS = ["Cardiomegaly", "Pleural Effusion"]
COLOURS = 20  # the paper's box


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    train(training_spec(folder, PROTOCOL, runs=1), folder / "my-training", Silent())
    phantom = {"name": "phantom_chest", "patients": 10, "size": 80}
    spec = {
        "study": "localization",
        "threads": 1,
        "source": {**phantom, "first": 7100},
        "validation": {**phantom, "first": 7200},
        "models": [
            {"name": "densenet_compact", "ensemble": "my-training", "label": "ensemble"},
            {"name": "densenet_compact", "ensemble": "my-training/best_single.json", "label": "best single"},
            {"name": "phantom_chest_densenet", "label": "well trained"},
        ],
        "findings": FINDINGS,
        "methods": ["grad_cam", {"name": "gradient", "smooth": [0.1, 0.05], "colours": COLOURS}, "random"],
        "keep_maps": "all",
        "bootstrap_draws": 100,
        "gallery": 2,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(spec))
    run_study(folder / "study.yaml", folder / "run")
    return read_run(folder / "run")


def test_ensemble_and_best_single_are_scored_and_compared_with_a_test(run) -> None:
    facts = {model["name"]: model for model in run.manifest["models"]}
    assert facts["ensemble"]["kind"] == "ensemble"
    assert facts["ensemble"]["members"] > 1
    assert facts["best single"]["kind"] == "per_finding"  # of two findings two checkpoints: still no ensemble
    assert facts["best single"]["members"] > 1
    assert facts["best single"]["description"].startswith("Compact DenseNet, the best checkpoint of each finding, ")
    assert {"ensemble", "best single"} <= set(run.scores["model"])
    compared = run.estimates.query("statistic == 'model_difference' and model == 'best single'")
    compared = compared[compared["condition"] == condition(other_model="ensemble")]
    assert {"iou", "hit", "auroc"} <= set(compared["metric"])
    tested = compared[compared["metric"].isin(["iou", "hit"]) & compared["value"].notna()]
    assert (tested["p_value"].between(0, 1) | (tested["n_patients"] < 6)).all()
    overlaps = tested[tested["metric"] == "iou"]
    assert overlaps["p_value"].isna().equals(overlaps["n_patients"] < 6)


def test_architecture_and_method_were_chosen_on_validation_data_among_ensembles(run) -> None:
    chosen = run.estimates.query("statistic == 'selected'")
    assert set(chosen["metric"]) == {"iou", "hit"}
    scores = pd.read_parquet(run.path / "validation" / "scores.parquet")
    means = scores.query("metric == 'iou' and condition == '{}' and method == 'grad_cam'").groupby("model")["value"]
    assert means.mean().idxmax() == "well trained"  # and yet the page is about the ensemble
    assert set(chosen["model"]) == {"ensemble"}
    assert [model["name"] for model in run.manifest["models"] if model["primary"]] == ["ensemble"]
    assert len(run.estimates.query("statistic == 'threshold_curve'"))


def test_smoothing_is_chosen_on_validation_data_and_used_for_the_scored_maps(run) -> None:
    chosen = run.estimates.query("statistic == 'tuned_smoothing'").set_index("model")
    assert set(chosen["method"]) == {"gradient"}
    scores = pd.read_parquet(run.path / "validation" / "scores.parquet").query(
        "metric == 'iou' and method == 'gradient'"
    )
    for model, smooth in chosen["value"].items():
        under = {0.0: "{}"} | {each: condition(smooth=each) for each in (0.05, 0.1)}
        of_model = scores[scores["model"] == model]
        means = {
            each: of_model[of_model["condition"] == text].groupby("finding")["value"].mean().mean()
            for each, text in under.items()
        }
        assert smooth == max(means, key=means.get)
        curve = run.estimates.query("statistic == 'smoothing_curve' and finding == 'All findings' and model == @model")
        assert curve["value"].tolist() == pytest.approx(list(means.values()))
    assert set(chosen["value"]) - {0.0}  # else nothing of the following would be looked at
    model = "well trained"  # its smoothed region is another than that without smoothing
    overlap, kept, truth = max(scored_maps(run, model, condition()), key=lambda each: each[0])
    box = round(chosen["value"][model] * 80)
    smoothed = ndimage.uniform_filter(kept, box, mode="mirror")
    grey = ((smoothed - smoothed.min()) / np.ptp(smoothed) * 255).astype(np.uint8)
    region = grey > threshold_otsu(grey)
    assert overlap == pytest.approx((region & truth).sum() / (region | truth).sum(), abs=0.03)


def scored_maps(run, model, under):
    """Of each gradient map of the model with an overlap under a condition: this score, the map and the truth."""
    rows = run.scores.query("metric == 'iou' and condition == @under and method == 'gradient' and model == @model")
    source = PhantomChest(PhantomChestSettings(patients=10, size=80, first=7100))
    keys = {key.case: key for key in source.index()}
    for _, row in rows.dropna(subset="value").iterrows():
        name = f"{model}/{row['case']}/{row['finding']}/gradient"
        kept = RunFolder(run.path).read_maps([name])[name].astype(np.float32)
        yield row["value"], kept, source.truth(keys[row["case"]])[row["finding"]]


def test_smoothed_maps_have_an_overlap_by_the_papers_rule_too(run) -> None:
    theirs = run.estimates.query("statistic == 'mean' and metric == 'iou' and method == 'gradient'")
    theirs = theirs[theirs["condition"] == condition(preset="chexlocalize")]
    assert theirs["value"].notna().all()
    assert set(theirs["finding"]) == {*FINDINGS, "All findings"}
    ours = run.estimates.query("statistic == 'mean' and metric == 'iou' and method == 'gradient' and condition == '{}'")
    assert not np.allclose(sorted(theirs["value"]), sorted(ours["value"]))
    for overlap, kept, truth in scored_maps(run, "well trained", condition(preset="chexlocalize")):
        region = smoothed_colours(kept, COLOURS)
        assert overlap == pytest.approx((region & truth).sum() / (region | truth).sum(), abs=0.005)


def test_the_report_tells_all_of_it(run) -> None:
    page = (run.path / "report.html").read_text()
    assert "ensemble minus best single" in page
    assert "well trained minus ensemble" in page
    assert "(best checkpoint of each finding)" in page
    for words in ("best single", "ensemble", "Published", "threshold", "temperature", "How far maps are smoothed"):
        assert words.lower() in page.lower(), words
