import copy

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter1d
from torch import nn

from heatcheck.core.records import CaseKey
from heatcheck.metrics.reliance import reliance, reliance_added, reliance_placebo
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.studies.alignment.reliance import BLUR, FILLS, Probe, RelianceSettings, drops, fills_of, partners

SETTINGS = RelianceSettings()


def probed(classifier, column, images, masks, seeds, settings=SETTINGS, *, absent=None):
    """The drops of one output; the films without the finding are the images themselves, unless others are given."""
    films = images if absent is None else absent
    others = [[films[number - 1], films[(number - 2) % len(films)]] for number in range(len(images))]
    probes = [Probe(*each) for each in zip(images, masks, others, seeds, strict=True)]
    return drops(classifier, [column], probes, settings)[0]


class Summed(nn.Module):
    """The sum over some pixels, and over others."""

    def __init__(self, *weights):
        super().__init__()
        self.weights = nn.Parameter(torch.stack([torch.as_tensor(one, dtype=torch.float32) for one in weights]))

    def forward(self, images):
        return images.flatten(1) @ self.weights.flatten(1).T


def square(shape, corner, size=3):
    mask = np.zeros(shape, bool)
    mask[tuple(slice(at, at + size) for at in corner)] = True
    return mask


def classifier_of(*weights):
    contract = Preprocessing(outputs=("a", "b")[: len(weights)], size=weights[0].shape, channels=1, mean=(0,), std=(1,))
    return NetworkClassifier("sums", Summed(*weights).eval(), contract)


def bright(masks):
    """Dark noisy images that are bright where the masks are."""
    noise = torch.rand(len(masks), 1, *masks[0].shape, generator=torch.Generator().manual_seed(1)) * 0.1
    return noise + torch.as_tensor(np.stack(masks), dtype=torch.float32)[:, None]


@pytest.mark.parametrize("shape", [(16, 20), (10, 8, 9)])
def test_a_model_that_reads_the_area_relies_on_it_and_one_that_reads_elsewhere_does_not(shape):
    masks = [square(shape, [1] * len(shape)), square(shape, [4] * len(shape))]
    elsewhere = np.zeros(shape, bool)
    elsewhere[-1] = True
    classifier, dark = classifier_of(masks[0] | masks[1], elsewhere), bright([np.zeros(shape, bool)] * 2)
    for column, uses in enumerate((True, False)):
        found = probed(classifier, column, bright(masks), masks, [1, 2], absent=dark)
        for one in found:
            assert (reliance(one, 1.0).value > 5) == (reliance_added(one, 1.0).value > 5) == uses
            assert uses or abs(reliance(one, 1.0).value) < 1


def test_a_model_that_reads_the_brightness_of_the_body_does_not_rely_on_an_area_in_its_middle():
    """Shifted regions fall on the dark border, so that other places on the film cannot be the only comparison."""
    shape, middle = (24, 24), square((24, 24), (10, 10), 5)
    body = np.exp(-(((np.indices(shape) - 12) / 6) ** 2).sum(0))
    noise = torch.rand(40, 1, *shape, generator=torch.Generator().manual_seed(1)) * 0.05
    films = torch.as_tensor(body, dtype=torch.float32) + noise  # no lesion at all
    with_marker, without = films[:20], films[20:]
    found = probed(classifier_of(np.ones(shape)), 0, with_marker, [middle] * 20, range(20), absent=without)
    place = np.array([reliance_placebo(one, 1.0).value for one in found])
    values = np.array([reliance(one, 1.0).value for one in found])
    assert place.mean() > 3  # what was called reliance
    assert abs(values.mean()) < 0.02 * place.mean()


def test_a_model_that_needs_either_of_two_places_relies_on_neither_and_is_given_its_score_by_each():
    shape, area = (16, 16), square((16, 16), (8, 8))

    class Either(nn.Module):
        def forward(self, images):
            seen = [images[:, 0, 8:11, 8:11], images[:, 0, :3, :3]]
            return torch.stack([part.mean((1, 2)) for part in seen]).amax(0)[:, None]

    contract = Preprocessing(outputs=("a",), size=shape, channels=1, mean=(0,), std=(1,))
    classifier = NetworkClassifier("either", Either(), contract)
    both, dark = bright([area | square(shape, (0, 0))] * 4), bright([np.zeros(shape, bool)] * 4)
    for one in probed(classifier, 0, both, [area] * 4, range(4), absent=dark):
        assert abs(reliance(one, 1.0).value) < 0.15
        assert reliance_added(one, 1.0).value > 0.8


def test_drops_are_those_of_copies_made_by_hand(tiny_classifier, tiny_images):
    shape = tuple(tiny_images.shape[2:])
    masks = [square(shape, [at] * len(shape)) for at in (0, 2, 4, 6)]
    found = probed(tiny_classifier, 2, tiny_images, masks, [5, 6, 7, 8], RelianceSettings(shifts=2, at_once=7))

    def said(*copies):
        with torch.no_grad():
            return tiny_classifier.logits(torch.stack(copies))[:, 2].numpy()

    for number, (image, mask, seed, seen) in enumerate(zip(tiny_images, masks, [5, 6, 7, 8], found, strict=True)):
        area, fills = torch.as_tensor(mask), fills_of(image, seed)
        assert len(fills) == len(FILLS)
        assert seen.whole == pytest.approx(said(image)[0], abs=1e-5)
        np.testing.assert_allclose(seen.replaced, said(*(torch.where(area, fill, image) for fill in fills)), atol=1e-5)
        assert seen.elsewhere.shape == (2, 3)
        films = [tiny_images[number - 1], tiny_images[number - 2]]
        assert [one.whole for one in seen.absent] == pytest.approx(said(*films).tolist(), abs=1e-5)
        np.testing.assert_allclose(seen.added, said(*(torch.where(area, image, film) for film in films)), atol=1e-5)
        swapped = [torch.where(area, *pair) for pair in (films[::-1], films)]
        np.testing.assert_allclose(seen.swapped, said(*swapped), atol=1e-5)


def test_neither_the_batch_nor_the_company_of_an_image_changes_its_drops(tiny_classifier, tiny_images):
    shape = tuple(tiny_images.shape[2:])
    masks = [square(shape, [at] * len(shape)) for at in (0, 2, 4, 6)]
    whole = probed(tiny_classifier, 0, tiny_images, masks, [1, 2, 3, 4])
    probe = Probe(tiny_images[2], masks[2], [tiny_images[1], tiny_images[0]], 3)
    ((alone,),) = drops(tiny_classifier, [0], [probe], RelianceSettings(at_once=5))
    np.testing.assert_allclose(alone.replaced, whole[2].replaced, atol=1e-5)
    np.testing.assert_allclose(alone.elsewhere, whole[2].elsewhere, atol=1e-5)
    assert reliance(alone, 1.0).value == pytest.approx(reliance(whole[2], 1.0).value, abs=1e-5)


def test_every_network_is_asked_about_the_same_copies(tiny_classifier, tiny_images):
    seen = []

    class Listening(nn.Module):
        def forward(self, images):
            seen.append(images)
            return images.flatten(1)[:, :3]

    shape = tuple(tiny_images.shape[2:])
    masks = [square(shape, [2] * len(shape))] * 4
    for _ in range(2):
        asked = NetworkClassifier("listening", Listening(), tiny_classifier.preprocessing)
        probed(asked, 0, tiny_images, masks, [1, 2, 3, 4])
    first, second = torch.cat(seen[: len(seen) // 2]), torch.cat(seen[len(seen) // 2 :])
    assert len(first) == 4 * (3 * (1 + 3 * 5) + 2 + 2)
    assert torch.equal(first, second)
    assert max(map(len, seen)) <= 32


def test_the_model_is_left_as_it_was(tiny_classifier, tiny_images):
    module = tiny_classifier.module.train()
    before = copy.deepcopy(module.state_dict())
    shape = tuple(tiny_images.shape[2:])
    probed(tiny_classifier, 0, tiny_images, [square(shape, [2] * len(shape))] * 4, [1, 2, 3, 4])
    assert module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(weight.grad is None for weight in module.parameters())


def test_an_image_without_a_mask_has_no_drops(tiny_classifier, tiny_images):
    shape = tuple(tiny_images.shape[2:])
    masks = [np.zeros(shape, bool), np.ones(shape, bool)]
    empty, full = probed(tiny_classifier, 0, tiny_images[:2], masks, [1, 2])
    assert reliance(empty, 1.0).reason == "no truth"
    assert "no room" in reliance(full, 1.0).reason


def test_films_without_the_finding_are_dealt_out_evenly_and_never_those_of_the_patient():
    positives = [CaseKey(f"p{number}", f"patient{number}", {}) for number in range(6)]
    negatives = [CaseKey(f"n{number}", f"patient{number}", {}) for number in range(4)]
    dealt = partners(positives, negatives, 2, seed=3)
    assert dealt == partners(positives, negatives, 2, seed=3)
    assert all(len(set(places)) == 2 for places in dealt)
    assert all(
        negatives[place].patient != key.patient
        for key, places in zip(positives, dealt, strict=True)
        for place in places
    )
    counts = np.bincount(np.concatenate(dealt), minlength=4)
    assert counts.max() - counts.min() <= 2
    assert partners(positives, [], 2, seed=3) == [[]] * 6
    assert partners(positives[:1], negatives[:1], 2, seed=3) == [[]]


@pytest.mark.parametrize("shape", [(20, 16), (12, 8, 9)])
def test_shifted_regions_lie_on_the_picture_and_not_in_what_pads_it(shape):
    """A change outside the picture hardly counts: the outlined area would seem to matter more than it does."""
    pixels = torch.full((1, 1, *shape), -2.0)
    pixels[:, :, 4:-4] = torch.rand(pixels[:, :, 4:-4].shape, generator=torch.Generator().manual_seed(2))
    mask = square(shape, [4] * len(shape), 2)
    padding = np.ones(shape, bool)
    padding[4:-4] = False
    for seed in range(5):
        (seen,) = probed(classifier_of(padding, mask), 0, pixels, [mask], [seed], RelianceSettings(shifts=8))
        np.testing.assert_array_equal(seen.elsewhere, seen.whole)


def test_a_mask_that_fills_the_picture_is_shifted_into_what_pads_it():
    pixels = torch.full((1, 1, 12, 12), -2.0)
    pixels[:, :, 4:-4] = torch.rand(1, 1, 4, 12, generator=torch.Generator().manual_seed(2))
    mask = np.zeros((12, 12), bool)
    mask[4:-4] = True
    (seen,) = probed(classifier_of(mask, ~mask), 0, pixels, [mask], [1], SETTINGS)
    assert len(seen.elsewhere) == 2  # above and below


def test_a_blank_image_has_shifted_regions_too():
    mask = square((9, 9), (1, 1))
    (seen,) = probed(classifier_of(mask, ~mask), 0, torch.zeros(1, 1, 9, 9), [mask], [1], SETTINGS)
    assert seen.elsewhere.shape == (4, 3)


def test_a_mask_on_another_grid_is_refused(tiny_classifier, tiny_images):
    with pytest.raises(ValueError, match="share the model's grid"):
        probed(tiny_classifier, 0, tiny_images[:1], [np.ones((3, 3), bool)], [1])


def test_fills_keep_the_images_own_brightness(tiny_images):
    image = tiny_images[0] * torch.tensor([1.0, 5.0]).reshape(2, *[1] * (tiny_images.ndim - 2))
    blur, mean, noise = fills_of(image, 3)
    for channel in range(2):
        own = image[channel]
        assert torch.allclose(mean[channel], own.mean().expand_as(own))
        assert noise[channel].mean() == pytest.approx(own.mean().item(), abs=0.3 * own.std().item())
        assert noise[channel].std() == pytest.approx(own.std().item(), rel=0.2)
        assert blur[channel].std() < 0.2 * own.std()
        assert blur[channel].mean() == pytest.approx(own.mean().item(), rel=0.05)
    assert torch.equal(noise, fills_of(image, 3)[2])
    assert not torch.equal(noise, fills_of(image, 4)[2])


def test_blur_is_scipys_away_from_the_edges():
    image = torch.zeros(1, 64, 64)
    image[0, 30:34, 20:40] = 1.0
    expected = image[0].numpy()
    for axis in range(2):
        expected = gaussian_filter1d(expected, BLUR * 64, axis=axis, mode="constant", truncate=10)
    blur = fills_of(image, 0)[0][0].numpy()
    np.testing.assert_allclose(blur[28:36, 28:36], expected[28:36, 28:36], rtol=2e-3)
