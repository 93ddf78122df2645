"""The networks a spec can name."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from heatcheck.core.registry import Registry


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A network that can be built, and the weights that come with it."""

    name: str
    build: Callable[[int, int], nn.Module]  # (channels, outputs) → network
    summary: str
    weights: str = ""  # file inside the package, where weights are shipped


MODELS: Registry[ModelFacts] = Registry("model")
