"""Gradients with a modified backward pass through the activations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from heatcheck.core.batches import MapBatch, without_error
from heatcheck.core.contracts import Classifier
from heatcheck.core.geometry import map_to_image, nearest_cell, place
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.cam import GradCam, OnFeatureMap
from heatcheck.methods.registry import Access, Passes, method
from heatcheck.methods.speed.operations import ACTIVATIONS
from heatcheck.methods.speed.tape import Node, Rule, Shares, Tape, gradient

SMOOTH_NOTE = "the rule for ReLU was applied to the output gradient of {names}"
NO_RECTIFIER = "the network has no ReLU or similar activation, so this is the plain gradient"
RECTIFYING = ACTIVATIONS - {"sigmoid", "logsigmoid", "tanh", "hardsigmoid", "softsign", "clamp_max"}


def _guided(node: Node, arriving: Tensor) -> Shares:
    """The positive part of the gradient, where the activation's input was positive."""
    slope = node.once("slope", lambda: node.slope() * (node.parents[0].value > 0))
    return [(node.parents[0], arriving.clamp(min=0).mul_(slope))]


def _deconvolved(node: Node, arriving: Tensor) -> Shares:
    """The positive part of the gradient, whatever the activation's input."""
    return [(node.parents[0], arriving.clamp(min=0))]


def _changed_gradients(rule: Rule, classifier: Classifier, images: Images, targets: Targets) -> MapBatch:
    tape = Tape(dict.fromkeys(RECTIFYING, rule) | {"clamp": _if_rectifier(rule)}, otherwise=gradient)
    tape.record(classifier, images)
    values = tape.back_from_each(targets)
    rectifiers = {node.operation for node in tape.nodes} & RECTIFYING
    smooth = sorted(rectifiers - {"relu", "clamp", "clamp_min", "threshold"})
    note = SMOOTH_NOTE.format(names=", ".join(smooth)) if smooth else ""
    return without_error(values, note if rectifiers else NO_RECTIFIER)


def _if_rectifier(rule: Rule) -> Rule:
    """The rule for clamping from below at 0, which is a ReLU; the chain rule for other bounds."""

    def for_bound(node: Node, arriving: Tensor) -> Shares:
        positional, named = node.arguments
        low = positional[1] if len(positional) > 1 else named.get("min")
        return (rule if low == 0 else gradient)(node, arriving)

    return for_bound


@method(
    "guided_backprop",
    label="Guided backprop",
    family="modified backward",
    needs=Access.INTERNALS,
    cost="1 + 1 backward per finding",
    summary="The gradient, kept only where it supports the finding at every layer",
    paper="Springenberg et al. 2015",
)
@dataclass(frozen=True)
class GuidedBackprop:
    """The gradient in which a ReLU passes only the positive part, where its input was positive."""

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target."""
        return _changed_gradients(_guided, classifier, images, targets)

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - the same for all images
        """A forward pass that is written down, and a backward pass per target."""
        return Passes(1, targets, extra=1)


@method(
    "deconvolution",
    label="Deconvolution",
    family="modified backward",
    needs=Access.INTERNALS,
    cost="1 + 1 backward per finding",
    summary="The gradient, kept only where it supports the finding, whatever the image shows there",
    paper="Zeiler and Fergus 2014",
)
@dataclass(frozen=True)
class Deconvolution:
    """The gradient in which a ReLU passes only the positive part, whatever its input."""

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target."""
        return _changed_gradients(_deconvolved, classifier, images, targets)

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - the same for all images
        """A forward pass that is written down, and a backward pass per target."""
        return Passes(1, targets, extra=1)


@method(
    "guided_grad_cam",
    label="Guided Grad-CAM",
    family="modified backward",
    models="networks with a feature map",
    needs=Access.INTERNALS,
    cost="2 + 1 backward per finding",
    summary="Guided backprop's detail where Grad-CAM is hot",
    paper="Selvaraju et al. 2017",
)
@dataclass(frozen=True)
class GuidedGradCam(OnFeatureMap):
    """Guided backprop ⊙ Grad-CAM, resized to the input's grid."""

    layer: str = ""
    upsampling: Literal["linear", "nearest"] = "linear"
    placement: Literal["centres", "plain"] = "centres"

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:
        """Those of guided backprop and of Grad-CAM."""
        return Passes(1, targets, extra=1) + super().passes(shape, targets)

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:
        """One map per image and target."""
        guided = _changed_gradients(_guided, classifier, images, targets)
        coarse = GradCam(self.layer, self.placement)(classifier, images, targets, seeds)
        size = tuple(images.shape[2:])
        on_input = nearest_cell if self.upsampling == "nearest" else map_to_image
        fine = on_input(coarse.values.flatten(0, 2), place(size, size, "stretch"), coarse.cells)
        notes = "; ".join(note for note in (guided.note, coarse.note) if note)
        return without_error(guided.values * fine.reshape(*targets.shape, 1, *size), notes)
