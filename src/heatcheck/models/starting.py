"""Starting from trained weights: all that fit are taken from a file, the rest keep their fresh values."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from heatcheck.core.errors import ModelError
from heatcheck.models.load import read_weights
from heatcheck.models.registry import MODELS
from heatcheck.models.renaming import COUNTER, State, first_convolution, last_layer, some, translated

LEAST = 0.5  # share of the weights before the last layer that must fit; below it, the file is of another network


@dataclass(frozen=True, slots=True)
class Started:
    """The names of a network's weights, by whether they came from a file or are fresh."""

    loaded: tuple[str, ...]
    fresh: tuple[str, ...]


def start_from(path: Path, module: nn.Module, name: str) -> Started:
    """Load all weights of a file that fit by name and shape into the module; which these are.

    Names are translated as for any public checkpoint, and the last layer may have other outputs. A first convolution
    on one channel takes the sum over the channels of a file for colour: its output for a grey image is then that of
    the file's network for the same image in every channel.
    """
    fresh = module.state_dict()
    given = translated(read_weights(path).state, module, MODELS[name].translate)
    first = first_convolution(fresh)
    if first in given:
        given = {**given, first: _for_grey(given[first], fresh[first])}
    fitting = {key: value for key, value in given.items() if key in fresh and value.shape == fresh[key].shape}
    names = [key for key in fresh if not key.endswith(COUNTER)]
    before_last = [key for key in names if key not in last_layer(fresh)]
    if sum(key in fitting for key in before_last) < LEAST * len(before_last):
        raise _misfit(path, name, before_last, (given, fresh))
    module.load_state_dict(fresh | fitting)
    return Started(tuple(key for key in names if key in fitting), tuple(key for key in names if key not in fitting))


def _for_grey(weight: Tensor, fresh: Tensor) -> Tensor:
    """The weight of a convolution, summed over its channels where the network has one channel."""
    if weight.ndim == fresh.ndim and fresh.shape[1] == 1:
        return weight.sum(1, keepdim=True)
    return weight


def _misfit(path: Path, name: str, wanted: list[str], states: tuple[State, State]) -> ModelError:
    """The error that says which of the wanted weights the file lacks or holds in other shapes."""
    given, fresh = states
    missing = [key for key in wanted if key not in given]
    shared = [key for key in wanted if key in given]
    other = [
        f"{key} {tuple(given[key].shape)} instead of {tuple(fresh[key].shape)}"
        for key in shared
        if given[key].shape != fresh[key].shape
    ]
    parts = [f"{word} {some(keys)}" for word, keys in (("missing", missing), ("of another shape", other)) if keys]
    return ModelError(
        f"{path}: only {len(shared) - len(other)} of the {len(wanted)} weights of model {name} are in it "
        f"({'; '.join(parts)}); start from a file of the same architecture"
    )
