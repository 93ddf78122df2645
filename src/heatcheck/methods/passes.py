"""The passes through a network that several methods share; each leaves the network as it found it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import ModelError
from heatcheck.core.registry import suggest
from heatcheck.core.tensors import Images, Targets


@dataclass(frozen=True, slots=True)
class Layer:
    """One call of one module: a module used several times is told apart by the number of the call."""

    name: str
    call: int


@dataclass(frozen=True, slots=True)
class Activations:
    """A feature map and the gradients of the targets' logits with respect to it."""

    values: Float[Tensor, "batch feature *space"]
    gradients: Float[Tensor, "batch target feature *space"]


_LAST_SPATIAL: WeakKeyDictionary[nn.Module, Layer] = WeakKeyDictionary()


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """The module in evaluation mode; every part's own mode is restored."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def activations_and_gradients(
    classifier: Classifier, images: Images, targets: Targets, layer: str = "", *, create_graph: bool = False
) -> Activations:
    """The feature map of a layer and each target's gradient there, from one forward pass.

    The trunk runs without a graph and the gradients stop at the layer, so that ten targets cost hardly more than
    one; with `create_graph` the trunk is recorded too, and both can be differentiated with respect to the weights.
    Without a name the last spatial feature map is taken, as the head sees it.
    """
    module = classifier.module
    chosen = _named_layer(module, layer) if layer else last_spatial_layer(module, images)
    captured: list[Tensor] = []
    calls = 0

    def capture(_: nn.Module, __: object, output: Tensor) -> Tensor | None:
        nonlocal calls
        calls += 1
        if calls - 1 != chosen.call:
            return None
        captured.append(output if create_graph else output.detach().requires_grad_())
        torch.set_grad_enabled(True)  # from here on the head is recorded; the outer block restores the mode
        return captured[0].clone()  # the head may work in place

    hook = module.get_submodule(chosen.name).register_forward_hook(capture)
    try:
        with evaluation_mode(module), torch.set_grad_enabled(create_graph):
            logits = classifier.logits(images).gather(1, targets)
    finally:
        hook.remove()
    if not captured or not logits.requires_grad:
        raise ModelError(f"the outputs of {classifier.name} do not depend on layer {chosen.name!r}; name another layer")
    gradients = [
        torch.autograd.grad(column.sum(), captured[0], retain_graph=True, create_graph=create_graph)[0]
        for column in logits.unbind(1)
    ]
    return Activations(captured[0] if create_graph else captured[0].detach(), torch.stack(gradients, 1))


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
        logits = classifier.logits(inputs.clone())  # the network may work in place on its input
        logits = logits.gather(1, targets)
        gradients = [
            torch.autograd.grad(column.sum(), inputs, retain_graph=True, create_graph=create_graph)[0]
            for column in logits.unbind(1)
        ]
    values = torch.stack(gradients, 1)
    return InputGradients(values, logits) if create_graph else InputGradients(values, logits.detach())


def last_spatial_layer(module: nn.Module, images: Images) -> Layer:
    """The last call, in the order of execution, whose output is a map with more than one position."""
    if module in _LAST_SPATIAL:
        return _LAST_SPATIAL[module]
    found: list[Layer] = []
    counts: dict[str, int] = {}

    def look(name: str, output: object) -> None:
        counts[name] = counts.get(name, -1) + 1
        if isinstance(output, Tensor) and output.ndim == images.ndim and max(output.shape[2:]) > 1:
            found.append(Layer(name, counts[name]))

    leaves = [(name, part) for name, part in module.named_modules() if name and not list(part.children())]
    hooks = [part.register_forward_hook(lambda _, __, out, name=name: look(name, out)) for name, part in leaves]
    try:
        with evaluation_mode(module), torch.no_grad():
            module(images[:1])
    finally:
        for hook in hooks:
            hook.remove()
    if not found:
        raise ModelError("the model has no spatial feature map; Grad-CAM and its relatives cannot be used on it")
    _LAST_SPATIAL[module] = found[-1]
    return found[-1]


def _named_layer(module: nn.Module, name: str) -> Layer:
    names = dict(module.named_modules())
    if name not in names:
        raise ModelError(f"the model has no layer {name!r}; {suggest(name, filter(None, names))}")
    return Layer(name, 0)
