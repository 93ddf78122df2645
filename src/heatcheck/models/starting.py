"""Trained weights as a start: whatever fits is taken from a file, the rest keeps its fresh values."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from heatcheck.core.errors import ModelError
from heatcheck.models.load import read_weights
from heatcheck.models.registry import MODELS
from heatcheck.models.renaming import COUNTER, State, first_convolution, last_layer, some, translated

LEAST = 0.5  # share of the weights before the last layer that must fit; with fewer, the file is of another network


@dataclass(frozen=True, slots=True)
class Started:
    """The names of a network's weights: those that came from a file, and those that are fresh."""

    loaded: tuple[str, ...]
    fresh: tuple[str, ...]


def start_from(path: Path, module: nn.Module, name: str) -> Started:
    """What the network of that name, changed in place, took from a file of weights: all that fits by name and shape.

    Names are translated as for any public checkpoint, and the last layer may have other outputs. A first convolution
    on one channel takes the sum over the channels of a file for colour: it answers a grey image as the file's own
    answers the same image in every channel.
    """
    own = module.state_dict()
    found = translated(read_weights(path).state, module, MODELS[name].translate)
    first = first_convolution(own)
    if first in found:
        found = {**found, first: _for_grey(found[first], own[first])}
    fitting = {key: value for key, value in found.items() if key in own and value.shape == own[key].shape}
    names = [key for key in own if not key.endswith(COUNTER)]
    before_last = [key for key in names if key not in last_layer(own)]
    if sum(key in fitting for key in before_last) < LEAST * len(before_last):
        raise _misfit(path, name, before_last, (found, own))
    module.load_state_dict(own | fitting)
    return Started(tuple(key for key in names if key in fitting), tuple(key for key in names if key not in fitting))


def _for_grey(weight: Tensor, own: Tensor) -> Tensor:
    """The weight of a convolution, summed over its channels where the network's own has one."""
    if weight.ndim == own.ndim and own.shape[1] == 1:
        return weight.sum(1, keepdim=True)
    return weight


def _misfit(path: Path, name: str, wanted: list[str], states: tuple[State, State]) -> ModelError:
    """The error that says which of the wanted weights the file lacks or holds in other shapes."""
    found, own = states
    missing = [key for key in wanted if key not in found]
    shared = [key for key in wanted if key in found]
    other = [
        f"{key} {tuple(found[key].shape)} instead of {tuple(own[key].shape)}"
        for key in shared
        if found[key].shape != own[key].shape
    ]
    parts = [f"{word} {some(keys)}" for word, keys in (("missing", missing), ("of another shape", other)) if keys]
    return ModelError(
        f"{path}: only {len(shared) - len(other)} of the {len(wanted)} weights of model {name} are in it "
        f"({'; '.join(parts)}); start from a file of the same architecture"
    )
