"""Public checkpoints for heatcheck's networks: wrappers and prefixes are removed, names are translated."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from torch import Tensor, nn

from heatcheck.core.errors import ModelError

State = dict[str, Tensor]
Translate = Callable[[State, nn.Module], State]

_WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "net")
COUNTER = ".num_batches_tracked"  # not needed by a trained network; old files lack it
_NAMED = 3  # names that an error lists


def unchanged(state: State, _module: nn.Module) -> State:
    """The state as it is."""
    return state


def renamed(state: State, rules: Sequence[tuple[str, str]]) -> State:
    """The state with every rule (a pattern and its replacement) applied to each name."""
    names = {}
    for old in state:
        new = old
        for pattern, replacement in rules:
            new = re.sub(pattern, replacement, new)
        names[old if new in names else new] = old  # if the new name is taken the old one stays, and is reported
    return {new: state[old] for new, old in names.items()}


def unwrapped(loaded: object) -> object:
    """The state dict inside the dicts that training code wraps around it."""
    while isinstance(loaded, dict):
        inner = next((loaded[key] for key in _WRAPPERS if isinstance(loaded.get(key), dict)), None)
        if inner is None:
            break
        loaded = inner
    return loaded


def fitted(state: State, module: nn.Module, translate: Translate, name: str) -> State:
    """A state dict with exactly the network's names and shapes; a ModelError says what does not fit."""
    expected = module.state_dict()
    given = translated(state, module, translate)
    missing = [key for key in expected if key not in given and not key.endswith(COUNTER)]
    unexpected = [key for key in given if key not in expected]
    if missing or unexpected:
        parts = [f"{word} {some(keys)}" for word, keys in (("missing", missing), ("unexpected", unexpected)) if keys]
        raise _misfit(name, "; ".join(parts), "name the model they were trained as")
    _require_shapes(given, expected, name)
    return expected | given


def translated(state: State, module: nn.Module, translate: Translate) -> State:
    """The state under the network's names, without a common prefix; the prefix with the most matches is removed."""
    expected = module.state_dict()
    versions = (translate(_without(prefix, state), module) for prefix in _prefixes(state))
    return max(versions, key=lambda version: len(version.keys() & expected))


def first_convolution(state: State) -> str:
    """The name of the weight of the first convolution; empty where there is none."""
    return next((key for key, value in state.items() if value.ndim >= 4), "")


def last_layer(state: State) -> list[str]:
    """The names of the last linear layer's weight and bias; none where no layer is linear."""
    weight = next((key for key, value in reversed(state.items()) if value.ndim == 2), None)
    return [key for key in state if weight and key.rpartition(".")[0] == weight.rpartition(".")[0]]


def _prefixes(state: State) -> list[str]:
    """The empty prefix, and every dotted prefix that at least half of the names share."""
    counts: Counter[str] = Counter()
    for key in state:
        parts = key.split(".")
        counts.update(".".join(parts[:depth]) + "." for depth in range(1, min(len(parts), 6)))
    return ["", *(prefix for prefix, count in counts.items() if count * 2 >= len(state))]


def _without(prefix: str, state: State) -> State:
    short = {key.removeprefix(prefix): value for key, value in state.items()}
    return short if len(short) == len(state) else state


def _require_shapes(given: State, expected: State, name: str) -> None:
    wrong = [key for key in given if given[key].shape != expected[key].shape]
    if not wrong:
        return
    first, last = first_convolution(expected), last_layer(expected)[:1]
    for key in wrong:
        has, wants = tuple(given[key].shape), tuple(expected[key].shape)
        if key == first and len(has) == len(wants) and (has[0], *has[2:]) == (wants[0], *wants[2:]):
            what = f"they take images of {has[1]} channels, the contract says {wants[1]}"
            raise _misfit(name, what, f"set `channels: {has[1]}` in the contract")
        if key in last and has[1:] == wants[1:]:
            what = f"they give {has[0]} outputs, the contract names {wants[0]}"
            raise _misfit(name, what, f"name all {has[0]} under `outputs` of the contract, in their order")
    shapes = [f"{key} {tuple(given[key].shape)} instead of {tuple(expected[key].shape)}" for key in wrong]
    raise _misfit(name, f"size mismatch: {some(shapes)}", "name the model they were trained as, and their `size`")


def some(words: Sequence[str]) -> str:
    """The first few words, and how many more there are."""
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _misfit(name: str, what: str, remedy: str) -> ModelError:
    return ModelError(f"the weights do not fit model {name} ({what}); {remedy}")
