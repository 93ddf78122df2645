"""Where a network keeps a picture: finding the layers whose output is a grid of features, in CNNs and transformers."""

import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heatcheck.core.errors import ModelError
from heatcheck.core.registry import suggest
from heatcheck.core.tensors import Images

MOST_EXTRA_TOKENS = 8  # a class token, a distillation token, some registers
_GRIDS = (nn.Conv2d, nn.Conv3d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool2d, nn.AvgPool3d, nn.Upsample)


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """One call of one module, and how its output is laid out as a grid of features.

    A module used several times is told apart by the number of the call. Tokens that are no place on the grid, such as
    the class token, come first.
    """

    name: str
    call: int
    grid: tuple[int, ...]
    channels_last: bool = False
    extra_tokens: int = 0

    def features(self, output: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch feature *grid"]:
        """The output with the features first, without the extra tokens."""
        if not self.channels_last:
            return output
        tokens = output.flatten(1, -2)[:, self.extra_tokens :]
        return tokens.transpose(1, 2).reshape(len(output), -1, *self.grid)


_KNOWN: WeakKeyDictionary[nn.Module, dict[tuple[str, tuple[int, ...]], FeatureMap]] = WeakKeyDictionary()


def feature_map(module: nn.Module, images: Images, layer: str = "") -> FeatureMap:
    """The named layer, or the last feature map that the outputs depend on; the module must be in evaluation mode.

    In a transformer that reads its answer from a class token, the last blocks' other tokens change nothing: the map is
    then the one from which attention last gathered.
    """
    known = _KNOWN.setdefault(module, {})
    key = (layer, tuple(images.shape[1:]))
    if key not in known:
        known[key] = _named(module, images, layer) if layer else _last(module, images)
    return known[key]


def _named(module: nn.Module, images: Images, layer: str) -> FeatureMap:
    names = [name for name, _ in module.named_modules() if name]
    if layer not in names:
        raise ModelError(f"the model has no layer {layer!r}; {suggest(layer, names)}")
    seen = _look(module, images, [layer])
    for name, call, output in seen.outputs:
        found = _as_grid(FeatureMap(name, call, ()), output, seen)
        if found:
            return found
    what = f"its output has the shape {tuple(seen.outputs[0][2].shape[1:])}" if seen.outputs else "it is never called"
    raise ModelError(f"layer {layer!r} is no feature map: {what}; name another layer, or none")


def _last(module: nn.Module, images: Images) -> FeatureMap:
    seen = _look(module, images, [name for name, _ in module.named_modules() if name])
    candidates = [
        (found, output)
        for name, call, output in seen.outputs
        if (found := _as_grid(FeatureMap(name, call, ()), output, seen)) and _may_end(module.get_submodule(name), found)
    ]
    if not candidates:
        raise ModelError("the model has no spatial feature map; Grad-CAM and its relatives cannot be used on it")
    slopes = torch.autograd.grad(seen.total, [output for _, output in candidates], allow_unused=True)
    for (found, _), slope in zip(reversed(candidates), reversed(slopes), strict=True):
        if slope is not None and bool(found.features(slope).any()):
            return found
    return candidates[-1][0]  # a dead image: every gradient is 0


def _may_end(part: nn.Module, found: FeatureMap) -> bool:
    """Whether a layer's output stands for the whole map: of token layers only the norms do, not queries or parts."""
    if found.channels_last:
        return "norm" in type(part).__name__.lower()
    return not isinstance(part, (nn.Softmax, nn.Dropout))  # these may hold attention weights


@dataclass(frozen=True, slots=True)
class _Seen:
    outputs: list[tuple[str, int, Tensor]]
    grids: set[tuple[int, ...]]
    total: Tensor
    spatial: int


def _look(module: nn.Module, images: Images, names: list[str]) -> _Seen:
    """The outputs of some layers for two images: one alone could not be told from a single window of attention."""
    outputs: list[tuple[str, int, Tensor]] = []
    counts: dict[str, int] = {}
    grids: set[tuple[int, ...]] = set()

    def note(name: str, output: object) -> None:
        counts[name] = counts.get(name, -1) + 1
        block = next(module.get_submodule(name).children(), None) is not None
        passed_on = block and bool(outputs) and output is outputs[-1][2]  # its last layer's output, handed on
        if isinstance(output, Tensor) and output.requires_grad and len(output) == 2 and not passed_on:
            outputs.append((name, counts[name], output))

    def note_grid(output: object) -> None:
        if isinstance(output, Tensor) and len(output) == 2 and output.ndim == images.ndim:
            grids.add(tuple(output.shape[2:]))

    hooks = [
        module.get_submodule(name).register_forward_hook(lambda _, __, out, name=name: note(name, out))
        for name in names
    ]
    hooks += [
        part.register_forward_hook(lambda _, __, out: note_grid(out))
        for part in module.modules()
        if isinstance(part, _GRIDS)
    ]
    try:
        with torch.enable_grad():
            inputs = images[:1].detach().expand(2, *images.shape[1:]).clone().requires_grad_()
            total = module(inputs.clone()).sum()
    finally:
        for hook in hooks:
            hook.remove()
    halved = {tuple(-(-side // 2**times) for side in grid) for grid in grids for times in range(6)}
    return _Seen(outputs, grids | halved, total, images.ndim - 2)


def _as_grid(place: FeatureMap, output: Tensor, seen: _Seen) -> FeatureMap | None:
    """The output as a grid of features; None where it is something else, such as a table of attention weights."""
    shape = tuple(output.shape[1:])
    if len(shape) == seen.spatial + 1:
        first, last = shape[1:], shape[:-1]
        if max(first) > 1 and (first in seen.grids or not seen.grids):
            return FeatureMap(place.name, place.call, first)
        if max(last) > 1 and last in seen.grids:
            return FeatureMap(place.name, place.call, last, channels_last=True)
    if len(shape) == 2:
        for extra in range(MOST_EXTRA_TOKENS + 1):
            for grid in seen.grids:
                if math.prod(grid) == shape[0] - extra and max(grid) > 1:
                    return FeatureMap(place.name, place.call, grid, channels_last=True, extra_tokens=extra)
    return None
