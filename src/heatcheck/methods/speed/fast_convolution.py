"""Faster forms of operations that are slow in torch on a CPU.

The input gradient of a first convolution, which has few channels, takes ten times as long as the convolution itself:
one matrix product and a fold do the same. BatchNorm in evaluation is a fixed scale per channel, yet its backward pass
also computes what only training needs, and keeps its input for it. Torch does not pass the convolution of a single
volume to oneDNN, which would be many times faster. All forms are exact and can be differentiated again.
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
Three = tuple[int, int, int]


class QuickBackward(TorchFunctionMode):
    """A block in which networks are recorded with the faster forms; what they compute stays the same.

    Gradients reach the weights only with `weights`: torch does not let a custom function know when they are not needed.
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
        """The operation's output, by its faster form if it has one."""
        quick = _QUICK.get(func)
        if quick is not None and (torch.is_grad_enabled() or func is torch.conv3d):
            named = dict(zip(PARAMETERS[func.__name__], args, strict=False)) | (kwargs or {})
            if not self.weights:
                named |= {key: named[key].detach() for key in ("weight", "bias") if isinstance(named.get(key), Tensor)}
            output = quick(**named)
            if output is not None:
                return output
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
    """The convolution where the faster form applies, else None."""
    plain = type(input) is Tensor and input.device.type == "cpu" and input.requires_grad and input.ndim == 4
    if torch.is_autocast_enabled("cpu"):  # the backward pass would mix the precisions
        return None
    if not plain or weight.shape[1] > FEW or groups != 1 or isinstance(padding, str) or weight[0, 0].numel() == 1:
        return None
    steps = [(each, each) if isinstance(each, int) else tuple(each) for each in (stride, padding, dilation)]
    output: Tensor = _FewChannels.apply(input, weight, bias, steps)  # type: ignore[no-untyped-call]
    return output


def direct(  # noqa: PLR0913, PLR0917 - torch's own parameters
    input: Tensor,  # noqa: A002 - torch's name
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor | None:
    """The convolution of volumes by oneDNN, which torch uses only for large or several volumes; else None."""
    if not _fits(input, weight, padding):
        return None
    return torch.mkldnn_convolution(input, weight, bias, three(padding), three(stride), three(dilation), groups)


def _fits(volumes: Tensor, weight: Tensor, padding: object) -> bool:
    """Whether oneDNN can be used."""
    usual = type(volumes) is Tensor and volumes.device.type == "cpu" and volumes.ndim == 5
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not usual or isinstance(padding, str) or not available or torch.is_autocast_enabled("cpu"):
        return False
    return {volumes.dtype, weight.dtype} == {torch.float32} and volumes.numel() > 0


def three(value: Any) -> Three:  # noqa: ANN401 - one number or one per axis
    """The value for each of the three axes."""
    first, *others = (int(value),) if isinstance(value, int) else value
    return (first, *others) if others else (first, first, first)


def _volumes(**named: Any) -> Tensor | None:  # noqa: ANN401 - torch's own parameters
    """The convolution of volumes with an equally fast backward pass, else None."""
    volumes, weight = named["input"], named["weight"]
    if not torch.is_grad_enabled() or not _fits(volumes, weight, named.get("padding", 0)) or not volumes.requires_grad:
        return direct(**named)
    padding, stride, dilation = (
        three(named.get(key, default)) for key, default in (("padding", 0), ("stride", 1), ("dilation", 1))
    )
    reach = [gap * (size - 1) for gap, size in zip(dilation, weight.shape[2:], strict=True)]
    # the backward pass pads by reach − padding, which must not be negative
    if stride != (1, 1, 1) or named.get("groups", 1) != 1 or any(p > r for p, r in zip(padding, reach, strict=True)):
        return direct(**named)
    output: Tensor = _Volumes.apply(volumes, weight, named.get("bias"), padding, dilation)  # type: ignore[no-untyped-call]
    return output


class DirectVolumes(TorchFunctionMode):
    """A block in which volumes are convolved by oneDNN; nothing else changes."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """The operation's output."""
        output = direct(*args, **(kwargs or {})) if func is torch.conv3d else None
        return func(*args, **(kwargs or {})) if output is None else output


def _batch_norm(  # noqa: PLR0913, PLR0917 - torch's own parameters
    input: Tensor,  # noqa: A002 - torch's name
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,  # noqa: ARG001 - for training only
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
    """A 2D convolution whose input gradient is a matrix product and a fold.

    A convolution is W·unfold(x), so its transpose, applied to the arriving gradient g, is fold(Wᵀ·g).
    """

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
        of_images = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            columns = torch.matmul(weight.flatten(1).t(), arriving.flatten(2))
            size, kernel = tuple(images.shape[2:]), tuple(weight.shape[2:])
            folded = functional.fold(columns, size, kernel, dilation, padding, stride)
            of_images = folded.clone()  # torch folds into memory as large as the columns, and would keep it
        if ctx.needs_input_grad[1]:
            of_weight = conv2d_weight(images, weight.shape, arriving, stride, padding, dilation)  # type: ignore[no-untyped-call]
        if ctx.biased and ctx.needs_input_grad[2]:
            of_bias = arriving.sum((0, 2, 3))
        return of_images, of_weight, of_bias, None


class _Volumes(torch.autograd.Function):
    """A 3D convolution with stride 1, whose input gradient is a convolution with the flipped kernels."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        volumes: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        padding: Three,
        dilation: Three,
    ) -> Tensor:
        """The convolution."""
        ctx.padding, ctx.dilation, ctx.biased = padding, dilation, bias is not None
        ctx.save_for_backward(volumes, weight)
        return torch.mkldnn_convolution(volumes, weight, bias, padding, (1, 1, 1), dilation, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:  # noqa: ANN401
        """The gradients of what needs one."""
        volumes, weight = ctx.saved_tensors
        arriving = gradients[0]
        if weight.shape[1] <= FEW:  # the layout that is faster for few channels
            arriving = arriving.contiguous(memory_format=torch.channels_last_3d)
        of_volumes = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            flipped = weight.transpose(0, 1).flip(2, 3, 4)
            axes = zip(weight.shape[2:], ctx.dilation, ctx.padding, strict=True)
            padding = tuple(dilation * (size - 1) - before for size, dilation, before in axes)
            of_volumes = _Volumes.apply(arriving, flipped, None, padding, ctx.dilation)  # type: ignore[no-untyped-call]
        if ctx.needs_input_grad[1]:
            of_weight = conv3d_weight(volumes, weight.shape, arriving, 1, ctx.padding, ctx.dilation)  # type: ignore[no-untyped-call]
        if ctx.biased and ctx.needs_input_grad[2]:
            of_bias = arriving.sum((0, 2, 3, 4))
        return of_volumes, of_weight, of_bias, None, None
