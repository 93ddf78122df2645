"""The memory layout in which convolutions are fast on a CPU."""

import torch
from torch import nn

ORDERS = {4: torch.channels_last, 5: torch.channels_last_3d}  # by the number of axes of a convolution's weights


def quick(module: nn.Module) -> nn.Module:
    """The same network, with channels last in the memory of its 2D and 3D convolutions."""
    for weights in module.parameters():
        if weights.ndim in ORDERS:
            weights.data = weights.data.contiguous(memory_format=ORDERS[weights.ndim])
    return module
