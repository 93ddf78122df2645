"""Promises that every registered model keeps."""

import pytest
import torch

from heatcheck.core.errors import ModelError
from heatcheck.models import MODELS, ModelSettings, load_classifier

SMALL = [name for name in MODELS if max(MODELS[name].size) <= 64]
FAMILIES = {"DenseNet", "ResNet", "Inception", "VGG", "ViT", "Swin", "3D VGG"}


@pytest.mark.parametrize("name", MODELS)
def test_a_network_gives_one_logit_per_output_for_any_number_of_channels(name):
    facts = MODELS[name]
    with torch.device("cpu" if name in SMALL else "meta"):  # full-size networks are built without memory for weights
        for channels, outputs in ((1, 3), (facts.channels, 2)):
            module = facts.build(channels, outputs).eval()
            with torch.no_grad():
                assert module(torch.zeros(2, channels, *facts.size)).shape == (2, outputs)


@pytest.mark.parametrize("name", SMALL)
def test_every_weight_of_a_compact_network_learns(name):
    facts = MODELS[name]
    images = torch.rand(4, facts.channels, *facts.size, generator=torch.Generator().manual_seed(1)).requires_grad_()
    module = facts.build(facts.channels, 2)
    module(images).square().sum().backward()
    assert images.grad.isfinite().all()
    assert images.grad.any()
    assert [key for key, weight in module.named_parameters() if weight.grad is None] == []


@pytest.mark.parametrize("name", [name for name in SMALL if len(MODELS[name].size) == 2])
def test_channels_may_come_last_in_memory(name):
    facts = MODELS[name]
    images = torch.rand(2, facts.channels, *facts.size, generator=torch.Generator().manual_seed(3))
    module = facts.build(facts.channels, 2).eval()
    with torch.no_grad():
        expected = module(images)
        last = module.to(memory_format=torch.channels_last)(images.to(memory_format=torch.channels_last))
    torch.testing.assert_close(last, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_an_image_gets_the_same_logits_alone_and_in_a_batch(name):
    facts = MODELS[name]
    images = torch.rand(3, facts.channels, *facts.size, generator=torch.Generator().manual_seed(2))
    module = facts.build(facts.channels, 2).eval()
    with torch.no_grad():
        torch.testing.assert_close(module(images)[1:2], module(images[1:2]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_a_compact_network_is_small(name):
    facts = MODELS[name]
    assert sum(weight.numel() for weight in facts.build(facts.channels, 10).parameters()) < 1_500_000


@pytest.mark.parametrize("name", MODELS)
def test_smallest_size_works_and_a_smaller_one_is_refused(name):
    facts = MODELS[name]
    size = (facts.smallest,) * len(facts.size)
    with torch.device("meta"), torch.no_grad():
        module = facts.build(facts.channels, 2, size).eval()
        assert module(torch.zeros(1, facts.channels, *size)).shape == (1, 2)
    with pytest.raises(ModelError, match=rf"model {name} needs sides of at least {facts.smallest} px, `size` is"):
        facts.build(facts.channels, 2, (facts.smallest - 1, *facts.size[1:]))


@pytest.mark.parametrize("name", MODELS)
def test_size_with_another_number_of_axes_is_refused(name):
    facts = MODELS[name]
    with pytest.raises(ModelError, match=rf"model {name} takes images of {len(facts.size)} axes, `size` is"):
        facts.build(facts.channels, 2, (64,) * (5 - len(facts.size)))


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].multiple > 1])
def test_size_that_the_patches_do_not_fill_is_refused_with_one_that_they_do(name):
    facts = MODELS[name]
    size = (facts.size[0] + 1, facts.size[1])
    with pytest.raises(ModelError, match=rf"multiples of {facts.multiple} px.*set `size` to \[{facts.size[0]}, "):
        facts.build(facts.channels, 2, size)


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].weights])
def test_shipped_weights_load_with_their_contract(name):
    classifier = load_classifier(ModelSettings(name=name))
    assert not classifier.module.training
    assert len(classifier.weights_hash) == 64
    assert classifier.preprocessing.size == MODELS[name].size


@pytest.mark.parametrize("name", MODELS)
def test_facts_are_there(name):
    facts = MODELS[name]
    assert facts.name == name
    assert facts.summary
    assert facts.family in FAMILIES
    assert facts.channels >= 1
    assert facts.smallest <= min(facts.size)
