import numpy as np
import pytest
import torch
from monai.transforms import NormalizeIntensity
from torch import nn

from heatcheck.core.errors import CaseError
from heatcheck.core.geometry import image_to_model, place
from heatcheck.models import NetworkClassifier, Preprocessing, prepared, statistics_of


def classifier(module=None, **contract):
    settings = {"outputs": ("a", "b"), "size": (6, 8), "mean": (0.0,), "std": (1.0,), **contract}
    return NetworkClassifier("net", module or nn.Identity(), Preprocessing(**settings))


def random_image(*shape):
    return np.random.default_rng(sum(shape)).random(shape, dtype=np.float32)


def test_image_of_the_models_size_is_only_normalised():
    image = random_image(1, 6, 8)
    pixels = classifier(mean=(0.4,), std=(0.2,)).prepare([image])
    assert pixels.shape == (1, 1, 6, 8)
    assert pixels.dtype == torch.float32
    np.testing.assert_allclose(pixels[0], (image - 0.4) / 0.2, rtol=1e-5, atol=1e-6)


def test_each_channel_has_its_own_mean_and_deviation():
    image = random_image(3, 6, 8)
    pixels = classifier(channels=3, mean=(0.1, 0.2, 0.3), std=(1.0, 2.0, 4.0)).prepare([image])[0]
    for channel, (mean, std) in enumerate([(0.1, 1), (0.2, 2), (0.3, 4)]):
        np.testing.assert_allclose(pixels[channel], (image[channel] - mean) / std, rtol=1e-5, atol=1e-6)


def test_grey_image_is_repeated_for_a_model_of_colour_images():
    image = random_image(1, 6, 8)
    pixels = classifier(channels=3, mean=(0.0, 0.5, 1.0)).prepare([image])[0]
    np.testing.assert_allclose(pixels, image - np.array([0, 0.5, 1])[:, None, None], rtol=1e-5, atol=1e-6)


def test_stretched_image_fills_the_grid():
    image = np.ones((1, 20, 5), np.float32)
    pixels = classifier(mean=(0.25,), fit="stretch").prepare([image])
    np.testing.assert_allclose(pixels, 0.75)


def test_padding_is_the_mean_grey_of_the_training():
    image = np.ones((1, 12, 4), np.float32)
    pixels = classifier(size=(6, 8), mean=(0.25,), std=(0.5,), fit="pad").prepare([image])[0, 0]
    np.testing.assert_allclose(pixels[:, 3:5], 1.5)
    assert not pixels[:, :3].any()
    assert not pixels[:, 5:].any()


def test_images_of_many_sizes_become_one_batch():
    pixels = classifier().prepare([random_image(1, 6, 8), random_image(1, 30, 11), random_image(1, 3, 3)])
    assert pixels.shape == (3, 1, 6, 8)


@pytest.mark.parametrize("fit", ["stretch", "pad"])
def test_prepared_image_lies_where_the_placement_says(fit):
    image = random_image(1, 17, 9)
    net = classifier(fit=fit)
    assert net.placement(image) == place((17, 9), (6, 8), fit)
    expected = image_to_model(torch.from_numpy(image), net.placement(image))
    torch.testing.assert_close(net.prepare([image])[0], expected)


def test_volume_is_prepared_for_a_model_of_volumes():
    net = classifier(size=(4, 6, 8))
    assert net.prepare([random_image(1, 8, 12, 16)]).shape == (1, 1, 4, 6, 8)


@pytest.mark.parametrize(
    ("shape", "contract", "sentence"),
    [
        ((2, 6, 8), {}, "image has 2 channels, the model expects 1"),
        ((3, 6, 8), {"channels": 2}, "image has 3 channels, the model expects 2"),
        ((1, 5, 6, 8), {}, "image has 3 axes, the model expects 2"),
        ((1, 6, 8), {"size": (4, 6, 8)}, "image has 2 axes, the model expects 3"),
        ((1, 5, 6, 8), {"channels": 3}, "image has 3 axes, the model expects 2"),
    ],
)
def test_image_that_does_not_fit_the_model_is_an_error_of_that_case(shape, contract, sentence):
    with pytest.raises(CaseError, match=sentence) as caught:
        classifier(**contract).prepare([random_image(*shape)])
    assert caught.value.stage == "prepare"


def test_preparing_leaves_the_image_alone():
    image = random_image(1, 6, 8)
    before = image.copy()
    classifier(mean=(0.5,)).prepare([image])
    np.testing.assert_array_equal(image, before)


def test_sigmoid_and_softmax_turn_logits_into_probabilities():
    logits = torch.tensor([[0.0, 2.0], [-3.0, 1.0]])
    single = classifier(activation="sigmoid").probabilities(logits)
    np.testing.assert_allclose(single, 1 / (1 + np.exp(-logits.numpy())), rtol=1e-5)
    shared = classifier(activation="softmax").probabilities(logits)
    powers = np.exp(logits.numpy())
    np.testing.assert_allclose(shared, powers / powers.sum(1, keepdims=True), rtol=1e-5)


def test_logits_are_the_networks_outputs():
    network = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
    net = classifier(network)
    images = net.prepare([random_image(1, 6, 8)])
    assert torch.equal(net.logits(images), network(images))
    assert net.logits(images).requires_grad


def test_outputs_are_those_of_the_contract_and_a_network_without_weights_is_on_the_cpu():
    assert classifier().outputs == ("a", "b")
    assert classifier().device == torch.device("cpu")


def head(*shape):
    """Voxels of very different channels in a black surrounding."""
    image = np.zeros(shape, np.float32)
    inside = (slice(None), *(slice(side // 4, -side // 4) for side in shape[1:]))
    scale = np.array([1.0, 300.0, 2e4])[: shape[0]].reshape(-1, *(1,) * (len(shape) - 1))
    image[inside] = (random_image(*image[inside].shape) + 0.5) * scale
    return image


@pytest.mark.parametrize("shape", [(3, 12, 16), (2, 8, 12, 16)])
def test_scaling_by_own_nonzero_pixels_is_monais(shape):
    image = head(*shape)
    net = classifier(channels=shape[0], size=shape[1:], scaling="nonzero")
    pixels = net.prepare([image])[0]
    judge = NormalizeIntensity(nonzero=True, channel_wise=True)(torch.from_numpy(image))
    torch.testing.assert_close(pixels, torch.as_tensor(judge), rtol=1e-4, atol=1e-5)
    assert not pixels[torch.from_numpy(image) == 0].any()


def test_covered_copy_is_scaled_as_the_intact_image():
    image = head(3, 12, 16)
    wanted = Preprocessing(outputs=("a",), size=(12, 16), channels=3, scaling="nonzero")
    uncovered, statistics = prepared(image, wanted), statistics_of(image, wanted)
    covered = image.copy()
    covered[1, :, 8:] = 0
    pixels = prepared(covered, wanted, statistics)
    assert torch.equal(pixels[[0, 2]], uncovered[[0, 2]])
    assert torch.equal(pixels[1, :, :8], uncovered[1, :, :8])
    assert not pixels[1, :, 8:].any()
    assert not prepared(np.zeros_like(image), wanted, statistics).any()
    assert not torch.equal(prepared(covered, wanted)[1, :, :8], uncovered[1, :, :8])


def test_images_that_are_scaled_alike_have_no_statistics_of_their_own():
    wanted = Preprocessing(outputs=("a",), size=(6, 8))
    assert statistics_of(random_image(1, 6, 8), wanted) is None


def test_grey_image_scaled_by_its_own_pixels_fills_all_channels():
    image = head(1, 12, 16)
    pixels = classifier(channels=3, size=(12, 16), scaling="nonzero").prepare([image])[0]
    assert torch.equal(pixels[0], pixels[2])
    np.testing.assert_allclose(pixels[0][pixels[0] != 0].std(correction=0), 1, rtol=1e-5)


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_constant_channel_cannot_be_scaled_by_itself_and_is_named(value):
    image = head(3, 12, 16)
    image[1][image[1] != 0] = value
    with pytest.raises(CaseError, match="channel 2 of 3 is constant") as caught:
        classifier(channels=3, size=(12, 16), scaling="nonzero").prepare([image])
    assert caught.value.stage == "prepare"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_pixels_that_are_not_numbers_are_an_error_of_that_case(value):
    image = head(1, 12, 16)
    image[0, 6, 8] = value
    with pytest.raises(CaseError, match="not numbers"):
        classifier(size=(12, 16), scaling="nonzero").prepare([image])
