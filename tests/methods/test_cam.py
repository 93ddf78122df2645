"""Grad-CAM against Captum, and where it points."""

import pytest
import torch
from captum.attr import LayerGradCam
from torch import nn
from torch.nn import functional

from heatcheck.core.errors import ModelError
from heatcheck.methods.cam import EigenCam, GradCam, GradCamPlusPlus
from heatcheck.methods.feature_maps import feature_map
from heatcheck.methods.passes import activations_and_gradients
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing


def classifier_of(module, size=(32, 32), outputs=3, channels=1):
    names = tuple(f"finding {i}" for i in range(outputs))
    contract = Preprocessing(outputs=names, size=size, channels=channels, mean=(0.0,), std=(1.0,))
    return NetworkClassifier("under test", module.eval(), contract)


def test_grad_cam_equals_captum(tiny_classifier, tiny_images):
    module = tiny_classifier.module
    targets = torch.tensor([0, 2]).expand(4, -1)
    ours = GradCam()(tiny_classifier, tiny_images, targets, range(4)).values
    for column, target in enumerate((0, 2)):
        peer = LayerGradCam(module, module[4]).attribute(tiny_images.clone(), target=target, relu_attributions=True)
        torch.testing.assert_close(ours[:, column], peer, rtol=1e-5, atol=1e-7)


def test_grad_cam_equals_captum_on_the_compact_densenet():
    torch.manual_seed(0)
    module = MODELS["densenet_compact"].build(1, 4).eval()
    images = torch.randn(2, 1, 64, 64)
    ours = GradCam()(classifier_of(module, (64, 64), 4), images, torch.tensor([[3], [3]]), [1, 2]).values
    # MONAI's head works in place on the features: its output, not its input, is what the head sees
    peer = LayerGradCam(module, module.class_layers.relu).attribute(images, target=3, relu_attributions=True)
    torch.testing.assert_close(ours[:, 0], peer, rtol=1e-5, atol=1e-7)


class Spot(nn.Module):
    """Sums the brightness of two feature maps: the first sees bright spots, the second dark ones."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(1, 2, 3, padding=1, bias=False)
        self.relu = nn.ReLU()
        self.head = nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.features.weight[0] = 1 / 9
            self.features.weight[1] = -1 / 9
            self.head.weight[:] = torch.tensor([[1.0, 0.0], [0.0, 1.0]])

    def forward(self, images):
        return self.head(self.relu(self.features(images)).mean((2, 3)))


def test_the_map_peaks_where_the_deciding_spot_is():
    images = torch.zeros(1, 1, 32, 40)
    images[0, 0, 5:8, 28:31] = 1
    images[0, 0, 20:23, 9:12] = -1
    maps = GradCam()(classifier_of(Spot(), (32, 40), 2), images, torch.tensor([[0, 1]]), [0]).values[0, :, 0]
    peaks = [divmod(int(values.argmax()), 40) for values in maps]
    assert peaks == [(6, 29), (21, 10)]


def test_a_negative_weight_leaves_nothing_of_the_map():
    module = Spot()
    with torch.no_grad():
        module.head.weight[0, 0] = -1
    images = torch.ones(1, 1, 16, 16)
    maps = GradCam()(classifier_of(module, (16, 16), 2), images, torch.tensor([[0]]), [0]).values
    assert maps.max() == 0


class Reused(nn.Module):
    """One ReLU module used at two depths, the second time in place."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 3, stride=2), nn.Conv2d(4, 5, 3, stride=2)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(5, 3)

    def forward(self, images):
        features = self.relu(self.second(self.relu(self.first(images))))
        return self.head(functional.adaptive_avg_pool2d(features, 1).flatten(1))


def test_a_reused_module_is_taken_at_its_last_call():
    torch.manual_seed(1)
    module = Reused()
    images = torch.randn(2, 1, 32, 32)
    layer = feature_map(module, images)
    assert (layer.name, layer.call) == ("relu", 3)  # after two convolutions and the first call
    activations = activations_and_gradients(classifier_of(module), images, torch.tensor([[0, 1], [2, 1]]))
    assert activations.values.shape == (2, 5, 7, 7)
    expected = module.head.weight[torch.tensor([[0, 1], [2, 1]])] / 49
    gradients = torch.stack(list(activations.gradients), 1)
    torch.testing.assert_close(gradients, expected[..., None, None].expand_as(gradients))


def test_an_unknown_layer_is_answered_with_the_nearest():
    classifier = classifier_of(Reused())
    with pytest.raises(ModelError, match="did you mean 'second'"):
        GradCam(layer="secnd")(classifier, torch.zeros(1, 1, 32, 32), torch.tensor([[0]]), [0])


def test_a_named_layer_is_used():
    classifier = classifier_of(Reused())
    maps = GradCam(layer="first")(classifier, torch.rand(1, 1, 32, 32), torch.tensor([[0]]), [0])
    assert maps.values.shape[-2:] == (15, 15)


def test_a_model_without_a_feature_map_is_refused():
    classifier = classifier_of(nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), (8, 8))
    with pytest.raises(ModelError, match="no spatial feature map"):
        GradCam()(classifier, torch.zeros(1, 1, 8, 8), torch.tensor([[0]]), [0])


def test_ten_targets_run_the_trunk_once():
    module = Reused()
    calls = []
    module.first.register_forward_hook(lambda *_: calls.append(1))
    classifier = classifier_of(module)
    images = torch.randn(1, 1, 32, 32)
    feature_map(module, images)
    calls.clear()
    GradCam()(classifier, images, torch.tensor([[0, 1, 2, 0, 1, 2, 0, 1, 2, 0]]), [0])
    assert len(calls) == 1


def test_grad_cam_plus_plus_follows_its_formula():
    torch.manual_seed(2)
    module = nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.ReLU(),
        nn.Conv2d(3, 4, 3),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 3),
    )
    images = torch.randn(1, 1, 9, 9)
    got = GradCamPlusPlus(layer="3")(classifier_of(module, (9, 9)), images, torch.tensor([[1]]), [0]).values[0, 0, 0]
    features = module[:4](images).detach().requires_grad_()
    score = module[4:](features)[0, 1]
    (slope,) = torch.autograd.grad(score, features)
    expected = torch.zeros(5, 5)
    for k in range(4):
        a, g = features[0, k].detach(), slope[0, k]
        alpha = g**2 / (2 * g**2 + g**3 * a.sum() + (g == 0))
        expected += (alpha * g.clamp(min=0)).sum() * a
    torch.testing.assert_close(got, expected.clamp(min=0), rtol=1e-4, atol=1e-7)


def test_eigen_cam_is_the_first_principal_direction_with_a_fixed_sign(tiny_classifier, tiny_images):
    got = EigenCam()(tiny_classifier, tiny_images, torch.tensor([0, 1]).expand(4, -1), range(4)).values
    features = tiny_classifier.module[:5](tiny_images).detach()
    for i in range(4):
        rows = features[i].flatten(1).T.double()
        rows = rows - rows.mean(0)
        _, vectors = torch.linalg.eigh(rows.T @ rows)
        along = rows @ vectors[:, -1]
        along = along if (along * rows.mean(1)).sum() >= 0 else -along
        torch.testing.assert_close(got[i, 0, 0].flatten().double(), along, rtol=1e-4, atol=1e-6)
        assert torch.equal(got[i, 0], got[i, 1])
