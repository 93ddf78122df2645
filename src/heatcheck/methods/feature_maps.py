"""The last feature map that a network's head reads, found automatically in CNNs and transformers.

The search goes over torch's operations and not over modules, because an activation, a sum or a concatenation may be
written in a network's `forward` without a module of its own.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from heatcheck.core.errors import ModelError
from heatcheck.core.geometry import Cells, spread_evenly
from heatcheck.core.registry import suggest
from heatcheck.core.tensors import Images
from heatcheck.methods.receptive_fields import KnownCells
from heatcheck.methods.speed.operations import AVERAGES, CONVOLUTIONS, MAXIMA

MOST_EXTRA_TOKENS = 8  # a class token, a distillation token, some registers
_NO_MAPS = frozenset({"softmax", "dropout", "dropout_"})  # their output may be a matrix of attention weights


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """The output of one torch operation, and how it is laid out as a grid of features.

    Tokens without a position on the grid, such as the class token, come first.
    """

    name: str  # of the running module, for messages
    call: int  # its index among the operations with a floating-point output
    grid: tuple[int, ...]
    channels_last: bool = False
    extra_tokens: int = 0
    read_by_head: bool = True  # False where the head reads a class token that attended to this map
    cells: Cells | None = None  # where its cells look; None where they span the image evenly
    is_placed: bool = True  # False where the layers do not say where its cells look: they are then spread evenly

    def features(self, output: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch feature *grid"]:
        """The output with the features first, without the extra tokens."""
        if not self.channels_last:
            return output
        tokens = output.flatten(1, -2)[:, self.extra_tokens :]
        return tokens.transpose(1, 2).reshape(len(output), -1, *self.grid)


class Operation(NamedTuple):
    """One call of a torch function."""

    name: str
    positional: tuple[Any, ...]
    named: dict[str, Any]


class EachOutput(TorchFunctionMode):
    """Calls a function on every floating-point output, with its index; what it returns replaces the output."""

    def __init__(self, visit: Callable[[int, Operation, Tensor], Tensor]) -> None:
        super().__init__()
        self.visit, self.calls = visit, -1
        self.finished = False  # the remaining outputs are not of interest

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """The operation's output, or its replacement."""
        output = func(*args, **kwargs) if kwargs else func(*args)
        if self.finished or not isinstance(output, Tensor) or not output.is_floating_point():
            return output
        self.calls += 1
        return self.visit(self.calls, Operation(func.__name__, args, kwargs or {}), output)


_KNOWN: WeakKeyDictionary[nn.Module, dict[tuple[str, tuple[int, ...]], FeatureMap]] = WeakKeyDictionary()


def feature_map(module: nn.Module, images: Images, layer: str = "") -> FeatureMap:
    """The named layer, or the last feature map that the outputs depend on; the module must be in evaluation mode.

    The search uses noise, once per image size: a black image might leave parts of the network inactive. In a
    transformer that reads its answer from a class token, the other tokens of the last blocks change nothing: the map is
    then the last one that attention read from.
    """
    known = _KNOWN.setdefault(module, {})
    key = (layer, tuple(images.shape[1:]))
    if key not in known:
        if layer:
            names = [name for name, _ in module.named_modules() if name]
            if layer not in names:
                raise ModelError(f"the model has no layer {layer!r}; {suggest(layer, names)}")
        trace = _traced(module, images, layer)
        known[key] = _placed(_named(trace, layer) if layer else _last(trace), trace, tuple(images.shape[2:]))
    return known[key]


def _placed(found: FeatureMap, trace: "_Trace", size: tuple[int, ...]) -> FeatureMap:
    """The map with where its cells look, if that is not where plain resizing puts them."""
    tensor = next(output.value for output in trace.outputs if output.call == found.call)
    cells = trace.cells.of_grid(found.grid) if found.channels_last else trace.cells.of_tensor(tensor)
    if cells is None:
        return replace(found, is_placed=False)
    return found if cells.close_to(spread_evenly(found.grid, size)) else replace(found, cells=cells)


@dataclass(frozen=True, slots=True)
class _Output:
    call: int
    operation: str
    module: str
    value: Tensor


@dataclass(slots=True)
class _Trace:
    spatial: int
    outputs: list[_Output] = field(default_factory=list)
    layer_calls: list[int] = field(default_factory=list)  # the outputs that the named layer returned
    shapes: list[tuple[int, ...]] = field(default_factory=list)  # of everything it returned
    grids: set[tuple[int, ...]] = field(default_factory=set)
    cells: KnownCells = field(default_factory=KnownCells)
    total: Tensor | None = None  # a random combination of the logits, to differentiate


def _traced(module: nn.Module, images: Images, layer: str) -> _Trace:
    """Everything the network computes from two noise images; a batch of one could be mistaken for one window."""
    trace = _Trace(images.ndim - 2)
    noise = torch.randn(2, *images.shape[1:], generator=torch.Generator().manual_seed(0))
    running: list[str] = []

    def record(call: int, operation: Operation, output: Tensor) -> Tensor:
        is_image_like = output.ndim == images.ndim and len(output) == 2
        if is_image_like:
            trace.cells.follow(*operation, output)
        if output.requires_grad and output.ndim > 2 and len(output) == 2:
            trace.outputs.append(_Output(call, operation.name, running[-1] if running else "", output))
            if is_image_like and operation.name in CONVOLUTIONS | MAXIMA | AVERAGES:
                trace.grids.add(tuple(output.shape[2:]))
        return output

    def record_layer(output: object) -> None:
        if isinstance(output, Tensor):
            trace.shapes.append(tuple(output.shape[1:]))
            trace.layer_calls += [each.call for each in trace.outputs if each.value is output][-1:]

    with _names_of_modules(module, running), torch.enable_grad():
        hook = (
            module.get_submodule(layer).register_forward_hook(lambda _, __, output: record_layer(output))
            if layer
            else None
        )
        try:
            inputs = noise.to(images).requires_grad_().clone()  # the network may modify it in place
            trace.cells.start(inputs)
            with EachOutput(record):
                logits = module(inputs)
        finally:
            if hook is not None:
                hook.remove()
        trace.total = (logits * torch.randn(logits.shape, generator=torch.Generator().manual_seed(1)).to(logits)).sum()
    return trace


@contextmanager
def _names_of_modules(module: nn.Module, running: list[str]) -> Iterator[None]:
    """A block in which `running` holds the names of the modules whose forward is running."""
    hooks = []
    for name, part in module.named_modules():
        if name:
            hooks.append(part.register_forward_pre_hook(lambda _, __, name=name: running.append(name)))
            hooks.append(part.register_forward_hook(lambda _, __, ___: _drop_last(running), always_call=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _drop_last(running: list[str]) -> None:
    running.pop()  # returns nothing: torch would take what a hook returns for the module's output


def _named(trace: _Trace, layer: str) -> FeatureMap:
    by_call = {output.call: output for output in trace.outputs}
    for call in trace.layer_calls:
        candidate = _as_grid(by_call[call], trace)
        if candidate:
            return replace(candidate, name=layer)
    reason = f"its output has the shape {trace.shapes[0]}" if trace.shapes else "it is never called"
    raise ModelError(f"layer {layer!r} is not a feature map: {reason}; name another layer, or none")


def _last(trace: _Trace) -> FeatureMap:
    candidates = [
        (candidate, output.value)
        for output in trace.outputs
        if output.operation not in _NO_MAPS
        and (candidate := _as_grid(output, trace))
        and _is_complete(output, candidate)
    ]
    several = [each for each in candidates if each[0].channels_last or each[1].shape[1] > 1]
    candidates = several or candidates  # a single feature is taken only where there is nothing else
    if not candidates or trace.total is None:
        raise ModelError("the model has no spatial feature map; Grad-CAM and its relatives cannot be used on it")
    slopes = torch.autograd.grad(trace.total, [value for _, value in candidates], allow_unused=True)
    for (candidate, _), slope in zip(reversed(candidates), reversed(slopes), strict=True):
        if slope is not None and bool(candidate.features(slope).any()):
            return replace(candidate, read_by_head=candidate is candidates[-1][0])
    raise ModelError("no feature map of the model changes its outputs; name a layer")


def _is_complete(output: _Output, candidate: FeatureMap) -> bool:
    """Whether the output can stand for the whole map; of tokens only a norm's output can, not queries or keys."""
    module = output.module.rpartition(".")[2].lower()
    return not candidate.channels_last or "norm" in output.operation or "norm" in module


def _as_grid(output: _Output, trace: _Trace) -> FeatureMap | None:
    """The output as a grid of features; None where it is something else, such as a matrix of attention weights."""
    shape = tuple(output.value.shape[1:])
    # patch merging halves a grid by slicing: no convolution or pooling shows the new size
    halved = {tuple(-(-side // 2**times) for side in grid) for grid in trace.grids for times in range(1, 6)}
    without_grid = FeatureMap(output.module or f"{output.operation} in forward", output.call, ())
    if len(shape) == trace.spatial + 1:
        first, last = shape[1:], shape[:-1]
        if max(first) > 1 and first in trace.grids:
            return replace(without_grid, grid=first)
        if max(last) > 1 and last in trace.grids | halved:
            return replace(without_grid, grid=last, channels_last=True)
    if len(shape) == 2:
        for extra in range(MOST_EXTRA_TOKENS + 1):
            for grid in trace.grids if extra else trace.grids | halved:
                if max(grid) > 1 and math.prod(grid) == shape[0] - extra and 2 * extra < shape[0]:
                    return replace(without_grid, grid=grid, channels_last=True, extra_tokens=extra)
    return None
