"""Networks without trained weights, to find out which methods work on them."""

from pathlib import Path

import torch
from torch import nn

from heatcheck.models.load import PYTHON_PREFIX, user_module
from heatcheck.models.registry import MODELS, NetworkShape


def untrained(
    name: str, shape: NetworkShape | None = None, *, trusted: bool = False, folder: Path = Path()
) -> nn.Module:
    """The named network with random weights, the same at every call; a user's factory chooses its own."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if name.startswith(PYTHON_PREFIX):
            return user_module(name, folder, trusted=trusted)
        facts = MODELS[name]
        shape = shape or NetworkShape(facts.channels, 2, facts.size)
        return facts.build(shape.channels, shape.outputs, shape.size)
