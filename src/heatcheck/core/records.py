"""What flows between the stages, without tensors: cases in, scores and estimates out.

Arrays are ordered channel, then space; positions are (row, column) or (slice, row, column).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.vocabulary import Statistic

ALL_FINDINGS = "All findings"  # the finding of an estimate in which every finding counts the same
COMMON_FINDINGS = "Findings of all methods"  # in its place where some methods lack some findings
HUMAN = "human"  # the method whose scores are the readers' mean
UNCERTAIN = -1.0  # a label: the reader would not say
ONE_VALUE = "every draw gives the same value"  # why there is no interval
TruthKind = Literal["outlines", "masks", "boxes"]  # how the experts' marks are stored
Image = Float[np.ndarray, "channel *space"]
Map = Float[np.ndarray, "*space"]
Mask = Bool[np.ndarray, "*space"]
Outlines = list[list[list[float]]]  # each of [x, y] pixels, whole numbers being their centres
Affine = Float[np.ndarray, "4 4"]  # from voxel indices, in the array's own order, to millimetres right, front and up


@dataclass(frozen=True, slots=True)
class Point:
    """A position on the image grid, first axis first; the first pixel reaches from 0 up to 1 along each axis."""

    position: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CaseKey:
    """What is known of a case before its pixels are read."""

    case: str
    patient: str
    labels: Mapping[str, float]  # 1 present, 0 absent, −1 uncertain, NaN unknown
    facts: Mapping[str, str] = field(default_factory=dict)  # of patient or image, such as sex; "" where not stated

    @property
    def examination(self) -> str:
        """The examination that the image is a view of; empty where it is not known.

        It is stated as the fact `study`, or else the id up to its last `_view`: patient00001_study1_view1_frontal.
        """
        stated = self.facts.get("study", "")
        return f"{self.patient} {stated}" if stated else self.case.rpartition("_view")[0]


@dataclass(frozen=True, slots=True)
class Reading:
    """One human reader's marks on one case; a finding the reader did not mark is absent."""

    reader: str
    masks: Mapping[str, Mask]
    points: Mapping[str, tuple[Point, ...]]
    outlined: bool = True  # False where the reader drew no outlines at all: not a miss, but not known
    pointed: bool = True  # False where the reader was not asked for points


@dataclass(frozen=True, slots=True)
class Case:
    """One image with everything known about it, on the image's own grid."""

    key: CaseKey
    image: Image  # float32 intensities in the source's own range, as the preprocessing contract expects
    truth: Mapping[str, Mask]  # the annotated findings only
    readings: tuple[Reading, ...] = ()
    spacing: tuple[float, ...] | None = None  # millimetres per pixel, where known
    instances: Mapping[str, int] = field(default_factory=dict)  # outlines or boxes drawn, by finding, where known
    affine: Affine | None = None  # of a volume, where known: indices of the image to the patient's RAS+ millimetres


@dataclass(frozen=True, slots=True)
class Score:
    """One metric's value for one map."""

    case: str
    patient: str
    finding: str
    method: str
    model: str
    metric: str
    value: float  # NaN when undefined, and 0 of a map that failed; `reason` then says why
    condition: str = "{}"  # canonical JSON: slice, reader, trigger, seed, fold, direction
    other_method: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A model's answer for one finding of one case."""

    case: str
    patient: str
    finding: str
    model: str
    label: float
    logit: float
    probability: float


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """What became of one case."""

    case: str
    patient: str
    status: str  # "ok" or "failed"
    stage: str = ""
    reason: str = ""
    detail: str = ""  # the traceback of a failure
    shape: str = ""
    annotated: int = 0  # 1 where the experts' marks speak of the case, be it that nothing is there
    examination: str = ""  # that the image is a view of, where that is known


@dataclass(frozen=True, slots=True)
class TruthShape:
    """The geometry of one annotated finding; NaN where the outline has no such property."""

    case: str
    patient: str
    finding: str
    instances: int  # outlines that were drawn; connected parts where that is not known
    components: int  # connected parts
    size: float  # share of the image
    elongation: float  # long over short side of the tightest rectangle around the dominant outline
    irrectangularity: float  # share of that rectangle which the outline leaves free


@dataclass(frozen=True, slots=True)
class RegionRecord:
    """The region cut out of one map, what it has in common with the truth, and where the map peaks."""

    case: str
    finding: str
    method: str
    height: int
    width: int
    counts: str  # the region as COCO's compressed run lengths
    pixels: int
    inside: int  # pixels that lie in the truth
    truth: int  # pixels of the truth
    peak_inside: int  # 1 if the first of the highest pixels lies in the truth
    probability: float


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one step took for one batch."""

    shard: int
    step: str
    method: str
    maps: int
    seconds: float
    model: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number of a table, with its interval and what it rests on."""

    statistic: Statistic  # what kind of number, e.g. mean, difference, shapley; each study names its own
    metric: str
    finding: str = ""
    method: str = ""
    model: str = ""
    value: float = math.nan  # until it is filled in, or where it is undefined; `reason` then says why
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    p_adjusted: float = math.nan
    family: str = ""  # the tests that were corrected together
    other_method: str = ""  # what `method` is compared with
    condition: str = "{}"
    n_cases: int = 0
    n_patients: int = 0
    n_undefined: int = 0
    reason: str = ""
    error: float = math.nan  # the standard error of a coefficient
    size: float = math.nan  # the smallest value that matters; NaN where the estimate supports no claim
    n_needed: int = 0  # patients with whom most runs could say yes or no; 0 where it can be said, or is out of sight


@dataclass(frozen=True, slots=True)
class Measured:
    """A value that may be undefined; then it is NaN and `reason` says why."""

    value: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ShardTables:
    """Everything one shard of work leaves behind."""

    scores: tuple[Score, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    cases: tuple[CaseRecord, ...] = ()
    timings: tuple[Timing, ...] = ()
    shapes: tuple[TruthShape, ...] = ()
    regions: tuple[RegionRecord, ...] = ()  # kept where others are to read them
    maps: Mapping[str, Map] = field(default_factory=dict)  # by "case/finding/method"; for looking at, never for scoring
