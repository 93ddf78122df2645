"""Where a network keeps a picture: finding the last grid of features that its head sees, in CNNs and transformers.

The search is over torch's operations and not over modules, because an activation, a sum or a joining of branches may be
written in a network's `forward` without a module of its own.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from heatcheck.core.errors import ModelError
from heatcheck.core.registry import suggest
from heatcheck.core.tensors import Images
from heatcheck.methods.speed.operations import AVERAGES, CONVOLUTIONS, MAXIMA

MOST_EXTRA_TOKENS = 8  # a class token, a distillation token, some registers
_NO_MAPS = frozenset({"softmax", "dropout", "dropout_"})  # what they answer may be a table of attention weights


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """The answer of one torch operation, and how it is laid out as a grid of features.

    Tokens that are no place on the grid, such as the class token, come first.
    """

    name: str  # of the module at work, for people
    call: int  # its number among the operations that answer with numbers
    grid: tuple[int, ...]
    channels_last: bool = False
    extra_tokens: int = 0
    read_by_head: bool = True  # no later map counts: the head reads these places, and not a class token

    def features(self, output: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch feature *grid"]:
        """The output with the features first, without the extra tokens."""
        if not self.channels_last:
            return output
        tokens = output.flatten(1, -2)[:, self.extra_tokens :]
        return tokens.transpose(1, 2).reshape(len(output), -1, *self.grid)


class EachAnswer(TorchFunctionMode):
    """Shows every answer that holds numbers to a function, with its number, which may put another in its place."""

    def __init__(self, see: Callable[[int, str, Tensor, tuple[Any, ...]], Tensor]) -> None:
        super().__init__()
        self.see, self.calls = see, -1
        self.over = False  # nothing more needs to be shown

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """The operation's answer, or what is put in its place."""
        answer = func(*args, **kwargs) if kwargs else func(*args)
        if self.over or not isinstance(answer, Tensor) or not answer.is_floating_point():
            return answer
        self.calls += 1
        return self.see(self.calls, func.__name__, answer, args)


_KNOWN: WeakKeyDictionary[nn.Module, dict[tuple[str, tuple[int, ...]], FeatureMap]] = WeakKeyDictionary()


def feature_map(module: nn.Module, images: Images, layer: str = "") -> FeatureMap:
    """The named layer, or the last feature map that the outputs depend on; the module must be in evaluation mode.

    It is found on noise, once for each size of image: a black image might leave parts of the network dead. In a
    transformer that reads its answer from a class token, the last blocks' other tokens change nothing: the map is then
    the one from which attention last gathered.
    """
    known = _KNOWN.setdefault(module, {})
    key = (layer, tuple(images.shape[1:]))
    if key not in known:
        if layer:
            names = [name for name, _ in module.named_modules() if name]
            if layer not in names:
                raise ModelError(f"the model has no layer {layer!r}; {suggest(layer, names)}")
        seen = _look(module, images, layer)
        known[key] = _named(seen, layer) if layer else _last(seen)
    return known[key]


@dataclass(frozen=True, slots=True)
class _Answer:
    call: int
    operation: str
    module: str
    output: Tensor


@dataclass(slots=True)
class _Seen:
    spatial: int
    answers: list[_Answer] = field(default_factory=list)
    layer_calls: list[int] = field(default_factory=list)  # the answers that a named layer handed on
    shapes: list[tuple[int, ...]] = field(default_factory=list)  # of all that it handed on
    grids: set[tuple[int, ...]] = field(default_factory=set)
    total: Tensor | None = None


def _look(module: nn.Module, images: Images, layer: str) -> _Seen:
    """Everything the network computes of two pictures of noise: one could not be told from one window of attention."""
    seen = _Seen(images.ndim - 2)
    noise = torch.randn(2, *images.shape[1:], generator=torch.Generator().manual_seed(0))
    at_work: list[str] = []

    def note(call: int, operation: str, output: Tensor, _: tuple[Any, ...]) -> Tensor:
        if output.requires_grad and output.ndim > 2 and len(output) == 2:
            seen.answers.append(_Answer(call, operation, at_work[-1] if at_work else "", output))
            if output.ndim == images.ndim and operation in CONVOLUTIONS | MAXIMA | AVERAGES:
                seen.grids.add(tuple(output.shape[2:]))
        return output

    def handed_on(output: object) -> None:
        if isinstance(output, Tensor):
            seen.shapes.append(tuple(output.shape[1:]))
            seen.layer_calls += [answer.call for answer in seen.answers if answer.output is output][-1:]

    with _names_of_modules(module, at_work), torch.enable_grad():
        hook = (
            module.get_submodule(layer).register_forward_hook(lambda _, __, output: handed_on(output))
            if layer
            else None
        )
        try:
            inputs = noise.to(images).requires_grad_().clone()  # the network may work in place on it
            with EachAnswer(note):
                logits = module(inputs)
        finally:
            if hook is not None:
                hook.remove()
        seen.total = (logits * torch.randn(logits.shape, generator=torch.Generator().manual_seed(1)).to(logits)).sum()
    return seen


@contextmanager
def _names_of_modules(module: nn.Module, at_work: list[str]) -> Iterator[None]:
    """A block in which `at_work` holds the names of the modules whose forward is running."""
    hooks = []
    for name, part in module.named_modules():
        if name:
            hooks.append(part.register_forward_pre_hook(lambda _, __, name=name: at_work.append(name)))
            hooks.append(part.register_forward_hook(lambda _, __, ___: _drop_last(at_work), always_call=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _drop_last(at_work: list[str]) -> None:
    at_work.pop()


def _named(seen: _Seen, layer: str) -> FeatureMap:
    by_call = {answer.call: answer for answer in seen.answers}
    for call in seen.layer_calls:
        found = _as_grid(by_call[call], seen)
        if found:
            return replace(found, name=layer)
    what = f"its output has the shape {seen.shapes[0]}" if seen.shapes else "it is never called"
    raise ModelError(f"layer {layer!r} is no feature map: {what}; name another layer, or none")


def _last(seen: _Seen) -> FeatureMap:
    candidates = [
        (found, answer.output)
        for answer in seen.answers
        if answer.operation not in _NO_MAPS and (found := _as_grid(answer, seen)) and _may_end(answer, found)
    ]
    several = [each for each in candidates if each[0].channels_last or each[1].shape[1] > 1]
    candidates = several or candidates  # one feature alone is a map only where there is nothing else
    if not candidates or seen.total is None:
        raise ModelError("the model has no spatial feature map; Grad-CAM and its relatives cannot be used on it")
    slopes = torch.autograd.grad(seen.total, [output for _, output in candidates], allow_unused=True)
    for (found, _), slope in zip(reversed(candidates), reversed(slopes), strict=True):
        if slope is not None and bool(found.features(slope).any()):
            return replace(found, read_by_head=found is candidates[-1][0])
    raise ModelError("no feature map of the model changes its outputs; name a layer")


def _may_end(answer: _Answer, found: FeatureMap) -> bool:
    """Whether an answer stands for the whole map: of tokens only a norm's do, not queries."""
    return not found.channels_last or "norm" in answer.operation or "norm" in answer.module.rpartition(".")[2].lower()


def _as_grid(answer: _Answer, seen: _Seen) -> FeatureMap | None:
    """The answer as a grid of features; None where it is something else, such as a table of attention weights."""
    shape = tuple(answer.output.shape[1:])
    halved = {tuple(-(-side // 2**times) for side in grid) for grid in seen.grids for times in range(1, 6)}
    place = FeatureMap(answer.module or f"{answer.operation} in forward", answer.call, ())
    if len(shape) == seen.spatial + 1:
        first, last = shape[1:], shape[:-1]
        if max(first) > 1 and first in seen.grids:
            return replace(place, grid=first)
        if max(last) > 1 and last in seen.grids | halved:
            return replace(place, grid=last, channels_last=True)
    if len(shape) == 2:
        for extra in range(MOST_EXTRA_TOKENS + 1):
            for grid in seen.grids if extra else seen.grids | halved:
                if max(grid) > 1 and math.prod(grid) == shape[0] - extra and 2 * extra < shape[0]:
                    return replace(place, grid=grid, channels_last=True, extra_tokens=extra)
    return None
