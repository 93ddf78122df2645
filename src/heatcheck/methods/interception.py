"""Stepping in between a network and torch, operation by operation, without touching the network.

A `TorchFunctionMode` around the forward pass sees every torch function that the network calls, however it is spelled:
as a module, as a function, as a method, in place, or through one module used many times. A rule may answer in torch's
place, usually with an autograd function that has another backward. There are no hooks, so nothing must be restored.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

Activation = Callable[[Tensor], Tensor]
Rule = Callable[[Activation, Tensor], Tensor]  # the activation and its input → what the network is given

_IN_PLACE: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.relu_: torch.relu,
    torch.Tensor.relu_: torch.relu,
    torch.sigmoid_: torch.sigmoid,
    torch.Tensor.sigmoid_: torch.sigmoid,
    torch.tanh_: torch.tanh,
    torch.Tensor.tanh_: torch.tanh,
}
_SPELLINGS: dict[str, tuple[Callable[..., Any], ...]] = {
    "relu": (functional.relu, torch.relu, torch.Tensor.relu, torch.relu_, torch.Tensor.relu_),
    "relu6": (functional.relu6,),
    "leaky_relu": (functional.leaky_relu,),
    "elu": (functional.elu,),
    "gelu": (functional.gelu,),
    "silu": (functional.silu,),
    "hardswish": (functional.hardswish,),
    "softplus": (functional.softplus,),
    "sigmoid": (torch.sigmoid, torch.Tensor.sigmoid, functional.sigmoid, torch.sigmoid_, torch.Tensor.sigmoid_),
    "tanh": (torch.tanh, torch.Tensor.tanh, functional.tanh, torch.tanh_, torch.Tensor.tanh_),
}
_OPERATION_OF = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}
_INPLACE_AT = {functional.relu: 1, functional.relu6: 1, functional.leaky_relu: 2, functional.elu: 2, functional.silu: 1,
               functional.hardswish: 1}  # fmt: skip


class ActivationRules(TorchFunctionMode):
    """Hands each activation function that the network calls to its rule; other operations are left alone."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        super().__init__()
        self.rules = rules
        self.met: set[str] = set()  # the activations that the network used

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """What the network is given instead of `func(*args, **kwargs)`."""
        name = _OPERATION_OF.get(func)
        if name is None or name not in self.rules:
            return func(*args, **(kwargs or {}))
        self.met.add(name)
        settings = dict(kwargs or {})
        value = args[0] if args else settings.pop("input")
        more = list(args[1:])
        in_place = func in _IN_PLACE or bool(settings.pop("inplace", False))
        place = _INPLACE_AT.get(func, len(args))
        if place < len(args):
            in_place, more[place - 1] = in_place or bool(args[place]), False
        plain = _IN_PLACE.get(func, func)
        answer = self.rules[name](lambda tensor: plain(tensor, *more, **settings), value)
        # whoever asked for work in place may go on with the tensor it passed, not with the answer
        return value.copy_(answer) if in_place else answer
