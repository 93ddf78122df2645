"""Gradients whose way back through the activations is changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from heatcheck.core.batches import MapBatch, without_error
from heatcheck.core.contracts import Classifier
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.cam import GradCam
from heatcheck.methods.interception import Activation, ActivationRules, Rule
from heatcheck.methods.passes import input_gradients
from heatcheck.methods.registry import Needs, method

ACTIVATIONS = ("relu", "relu6", "leaky_relu", "elu", "gelu", "silu", "hardswish", "softplus")
SMOOTH_NOTE = "the rule for ReLU was applied to the output gradient of {names}"


class _PositiveOnly(torch.autograd.Function):
    """An activation's answer whose backward passes only positive gradients, times a factor."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, answer: Tensor, factor: Tensor | None) -> Tensor:  # noqa: ANN401, ARG004
        """The answer, now depending on the value."""
        ctx.save_for_backward(*([] if factor is None else [factor]))
        return answer.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        """What is positive in the output's gradient."""
        positive = gradients[0].clamp(min=0)
        return (positive * ctx.saved_tensors[0] if ctx.saved_tensors else positive), None, None


def _guided(activation: Activation, value: Tensor) -> Tensor:
    answer, slope = _with_slope(activation, value)
    return _PositiveOnly.apply(value, answer, slope * (value > 0))  # type: ignore[no-untyped-call]


def _deconvolved(activation: Activation, value: Tensor) -> Tensor:
    return _PositiveOnly.apply(value, activation(value.detach()), None)  # type: ignore[no-untyped-call]


def _with_slope(activation: Activation, value: Tensor) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        apart = value.detach().requires_grad_()
        answer = activation(apart)
        (slope,) = torch.autograd.grad(answer.sum(), apart)
    return answer.detach(), slope


def _changed_gradients(rule: Rule, classifier: Classifier, images: Images, targets: Targets) -> MapBatch:
    mode = ActivationRules(dict.fromkeys(ACTIVATIONS, rule))
    values = input_gradients(classifier, images, targets, through=mode).values
    smooth = sorted(mode.met - {"relu"})
    return without_error(values, SMOOTH_NOTE.format(names=", ".join(smooth)) if smooth else "")


@method(
    "guided_backprop",
    label="Guided backprop",
    family="modified backward",
    needs=Needs.INTERNALS,
    cost="1 + 1 backward a finding",
    summary="The gradient, kept only where it speaks for the finding at every layer",
    paper="Springenberg et al. 2015",
)
@dataclass(frozen=True)
class GuidedBackprop:
    """The gradient in which a ReLU passes only what is positive, where its input was positive."""

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target."""
        return _changed_gradients(_guided, classifier, images, targets)


@method(
    "deconvolution",
    label="Deconvolution",
    family="modified backward",
    needs=Needs.INTERNALS,
    cost="1 + 1 backward a finding",
    summary="The gradient, kept only where it speaks for the finding, whatever the image showed there",
    paper="Zeiler and Fergus 2014",
)
@dataclass(frozen=True)
class Deconvolution:
    """The gradient in which a ReLU passes only what is positive, whatever its input."""

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target."""
        return _changed_gradients(_deconvolved, classifier, images, targets)


@method(
    "guided_grad_cam",
    label="Guided Grad-CAM",
    family="modified backward",
    needs=Needs.INTERNALS,
    cost="2 + 1 backward a finding",
    summary="Guided backprop's detail where Grad-CAM is hot",
    paper="Selvaraju et al. 2017",
)
@dataclass(frozen=True)
class GuidedGradCam:
    """Guided backprop ⊙ Grad-CAM, brought to the input's grid."""

    layer: str = ""
    upsampling: Literal["linear", "nearest"] = "linear"

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:
        """One map per image and target."""
        guided = _changed_gradients(_guided, classifier, images, targets)
        coarse = GradCam(self.layer)(classifier, images, targets, seeds).values.flatten(0, 1)
        linear = "bilinear" if images.ndim == 4 else "trilinear"
        how: dict[str, Any] = {"mode": linear, "align_corners": False} if self.upsampling == "linear" else {}
        fine = functional.interpolate(coarse, images.shape[2:], **how).reshape(*targets.shape, 1, *images.shape[2:])
        return without_error(guided.values * fine, guided.note)
