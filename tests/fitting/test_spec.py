import re
from pathlib import Path

import pytest
import yaml
from tests.fitting.material import SMALL, training_spec

from heatcheck.core.errors import SpecError
from heatcheck.fitting.contract import contract_of
from heatcheck.fitting.spec import TrainingBody, planned
from heatcheck.models import MODELS
from heatcheck.running.progress import Silent
from heatcheck.runs.spec import read_spec, shipped_specs
from heatcheck.training import STRATEGIES

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "train.md"
TRAININGS = [name for name in shipped_specs() if read_spec(name).envelope.study == "training"]


@pytest.mark.parametrize("name", TRAININGS)
def test_shipped_training_is_valid(name):
    body = read_spec(name).checked_body(TrainingBody)
    MODELS[body.model].require_size(body.size)
    assert all(strategy in STRATEGIES for strategy in body.uncertainty)


def test_how_to_shows_valid_specs():
    plain, classes, protocol, _ = (
        yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    )
    common = {"study", "title", "seed"}
    first = TrainingBody.model_validate({key: value for key, value in plain.items() if key not in common})
    second = TrainingBody.model_validate(first.model_dump() | protocol)
    assert first.checkpoints.by == "loss"
    assert TrainingBody.model_validate(first.model_dump() | classes).labels == "single"
    assert len(second.uncertainty) * second.runs * second.checkpoints.keep == 120  # as the paper counts
    for strategy, facts in STRATEGIES.items():
        named = "labels: single" if facts.activation == "softmax" else strategy
        assert f"`{named}`" in PAGE.read_text()


def test_runs_have_seeds_of_their_own_and_strategies_share_them(tmp_path):
    plan = planned(training_spec(tmp_path, SMALL, seed=7))
    assert [plan.settings(run, 0.1).seed for run in (1, 2, 3)] == [7, 8, 9]
    assert plan.settings(2, 0.1).learning_rate == 0.1


def test_other_spellings_of_findings_are_understood(tmp_path):
    by = {"checkpoints": {"by": ["Lung Opacity"]}, "findings": ["Lung Opacity", "Edema"]}
    plan = planned(training_spec(tmp_path, SMALL, **by))
    assert plan.outputs == ("Airspace Opacity", "Edema")
    assert plan.by == ("Airspace Opacity",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"validation": 20},
            r"`training` and `validation` share 4 patients \(phantom000020, phantom000021, phantom000022, …\)",
        ),
        (
            {"test": 22},
            r"`training` and `test` share 2 patients \(phantom000022, phantom000023\); remove them from one",
        ),
        ({"test": 107}, r"`validation` and `test` share 1 patient \(phantom000107\)"),
    ],
)
def test_patients_in_two_of_the_sources_are_refused(tmp_path, changes, message):
    first = {name: {**SMALL[name], "first": number} for name, number in changes.items()}
    with pytest.raises(SpecError, match=message):
        planned(training_spec(tmp_path, SMALL, **first))


@pytest.mark.slow  # some have ten thousand patients
@pytest.mark.parametrize("name", [name for name in TRAININGS if name.startswith("phantom")])
def test_shipped_trainings_on_the_phantom_keep_patients_apart(name):
    planned(read_spec(name))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fit": {"warm_up": 0.1, "warm_up_steps": 5}}, "name `warm_up` as a share or `warm_up_steps`, not both"),
        ({"fit": {"warm_up_steps": 0}}, "at least 1"),
        ({"fit": {"rotate": -3}}, "at least 0"),
        ({"fit": {"rotate": 15}, "size": [8, 8, 8]}, "`fit.rotate` rotates pictures, but `size` is that of a volume"),
    ],
)
def test_warm_up_and_rotation_that_cannot_be_are_refused(tmp_path, changes, message):
    with pytest.raises(SpecError, match=message):
        planned(training_spec(tmp_path, SMALL, **changes))


def test_warm_up_and_rotation_reach_the_fit(tmp_path):
    plan = planned(training_spec(tmp_path, SMALL, fit={"warm_up_steps": 7, "rotate": 15}))
    settings = plan.settings(1, 0.1)
    assert (settings.warm_up_steps, settings.rotate) == (7, 15.0)
    assert settings.pace(100).rate_at(6) == 0.1 > settings.pace(100).rate_at(5)


def test_balanced_training_needs_classes_that_exclude_one_another(tmp_path):
    with pytest.raises(SpecError, match="set `labels: single`"):
        planned(training_spec(tmp_path, SMALL, fit={"balanced": True}))


def test_images_may_be_scaled_by_their_own_pixels(tmp_path):
    plan = planned(training_spec(tmp_path, SMALL, pixels={"scaling": "nonzero"}))
    contract = contract_of(plan, tmp_path, Silent())
    assert (contract.scaling, contract.channels) == ("nonzero", 1)
    assert contract_of(plan, tmp_path, Silent()) == contract


def test_mean_of_images_that_are_scaled_by_their_own_pixels_is_refused(tmp_path):
    with pytest.raises(SpecError, match="leave both out"):
        planned(training_spec(tmp_path, SMALL, pixels={"scaling": "nonzero", "mean": 0.5, "std": 0.5}))
