"""Passes through a network that several methods share; each leaves the network unchanged."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.attention import SDPBackend, sdpa_kernel

from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import ModelError
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.feature_maps import EachOutput, FeatureMap, Operation, feature_map
from heatcheck.methods.speed.fast_convolution import DirectVolumes, QuickBackward


def module_of(classifier: Classifier) -> nn.Module | None:
    """The network, or None where only its predictions are available."""
    try:
        module = classifier.module
    except ModelError:
        return None
    return None if getattr(module, "predictions_only", False) else module


def attention_for(*, create_graph: bool) -> AbstractContextManager[None]:
    """A block in which attention can be differentiated twice if `create_graph`; fused kernels cannot be."""
    return sdpa_kernel(SDPBackend.MATH) if create_graph else nullcontext()


@dataclass(frozen=True, slots=True)
class Activations:
    """A feature map and the gradients of the targets' logits with respect to it.

    Gradients are computed one target at a time: together they would take a feature map's memory per target.
    """

    values: Float[Tensor, "batch feature *space"]
    gradients: Iterator[Float[Tensor, "batch feature *space"]]
    layer: FeatureMap


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """A block in which the module is in evaluation mode; the mode of every part is restored afterwards."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def activations_and_gradients(
    classifier: Classifier, images: Images, targets: Targets, layer: str = "", *, create_graph: bool = False
) -> Activations:
    """The feature map of a layer and each target's gradient there, from one forward pass.

    The layers below run without a graph and the gradients stop at the layer, so that ten targets cost hardly more
    than one; with `create_graph` these layers are recorded too, and both results can be differentiated with respect
    to the weights. Without a name the last spatial feature map is taken, as the head reads it; a transformer's tokens
    are put back on their grid.
    """
    module = classifier.module
    captured: list[Tensor] = []
    sources: list[Tensor | GradientEdge] = []  # what the gradients are taken with respect to

    def capture(call: int, operation: Operation, output: Tensor) -> Tensor:
        if call != chosen.call:
            return output
        watch.finished = True
        if create_graph and output.requires_grad:  # not replaced: autograd may need it, as after an in-place ReLU
            captured.append(output.clone())
            sources.append(get_gradient_edge(output))
            return output
        torch.set_grad_enabled(True)  # records the head; the outer block restores the mode
        captured.append(output.detach().clone().requires_grad_())
        sources.append(captured[0])
        # written in place: the network may still use the same tensor
        if any(output is argument for argument in operation.positional):
            return output.copy_(captured[0])
        return captured[0].clone()  # the head may modify it in place

    watch = EachOutput(capture)
    with evaluation_mode(module):
        chosen = feature_map(module, images, layer)
        with attention_for(create_graph=create_graph), torch.set_grad_enabled(create_graph), DirectVolumes(), watch:
            columns = classifier.logits(images).gather(1, targets).unbind(1)
    if not captured or not columns[0].requires_grad:
        raise ModelError(f"the outputs of {classifier.name} do not depend on layer {chosen.name!r}; name another layer")
    values = captured[0] if create_graph else captured[0].detach()
    ones = torch.ones_like(columns[0])  # one backward pass serves all images: no logit depends on another image
    gradients = (
        torch.autograd.grad(column, sources[0], ones, retain_graph=True, create_graph=create_graph)[0]
        for column in columns
    )
    return Activations(chosen.features(values), map(chosen.features, gradients), chosen)


@dataclass(frozen=True, slots=True)
class InputGradients:
    """The gradients of the targets' logits with respect to the input, and the logits themselves."""

    values: Float[Tensor, "batch target channel *space"]
    logits: Float[Tensor, "batch target"]


def input_gradients(
    classifier: Classifier,
    images: Images,
    targets: Targets,
    *,
    create_graph: bool = False,
) -> InputGradients:
    """Each target's gradient at the input, from one forward pass and one backward pass per target.

    The backward passes follow one another, so that memory stays that of one target. With `create_graph` the
    gradients can be differentiated with respect to the weights.
    """
    with evaluation_mode(classifier.module), torch.enable_grad():
        inputs = images.detach().requires_grad_()
        with attention_for(create_graph=create_graph), QuickBackward(weights=create_graph):
            logits = classifier.logits(inputs.clone())  # the network may modify its input in place
        logits = logits.gather(1, targets)
        gradients = [
            torch.autograd.grad(column.sum(), inputs, retain_graph=True, create_graph=create_graph)[0]
            for column in logits.unbind(1)
        ]
    values = torch.stack(gradients, 1)
    return InputGradients(values, logits) if create_graph else InputGradients(values, logits.detach())
