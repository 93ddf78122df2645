"""Training images of which some channels are hidden, so that a network learns to do without a modality."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor


def shown_channels(
    images: int, channels: int, hidden: float, chance: np.random.Generator
) -> Bool[Tensor, "image channel"]:
    """Which channels each image shows: each is hidden with that probability, but never all of them."""
    shown = chance.random((images, channels)) >= hidden
    shown[np.arange(images), chance.integers(channels, size=images)] |= ~shown.any(1)
    return torch.from_numpy(shown)


def hiding(
    images: Float[Tensor, "batch channel *space"], shown: Bool[Tensor, "batch channel"]
) -> Float[Tensor, "batch channel *space"]:
    """The images with 0, which is no signal, in the place of each hidden channel."""
    return images * shown.to(images).reshape(*shown.shape, *[1] * (images.ndim - 2))
