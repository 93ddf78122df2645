"""The sixteen published methods exist here, with the published settings."""

import pytest

from heatcheck.methods import METHODS, shares_modalities
from heatcheck.methods.covering.segments import Slic
from heatcheck.methods.published import MODALITY_STUDY
from heatcheck.methods.registry import plain_settings
from heatcheck.runs.spec import read_spec

BY_NAME = {each.method: each.build() for each in MODALITY_STUDY}
SPEC = (
    "gradient guided_backprop deconvolution input_x_gradient smooth_grad integrated_gradients gradient_shap deep_lift "
    "grad_cam guided_grad_cam occlusion feature_ablation shapley_value_sampling kernel_shap lime feature_permutation"
)
PARAMETERS = {
    "smooth_grad": {"samples": 10, "noise": 1.0, "noise_is": "absolute"},
    "integrated_gradients": {"steps": 50},
    "gradient_shap": {"samples": 5, "baseline_noise": 0.0},
    "occlusion": {"window": 11, "stride": 5, "per_channel": True},
    "shapley_value_sampling": {"permutations": 25},
    "lime": {"samples": 500, "alpha": 0.0},
    "kernel_shap": {"samples": 300},
}


def test_there_are_sixteen_in_the_order_of_the_study():
    assert list(BY_NAME) == SPEC.split()


@pytest.mark.parametrize("name", PARAMETERS)
def test_settings_are_the_published_parameters(name):
    assert plain_settings(BY_NAME[name]).items() >= PARAMETERS[name].items()


@pytest.mark.parametrize("name", [name for name in BY_NAME if "baseline" in plain_settings(BY_NAME[name])])
def test_baselines_are_zero(name):
    assert BY_NAME[name].baseline == "zero"


@pytest.mark.parametrize("name", [name for name in BY_NAME if hasattr(BY_NAME[name], "segments")])
def test_segments_are_fifty_supervoxels_of_what_is_not_zero(name):
    shared = name in {"kernel_shap", "feature_permutation"}
    assert BY_NAME[name].segments == Slic(count=50, compactness=0.1, sigma=2.0, nonzero=True, per_channel=not shared)


def test_the_shipped_spec_of_the_paper_names_them_all_as_published():
    named = read_spec("modality-brats").body["methods"]
    written = [{"name": each} if isinstance(each, str) else each for each in named]
    assert written == [{"name": each.method, **each.settings} for each in MODALITY_STUDY]


def test_three_methods_cannot_tell_modalities_apart():
    shared = {name for name, method in BY_NAME.items() if shares_modalities(method)}
    assert shared == {"grad_cam", "kernel_shap", "feature_permutation"}


def test_groups_are_those_of_the_papers_table():
    slow = {name for name in BY_NAME if METHODS[name].group.speed == "slow"}
    assert slow == set(SPEC.split()[10:])
    assert {METHODS[name].group.access for name in slow} == {"predictions only"}
    assert {METHODS[name].group.models for name in slow} == {"any model"}
    assert {METHODS[name].group.models for name in BY_NAME} - {"any model"} == {
        "deep neural networks",
        "differentiable models",
    }
