"""The names under which a modality run keeps its scores and estimates; study and report both use them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from heatcheck.core.records import ONE_VALUE, Outlines

_NEAR = 1e-9  # sums in another order differ in the last bits
MANY = 10  # patients: so many that all say the same are sure of it


class Ranged(Protocol):
    """A value with its interval, NaN where there is none, and why."""

    @property
    def value(self) -> float:
        """The value."""

    @property
    def low(self) -> float:
        """The lower end."""

    @property
    def high(self) -> float:
        """The upper end."""

    @property
    def n_patients(self) -> int:
        """On how many patients it rests."""

    @property
    def reason(self) -> str:
        """Why there is no interval."""


def bounds(row: Ranged) -> tuple[float, float]:
    """Between which values the truth may lie: anywhere, where there is no interval.

    Where many patients all say the same, the value is its own interval.
    """
    if not math.isnan(row.low) and not math.isnan(row.high):
        return row.low, row.high
    if row.reason == ONE_VALUE and row.n_patients >= MANY:
        return row.value, row.value
    return -math.inf, math.inf


def are_apart(one: Ranged, other: Ranged) -> bool:
    """Whether the intervals do not overlap, so that the order of the two values is sure."""
    (low, high), (other_low, other_high) = bounds(one), bounds(other)
    return low > other_high + _NEAR or other_low > high + _NEAR


def first_among(found: Mapping[str, Ranged]) -> tuple[str, ...]:
    """Those that share the first place, the highest first: no other value is surely above theirs."""
    order = sorted(found, key=lambda name: -found[name].value)
    return tuple(
        name
        for place, name in enumerate(order)
        if not any(are_apart(found[higher], found[name]) for higher in order[:place])
    )


EVERY_FOLD = "all"  # the fold of an estimate over all folds
RIGHT = "right"  # the metric that says whether the class was told
SHARED_MAP = "all"  # in the place of a modality, where one map stands for all
UNIFORM = "uniform"  # the method of the floor's rows
MAP_METRICS = (
    "mi_correlation", "msfi", "lesion_share", "median_iou", "aupc", "delta_aupc", "modality_sum", "inside_share",
)  # fmt: skip
RANKED = ("msfi", "mi_correlation", "lesion_share", "median_iou", "delta_aupc")
FLOORED = ("msfi", "lesion_share")


def shown_name(shown: Iterable[bool], modalities: Sequence[str]) -> str:
    """What tables call a subset of the modalities."""
    return "+".join(name for name, there in zip(modalities, shown, strict=True) if there)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModalityMapsEntry:
    """One method's maps of a gallery's case and their scores, None where undefined."""

    method: str
    files: dict[str, str]  # by modality; each a strip of slices
    msfi: float | None
    mi_correlation: float | None
    lesion_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModalityEntry:
    """A case of the gallery: a strip of slices for each modality, and the outlines of its lesion in each slice."""

    id: str
    case: str
    patient: str = ""
    finding: str  # the true class
    said: str = ""  # the class the network names
    probability: float | None = None
    fold: int = 0
    shape: tuple[int, int]  # of a slice
    slices: int = 1
    first: int = 0  # the number of the first slice shown
    step: int = 1  # from one slice to the next
    start: int = 0  # which of those shown comes first
    plane: str = ""
    sides: str = ""
    images: dict[str, str]  # by modality
    outlines: dict[str, list[Outlines]] = field(default_factory=dict)  # by modality and slice
    maps: tuple[ModalityMapsEntry, ...] = ()
