"""The modality study of a model of which only predictions are known."""

from types import SimpleNamespace

import pandas as pd
import pytest
from tests.studies.modality.brightness_material import CONTRACT, write_modality

from heatcheck import read_run, run_study
from heatcheck.core.errors import ModelError
from heatcheck.fitting.spec import PixelsPart
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.studies.alignment.bases import opened
from heatcheck.studies.alignment.spec import AlignmentModel
from heatcheck.studies.modality.plan import plan_modality
from heatcheck.studies.triggers.baseline import given_baseline

TRUSTED = RunOptions(trust_code=True, workers=1)
CODE = '''

import numpy as np


def predicts_t1c():
    """The same rule as t1c(), in NumPy: torch's stand-ins for images would not get through."""

    def predict(images):
        assert type(images) is np.ndarray
        score = np.maximum(images[:, 1] - 2.0, 0).mean((1, 2)) * 100
        return np.stack([0.5 - score, score - 0.5], 1)

    return predict


def a_class():
    return Reader
'''
METHODS = [
    {"name": "occlusion", "window": 4, "per_channel": True},
    "feature_ablation",
    "feature_permutation",
    "random",
]


def spec(folder, factory, methods=METHODS, **common):
    body = {"methods": methods, **common, "removal": {"steps": 2, "random": 2}, "bootstrap_draws": 100}
    path = write_modality(folder, factory, **body)
    (folder / "plain_readers.py").write_text((folder / "readers.py").read_text() + CODE)
    text = path.read_text().replace(f"label: {factory}", "label: reader")
    path.write_text(text.replace("python:readers:", "python:plain_readers:"))
    return path


def test_a_function_is_judged_as_a_network_that_answers_the_same(tmp_path):
    for name, factory in (("network", "t1c"), ("function", "predicts_t1c")):
        outcome = run_study(spec(tmp_path / name, factory), tmp_path / name / "run", TRUSTED)
        assert outcome.n_failed == 0
    one, other = (read_run(tmp_path / name / "run").scores for name in ("network", "function"))
    keys = ["case", "method", "metric", "condition"]
    one, other = (table.sort_values(keys).reset_index(drop=True) for table in (one, other))
    pd.testing.assert_frame_equal(one[[*keys, "value"]], other[[*keys, "value"]], rtol=1e-4, atol=1e-5)
    assert set(one["method"]) >= {"occlusion", "feature_ablation", "feature_permutation"}


def test_a_method_that_looks_inside_stops_a_strict_study_before_any_work(tmp_path):
    strict = spec(tmp_path / "a", "predicts_t1c", ["occlusion", "gradient"], strict=True)
    with pytest.raises(ModelError, match="method gradient looks inside the model, but only predictions of reader"):
        run_study(strict, tmp_path / "run", TRUSTED)
    assert not (tmp_path / "run" / "shapley").exists()


def test_methods_that_look_inside_are_skipped_and_sets_have_the_others(tmp_path):
    path = spec(tmp_path / "a", "predicts_t1c", ["recommended", "gradient"])
    plan = plan_modality(read_spec(str(path)), TRUSTED, tmp_path / "run")
    assert set(plan.methods) == {"occlusion", "random", "center_prior", "edge"}
    assert plan.identity["spec"]["methods"] == [{"name": name} for name in plan.methods]
    reasons = {entry["name"]: entry["reason"] for entry in plan.facts["skipped"]}
    assert reasons["gradient"] == "looks inside the model, but only predictions of reader are available"


def test_a_class_is_not_taken_for_a_function(tmp_path):
    with pytest.raises(ModelError, match="nor a function that predicts"):
        run_study(spec(tmp_path / "a", "a_class"), tmp_path / "run", TRUSTED)


def test_studies_that_train_the_model_refuse_a_function(tmp_path):
    spec(tmp_path / "a", "predicts_t1c")
    model = AlignmentModel(name="python:plain_readers:predicts_t1c", contract=CONTRACT)
    place = SimpleNamespace(folder=tmp_path / "a", name="study.yaml")
    with pytest.raises(ModelError, match="is a function, of which only predictions are known; only a network can be"):
        opened(model, place, TRUSTED)
    with pytest.raises(ModelError, match="a trigger is trained into a network"):
        given_baseline(SimpleNamespace(model=model, size=(), start=None, pixels=PixelsPart()), place, TRUSTED)
