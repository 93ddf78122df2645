"""The gradient family against Captum, and by hand."""

import pytest
import torch
from captum.attr import InputXGradient, IntegratedGradients, NoiseTunnel, Saliency
from captum.attr._core.gradient_shap import InputBaselineXGradient
from torch import nn

from heatcheck.methods import gradient as family
from heatcheck.methods.passes import input_gradients
from heatcheck.models import NetworkClassifier, Preprocessing

SEEDS = [5, 6, 7, 8]


def every(*outputs):
    return torch.tensor(outputs).expand(4, -1)


def leaf(images):
    """A copy of the images that Captum accepts without a warning."""
    return images.clone().requires_grad_()


def linear(weights):
    """A classifier whose logits are weighted sums of the pixels."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(weights[0].numel(), len(weights), bias=False))
    with torch.no_grad():
        module[1].weight[:] = torch.stack([w.flatten() for w in weights])
    names = tuple(f"f{i}" for i in range(len(weights)))
    contract = Preprocessing(outputs=names, size=tuple(weights[0].shape), mean=(0.0,), std=(1.0,))
    return NetworkClassifier("linear", module.eval(), contract)


@pytest.mark.parametrize("target", [0, 2])
def test_gradient_equals_captum(tiny_classifier, tiny_images, target):
    ours = family.Gradient()(tiny_classifier, tiny_images, every(target), SEEDS).values[:, 0]
    peer = Saliency(tiny_classifier.module).attribute(leaf(tiny_images), target=target, abs=False)
    torch.testing.assert_close(ours, peer, rtol=1e-5, atol=1e-8)


def test_input_x_gradient_equals_captum(tiny_classifier, tiny_images):
    ours = family.InputTimesGradient()(tiny_classifier, tiny_images, every(1), SEEDS).values[:, 0]
    peer = InputXGradient(tiny_classifier.module).attribute(leaf(tiny_images), target=1)
    torch.testing.assert_close(ours, peer, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("rule", "name"), [("middle", "riemann_middle"), ("right", "riemann_right"), ("gauss", "gausslegendre")]
)
def test_integrated_gradients_equal_captum(tiny_classifier, tiny_images, rule, name):
    ours = family.IntegratedGradients(steps=12, rule=rule)(tiny_classifier, tiny_images, every(0, 2), SEEDS)
    for column, target in enumerate((0, 2)):
        peer = IntegratedGradients(tiny_classifier.module).attribute(
            tiny_images.clone(), target=target, n_steps=12, method=name, return_convergence_delta=True
        )
        torch.testing.assert_close(ours.values[:, column], peer[0], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(ours.error[:, column], peer[1].abs().float(), rtol=1e-3, atol=1e-5)


def test_integrated_gradients_explain_the_whole_score_with_many_steps(tiny_classifier, tiny_images):
    few = family.IntegratedGradients(steps=4)(tiny_classifier, tiny_images, every(0, 1), SEEDS).error
    many = family.IntegratedGradients(steps=200)(tiny_classifier, tiny_images, every(0, 1), SEEDS).error
    assert many.max() < 2e-3
    assert many.mean() < few.mean()


def test_smooth_grad_equals_captum_on_the_same_noise(tiny_classifier, tiny_images, monkeypatch):
    ours = family.SmoothGrad(samples=3, noise=0.2, noise_is="absolute")
    noises = [point.images - tiny_images for point in ours.points(tiny_images, SEEDS)]
    tunnel = NoiseTunnel(Saliency(tiny_classifier.module))
    drawn = torch.stack(noises, 1).flatten(0, 1)  # Captum repeats each image
    monkeypatch.setattr(torch, "normal", lambda *_, **__: drawn)
    peer = tunnel.attribute(tiny_images.clone(), nt_type="smoothgrad", nt_samples=3, stdevs=0.2, target=1, abs=False)
    monkeypatch.undo()
    got = ours(tiny_classifier, tiny_images, every(1), SEEDS).values[:, 0]
    torch.testing.assert_close(got, peer, rtol=1e-5, atol=1e-7)


def test_relative_noise_follows_the_images_range():
    images = torch.zeros(2, 1, 64, 64)
    images[0, 0, 0, 0], images[1, 0, 0, 0] = 1, 10
    (point,) = family.SmoothGrad(samples=1, noise=0.1).points(images, [1, 1])
    spread = (point.images - images).flatten(1).std(1)
    torch.testing.assert_close(spread, torch.tensor([0.1, 1.0]), rtol=0.05, atol=0)


def test_gradient_shap_equals_captum_at_the_same_random_points(tiny_classifier, tiny_images, monkeypatch):
    """Captum's step for one sample, given the baselines and shares that our seeds draw."""
    settings = family.GradientShap(samples=1, baseline_noise=0.3)
    got = settings(tiny_classifier, tiny_images, every(0, 2), SEEDS).values
    (point,) = settings.points(tiny_images, SEEDS)
    baselines = tiny_images - point.factor
    shares = ((point.images - baselines).flatten(1).sum(1) / point.factor.flatten(1).sum(1)).numpy()
    monkeypatch.setattr("captum.attr._core.gradient_shap.np.random.uniform", lambda *_: shares)
    peer = InputBaselineXGradient(tiny_classifier.module)
    for column, target in enumerate((0, 2)):
        expected = peer.attribute(leaf(tiny_images), baselines, target=target).detach()
        torch.testing.assert_close(got[:, column], expected, rtol=1e-5, atol=1e-7)


def test_gradient_shap_of_a_linear_model_by_hand():
    weights = torch.arange(12.0).reshape(3, 4)
    classifier = linear([weights])
    images = torch.rand(1, 1, 3, 4)
    settings = family.GradientShap(samples=5, baseline_noise=0.0)
    got = settings(classifier, images, torch.tensor([[0]]), [3]).values[0, 0, 0]
    torch.testing.assert_close(got, weights * images[0, 0])


@pytest.mark.parametrize("kind", ["zero", "black", "mean", "blurred"])
def test_every_baseline_has_the_images_shape_and_no_detail(kind, tiny_images):
    baseline = family.baseline_of(tiny_images, kind)
    assert baseline.shape == tiny_images.shape
    assert baseline.flatten(1).std(1).max() < 0.5 * tiny_images.flatten(1).std(1).min()
    level = {"zero": 0.0, "black": float(tiny_images[0].min())}.get(kind, float(tiny_images[0].mean()))
    assert float(baseline[0].mean()) == pytest.approx(level, abs=0.02)


def test_ten_targets_need_one_forward_pass(tiny_classifier, tiny_images):
    calls = []
    tiny_classifier.module[0].register_forward_hook(lambda *_: calls.append(1))
    input_gradients(tiny_classifier, tiny_images, every(0, 1, 2, 0, 1, 2))
    assert len(calls) == 1
