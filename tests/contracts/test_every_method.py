"""Promises that every registered method keeps."""

from dataclasses import replace

import pytest
import torch

from heatcheck.methods import METHODS, build_method

SEEDS = [11, 12, 13, 14]


def make(name, images, outputs=3):
    method = build_method(name, {})
    if not METHODS[name].wants_priors:
        return method
    grid = (8,) * (images.ndim - 2)
    priors = torch.rand(len(images), outputs, *grid, generator=torch.Generator().manual_seed(1))
    return replace(method, priors=priors)


def every(*outputs):
    return torch.tensor(outputs).expand(4, -1)


@pytest.mark.parametrize("name", METHODS)
def test_method_returns_one_finite_map_per_image_and_target(name, tiny_classifier, tiny_images):
    maps = make(name, tiny_images)(tiny_classifier, tiny_images, every(0, 2), SEEDS)
    assert maps.values.shape[:2] == (4, 2)
    assert maps.values.shape[2] in (1, 2)
    assert maps.values.ndim == tiny_images.ndim + 1
    assert maps.values.dtype == torch.float32
    assert maps.values.isfinite().all()
    assert maps.error.shape == (4, 2)


@pytest.mark.parametrize("name", METHODS)
def test_method_gives_the_same_map_twice(name, tiny_classifier, tiny_images):
    method = make(name, tiny_images)
    torch.manual_seed(1)
    first = method(tiny_classifier, tiny_images, every(0, 1), SEEDS).values
    torch.manual_seed(2)
    assert torch.equal(first, method(tiny_classifier, tiny_images, every(0, 1), SEEDS).values)


@pytest.mark.parametrize("name", METHODS)
def test_a_target_of_many_equals_that_target_alone(name, tiny_classifier, tiny_images):
    method = make(name, tiny_images)
    together = method(tiny_classifier, tiny_images, every(2, 0, 1), SEEDS).values
    for place, target in enumerate((2, 0, 1)):
        alone = method(tiny_classifier, tiny_images, every(target), SEEDS).values
        torch.testing.assert_close(together[:, place], alone[:, 0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_targets_may_differ_between_images(name, tiny_classifier, tiny_images):
    method = make(name, tiny_images)
    targets = torch.tensor([[0, 1], [2, 1], [1, 0], [2, 0]])
    mixed = method(tiny_classifier, tiny_images, targets, SEEDS).values
    everything = method(tiny_classifier, tiny_images, every(0, 1, 2), SEEDS).values
    for image in range(4):
        torch.testing.assert_close(mixed[image], everything[image, targets[image]], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_equals_its_images_one_by_one(name, tiny_classifier, tiny_images):
    method = make(name, tiny_images)
    batch = method(tiny_classifier, tiny_images, every(0, 1), SEEDS).values
    for i in range(4):
        single = method
        if METHODS[name].wants_priors:
            single = replace(method, priors=method.priors[i : i + 1])
        alone = single(tiny_classifier, tiny_images[i : i + 1], every(0, 1)[:1], SEEDS[i : i + 1]).values
        torch.testing.assert_close(batch[i : i + 1], alone, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("training", [False, True])
def test_method_leaves_the_model_as_it_was(name, training, tiny_classifier, tiny_images):
    module = tiny_classifier.module.train(training)
    module[0].weight.requires_grad_(False)
    state = {key: value.clone() for key, value in module.state_dict().items()}
    before = [p.requires_grad for p in module.parameters()]
    make(name, tiny_images)(tiny_classifier, tiny_images, every(0, 1), SEEDS)
    assert all(part.training == training for part in module.modules())
    assert [p.requires_grad for p in module.parameters()] == before
    assert all(p.grad is None for p in module.parameters())
    assert all(torch.equal(state[key], value) for key, value in module.state_dict().items())
    assert not any(part._forward_hooks or part._backward_hooks for part in module.modules())
    assert torch.is_grad_enabled()
    assert not tiny_images.requires_grad


@pytest.mark.parametrize("name", METHODS)
def test_every_fact_a_user_reads_is_there(name):
    facts = METHODS[name]
    assert facts.label
    assert facts.family
    assert facts.cost
    assert facts.summary
    assert not facts.summary.endswith(".")
    assert facts.is_floor == (facts.family == "floor")
