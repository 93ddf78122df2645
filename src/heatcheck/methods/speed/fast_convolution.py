"""Operations that torch makes too long on a CPU, with a shorter way.

The gradient at a first convolution's input, which has few channels, takes ten times as long as the convolution itself:
one matrix product and a fold do the same. BatchNorm in evaluation is a fixed scale per channel, yet its backward also
gathers what only training needs, and keeps its input for it. A convolution of a single volume is not given to oneDNN,
which would do it many times faster. All are exact and can be differentiated again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.grad import conv2d_weight, conv3d_weight
from torch.overrides import TorchFunctionMode

from heatcheck.methods.speed.operations import PARAMETERS

FEW = 4  # input channels


class QuickBackward(TorchFunctionMode):
    """A block in which networks are recorded with the shorter ways; what they compute stays the same.

    Gradients reach the weights only where `weights` says so: torch does not tell a function of our own that nobody
    asked for them.
    """

    def __init__(self, *, weights: bool) -> None:
        super().__init__()
        self.weights = weights

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """The operation's own answer, with another way for some of them."""
        quick = _QUICK.get(func)
        if quick is not None and (torch.is_grad_enabled() or func is torch.conv3d):
            named = dict(zip(PARAMETERS[func.__name__], args, strict=False)) | (kwargs or {})
            if not self.weights:
                named |= {key: named[key].detach() for key in ("weight", "bias") if isinstance(named.get(key), Tensor)}
            answer = quick(**named)
            if answer is not None:
                return answer
        return func(*args, **(kwargs or {}))


def _convolution(  # noqa: PLR0913, PLR0917 - torch's own parameters
    input: Tensor,  # noqa: A002 - torch's name
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor | None:
    """The convolution where the shorter way fits, else None."""
    plain = type(input) is Tensor and input.device.type == "cpu" and input.requires_grad and input.ndim == 4
    if torch.is_autocast_enabled("cpu"):  # the way back would mix the precisions
        return None
    if not plain or weight.shape[1] > FEW or groups != 1 or isinstance(padding, str) or weight[0, 0].numel() == 1:
        return None
    steps = [(each, each) if isinstance(each, int) else tuple(each) for each in (stride, padding, dilation)]
    answer: Tensor = _FewChannels.apply(input, weight, bias, steps)  # type: ignore[no-untyped-call]
    return answer


def direct(  # noqa: PLR0913, PLR0917 - torch's own parameters
    input: Tensor,  # noqa: A002 - torch's name
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor | None:
    """The convolution of volumes by oneDNN, which torch asks only for larger ones or several; None where it cannot."""
    if not _fits(input, weight, padding):
        return None
    return torch.mkldnn_convolution(input, weight, bias, _three(padding), _three(stride), _three(dilation), groups)


def _fits(given: Tensor, weight: Tensor, padding: object) -> bool:
    """Whether oneDNN can be asked."""
    usual = type(given) is Tensor and given.device.type == "cpu" and given.ndim == 5 and not isinstance(padding, str)
    there = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not usual or not there or torch.is_autocast_enabled("cpu"):
        return False
    return {given.dtype, weight.dtype} == {torch.float32} and given.numel() > 0


def _three(value: Any) -> list[int]:  # noqa: ANN401 - one number or one an axis
    return [int(value)] * 3 if isinstance(value, int) else list(value)


def _volumes(**named: Any) -> Tensor | None:  # noqa: ANN401 - torch's own parameters
    """The convolution of volumes with as short a way back, else None."""
    given, weight = named["input"], named["weight"]
    if not torch.is_grad_enabled() or not _fits(given, weight, named.get("padding", 0)) or not given.requires_grad:
        return direct(**named)
    around, step, apart = (_three(named.get(key, key != "padding")) for key in ("padding", "stride", "dilation"))
    reach = [space * (size - 1) for space, size in zip(apart, weight.shape[2:], strict=True)]
    if step != [1, 1, 1] or named.get("groups", 1) != 1 or any(a > r for a, r in zip(around, reach, strict=True)):
        return direct(**named)
    answer: Tensor = _Volumes.apply(given, weight, named.get("bias"), around, apart)  # type: ignore[no-untyped-call]
    return answer


class DirectVolumes(TorchFunctionMode):
    """A block in which volumes go to oneDNN; nothing else is changed."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """The operation's own answer."""
        answer = direct(*args, **(kwargs or {})) if func is torch.conv3d else None
        return func(*args, **(kwargs or {})) if answer is None else answer


def _batch_norm(  # noqa: PLR0913, PLR0917 - torch's own parameters
    input: Tensor,  # noqa: A002 - torch's name
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,  # noqa: ARG001 - nothing is learned here
    eps: float = 1e-5,
) -> Tensor | None:
    """BatchNorm in evaluation, else None."""
    if type(input) is not Tensor or training or running_mean is None or running_var is None or not input.requires_grad:
        return None
    scale = (running_var + eps).rsqrt() if weight is None else weight * (running_var + eps).rsqrt()
    shift = -running_mean * scale if bias is None else bias - running_mean * scale
    spread = [1, -1, *[1] * (input.ndim - 2)]
    return (input * scale.reshape(spread)).add_(shift.reshape(spread))


_QUICK: dict[Callable[..., Any], Callable[..., Tensor | None]] = {
    torch.conv2d: _convolution,
    torch.conv3d: _volumes,
    functional.batch_norm: _batch_norm,
}


class _FewChannels(torch.autograd.Function):
    """A 2D convolution whose input gradient is a matrix product and a fold."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor | None, steps: list[Any]) -> Tensor:  # noqa: ANN401
        """The convolution."""
        ctx.steps, ctx.biased = steps, bias is not None
        ctx.save_for_backward(images, weight)
        return torch.conv2d(images, weight, bias, *steps)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:  # noqa: ANN401
        """The gradients of what needs one."""
        images, weight = ctx.saved_tensors
        stride, padding, dilation = ctx.steps
        arriving = gradients[0]
        at_images = at_weight = at_bias = None
        if ctx.needs_input_grad[0]:
            columns = torch.matmul(weight.flatten(1).t(), arriving.flatten(2))
            size, kernel = tuple(images.shape[2:]), tuple(weight.shape[2:])
            folded = functional.fold(columns, size, kernel, dilation, padding, stride)
            at_images = folded.clone()  # torch folds into memory as large as the columns, and would keep it
        if ctx.needs_input_grad[1]:
            at_weight = conv2d_weight(images, weight.shape, arriving, stride, padding, dilation)  # type: ignore[no-untyped-call]
        if ctx.biased and ctx.needs_input_grad[2]:
            at_bias = arriving.sum((0, 2, 3))
        return at_images, at_weight, at_bias, None


class _Volumes(torch.autograd.Function):
    """A 3D convolution without steps, whose input gradient is a convolution with the kernels turned round."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        volumes: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        around: list[int],
        apart: list[int],
    ) -> Tensor:
        """The convolution."""
        ctx.around, ctx.apart, ctx.biased = around, apart, bias is not None
        ctx.save_for_backward(volumes, weight)
        return torch.mkldnn_convolution(volumes, weight, bias, around, [1, 1, 1], apart, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:  # noqa: ANN401
        """The gradients of what needs one."""
        volumes, weight = ctx.saved_tensors
        arriving = gradients[0]
        if weight.shape[1] <= FEW:  # the way that is faster for few channels
            arriving = arriving.contiguous(memory_format=torch.channels_last_3d)
        at_volumes = at_weight = at_bias = None
        if ctx.needs_input_grad[0]:
            turned = weight.transpose(0, 1).flip(2, 3, 4)
            kernel = zip(weight.shape[2:], ctx.apart, ctx.around, strict=True)
            around = [apart * (size - 1) - already for size, apart, already in kernel]
            at_volumes = _Volumes.apply(arriving, turned, None, around, ctx.apart)  # type: ignore[no-untyped-call]
        if ctx.needs_input_grad[1]:
            at_weight = conv3d_weight(volumes, weight.shape, arriving, 1, ctx.around, ctx.apart)  # type: ignore[no-untyped-call]
        if ctx.biased and ctx.needs_input_grad[2]:
            at_bias = arriving.sum((0, 2, 3, 4))
        return at_volumes, at_weight, at_bias, None, None
