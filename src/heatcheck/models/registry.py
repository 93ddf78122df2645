"""The networks a spec can name."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from heatcheck.core.errors import ModelError
from heatcheck.core.registry import Registry
from heatcheck.models.renaming import Translate, unchanged


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """What the contract fixes of a network: channels in, logits out, and the image's size."""

    channels: int
    outputs: int
    size: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A network that can be built, what it is usually fed, and the weights that come with it."""

    name: str
    make: Callable[[NetworkShape], nn.Module]  # `build` checks the shape first
    summary: str
    family: str
    size: tuple[int, ...] = (224, 224)  # usual
    channels: int = 3  # usual
    smallest: int = 1  # shortest side that works, px
    multiple: int = 1  # sides must be multiples of this, px
    weights: str = ""  # file inside the package, where weights are shipped
    translate: Translate = unchanged  # a public checkpoint's names into the network's

    @property
    def label(self) -> str:
        """What the network is: its summary without what that says of weights."""
        return re.split(r";| without weights| trained on ", self.summary)[0]

    def build(self, channels: int, outputs: int, size: tuple[int, ...] = ()) -> nn.Module:
        """The network with fresh weights; without a size, for the usual one."""
        return self.make(NetworkShape(channels, outputs, self.checked_size(size)))

    def checked_size(self, size: tuple[int, ...] | None) -> tuple[int, ...]:
        """The size, or the usual one where none is named; a ModelError where the network cannot take it."""
        self.require_size(size or self.size)
        return size or self.size

    def require_size(self, size: tuple[int, ...]) -> None:
        """Nothing, or a ModelError that says which sizes the network can take."""
        given, axes = _text(size), len(self.size)
        if len(size) != axes:
            raise ModelError(
                f"model {self.name} takes images of {axes} axes, `size` is {given}; "
                f"set `size` to {axes} sides such as {list(self.size)}"
            )
        if min(size) < self.smallest:
            raise ModelError(
                f"model {self.name} needs sides of at least {self.smallest} px, `size` is {given}; set a larger `size`"
            )
        if any(side % self.multiple for side in size):
            near = [max(1, round(side / self.multiple)) * self.multiple for side in size]
            raise ModelError(
                f"model {self.name} needs sides that are multiples of {self.multiple} px, `size` is {given}; "
                f"set `size` to {near}: images are resized to it"
            )


def _text(size: tuple[int, ...]) -> str:
    return "×".join(map(str, size))


MODELS: Registry[ModelFacts] = Registry("model")
