"""The names under which a trigger run keeps its scores and estimates; study and report both use them."""

from dataclasses import dataclass, field

from heatcheck.core.records import Outlines

BASELINE = "baseline"
RANDOM_BOX = "random_box"  # what a method's box is compared with

Corners = tuple[int, int, int, int]  # of a box: left, top, right, bottom, as pixel edges


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerMapEntry:
    """One method's map of a poisoned image, its box, and what the poisoned model says once the box is put right."""

    method: str
    file: str
    box: Corners | None  # none where nothing was detected
    iou: float | None
    recovered: float | None  # 1 where the model returns to its answer for the clean image, else 0
    says: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineMapEntry:
    """One method's map of the clean image, for the model without a trigger."""

    method: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerEntry:
    """A poisoned image of the gallery."""

    id: str
    case: str
    trigger: str
    seed: int | None = None
    why: str = ""  # it was chosen
    label: str = ""  # the true class
    target: str = ""
    shape: tuple[int, int]
    clean: str
    poisoned: str
    trigger_box: Corners
    trigger_outline: Outlines = field(default_factory=list)
    probability: float | None = None
    clean_says: str = ""  # what the poisoned model answers without the trigger
    maps: tuple[TriggerMapEntry, ...] = ()
    baseline: tuple[BaselineMapEntry, ...] = ()
    baseline_says: str = ""
