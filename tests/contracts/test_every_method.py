"""Promises that every registered method keeps."""

from dataclasses import fields, replace

import pytest
import torch
from torch import nn

from heatcheck.core.errors import ModelError
from heatcheck.methods import METHODS, build_method, shares_modalities
from heatcheck.methods.registry import Access
from heatcheck.models import BlackBox, NetworkClassifier, Preprocessing

SEEDS = [11, 12, 13, 14]


def make(name, images, outputs=3, **settings):
    """The method with what a study would hand it; of the mask methods the cheapest, because each mask is a pass."""
    facts = METHODS[name]
    method = build_method(name, {**(facts.trial if facts.family == "masks" else {}), **settings})
    generator = torch.Generator().manual_seed(1)
    if facts.wants_priors:
        grid = (8,) * (images.ndim - 2)
        return replace(method, priors=torch.rand(len(images), outputs, *grid, generator=generator))
    if facts.wants_donors:
        return replace(method, donors=tuple(torch.rand(len(images), 2, *images.shape[1:], generator=generator)))
    return method


def only(method, name, image):
    """The method with what a study would hand it for that image alone."""
    if METHODS[name].wants_priors:
        return replace(method, priors=method.priors[image : image + 1])
    if METHODS[name].wants_donors:
        return replace(method, donors=method.donors[image : image + 1])
    return method


def every(*outputs):
    return torch.tensor(outputs).expand(4, -1)


@pytest.fixture
def judged(name, tiny_classifier, tiny_transformer):
    """A small classifier of the kind that the method is for."""
    return tiny_transformer if METHODS[name].family == "attention" else tiny_classifier


@pytest.mark.parametrize("name", METHODS)
def test_method_returns_one_finite_map_per_image_and_target(name, judged, tiny_images):
    maps = make(name, tiny_images)(judged, tiny_images, every(0, 2), SEEDS)
    assert maps.values.shape[:2] == (4, 2)
    assert maps.values.shape[2] in (1, 2)
    assert maps.values.ndim == tiny_images.ndim + 1
    assert maps.values.dtype == torch.float32
    assert maps.values.isfinite().all()
    assert maps.error.shape == (4, 2)


@pytest.mark.parametrize("name", METHODS)
def test_method_gives_the_same_map_twice(name, judged, tiny_images):
    method = make(name, tiny_images)
    torch.manual_seed(1)
    first = method(judged, tiny_images, every(0, 1), SEEDS).values
    torch.manual_seed(2)
    assert torch.equal(first, method(judged, tiny_images, every(0, 1), SEEDS).values)


@pytest.mark.parametrize("name", METHODS)
def test_a_target_of_many_equals_that_target_alone(name, judged, tiny_images):
    method = make(name, tiny_images)
    together = method(judged, tiny_images, every(2, 0, 1), SEEDS).values
    for place, target in enumerate((2, 0, 1)):
        alone = method(judged, tiny_images, every(target), SEEDS).values
        torch.testing.assert_close(together[:, place], alone[:, 0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_targets_may_differ_between_images(name, judged, tiny_images):
    method = make(name, tiny_images)
    targets = torch.tensor([[0, 1], [2, 1], [1, 0], [2, 0]])
    mixed = method(judged, tiny_images, targets, SEEDS).values
    everything = method(judged, tiny_images, every(0, 1, 2), SEEDS).values
    for image in range(4):
        torch.testing.assert_close(mixed[image], everything[image, targets[image]], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_equals_its_images_one_by_one(name, judged, tiny_images):
    method = make(name, tiny_images)
    batch = method(judged, tiny_images, every(0, 1), SEEDS).values
    for i in range(4):
        alone = only(method, name, i)(judged, tiny_images[i : i + 1], every(0, 1)[:1], SEEDS[i : i + 1]).values
        torch.testing.assert_close(batch[i : i + 1], alone, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("training", [False, True])
def test_method_leaves_the_model_as_it_was(name, training, judged, tiny_images):
    module = judged.module.train(training)
    next(module.parameters()).requires_grad_(False)
    state = {key: value.clone() for key, value in module.state_dict().items()}
    before = [p.requires_grad for p in module.parameters()]
    make(name, tiny_images)(judged, tiny_images, every(0, 1), SEEDS)
    assert all(part.training == training for part in module.modules())
    assert [p.requires_grad for p in module.parameters()] == before
    assert all(p.grad is None for p in module.parameters())
    assert all(torch.equal(state[key], value) for key, value in module.state_dict().items())
    assert not any(part._forward_hooks or part._backward_hooks for part in module.modules())
    assert torch.is_grad_enabled()
    assert not tiny_images.requires_grad


def brightest(spatial):
    """One logit: how bright the brightest place is. The pool lets deconvolution know it, which forgets the image."""
    conv, pool = (nn.Conv2d, nn.MaxPool2d) if spatial == 2 else (nn.Conv3d, nn.MaxPool3d)
    features = conv(1, 1, 3, padding=1, bias=False)
    nn.init.constant_(features.weight, 1 / features.weight.numel())
    return nn.Sequential(features, nn.ReLU(), pool(16), nn.Flatten())


def blob(spatial):
    """A dim image with a bright blob that fills one cell of a grid of four."""
    image = 0.05 * torch.rand(1, 1, *(16,) * spatial, generator=torch.Generator().manual_seed(2))
    image[(0, 0, slice(4, 8), slice(8, 12), slice(4, 8))[: 2 + spatial]] += 1.0
    return image


FINE = {"segments": {"kind": "grid", "cells": 4}, "window": 4, "stride": 4, "samples": 400, "permutations": 2}


@pytest.mark.parametrize(
    "name", [name for name, facts in METHODS.items() if not facts.is_floor and facts.family != "attention"]
)
def test_the_map_peaks_where_a_bright_blob_decides_the_logit(name, spatial):
    contract = Preprocessing(outputs=("light",), size=(16,) * spatial, mean=(0.0,), std=(1.0,))
    classifier = NetworkClassifier("bright", brightest(spatial).eval(), contract)
    image = blob(spatial)
    known = {setting.name for setting in fields(METHODS[name].settings)}
    fine = {key: value for key, value in FINE.items() if key in known} if METHODS[name].family == "masks" else {}
    method = make(name, image, 1, **fine)
    if METHODS[name].wants_donors:
        method = replace(method, donors=(0.05 * method.donors[0],))
    maps = method(classifier, image, torch.tensor([[0]]), [11]).values[0, 0].sum(0)
    peaks = (maps == maps.max()).nonzero() * 16 // maps.shape[0]
    inside = torch.tensor([[3, 7, 3][:spatial], [8, 12, 8][:spatial]])  # the convolution reaches one pixel further
    assert ((peaks >= inside[0]) & (peaks <= inside[1])).all()


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_needs_only_predictions_takes_any_function_and_another_says_that_it_cannot(
    name, judged, tiny_images
):
    box = BlackBox("box", judged.module, judged.preprocessing)
    method = make(name, tiny_images)
    if METHODS[name].needs is Access.INTERNALS:
        with pytest.raises(ModelError, match="box is known by its predictions only"):
            method(box, tiny_images, every(0, 1), SEEDS)
    else:
        expected = method(judged, tiny_images, every(0, 1), SEEDS).values
        torch.testing.assert_close(method(box, tiny_images, every(0, 1), SEEDS).values, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_shares_modalities_gives_one_map_for_all_channels(name, per_channel, judged, tiny_images):
    known = {setting.name for setting in fields(METHODS[name].settings)}
    settings = {"per_channel": True} if per_channel and "per_channel" in known else {}
    if per_channel and "segments" in known:
        settings = {"segments": {"kind": "grid", "cells": 2, "per_channel": True}}
    method = make(name, tiny_images, **settings)
    channels = method(judged, tiny_images, every(0), SEEDS).values.shape[2]
    assert channels == (1 if shares_modalities(method) else 2)


@pytest.mark.parametrize("name", METHODS)
def test_the_group_of_a_method_says_what_the_method_itself_needs(name):
    facts = METHODS[name]
    assert facts.group.access == facts.needs.value
    assert facts.group.speed == ("slow" if facts.needs is Access.PREDICTIONS else "fast")


@pytest.mark.parametrize("name", METHODS)
def test_every_fact_a_user_reads_is_there(name):
    facts = METHODS[name]
    assert facts.label
    assert facts.family
    assert facts.cost
    assert facts.summary
    assert not facts.summary.endswith(".")
    assert facts.is_floor == (facts.family == "floor")
