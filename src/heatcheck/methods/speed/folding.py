"""Forward passes without a graph in which each BatchNorm is folded into the convolution before it.

In evaluation BatchNorm is a fixed scale and shift per channel: scaled weights and another bias do the same, and save
one pass over memory. So a convolution is delayed until the next operation is known. If that is its BatchNorm, both
become one convolution; before anything else, on any tensor, the convolution is computed, so that nothing is ever
computed out of order.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as tree

from heatcheck.methods.speed.fast_convolution import direct
from heatcheck.methods.speed.operations import PARAMETERS

_CONVOLUTIONS = {torch.conv1d, torch.conv2d, torch.conv3d}
# properties of a tensor that do not depend on its values
KNOWN = {Tensor.dim, Tensor.size, Tensor.ndimension, Tensor.is_floating_point, Tensor.is_complex} | {
    getattr(Tensor, name).__get__ for name in ("shape", "ndim", "dtype", "device", "requires_grad", "is_cuda", "layout")
}


class Waiting(Tensor):
    """The output of a convolution that is computed only when its values are needed."""

    call: Callable[..., Tensor]
    named: dict[str, Any]
    value: Tensor | None

    @classmethod
    def of(cls, call: Callable[..., Tensor], named: dict[str, Any]) -> "Waiting":
        """A stand-in with the shape of the output."""
        weight = named["weight"]
        waiting: Waiting = Tensor._make_wrapper_subclass(  # noqa: SLF001 - torch's way to do this
            cls, _output_shape(**named), dtype=weight.dtype, device=named["input"].device
        )
        waiting.call, waiting.named, waiting.value = call, named, None
        return waiting

    def done(self) -> Tensor:
        """The values, computed at the first call."""
        if self.value is None:
            with torch.no_grad(), torch._C.DisableTorchFunction():  # noqa: SLF001 - else it would wait again
                self.value = _convolved(self.call, self.named)
        return self.value

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """The operation on the values, which are not computed where only the shape or type is asked for."""
        if func in KNOWN:
            with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - torch's way to do this
                return func(*args, **(kwargs or {}))
        args, kwargs = tree.tree_map_only(Waiting, Waiting.done, (args, kwargs or {}))
        return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - as above
        """The same for operations that bypass `__torch_function__`."""
        args, kwargs = tree.tree_map_only(Waiting, Waiting.done, (args, kwargs or {}))
        return func(*args, **kwargs)


class Folding(TorchFunctionMode):
    """A block in which BatchNorm is folded into the convolution before it; outputs are equal up to rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: Waiting | None = None
        self.folded: dict[
            tuple[int, ...], tuple[Tensor, Tensor, Any]
        ] = {}  # by the ids of the parameters, which are kept alive: an id is unique only so long

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """The operation's output, perhaps delayed, perhaps together with the convolution before it."""
        if func in KNOWN:
            return func(*args, **(kwargs or {}))
        waiting, self.waiting = self.waiting, None
        if waiting is not None and waiting.value is None:
            if func is functional.batch_norm:
                named = dict(zip(PARAMETERS["batch_norm"], args, strict=False)) | (kwargs or {})
                if named["input"] is waiting and not named.get("training") and named["running_mean"] is not None:
                    return self._together(waiting, named)
            waiting.done()
        if func in _CONVOLUTIONS and not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu"):
            named = dict(zip(PARAMETERS[func.__name__], args, strict=False)) | (kwargs or {})
            if _can_wait(named):
                self.waiting = Waiting.of(func, named)
                return self.waiting
        return func(*args, **(kwargs or {}))

    def _together(self, waiting: Waiting, norm: dict[str, Any]) -> Tensor:
        """The convolution and the BatchNorm as one convolution."""
        parts = [waiting.named["weight"], waiting.named.get("bias")]
        parts += [norm.get(name) for name in ("running_mean", "running_var", "weight", "bias")]
        key = tuple(map(id, parts))
        if key not in self.folded:
            self.folded[key] = (*_folded(parts, norm.get("eps", 1e-5)), parts)
        weight, bias, _ = self.folded[key]
        return _convolved(waiting.call, waiting.named | {"weight": weight, "bias": bias})


def plain(output: Tensor) -> Tensor:
    """The output with its values computed."""
    return output.done() if isinstance(output, Waiting) else output


def _can_wait(named: dict[str, Any]) -> bool:
    """Whether the shape of the output follows from the arguments, of a plain batch on the CPU."""
    value, weight = named["input"], named["weight"]
    batched = isinstance(value, Tensor) and type(value) is Tensor and value.ndim == weight.ndim
    return batched and value.device.type == "cpu" and not isinstance(named.get("padding", 0), str)


def _convolved(call: Callable[..., Tensor], named: dict[str, Any]) -> Tensor:
    """The convolution, by oneDNN where possible."""
    output = direct(**named) if call is torch.conv3d else None
    return call(**named) if output is None else output


def _folded(parts: list[Any], eps: float) -> tuple[Tensor, Tensor]:
    """The weights and bias of a convolution followed by BatchNorm; in double precision, so that they are rounded once.

    With s = γ / √(σ² + ε): s·(w∗x + b − μ) + β = (s·w)∗x + (b − μ)·s + β.
    """
    weight, bias, mean, variance, gain, shift = parts
    scale = (variance.double() + eps).rsqrt() * (1.0 if gain is None else gain.double())
    new_bias = (0.0 if bias is None else bias.double()) - mean.double()
    new_bias = new_bias * scale + (0.0 if shift is None else shift.double())
    new_weight = weight.double() * scale.reshape(-1, *[1] * (weight.ndim - 1))
    return new_weight.to(weight.dtype), new_bias.to(weight.dtype)


def _output_shape(  # noqa: PLR0913, PLR0917 - torch's own parameters
    input: Tensor,  # noqa: A002 - torch's name
    weight: Tensor,
    bias: Tensor | None = None,  # noqa: ARG001 - does not affect the shape
    stride: Any = 1,  # noqa: ANN401 - one number or one per axis
    padding: Any = 0,  # noqa: ANN401
    dilation: Any = 1,  # noqa: ANN401
    groups: int = 1,  # noqa: ARG001
) -> tuple[int, ...]:
    """The shape of a convolution's output."""
    axes = weight.ndim - 2
    settings = [(each,) * axes if isinstance(each, int) else tuple(each) for each in (stride, padding, dilation)]
    sides = zip(input.shape[2:], weight.shape[2:], *settings, strict=True)
    space = ((side + 2 * pad - gap * (kernel - 1) - 1) // step + 1 for side, kernel, step, pad, gap in sides)
    return (input.shape[0], weight.shape[0], *space)
