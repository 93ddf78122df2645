"""Names for tensor shapes: batch, target, channel, space (2D or 3D), in that order."""

from jaxtyping import Float, Int
from torch import Tensor

Images = Float[Tensor, "batch channel *space"]
Logits = Float[Tensor, "batch output"]
Targets = Int[Tensor, "batch target"]
MapValues = Float[Tensor, "batch target channel *space"]
MapErrors = Float[Tensor, "batch target"]
