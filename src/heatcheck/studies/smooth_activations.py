"""ReLUs with their corner rounded off, for as long as a block lasts."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def smooth_activations(module: nn.Module, beta: float | None) -> Iterator[None]:
    """A block in which the network's ReLUs are softplus of this β; a network without any, or no β, changes nothing.

    A ReLU's second derivative is 0 everywhere, so that a loss on a gradient map says nothing about where it bends.
    """
    found = [] if beta is None else [(part, name, child) for part, name, child in _children(module) if _is_relu(child)]
    for part, name, child in found:
        part._modules[name] = nn.Softplus(beta).train(child.training)  # type: ignore[arg-type]  # noqa: SLF001
    try:
        yield
    finally:
        for part, name, child in found:
            part._modules[name] = child  # noqa: SLF001 - add_module would move it to the end


def _children(module: nn.Module) -> list[tuple[nn.Module, str, nn.Module]]:
    return [(part, name, child) for part in module.modules() for name, child in part.named_children()]


def _is_relu(module: nn.Module) -> bool:
    return isinstance(module, nn.ReLU | nn.ReLU6)
