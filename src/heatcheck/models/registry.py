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
    """The dimensions of a network that the contract fixes: channels in, logits out, and the image's size."""

    channels: int
    outputs: int
    size: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A network that can be built, its usual input, and the weights that come with it."""

    name: str
    make: Callable[[NetworkShape], nn.Module]  # `build` checks the shape first
    summary: str
    family: str
    size: tuple[int, ...] = (224, 224)  # usual input
    channels: int = 3  # usual input
    smallest: int = 1  # shortest side that works, px
    multiple: int = 1  # sides must be multiples of this, px
    weights: str = ""  # file inside the package, where weights are shipped
    drawn: bool = False  # the shipped weights were trained on phantoms only
    translate: Translate = unchanged  # from the names of public checkpoints to the network's

    @property
    def label(self) -> str:
        """Its summary without the part about weights."""
        return re.split(r";| without weights| trained on ", self.summary)[0]

    def build(self, channels: int, outputs: int, size: tuple[int, ...] = ()) -> nn.Module:
        """The network with fresh weights, for the usual size if none is named."""
        return self.make(NetworkShape(channels, outputs, self.checked_size(size)))

    def checked_size(self, size: tuple[int, ...] | None) -> tuple[int, ...]:
        """The size, or the usual one where none is named; a ModelError where the network cannot take it."""
        self.require_size(size or self.size)
        return size or self.size

    def require_size(self, size: tuple[int, ...]) -> None:
        """Raise a ModelError that names a size to use where the network cannot take this one."""
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
