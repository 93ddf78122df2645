"""Reduce the channels of a signed map to one value per position."""

from collections.abc import Callable
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from heatcheck.core.registry import Registry
from heatcheck.core.tensors import MapValues

FlatMaps = Float[Tensor, "batch target *space"]
ChannelRule = Callable[[MapValues], FlatMaps]
MapOrder = Literal["reduce_first", "resize_first"]
"""Whether negative values are dropped and channels joined on the method's grid, or on the image's.

Our rule is to reduce first: what counts as evidence against a finding is decided where the method computed it, and not
on pixels that lie between its values; and one channel is resized instead of three. Papers that resize first are
followed by `resize_first`.
"""

CHANNEL_RULES: Registry[ChannelRule] = Registry("channel rule")


def positive_mean(values: MapValues) -> FlatMaps:
    """The mean over channels of the evidence for the finding; evidence against it counts as 0."""
    return values.clamp(min=0).mean(dim=2)


def absolute_mean(values: MapValues) -> FlatMaps:
    """The mean over channels of the strength of the evidence, for or against the finding."""
    return values.abs().mean(dim=2)


CHANNEL_RULES.add("positive", positive_mean)
CHANNEL_RULES.add("absolute", absolute_mean)
