"""Whose fault a low score is, read from intervals: the model's, which uses other places, or the method's, which lies.

Reliance says what the model does without any map; the score says what the map shows. Neither alone is evidence.
Every threshold is an interval's end or the whole that there is to find, never a constant. A statement is made only
where the intervals rule out its opposite, each at its own level, without a correction for many rows.

Before fine-tuning. Reliance is high where its interval lies above 0 (the shifted regions are its floor; where the
placebo's interval lies above 0, its high end is). It is low where the interval reaches the floor but not the model's
whole separation of positive from negative images: an interval that could hold all or nothing knows nothing. The
map's score less its floor is read in the same way, and its whole is the human's score less the floor.

| reliance | map | before |
|---|---|---|
| high | low | method: it fails to show what the model uses |
| low | low | model: it does not use the area, and the map says so |
| high | high | shows: the map marks what the model uses |
| low | high | looks_elsewhere: the map marks an area that the model does not use |
| unknown | any | undecided |
| any | unknown | undecided |

Under fine-tuning, in each arm (aligned or misaligned, against the control), the map's change lies beyond 0 in the
arm's direction (moved), beyond 0 the other way (back), or around 0. It is far, or far back, where even its near end
leaves the interval of the control's score: its value alone may do so by a hair, most of all with one seed, whose
interval knows nothing of other trainings. So both doubts, of the change and of the control, must be overcome one after
the other. The map is still where both ends of a change around 0 stay within that interval, and no more than slight
where both ends of a change beyond 0 do, either way: paired differences are so exact that a change of no weight can lie
beyond 0. It is unclear where a change around 0 reaches out of that interval, and unknown where there is no interval.

Reliance followed where its difference lies beyond 0 in the arm's direction, and beyond the control's placebo (what
reliance is where nothing is). It turned where it did the same the other way. It held where it did neither, and both
ends of its difference stay within the interval of the control's reliance, which must be high or low to be of use. Else
it is unclear: where patients or seeds are few, a change that cannot be seen is not one that did not happen.

| map | reliance | arm |
|---|---|---|
| moved or far | followed | follows |
| back or far back | turned | follows: the arm failed, but the map went where the model went |
| far | held or turned | foolable: the map moved without the model, or against it |
| far back | held or followed | foolable, for the same reason |
| moved, but not far | held or turned | undecided |
| back, but not far | held or followed | undecided |
| still | followed or turned | missed: the model changed, and the map did not tell |
| still | held, unclear or unknown | still |
| slight | held | still |
| slight | not held | undecided: too little to follow the model, too sure to have missed it |
| moved or back, far or not | unclear or unknown | undecided |
| unclear or unknown | any | undecided |

| arms | under |
|---|---|
| any foolable | foolable: one map that moved without the model is enough, whatever the other arm did |
| any undecided, none foolable | undecided: that arm could overturn what the other one shows |
| follows, and the other follows, or is still where reliance held | follows |
| follows, and the other missed a change, or is still where reliance may not have held | undecided |
| missed, and the other missed or is still | unmoved: the model changed and the map did not, whatever was learned |
| all still, judged on networks aligned through another method | unmoved |
| all still, score rose on the fine-tuning images by more than it can have on others | unmoved: it does not carry over |
| all still, score did not rise on the fine-tuning images either | failed: the optimisation did not work |
| all still, neither of these | undecided |
| none | undecided |

A score did not rise where its difference reaches 0 and its high end stays within the interval of the control's.
"""

import math
from dataclasses import dataclass
from typing import Literal

Before = Literal["method", "model", "shows", "looks_elsewhere", "undecided"]
Under = Literal["follows", "foolable", "unmoved", "failed", "undecided"]
Level = Literal["high", "low", "unknown"]
Direction = Literal["align", "misalign"]
MapMove = Literal["far", "moved", "slight", "still", "back", "far back", "unclear", "unknown"]
RelianceMove = Literal["followed", "held", "turned", "unclear", "unknown"]
Outcome = Literal["follows", "foolable", "missed", "still", "undecided"]
Why = Literal["", "undefined", "no scale", "too wide"]

_BEFORE: dict[tuple[Level, Level], Before] = {
    ("high", "low"): "method",
    ("low", "low"): "model",
    ("high", "high"): "shows",
    ("low", "high"): "looks_elsewhere",
}
_OUTCOMES: dict[tuple[MapMove, RelianceMove], Outcome] = {  # else undecided
    ("moved", "followed"): "follows",
    ("far", "followed"): "follows",
    ("back", "turned"): "follows",
    ("far back", "turned"): "follows",
    ("far", "held"): "foolable",
    ("far", "turned"): "foolable",
    ("far back", "held"): "foolable",
    ("far back", "followed"): "foolable",
    ("still", "followed"): "missed",
    ("still", "turned"): "missed",
    ("still", "held"): "still",
    ("still", "unclear"): "still",
    ("still", "unknown"): "still",
    ("slight", "held"): "still",
}


@dataclass(frozen=True, slots=True)
class EstimateWithInterval:
    """An estimate and the ends of its interval, NaN where there is none."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return math.isfinite(self.value) and math.isfinite(self.low) and math.isfinite(self.high)

    def toward(self, direction: Direction) -> "EstimateWithInterval":
        """The same with the arm's direction as up."""
        return self if direction == "align" else EstimateWithInterval(-self.value, -self.high, -self.low)


@dataclass(frozen=True, slots=True)
class Use:
    """How much a model relies on the outlined area, and what there is to compare it with."""

    reliance: EstimateWithInterval
    placebo: EstimateWithInterval
    separation: float  # mean logit of positive less negative images, in units of the logit's spread; NaN if unknown


@dataclass(frozen=True, slots=True)
class Arm:
    """What one direction of fine-tuning changed on unseen patients, against the control."""

    direction: Direction
    score: EstimateWithInterval
    reliance: EstimateWithInterval


@dataclass(frozen=True, slots=True)
class BlameEvidence:
    """All that is known of one model, method and finding."""

    base: Use
    gain: EstimateWithInterval  # the base map's score less its floor
    room: float  # the human's score less the floor; NaN if unknown
    control: Use
    control_score: EstimateWithInterval
    arms: tuple[Arm, ...]
    learned: EstimateWithInterval = EstimateWithInterval()  # aligned less control, on the images that were learned from
    judged: bool = False  # the networks were aligned through another method


@dataclass(frozen=True, slots=True)
class Found:
    """Whether something is there, and why that is not known."""

    level: Level
    why: Why = ""


@dataclass(frozen=True, slots=True)
class ArmReading:
    """What one direction of fine-tuning showed."""

    direction: Direction
    score: MapMove
    reliance: RelianceMove
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class BlameVerdict:
    """Whose fault it is, and what fine-tuning showed, with what each rests on."""

    before: Before
    under: Under
    uses: Found  # the model the area
    marks: Found  # the map the area
    arms: tuple[ArmReading, ...]


def read(evidence: BlameEvidence) -> BlameVerdict:
    """The reading of the evidence by the tables above."""
    uses, marks = used(evidence.base), level(evidence.gain, 0.0, evidence.room)
    arms = tuple(_arm(arm, evidence) for arm in evidence.arms)
    before = _BEFORE.get((uses.level, marks.level), "undecided")
    return BlameVerdict(before, _under(arms, evidence), uses, marks, arms)


def used(use: Use) -> Found:
    """Whether the model relies on the area."""
    floor = use.placebo.high if use.placebo.known and use.placebo.low > 0 else 0.0
    return level(use.reliance, floor, use.separation)


def level(seen: EstimateWithInterval, floor: float, whole: float) -> Found:
    """High above the floor; low where it reaches the floor and cannot be the whole; else not known."""
    if not seen.known:
        return Found("unknown", "undefined")
    if seen.low > floor:
        return Found("high")
    if not whole > floor:  # nothing to find, or not known how much
        return Found("unknown", "no scale")
    return Found("low") if seen.high < whole else Found("unknown", "too wide")


def _arm(arm: Arm, evidence: BlameEvidence) -> ArmReading:
    score, reliance = _map_move(arm, evidence.control_score), _reliance_move(arm, evidence.control)
    return ArmReading(arm.direction, score, reliance, _OUTCOMES.get((score, reliance), "undecided"))


def _map_move(arm: Arm, control_score: EstimateWithInterval) -> MapMove:
    change, control = arm.score.toward(arm.direction), control_score.toward(arm.direction)
    if not change.known:
        return "unknown"
    beyond = change.low > 0 or change.high < 0
    if _within(change, control):
        return "slight" if beyond else "still"
    if not beyond:
        return "unclear"
    if change.low > 0:
        return "far" if control.value + change.low > control.high else "moved"
    return "far back" if control.value + change.high < control.low else "back"


def _reliance_move(arm: Arm, control: Use) -> RelianceMove:
    change = arm.reliance.toward(arm.direction)
    if not change.known:
        return "unknown"
    placebo = control.placebo.toward(arm.direction)
    nothing = placebo if placebo.known else EstimateWithInterval(0.0, 0.0, 0.0)
    if change.low > 0 and change.value > nothing.high:
        return "followed"
    if change.high < 0 and change.value < nothing.low:
        return "turned"
    within = _within(arm.reliance, control.reliance)
    return "held" if within and used(control).level != "unknown" else "unclear"


def _under(arms: tuple[ArmReading, ...], evidence: BlameEvidence) -> Under:
    outcomes = {arm.outcome for arm in arms}
    if "foolable" in outcomes:
        return "foolable"
    if "undecided" in outcomes or not outcomes:
        return "undecided"
    if "follows" in outcomes:
        agreed = all(arm.outcome == "follows" or arm.reliance == "held" for arm in arms)
        return "follows" if agreed else "undecided"
    return "unmoved" if "missed" in outcomes or evidence.judged else _where_nothing_moved(evidence)


def _where_nothing_moved(evidence: BlameEvidence) -> Under:
    """Why no arm's map moved on unseen patients, where networks were trained to move it."""
    if not evidence.learned.known:
        return "undecided"
    control = evidence.control_score
    if evidence.learned.low <= 0:
        return "failed" if control.value + evidence.learned.high <= control.high else "undecided"
    unseen = [arm.score.high for arm in evidence.arms if arm.direction == "align"]
    return "unmoved" if unseen and max(unseen) < evidence.learned.value else "undecided"


def _within(change: EstimateWithInterval, control: EstimateWithInterval) -> bool:
    """Whether both ends of a change stay within what the control is known to be."""
    return control.low <= control.value + change.low and control.value + change.high <= control.high
