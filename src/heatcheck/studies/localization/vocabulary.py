"""The names under which a localization run keeps its estimates; study and report both use them."""

from dataclasses import dataclass

from heatcheck.core.records import Outlines

TESTED = ("iou", "hit")  # the two scores the study's verdict rests on
ADDED = ("precision", "recall", "specificity", "auroc", "ece")  # what is estimated beside the means of scores
CUTOFFS = (0.3, 0.5)  # a temperature never moves a probability across 0.5: only the other can change
FEATURES = ("instances", "size", "elongation", "irrectangularity")
REFERENCE = "chexlocalize"  # the preset whose numbers are the paper's

Point = list[float]  # [x, y], as in an outline


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodMapEntry:
    """One method's map of a gallery's case, with its region, its hottest point and its scores."""

    method: str
    file: str
    iou: float | None
    hit: float | None
    peak: Point | None  # none where it lies in another slice
    peak_slice: int | None = None  # that other slice, counted from 1
    region: Outlines


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderEntry:
    """What one reader marked in a gallery's case."""

    reader: str
    contours: Outlines
    points: list[Point]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalizationEntry:
    """A case and finding of the gallery; how the picture lies in the patient is said where it is known."""

    id: str
    case: str
    patient: str
    finding: str
    why: str = ""  # it was chosen
    method: str = ""  # of which the reason speaks; empty where it speaks of the truth
    image: str
    shape: tuple[int, int]
    label: float | None
    probability: float | None = None
    truth: Outlines
    readers: tuple[ReaderEntry, ...] = ()
    maps: tuple[MethodMapEntry, ...] = ()
    rectangle: list[Point] | None = None  # fitted to the truth; its corners
    slice: int | None = None  # of a volume, counted from 1
    slices: int | None = None
    plane: str | None = None
    sides: str | None = None
