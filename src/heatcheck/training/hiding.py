"""Training images with some channels hidden, so that a network learns to do without a modality."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor


def shown_channels(
    images: int, channels: int, hidden: float, generator: np.random.Generator
) -> Bool[Tensor, "image channel"]:
    """Which channels each image shows: each is hidden with that probability, but never all of them."""
    shown = generator.random((images, channels)) >= hidden
    # where all were hidden, one channel drawn at random is shown
    shown[np.arange(images), generator.integers(channels, size=images)] |= ~shown.any(1)
    return torch.from_numpy(shown)


def hiding(
    images: Float[Tensor, "batch channel *space"], shown: Bool[Tensor, "batch channel"]
) -> Float[Tensor, "batch channel *space"]:
    """The images with each hidden channel set to 0, which means no signal."""
    return images * shown.to(images).reshape(*shown.shape, *[1] * (images.ndim - 2))
