"""The names under which an alignment run keeps its scores and estimates; study and report both use them."""

from dataclasses import dataclass, field
from typing import Literal

from heatcheck.core.records import Outlines

Arm = Literal["base", "control", "align", "misalign"]
ARMS: tuple[Arm, ...] = ("base", "control", "align", "misalign")
DIRECTIONS: tuple[Arm, ...] = ("align", "misalign")
FLOOR, HUMAN_ARM = "floor", "human"  # arms without a network
FLOOR_METHOD = "random"
FINETUNE = "finetune"  # the split of the images that a network learned from


@dataclass(frozen=True, slots=True)
class Base:
    """A network from which others are fine-tuned: an architecture that began in some way."""

    key: str  # its name in the tables
    architecture: str  # its name among the models
    family: str  # DenseNet, ViT, Swin: the regression's levels
    initialisation: str  # where its weights began
    pretrained: bool  # whether they began with other data than the base's own
    fine_tuned: bool = True  # else only its own answers are of interest


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmMapEntry:
    """One network's map of a gallery's case; a number that is not known is NaN."""

    arm: Arm
    file: str
    probability: float | None
    mass: float | None
    rank: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentEntry:
    """A case of the gallery, with one model's and one method's maps."""

    id: str
    case: str
    finding: str
    model: str
    method: str
    shape: tuple[int, int]
    film: str
    outlines: Outlines = field(default_factory=list)
    maps: tuple[ArmMapEntry, ...] = ()


def network_key(base: str, arm: Arm, seed: int = 0, method: str = "") -> str:
    """The name of a network in the table of predictions; a base has no seed, and bases and controls have no method."""
    if arm == "base":
        return base
    parts = (base, arm) if arm == "control" else (base, method, arm)
    return " · ".join((*parts, f"seed {seed}"))
