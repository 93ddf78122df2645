"""Reduce the channels of a signed map to one value per position."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from heatcheck.core.registry import Registry
from heatcheck.core.tensors import MapValues

FlatMaps = Float[Tensor, "batch target *space"]
ChannelRule = Callable[[MapValues], FlatMaps]

CHANNEL_RULES: Registry[ChannelRule] = Registry("channel rule")


def positive_mean(values: MapValues) -> FlatMaps:
    """The mean over channels of the evidence for the finding; evidence against it counts as 0."""
    return values.clamp(min=0).mean(dim=2)


def absolute_mean(values: MapValues) -> FlatMaps:
    """The mean over channels of the strength of the evidence, for or against the finding."""
    return values.abs().mean(dim=2)


CHANNEL_RULES.add("positive", positive_mean)
CHANNEL_RULES.add("absolute", absolute_mean)
