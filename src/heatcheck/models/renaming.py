"""Public checkpoints into our networks: wrappers and prefixes go, other libraries' names become ours."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from torch import Tensor, nn

from heatcheck.core.errors import ModelError

State = dict[str, Tensor]
Translate = Callable[[State, nn.Module], State]

_WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "net")
COUNTER = ".num_batches_tracked"  # of no use to a trained network; old files do without
_NAMED = 3  # how many names an error lists


def unchanged(state: State, _module: nn.Module) -> State:
    """The state as it is."""
    return state


def renamed(state: State, rules: Sequence[tuple[str, str]]) -> State:
    """The state with every rule, a pattern and what replaces it, applied to each name."""
    names = {}
    for old in state:
        new = old
        for pattern, replacement in rules:
            new = re.sub(pattern, replacement, new)
        names[old if new in names else new] = old  # a name that is taken stays, to be reported
    return {new: state[old] for new, old in names.items()}


def unwrapped(loaded: object) -> object:
    """What lies inside the dicts that trainers put around a state dict."""
    while isinstance(loaded, dict):
        inner = next((loaded[key] for key in _WRAPPERS if isinstance(loaded.get(key), dict)), None)
        if inner is None:
            break
        loaded = inner
    return loaded


def fitted(state: State, module: nn.Module, translate: Translate, name: str) -> State:
    """A state dict with exactly the network's names and shapes, or a ModelError that says what does not fit."""
    own = module.state_dict()
    found = translated(state, module, translate)
    missing = [key for key in own if key not in found and not key.endswith(COUNTER)]
    unexpected = [key for key in found if key not in own]
    if missing or unexpected:
        parts = [f"{word} {some(keys)}" for word, keys in (("missing", missing), ("unexpected", unexpected)) if keys]
        raise _misfit(name, "; ".join(parts), "name the model they were trained as")
    _require_shapes(found, own, name)
    return own | found


def translated(state: State, module: nn.Module, translate: Translate) -> State:
    """The state under the network's names, as far as it has them, without the prefix that trainers put before them."""
    own = module.state_dict()
    readings = (translate(_without(prefix, state), module) for prefix in _prefixes(state))
    return max(readings, key=lambda reading: len(reading.keys() & own))


def first_convolution(own: State) -> str:
    """The name of the weight that sees the image; none where no layer convolves."""
    return next((key for key, value in own.items() if value.ndim >= 4), "")


def last_layer(own: State) -> list[str]:
    """The names of the layer that gives the answers, its weight and its bias; none where no layer is linear."""
    weight = next((key for key, value in reversed(own.items()) if value.ndim == 2), None)
    return [key for key in own if weight and key.rpartition(".")[0] == weight.rpartition(".")[0]]


def _prefixes(state: State) -> list[str]:
    """Nothing, and every dotted beginning that at least half of the names share."""
    counts: Counter[str] = Counter()
    for key in state:
        parts = key.split(".")
        counts.update(".".join(parts[:depth]) + "." for depth in range(1, min(len(parts), 6)))
    return ["", *(prefix for prefix, count in counts.items() if count * 2 >= len(state))]


def _without(prefix: str, state: State) -> State:
    short = {key.removeprefix(prefix): value for key, value in state.items()}
    return short if len(short) == len(state) else state


def _require_shapes(found: State, own: State, name: str) -> None:
    wrong = [key for key in found if found[key].shape != own[key].shape]
    if not wrong:
        return
    first, last = first_convolution(own), last_layer(own)[:1]
    for key in wrong:
        has, wants = tuple(found[key].shape), tuple(own[key].shape)
        if key == first and len(has) == len(wants) and (has[0], *has[2:]) == (wants[0], *wants[2:]):
            what = f"they take images of {has[1]} channels, the contract says {wants[1]}"
            raise _misfit(name, what, f"set `channels: {has[1]}` in the contract")
        if key in last and has[1:] == wants[1:]:
            what = f"they give {has[0]} outputs, the contract names {wants[0]}"
            raise _misfit(name, what, f"name all {has[0]} under `outputs` of the contract, in their order")
    shapes = [f"{key} {tuple(found[key].shape)} instead of {tuple(own[key].shape)}" for key in wrong]
    raise _misfit(name, f"size mismatch: {some(shapes)}", "name the model they were trained as, and their `size`")


def some(words: Sequence[str]) -> str:
    """The first few words, and how many more there are."""
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _misfit(name: str, what: str, remedy: str) -> ModelError:
    return ModelError(f"the weights do not fit model {name} ({what}); {remedy}")
