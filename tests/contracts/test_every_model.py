"""Promises that every registered model keeps."""

import pytest
import torch

from heatcheck.models import MODELS, ModelSettings, load_classifier


@pytest.mark.parametrize("name", MODELS)
def test_a_network_gives_one_logit_per_output_for_any_number_of_channels(name):
    for channels, outputs in ((1, 3), (3, 2)):
        module = MODELS[name].build(channels, outputs).eval()
        with torch.no_grad():
            assert module(torch.zeros(2, channels, 64, 64)).shape == (2, outputs)


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].weights])
def test_shipped_weights_load_with_their_contract(name):
    classifier = load_classifier(ModelSettings(name=name))
    assert not classifier.module.training
    assert len(classifier.weights_hash) == 64


@pytest.mark.parametrize("name", MODELS)
def test_facts_are_there(name):
    assert MODELS[name].name == name
    assert MODELS[name].summary
