"""Whole alignment studies of networks of which it is known what they use: the blame table must say so."""

import json

import pandas as pd
import pytest
import yaml
from tests.studies.alignment.oracles import CONTRACT, write_films

from heatcheck import read_run, run_study
from heatcheck.running.study import RunOptions

pytestmark = pytest.mark.slow
HEAVY = {"name": "smooth_grad", "samples": 4, "noise": 200.0, "noise_is": "absolute"}  # the film drowns in it
COMMON = {
    "study": "alignment",
    "seed": 7,
    "batch_size": 16,
    "threads": 1,
    "gallery": 1,
    "seeds": 6,
    "fit": {"epochs": 8, "batch_size": 8, "learning_rate": 0.02},
    "bootstrap_draws": 400,
}
STUDIES = (
    {"models": ["ReadsMarker", "Gameable"], "methods": ["gradient"]},
    {
        "models": ["Teachable"],
        "methods": ["gradient"],
        "seeds": 3,
        "alpha": 10.0,
        "fit": {"epochs": 8, "batch_size": 8, "learning_rate": 0.1},  # far enough for both to move by what matters
    },
    {"models": ["ReadsLesion"], "methods": ["gradient", HEAVY], "judged": ["random"]},
)


@pytest.fixture(scope="module")
def estimates(tmp_path_factory):
    """The estimates of all studies."""
    folder = tmp_path_factory.mktemp("oracles")
    parts = {
        "finetune": write_films(folder / "finetune", 1000, 36),
        "evaluation": write_films(folder / "unseen", 0, 48),
    }
    found = []
    for number, study in enumerate(STUDIES):
        models = [
            {"name": f"python:tests.studies.alignment.oracles:{name}", "label": name, "contract": CONTRACT}
            for name in study["models"]
        ]
        spec, run = folder / f"study{number}.yaml", folder / f"run{number}"
        spec.write_text(yaml.safe_dump({**COMMON, **parts, **study, "models": models}))
        assert run_study(spec, run, RunOptions(trust_code=True)).n_failed == 0
        found.append(read_run(run).estimates)
    return pd.concat(found)


def blamed(estimates, model, method):
    """The two codes of a row, and its sentence."""
    rows = estimates.query("statistic == 'blame' and model == @model and method == @method")
    assert len(rows) == 1
    codes = json.loads(rows.iloc[0]["condition"])
    return codes["before"], codes["under"], rows.iloc[0]["reason"]


def test_a_model_that_reads_only_the_marker_is_blamed_where_a_faithful_map_says_so(estimates):
    before, _, sentence = blamed(estimates, "ReadsMarker", "gradient")
    assert before == "model"
    assert "a truthful map would look like this" in sentence


def test_a_good_model_with_a_faithful_map_is_not_blamed(estimates):
    """Without this, the two blames of methods below could have come from the model."""
    assert blamed(estimates, "ReadsLesion", "gradient")[0] == "shows"


def test_a_random_map_of_a_good_model_is_the_methods_fault_and_nothing_moves_it(estimates):
    before, under, sentence = blamed(estimates, "ReadsLesion", "random")
    assert (before, under) == ("method", "unmoved")
    assert "Fine-tuned through Gradient" in sentence


def test_a_method_drowned_in_noise_is_to_blame_and_not_the_good_model(estimates):
    before, _, sentence = blamed(estimates, "ReadsLesion", "smooth_grad")
    assert before == "method"
    assert "the method fails to show what the model uses" in sentence


def test_a_map_that_fine_tuning_moves_while_the_model_goes_by_the_same_is_foolable(estimates):
    before, under, sentence = blamed(estimates, "Gameable", "gradient")
    assert (before, under) == ("shows", "foolable")
    assert "while reliance changed by less than matters" in sentence
    assert "by itself it is no evidence" in sentence


def test_a_map_that_moves_with_what_the_model_goes_by_follows_it(estimates):
    """Without this, a table that calls every map foolable would pass."""
    before, under, sentence = blamed(estimates, "Teachable", "gradient")
    assert (before, under) == ("shows", "follows")
    assert "and reliance with it" in sentence
