"""The sixteen methods of the modality study on volumes and slices of four modalities, with Captum as the judge."""

import numpy as np
import pytest
import torch
from captum import attr
from tests.contracts.sixteen_material import QUICK_SLICES, SLICES, VOLUMES, heads, network, published
from torch import nn

from heatcheck import explain
from heatcheck.methods import METHODS, shares_modalities
from heatcheck.methods.covering.segments import segments_of
from heatcheck.methods.published import MODALITY_STUDY
from heatcheck.methods.registry import Access
from heatcheck.models import BlackBox

NAMES = [each.method for each in MODALITY_STUDY]
MASKS = [name for name in NAMES if METHODS[name].needs is Access.PREDICTIONS]
SEEDS = [3, 4]
CLASSES = torch.tensor([[1], [0]])


@pytest.fixture(scope="module", params=[VOLUMES, QUICK_SLICES], ids=lambda made: made[0])
def classifier(request):
    return network(*request.param)


@pytest.fixture(
    scope="module",
    params=[VOLUMES, QUICK_SLICES, pytest.param(SLICES, marks=pytest.mark.slow)],
    ids=lambda made: made[0],
)
def of_the_study(request):
    return network(*request.param)


@pytest.fixture(scope="module")
def images(classifier):
    return heads(classifier.preprocessing.size)


@pytest.mark.parametrize("name", NAMES)
def test_each_modality_has_a_map_unless_the_method_shares_one(name, of_the_study):
    classifier, images = of_the_study, heads(of_the_study.preprocessing.size)
    state = {key: value.clone() for key, value in classifier.module.state_dict().items()}
    method = published(name, images)
    both = torch.cat([CLASSES, 1 - CLASSES], 1)
    maps = method(classifier, images, both, SEEDS)
    channels = 1 if shares_modalities(method) else 4
    grid = maps.values.shape[3:] if name == "grad_cam" else images.shape[2:]
    assert maps.values.shape == (2, 2, channels, *grid)
    assert maps.values.isfinite().all()
    assert maps.values.flatten(1).any(1).all()
    assert maps.note == ""
    assert torch.equal(maps.values, method(classifier, images, both, SEEDS).values)
    assert all(torch.equal(state[key], value) for key, value in classifier.module.state_dict().items())


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in {"grad_cam", "kernel_shap", "feature_permutation"}]
)
def test_a_modality_that_the_network_does_not_look_at_gets_nothing(name, classifier, images):
    blind = network(classifier.name, classifier.preprocessing.size)
    first = next(part for part in blind.module.modules() if hasattr(part, "stride") and hasattr(part, "weight"))
    with torch.no_grad():
        first.weight[:, 2] = 0
    values = published(name, images)(blind, images, CLASSES, SEEDS).values
    shares = values.abs().flatten(3).sum(3)[:, 0]
    # LIME has no more choices than segments here, and blames some of them wrongly
    assert (shares[:, 2] <= (0.5 if name == "lime" else 1e-4) * shares.sum(1)).all()


@pytest.mark.parametrize("name", [name for name in MASKS if name != "occlusion"])
def test_empty_space_is_never_covered_and_has_no_value(name, classifier, images):
    values = published(name, images)(classifier, images, CLASSES, SEEDS).values[:, 0]
    assert not values[(images == 0).all(1, keepdim=True).expand_as(values)].any()


@pytest.mark.parametrize("name", MASKS)
def test_a_function_that_only_predicts_gets_the_maps_of_its_network(name, classifier, images):
    def predict(batch):
        with torch.no_grad():
            return classifier.logits(batch).numpy()

    box = BlackBox("box", predict, classifier.preprocessing)
    method = published(name, images)
    maps = [method(model, images, CLASSES, SEEDS).values for model in (box, classifier)]
    torch.testing.assert_close(*maps, rtol=1e-3, atol=1e-6)


def test_a_notebook_explains_a_volume_of_four_modalities_by_predictions_alone():
    volume = heads((8, 8, 8), 1).numpy()

    def predict(batch):
        return np.stack([batch[:, 1].sum((1, 2, 3)), -batch[:, 3].sum((1, 2, 3))], 1)

    settings = {"segments": {"kind": "grid", "cells": 2, "per_channel": True}}
    values = explain(predict, volume, "feature_ablation", settings=settings).values[0]
    cell = volume[0, 1, :4, :4, :4].sum()
    np.testing.assert_allclose(values[0, 1, 0, 0, 0], cell, rtol=1e-4)
    assert [bool(row.any()) for row in values[0]] == [False, True, False, False]
    assert [bool(row.any()) for row in values[1]] == [False, False, False, True]


def captums(name, method, module, image, target):
    """The same map by Captum, for one image."""
    zero, leaf = torch.zeros_like(image), image.clone().requires_grad_()
    box = [(1, *[side] * (image.ndim - 2)) for side in (getattr(method, "window", 0), getattr(method, "stride", 0))]
    labels = segments_of(image[0], method.segments).labels[None] if name == "feature_ablation" else None
    calls = {
        "gradient": lambda: attr.Saliency(module).attribute(leaf, target, abs=False),
        "guided_backprop": lambda: attr.GuidedBackprop(module).attribute(leaf, target),
        "deconvolution": lambda: attr.Deconvolution(module).attribute(leaf, target),
        "input_x_gradient": lambda: attr.InputXGradient(module).attribute(leaf, target),
        "integrated_gradients": lambda: attr.IntegratedGradients(module).attribute(
            leaf, zero, target, n_steps=method.steps
        ),
        "occlusion": lambda: attr.Occlusion(module).attribute(image, box[0], strides=box[1], target=target),
        "feature_ablation": lambda: attr.FeatureAblation(module).attribute(image, feature_mask=labels, target=target),
    }
    return calls[name]()[0].detach()


JUDGED = "gradient guided_backprop deconvolution input_x_gradient integrated_gradients occlusion feature_ablation"


@pytest.mark.filterwarnings("ignore:Setting backward hooks on ReLU")
@pytest.mark.parametrize("name", JUDGED.split())
def test_maps_of_four_modalities_equal_captums(name, classifier, images):
    classifier = network(classifier.name, classifier.preprocessing.size)
    classifier.module.double()  # rounding would switch a ReLU here and there
    images, method = images.double(), published(name, images)
    ours = method(classifier, images, CLASSES, SEEDS).values[:, 0]
    for image, own, target in zip(images, ours, CLASSES[:, 0].tolist(), strict=True):
        peer = captums(name, method, classifier.module, image[None], target)
        if name == "feature_ablation":  # Captum covers empty space too, as a segment like any other
            peer = peer.where((image != 0).any(0), 0.0)
        torch.testing.assert_close(own, peer.double(), rtol=1e-5, atol=1e-8)


@pytest.mark.filterwarnings("ignore:Setting backward hooks on ReLU")
def test_cams_of_a_volume_equal_captums():
    classifier = network(*VOLUMES)
    images, module = heads((16,) * 3), classifier.module
    last = [part for part in module.features if isinstance(part, nn.MaxPool3d)][-1]
    targets = CLASSES[:, 0]
    cam = attr.LayerGradCam(module, last).attribute(images, targets, relu_attributions=True).detach()
    torch.testing.assert_close(published("grad_cam", images)(classifier, images, CLASSES, SEEDS).values[:, 0], cam)
    guided = attr.GuidedGradCam(module, last).attribute(images.clone().requires_grad_(), targets).detach()
    torch.testing.assert_close(
        published("guided_grad_cam", images)(classifier, images, CLASSES, SEEDS).values[:, 0], guided
    )


@pytest.mark.parametrize("name", ["shapley_value_sampling", "deep_lift"])
def test_values_add_up_to_what_the_image_adds_to_the_score(name, classifier, images):
    maps = published(name, images)(classifier, images, CLASSES, SEEDS)  # Captum's DeepLIFT does not, after a pool
    assert (maps.error < 1e-5).all()
