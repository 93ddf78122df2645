"""The passes through a network that several methods share; each leaves the network as it found it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.attention import SDPBackend, sdpa_kernel

from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import ModelError
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.feature_maps import EachAnswer, feature_map
from heatcheck.methods.speed.fast_convolution import DirectVolumes, QuickBackward


def module_of(classifier: Classifier) -> nn.Module | None:
    """The network, or None where only its predictions can be had."""
    try:
        module = classifier.module
    except ModelError:
        return None
    return None if getattr(module, "predictions_only", False) else module


def attention_for(*, create_graph: bool) -> AbstractContextManager[None]:
    """Attention that can be differentiated twice where that is asked for: the fused kernels cannot."""
    return sdpa_kernel(SDPBackend.MATH) if create_graph else nullcontext()


@dataclass(frozen=True, slots=True)
class Activations:
    """A feature map and the gradients of the targets' logits with respect to it.

    The gradients come one target at a time: together they would be as many copies of the feature map.
    """

    values: Float[Tensor, "batch feature *space"]
    gradients: Iterator[Float[Tensor, "batch feature *space"]]


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """The module in evaluation mode; every part's own mode is restored."""
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

    The trunk runs without a graph and the gradients stop at the layer, so that ten targets cost hardly more than
    one; with `create_graph` the trunk is recorded too, and both can be differentiated with respect to the weights.
    Without a name the last spatial feature map is taken, as the head sees it; a transformer's tokens are put back on
    their grid.
    """
    module = classifier.module
    captured: list[Tensor] = []
    places: list[Tensor | GradientEdge] = []  # where the gradients are taken

    def capture(call: int, _: str, answer: Tensor, arguments: tuple[Any, ...]) -> Tensor:
        if call != chosen.call:
            return answer
        watch.over = True
        if create_graph and answer.requires_grad:  # it must stay: autograd may need it, as after a ReLU in place
            captured.append(answer.clone())
            places.append(get_gradient_edge(answer))
            return answer
        torch.set_grad_enabled(True)  # from here on the head is recorded; the outer block restores the mode
        captured.append(answer.detach().clone().requires_grad_())
        places.append(captured[0])
        if any(answer is argument for argument in arguments):  # written in place: the network may hold on to it
            return answer.copy_(captured[0])
        return captured[0].clone()  # the head may work in place

    watch = EachAnswer(capture)
    with evaluation_mode(module):
        chosen = feature_map(module, images, layer)
        with attention_for(create_graph=create_graph), torch.set_grad_enabled(create_graph), DirectVolumes(), watch:
            columns = classifier.logits(images).gather(1, targets).unbind(1)
    if not captured or not columns[0].requires_grad:
        raise ModelError(f"the outputs of {classifier.name} do not depend on layer {chosen.name!r}; name another layer")
    values = captured[0] if create_graph else captured[0].detach()
    each = torch.ones_like(columns[0])  # an image's logit depends on that image alone
    gradients = (
        torch.autograd.grad(column, places[0], each, retain_graph=True, create_graph=create_graph)[0]
        for column in columns
    )
    return Activations(chosen.features(values), map(chosen.features, gradients))


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
    """Each target's gradient at the input: one forward pass and one backward pass a target on the same graph.

    One backward at a time keeps memory where one target's is. With `create_graph` the gradients can be
    differentiated with respect to the weights.
    """
    with evaluation_mode(classifier.module), torch.enable_grad():
        inputs = images.detach().requires_grad_()
        with attention_for(create_graph=create_graph), QuickBackward(weights=create_graph):
            logits = classifier.logits(inputs.clone())  # the network may work in place on its input
        logits = logits.gather(1, targets)
        gradients = [
            torch.autograd.grad(column.sum(), inputs, retain_graph=True, create_graph=create_graph)[0]
            for column in logits.unbind(1)
        ]
    values = torch.stack(gradients, 1)
    return InputGradients(values, logits) if create_graph else InputGradients(values, logits.detach())
