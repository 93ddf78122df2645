"""The names of torch's operations, the kind of each, and how to take some of them apart."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from heatcheck.core.errors import ModelError


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ROUTING = _names(  # only move, drop or repeat values
    "reshape view view_as reshape_as permute transpose t T mT swapaxes swapdims movedim moveaxis flatten unflatten "
    "ravel squeeze unsqueeze contiguous clone alias expand expand_as repeat tile repeat_interleave roll flip chunk "
    "split split_with_sizes tensor_split unbind narrow select index_select getitem setitem cat stack hstack vstack pad "
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout feature_dropout to float double type "
    "type_as masked_fill where gather unfold pixel_shuffle pixel_unshuffle channel_shuffle data rot90"
)
CONVOLUTIONS = _names("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d")
AVERAGES = _names(
    "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d mean sum "
    "interpolate upsample"
)
MAXIMA = _names("max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d")
PRODUCTS = _names("mul matmul mm bmm einsum")  # linear in each factor
SUMS = _names("add sub rsub")
ACTIVATIONS = _names(
    "relu relu6 leaky_relu prelu rrelu elu selu celu gelu silu mish hardswish hardsigmoid hardtanh softplus softsign "
    "sigmoid logsigmoid tanh threshold clamp clamp_min clamp_max"
)
ELEMENTWISE = _names("exp log log1p sqrt rsqrt square pow reciprocal abs sin cos erf")
SIMPLE = (
    CONVOLUTIONS | AVERAGES | _names("linear batch_norm cat add flatten reshape view")
)  # the expensive and the frequent ones
OTHER_NAMES = {
    "multiply": "mul",
    "true_divide": "div",
    "divide": "div",
    "truediv": "div",
    "subtract": "sub",
    "negative": "neg",
    "concat": "cat",
    "concatenate": "cat",
    "clip": "clamp",
    "rtruediv": "rdiv",
    "radd": "add",
    "rmul": "mul",
    "rmatmul": "matmul",
    "_native_multi_head_attention": "multi_head_attention_forward",
}
_CONVOLUTION = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_TRANSPOSED = ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
PARAMETERS: dict[str, tuple[str, ...]] = {
    **{name: _TRANSPOSED if "transpose" in name else _CONVOLUTION for name in CONVOLUTIONS},
    "linear": ("input", "weight", "bias"),
    "batch_norm": ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"),
    "layer_norm": ("input", "normalized_shape", "weight", "bias", "eps"),
    "max_pool1d": ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode"),
    "max_pool2d": ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode"),
    "max_pool3d": ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode"),
}
_INPLACE_POSITION = {
    **dict.fromkeys(_names("relu relu6 silu mish selu hardswish hardsigmoid"), 1),
    **dict.fromkeys(_names("leaky_relu elu celu"), 2),
    **dict.fromkeys(_names("dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout"), 3),
    **dict.fromkeys(_names("hardtanh threshold"), 3),
    "rrelu": 4,
}  # the position of the flag among the arguments


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a torch function without side effects, and the tensor that the network asked to overwrite, if any."""

    name: str
    function: Callable[..., Any]
    positional: tuple[Any, ...]
    named: dict[str, Any]
    target: Any = None


def out_of_place(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The call with one name for all its spellings, as the version that writes nothing in place."""
    name = func.__name__
    if name == "__get__":  # an attribute, such as x.T
        call = Call(func.__self__.__name__, func, args, kwargs)  # type: ignore[attr-defined]
    elif name == "__setitem__":
        call = Call("setitem", _with_item, args, kwargs, args[0])
    elif name.startswith("__i") and hasattr(Tensor, f"__{name[3:]}") and name != "__invert__":
        call = Call(name[3:-2], getattr(Tensor, f"__{name[3:]}"), args, kwargs, args[0])
    elif name.startswith("__"):
        call = Call(name.strip("_"), func, args, kwargs)
    elif name in ("requires_grad_", "retain_grad"):  # of no use to a stand-in
        call = Call(name, _unchanged, args[:1], {})
    elif name.endswith("_"):
        plain = getattr(Tensor, name[:-1], None) or getattr(functional, name[:-1], None)
        if plain is None:
            raise _unknown(f"the operation {name!r}")
        call = Call(name[:-1], plain, args, kwargs, args[0] if args else kwargs["input"])
    else:
        call = _without_flag(name, func, args, kwargs)
    return replace(call, name=OTHER_NAMES.get(call.name, call.name))


def _without_flag(name: str, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The call without its `inplace` flag, if it has one."""
    position = _INPLACE_POSITION.get(name, len(args))
    inplace = bool(args[position]) if position < len(args) else bool(kwargs.get("inplace", False))
    if not inplace:
        return Call(name, func, args, kwargs)
    positional = tuple(False if index == position else value for index, value in enumerate(args))
    named = {key: value for key, value in kwargs.items() if key != "inplace"}
    return Call(name, func, positional, named, args[0] if args else kwargs["input"])


def _unchanged(value: Tensor) -> Tensor:
    return value


def _with_item(value: Tensor, index: Any, part: Any) -> Tensor:  # noqa: ANN401 - any index
    changed = value.clone()
    changed[index] = part
    return changed


def attention(  # noqa: PLR0913, PLR0917 - torch's own parameters
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,  # noqa: ARG001 - nothing is dropped in evaluation
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Fused attention in simpler operations."""
    if enable_gqa:
        raise _unknown("grouped-query attention")
    if is_causal:
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    return _attention_weights(query, key, attn_mask, scale).matmul(value)


def _attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    scores = query.matmul(key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1)


def layer_norm(
    input: Tensor,  # noqa: A002 - torch's name
    normalized_shape: tuple[int, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """LayerNorm in simpler operations."""
    axes = tuple(range(-len(normalized_shape), 0))
    return _scaled(_standardised(input, axes, eps), weight, bias)


def group_norm(
    input: Tensor,  # noqa: A002 - torch's name
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """GroupNorm in simpler operations."""
    grouped = input.reshape(input.shape[0], num_groups, -1)
    normal = _standardised(grouped, (-1,), eps).reshape(input.shape)
    spread = (-1,) + (1,) * (input.ndim - 2)
    return _scaled(normal, *(None if t is None else t.reshape(spread) for t in (weight, bias)))


def quotient(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:  # noqa: A002, ANN401 - torch's names
    """A quotient as a product."""
    if rounding_mode is not None:
        raise _unknown("division with rounding")
    return input * (other.reciprocal() if isinstance(other, Tensor) else 1 / other)


def inverse_quotient(input: Tensor, other: Any, **_: object) -> Tensor:  # noqa: A002, ANN401 - as above
    """A constant divided by a tensor, as a product."""
    return input.reciprocal() * other


def _standardised(value: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    centred = value - value.mean(axes, keepdim=True)
    return centred * (centred.square().mean(axes, keepdim=True) + eps).rsqrt()


def _scaled(value: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    value = value if weight is None else value * weight
    return value if bias is None else value + bias


def multi_head_attention(  # noqa: PLR0913, PLR0917 - torch's own parameters
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,  # noqa: ARG001
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    *rest: Any,  # noqa: ANN401
    **more: Any,  # noqa: ANN401
) -> tuple[Tensor, Tensor | None]:
    """Torch's multi-head attention in simpler operations; as there, the sequence is the first axis."""
    names = ("bias_k", "bias_v", "add_zero_attn", "dropout_p", "out_proj_weight", "out_proj_bias", "training",
             "key_padding_mask", "need_weights", "attn_mask", "use_separate_proj_weight", "q_proj_weight",
             "k_proj_weight", "v_proj_weight", "static_k", "static_v", "average_attn_weights", "is_causal")  # fmt: skip
    named = dict(zip(names, rest, strict=False)) | more
    unsupported = ("bias_k", "bias_v", "key_padding_mask", "static_k", "static_v")
    if any(named.get(name) is not None for name in unsupported) or named.get("add_zero_attn") or query.ndim != 3:
        raise _unknown("multi-head attention with extra keys or padding")
    if named.get("use_separate_proj_weight"):
        weights = [named[f"{name}_proj_weight"] for name in "qkv"]
    else:
        weights = [] if in_proj_weight is None else list(in_proj_weight.chunk(3))
    biases = [None] * 3 if in_proj_bias is None else list(in_proj_bias.chunk(3))
    length, batch, width = query.shape
    heads = [
        functional.linear(part, weight, bias).reshape(-1, batch * num_heads, width // num_heads).transpose(0, 1)
        for part, weight, bias in zip((query, key, value), weights, biases, strict=True)
    ]
    mask = named.get("attn_mask")
    if mask is not None and mask.ndim == 4:
        mask = mask.reshape(batch * num_heads, *mask.shape[2:])
    if mask is not None and mask.dtype == torch.bool:
        mask = ~mask  # True excludes a position here, and includes it in `_attention_weights`
    weights_of_heads = _attention_weights(heads[0], heads[1], mask, None)
    joined = weights_of_heads.matmul(heads[2]).transpose(0, 1).reshape(length, batch, width)
    output = functional.linear(joined, named["out_proj_weight"], named.get("out_proj_bias"))
    if not named.get("need_weights", True):
        return output, None
    per_head = weights_of_heads.reshape(batch, num_heads, *weights_of_heads.shape[1:])
    return output, per_head.mean(1) if named.get("average_attn_weights", True) else per_head


def _unknown(what: str) -> ModelError:
    return ModelError(f"the network uses {what}, which cannot be followed; choose another method, such as occlusion")
