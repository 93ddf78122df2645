"""Losses that know about labels nobody gave."""

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def masked_cross_entropy(
    logits: Float[Tensor, "batch output"], labels: Float[Tensor, "batch output"]
) -> Float[Tensor, ""]:
    """The mean binary cross-entropy over the labels that are known; 0 when none is."""
    known = labels.isfinite()
    losses = functional.binary_cross_entropy_with_logits(logits, labels.nan_to_num(), reduction="none")
    return (losses * known).sum() / known.sum().clamp(min=1)
