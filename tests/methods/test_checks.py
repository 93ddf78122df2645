"""Wrong inputs are refused in one sentence, before any work."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from heatcheck.core.errors import CaseError, InputError, ModelError
from heatcheck.methods import METHODS, build_method, checks
from heatcheck.models import BlackBox, NetworkClassifier, Preprocessing

IMAGES = torch.rand(3, 2, 8, 8, generator=torch.Generator().manual_seed(1))


def classifier_of(module, outputs=("a", "b")):
    contract = Preprocessing(outputs=outputs, size=(8, 8), channels=2, mean=(0.0,), std=(1.0,))
    return NetworkClassifier("mine", module, contract)


def network(channels=2, outputs=2):
    return nn.Sequential(
        nn.Conv2d(channels, 3, 3), nn.Dropout(0.5), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, outputs)
    )


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (IMAGES.half(), r"float16.*images.float\(\)"),
        (IMAGES.bfloat16(), r"bfloat16.*images.float\(\)"),
        (IMAGES.double(), r"float64; call images.float\(\)"),
        ((IMAGES * 255).to(torch.uint8), "uint8; normalise"),
        (IMAGES[0], r"\[batch, channel, \*space\].*\(2, 8, 8\)"),
        (IMAGES[:0], "not empty"),
        (IMAGES.index_fill(0, torch.tensor([1]), torch.nan), "images 1 of 3 contain NaN"),
        (IMAGES / 0, "images 0, 1, 2 of 3"),
    ],
)
def test_images_that_no_method_can_use_are_refused(images, words):
    with pytest.raises(InputError, match=words):
        checks.require_images(images)


def test_good_images_pass():
    assert checks.require_images(IMAGES) is IMAGES


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (network(channels=3), r"\(3, 2, 8, 8\).*they have 2 channels, its first convolution takes 3"),
        (network(outputs=4), r"gives \(3, 4\), expected \[batch, outputs\] = \(3, 2\)"),
        (nn.Conv2d(2, 2, 3), r"gives \(3, 2, 6, 6\)"),
        (network().half(), r"has weights of float16, the images are float32; call model.float\(\)"),
        (nn.Sequential(network(), nn.Softmax(1), nn.Threshold(2, torch.nan)), "NaN or infinite scores"),
        (nn.Sequential(nn.Flatten(), nn.Linear(5, 2)), "give images of the size it was trained on"),
    ],
)
def test_a_model_that_does_not_suit_the_images_is_refused_by_name(module, words):
    with pytest.raises(ModelError, match=f"model mine.*{words}") as caught:
        checks.require_logits(classifier_of(module), IMAGES)
    assert "\n" not in str(caught.value)


def test_a_model_in_training_mode_is_evaluated_and_left_as_it_was():
    module = network().train()
    first, second = (checks.require_logits(classifier_of(module), IMAGES) for _ in range(2))
    assert torch.equal(first, second), "dropout was off"
    assert all(part.training for part in module.modules())


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (torch.tensor([[0, 2]]), "target 2 does not exist: model mine has 2 outputs, 0 to 1"),
        (torch.tensor([[-1]]), "target -1 does not exist"),
        (torch.tensor([0]), r"\[batch, target\], got int64 of \(1,\)"),
        (torch.tensor([[0.5]]), "integers"),
        (torch.tensor([[True]]), "integers"),
    ],
)
def test_targets_that_do_not_exist_are_refused(targets, words):
    with pytest.raises(InputError, match=words):
        checks.require_targets(targets, classifier_of(network()))


@dataclass(frozen=True)
class Picky:
    """A method with a check of its own."""

    def check(self, classifier, images):  # noqa: ARG002
        raise ModelError(f"{classifier.name} has no attention")

    def __call__(self, *_):
        raise AssertionError("no work before the check")


def test_a_methods_own_check_is_called():
    with pytest.raises(ModelError, match="mine has no attention"):
        checks.require_fit("grad_cam", Picky(), classifier_of(network()), IMAGES)
    checks.require_fit("grad_cam", build_method("grad_cam", {}), classifier_of(network()), IMAGES)


def test_a_plain_function_is_only_good_for_predictions():
    function = BlackBox("f", lambda images: images.mean((2, 3)), Preprocessing(outputs=("a",), size=(8, 8)))
    with pytest.raises(
        ModelError,
        match=r"grad_cam looks inside the model, but only predictions of f are .*; use one of .*occlusion",
    ):
        checks.require_fit("grad_cam", build_method("grad_cam", {}), function, IMAGES)
    checks.require_fit("occlusion", build_method("occlusion", {}), function, IMAGES)


def test_what_only_a_study_has_is_asked_for(monkeypatch):
    method = build_method("location_prior", {})
    with pytest.raises(InputError, match="needs the truth masks of other cases"):
        checks.require_supplied("location_prior", method)
    checks.require_supplied("location_prior", replace(method, priors=torch.zeros(1, 2, 4, 4)))
    facts = replace(METHODS["grad_cam"], wants_donors=True)
    monkeypatch.setitem(METHODS._parts, "grad_cam", facts)
    with pytest.raises(InputError, match="give some as donors"):
        checks.require_supplied("grad_cam", build_method("grad_cam", {}))


@pytest.mark.parametrize(("error", "kind"), [(ValueError, InputError), (RuntimeError, ModelError)])
def test_what_stops_a_method_is_one_sentence(error, kind):
    with (
        pytest.raises(kind, match=r"method lrp.*too many$|method lrp.*mine.*too many"),
        checks.naming_errors("lrp", classifier_of(network())),
    ):
        raise error("too\nmany")
    for said in ("no rule for it", "method lrp: no rule for it"):  # the method is named, and once
        expected = pytest.raises(ModelError, match=r"^method lrp: no rule for it$")
        with expected, checks.naming_errors("lrp", classifier_of(network())):
            raise ModelError(said)
    with pytest.raises(CaseError, match=r"^as it is$"), checks.naming_errors("lrp", classifier_of(network())):
        raise CaseError("as it is")
