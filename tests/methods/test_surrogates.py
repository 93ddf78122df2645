"""Shapley values and linear surrogates, against Captum, scikit-learn, brute force and closed forms."""

import itertools
import math

import numpy as np
import pytest
import torch
from captum.attr import KernelShap as PeerKernelShap
from captum.attr import LimeBase
from captum.attr import ShapleyValueSampling as PeerShapley
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.metrics import pairwise_distances

from heatcheck.methods.covering.segments import Given, Grid, grid_segments
from heatcheck.methods.gradient import generators_of
from heatcheck.methods.surrogates import KernelShap, Lime, ShapleyValueSampling

SEEDS = [11, 12, 13, 14]


def every(*outputs):
    return torch.tensor(outputs).expand(4, -1)


def strips(images, count):
    """Segments across the last axis, so that their number can be chosen."""
    return Given((torch.arange(images.shape[-1]) * count // images.shape[-1]).expand(images.shape[2:]))


def scores_of(classifier, image, labels, shown):
    with torch.no_grad():
        return classifier.logits(torch.where(shown[:, None][:, :, labels], image, torch.zeros_like(image)))


def per_segment(maps, labels, count):
    """The value of each segment, read from the map: [target, segment]."""
    return torch.stack([maps[:, 0][:, labels == number][:, 0] for number in range(count)], 1)


def exact_shapley(scores, count):
    """Shapley values by their definition; `scores` gives a row of outputs for each set of segments."""
    values = torch.zeros(count, scores[frozenset()].shape[0], dtype=torch.float64)
    for segment in range(count):
        others = [other for other in range(count) if other != segment]
        for size in range(count):
            weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
            for chosen in itertools.combinations(others, size):
                values[segment] += weight * (scores[frozenset({*chosen, segment})] - scores[frozenset(chosen)])
    return values


@pytest.fixture
def brute_force(tiny_classifier, tiny_images):
    """A function that gives the exact Shapley values of the first image's segments for all outputs."""

    def values(rule, count):
        sets = [frozenset(c) for size in range(count + 1) for c in itertools.combinations(range(count), size)]
        shown = torch.tensor([[number in chosen for number in range(count)] for chosen in sets])
        answers = scores_of(tiny_classifier, tiny_images[0], rule.given, shown).double()
        return exact_shapley(dict(zip(sets, answers, strict=True)), count)

    return values


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_kernel_shap_is_exact_where_all_subsets_can_be_shown(count, brute_force, tiny_classifier, tiny_images):
    rule = strips(tiny_images, count)
    result = KernelShap(samples=max(2, 2**count - 2), segments=rule)(
        tiny_classifier, tiny_images[:1], every(0, 1, 2)[:1], [1]
    )
    values = per_segment(result.values[0], rule.given, count)
    torch.testing.assert_close(values.double(), brute_force(rule, count).T, rtol=0, atol=1e-6)


def test_shapley_sampling_converges_to_the_exact_values(brute_force, tiny_classifier, tiny_images):
    rule = strips(tiny_images, 5)
    exact = brute_force(rule, 5).T
    gaps = []
    for permutations in (4, 600):
        method = ShapleyValueSampling(permutations, rule, max_batch=64)
        result = method(tiny_classifier, tiny_images[:1], every(0, 1, 2)[:1], [1])
        gaps.append((per_segment(result.values[0], rule.given, 5) - exact).abs().max() / exact.abs().max())
    assert gaps[1] < 0.03
    assert gaps[1] < gaps[0]


def test_kernel_shap_converges_to_the_exact_values(brute_force, tiny_classifier, tiny_images):
    rule = strips(tiny_images, 8)
    exact = brute_force(rule, 8).T
    result = KernelShap(250, rule, max_batch=64)(tiny_classifier, tiny_images[:1], every(0, 1, 2)[:1], [1])
    assert (per_segment(result.values[0], rule.given, 8) - exact).abs().max() < 0.05 * exact.abs().max()


def test_sampled_subsets_have_the_sizes_of_the_shapley_kernel():
    shown = KernelShap(samples=40_000).subsets(20, torch.Generator().manual_seed(1))[2:]
    assert torch.equal(shown[::2], ~shown[1::2])
    share = np.bincount(shown.sum(1), minlength=21)[1:20] / len(shown)
    expected = np.array([1 / (size * (20 - size)) for size in range(1, 20)])
    np.testing.assert_allclose(share, expected / expected.sum(), atol=0.01)
    np.testing.assert_allclose(shown.double().mean(0), 0.5)


@pytest.mark.parametrize("method", [KernelShap(samples=10), KernelShap(samples=90), ShapleyValueSampling(2)])
def test_shapley_values_add_up_to_the_score_they_share(method, tiny_classifier, tiny_images):
    tiny_images = tiny_images[:1]  # in 3D there are 512 segments
    result = method(tiny_classifier, tiny_images, every(0, 2)[:1], SEEDS[:1])
    with torch.no_grad():
        total = tiny_classifier.logits(tiny_images) - tiny_classifier.logits(torch.zeros_like(tiny_images))
    count = 8 ** (tiny_images.ndim - 2)
    labels = grid_segments(tuple(tiny_images.shape[2:]), 8)
    for maps, score, error in zip(result.values, total, result.error, strict=True):
        total = per_segment(maps, labels, count).double().sum(1)
        torch.testing.assert_close(total, score[[0, 2]].double(), rtol=0, atol=1e-5)
        assert error.max() < 1e-6


def test_shapley_sampling_equals_captum_with_the_same_permutations(tiny_classifier, tiny_images):
    labels = grid_segments(tuple(tiny_images.shape[2:]), 2)
    count = int(labels.max()) + 1
    method = ShapleyValueSampling(permutations=3, segments=Grid(cells=2))
    ours = method(tiny_classifier, tiny_images, every(0, 2), SEEDS).values
    for image, seed, maps in zip(tiny_images, SEEDS, ours, strict=True):
        (generator,) = generators_of([seed])
        orders = [torch.randperm(count, generator=generator).tolist() for _ in range(3)]
        peer = PeerShapley(tiny_classifier.module)
        peer.permutation_generator = lambda _, __, orders=orders: orders
        for column, target in enumerate((0, 2)):
            theirs = peer.attribute(image[None], feature_mask=labels[None, None], target=target, n_samples=3)
            torch.testing.assert_close(maps[column, 0], theirs[0, 0], rtol=1e-5, atol=1e-6)


class _Fit:
    """A scikit-learn model as Captum wants it."""

    def __init__(self, model):
        self.model = model

    def fit(self, data):
        rows, answers, weights = (part.double().numpy() for part in next(iter(data)))
        self.model.fit(rows, answers, sample_weight=weights)

    def representation(self):
        return torch.tensor(self.model.coef_)


def captum_surrogate(classifier, image, labels, weighted, model, target):
    """The coefficients of Captum's LIME with our subsets, each with its weight."""
    stream = iter(weighted)
    current = {}

    def choose(_, **__):
        current["shown"], current["weight"] = next(stream)
        return current["shown"][None].float()

    peer = LimeBase(
        classifier.module,
        _Fit(model),
        similarity_func=lambda *_, **__: current["weight"],
        perturb_func=choose,
        perturb_interpretable_space=True,
        from_interp_rep_transform=lambda chosen, original, **_: original * chosen[0].bool()[labels],
        to_interp_rep_transform=None,
    )
    return peer.attribute(image[None], target=target, n_samples=len(weighted))


@pytest.mark.parametrize(("surrogate", "alpha"), [("ridge", 1.0), ("ridge", 0.0), ("lasso", 0.001)])
def test_lime_equals_captum_with_the_same_masks_and_kernel(surrogate, alpha, tiny_classifier, tiny_images):
    labels = grid_segments(tuple(tiny_images.shape[2:]), 2)
    count = int(labels.max()) + 1
    method = Lime(samples=40, surrogate=surrogate, alpha=alpha, segments=Grid(cells=2))
    ours = method(tiny_classifier, tiny_images, every(0, 2), SEEDS).values
    kinds = {"ridge": Ridge(alpha=alpha) if alpha else LinearRegression(), "lasso": Lasso(alpha=alpha, tol=1e-10)}
    for image, generator, maps in zip(tiny_images, generators_of(SEEDS), ours, strict=True):
        shown = method.subsets(count, generator)
        distance = pairwise_distances(shown.double().numpy(), np.ones((1, count)), metric="cosine").ravel()
        weights = torch.tensor(np.sqrt(np.exp(-(distance**2) / 0.25**2)), dtype=torch.float32)
        for column, target in enumerate((0, 2)):
            theirs = captum_surrogate(
                tiny_classifier, image, labels, list(zip(shown, weights, strict=True)), kinds[surrogate], target
            )
            torch.testing.assert_close(maps[column, 0], theirs[labels].float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("samples", [14, 40])
def test_kernel_shap_equals_captum_with_the_same_subsets(samples, tiny_classifier, tiny_images):
    """Captum nearly enforces the constraint, by a weight of a million on nothing and everything shown."""
    method = KernelShap(samples=samples, segments=strips(tiny_images, 6))
    labels, image = method.segments.given, tiny_images[:1]
    peer = PeerKernelShap(tiny_classifier.module)
    peer.interpretable_model = _Fit(LinearRegression())
    ours = method(tiny_classifier, image, every(0, 2)[:1], [11]).values[0]
    for column, target in enumerate((0, 2)):
        stream = iter(method.subsets(6, torch.Generator().manual_seed(11)).long().unsqueeze(1))
        peer.perturb_func = lambda *_, stream=stream, **__: next(stream)
        theirs = peer.attribute(image, feature_mask=labels[None, None], target=target, n_samples=samples + 2)
        torch.testing.assert_close(ours[column, 0], theirs[0, 0], rtol=0, atol=1e-5)


def test_kernel_shap_solves_the_constrained_least_squares_of_its_subsets(tiny_classifier, tiny_images):
    """Another way to the same numbers: the Lagrangian's linear system."""
    method = KernelShap(samples=60, segments=strips(tiny_images, 8))
    labels = method.segments.given
    shown = method.subsets(8, torch.Generator().manual_seed(11))
    answers = scores_of(tiny_classifier, tiny_images[0], labels, shown).double().numpy()
    rows = shown[2:].double().numpy()
    total, rest = answers[1] - answers[0], answers[2:] - answers[0]
    system = np.block([[rows.T @ rows, np.ones((8, 1))], [np.ones((1, 8)), np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.vstack([rows.T @ rest, total]))[:8]
    ours = method(tiny_classifier, tiny_images[:1], every(0, 1, 2)[:1], [11]).values[0]
    np.testing.assert_allclose(per_segment(ours, labels, 8).T.numpy(), expected, rtol=0, atol=1e-5)


def test_channels_can_be_explained_apart(tiny_classifier, tiny_images):
    rule = Grid(cells=1, per_channel=True)
    result = KernelShap(samples=2, segments=rule)(tiny_classifier, tiny_images[:1], every(0)[:1], [1])
    assert result.values.shape[2] == 2
    image = tiny_images[:1]
    first, second = image.clone(), image.clone()
    first[:, 1], second[:, 0] = 0, 0
    with torch.no_grad():
        both, one, two, none = (tiny_classifier.logits(x)[0, 0] for x in (image, first, second, 0 * image))
    expected = torch.stack([(one - none + both - two) / 2, (two - none + both - one) / 2])
    torch.testing.assert_close(result.values[0, 0].flatten(1)[:, 0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("samples", "segments"), [(30, 60), (60, 20)])
def test_lime_without_a_penalty_is_weighted_linear_regression_also_with_few_samples(samples, segments):
    method = Lime(samples=samples, alpha=0.0)
    shown = method.subsets(segments, torch.Generator().manual_seed(0))
    answers = torch.randn(samples, 2, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    root = method.weights(shown).sqrt().unsqueeze(1)
    share = root**2 / (root**2).sum()
    rows, scores = (root * (each - (share * each).sum(0)) for each in (shown.double(), answers))
    expected = np.linalg.lstsq(rows.numpy(), scores.numpy(), rcond=None)[0]  # of several solutions the shortest
    np.testing.assert_allclose(method.solve(shown, answers).values.numpy(), expected, atol=1e-8)
