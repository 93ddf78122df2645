"""A model of which only predictions are available."""

import numpy as np
import pytest
import torch

from heatcheck.core.errors import CaseError, ModelError
from heatcheck.models import BlackBox, NetworkClassifier, Preprocessing

CONTRACT = Preprocessing(outputs=("a", "b"), size=(8, 8), mean=(0.25,), std=(0.5,))


def box(predict, **settings):
    return BlackBox("box", predict, CONTRACT, **settings)


def test_images_are_prepared_and_placed_as_for_a_network():
    network = NetworkClassifier("net", torch.nn.Flatten(), CONTRACT)
    image = np.random.default_rng(1).random((1, 12, 10), np.float32)
    assert torch.equal(box(None).prepare([image]), network.prepare([image]))
    assert box(None).placement(image) == network.placement(image)
    assert box(None).outputs == ("a", "b")
    with pytest.raises(CaseError, match="3 channels"):
        box(None).prepare([np.zeros((3, 8, 8), np.float32)])


def test_numpy_answers_become_logits():
    model = box(lambda images: images.numpy().mean((1, 2, 3))[:, None] * np.array([1.0, 2.0]))
    images = torch.ones(3, 1, 8, 8)
    assert model.logits(images).tolist() == [[1.0, 2.0]] * 3
    assert model.logits(images).dtype == torch.float32
    torch.testing.assert_close(model.probabilities(model.logits(images)), torch.tensor([[1.0, 2.0]] * 3).sigmoid())


@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
def test_probabilities_come_back_as_they_were(activation):
    given = torch.tensor([[0.2, 0.8]])
    contract = CONTRACT.model_copy(update={"activation": activation})
    model = BlackBox("box", lambda _: given, contract, returns="probabilities")
    torch.testing.assert_close(model.probabilities(model.logits(torch.ones(1, 1, 8, 8))), given)


def test_a_certain_probability_has_a_finite_logit():
    model = box(lambda _: torch.tensor([[0.0, 1.0]]), returns="probabilities")
    assert model.logits(torch.ones(1, 1, 8, 8)).isfinite().all()


def test_answers_that_do_not_fit_are_refused():
    with pytest.raises(ModelError, match=r"2 scores for each of 3 images, got an array of shape \(3,\)"):
        box(lambda images: torch.zeros(len(images))).logits(torch.ones(3, 1, 8, 8))
    with pytest.raises(ModelError, match="not probabilities"):
        box(lambda images: torch.full((len(images), 2), 3.0), returns="probabilities").logits(torch.ones(3, 1, 8, 8))


def test_there_is_no_network_to_look_into():
    with pytest.raises(ModelError, match="box is known by its predictions only"):
        box(None).module  # noqa: B018 - asking is enough
