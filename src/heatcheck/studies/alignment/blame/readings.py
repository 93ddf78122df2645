"""Whether a low score is the fault of the model, which uses other areas, or of the method, whose map is wrong.

Reliance shows what the model uses, without any map; the score shows what the map marks. Neither alone is evidence.
A statement is made only where the intervals rule out its opposite, each at its own level, without a correction for
multiple testing.

Before fine-tuning, the judgement of `heatcheck.judging` is asked whether reliance lies above its floor by a size that
matters: 0, because reliance is relative to shifted regions, or the high end of the placebo's interval where that lies
above 0. The size is a share of the model's separation of positive from negative images. Yes is high, no is low, and a
reliance of which neither can be said is unknown: that it does not lie clearly above 0 does not make it low. The map's
score less its floor is read in the same way, with a share of the room up to the human readers as its size.

| reliance | map | before |
|---|---|---|
| high | low | method: it fails to show what the model uses |
| low | low | model: it does not use the area, and the map shows that |
| high | high | shows: the map marks what the model uses |
| low | high | looks_elsewhere: the map marks an area that the model does not use |
| unknown | any | undecided |
| any | unknown | undecided |

Networks that were trained once show what these networks did, and nothing of another training: then everything under
fine-tuning is undecided. Else, in each arm (aligned or misaligned, against the control), the interval of the map's
change lies beyond 0 in the arm's direction (moved), beyond 0 the other way (back), or includes 0. The change is far, or
far back, where even its end nearer to 0, added to the control's score, leaves the interval of that score. The value
alone could leave it by a hair, most of all with one seed, whose interval does not cover other trainings; so the
uncertainty of the change and that of the control must both be overcome. The map is still where a change that includes 0
stays within the control's interval with both ends, and its change is slight where one beyond 0 does: paired differences
are so precise that even an unimportant change can lie beyond 0. It is unclear where a change that includes 0 reaches
beyond the control's interval, and unknown where there is no interval.

Reliance followed where its difference lies beyond 0 in the arm's direction, and beyond the control's placebo (the
reliance on an area where nothing is outlined). It turned where it did the same the other way. It held where it did
neither, both ends of its difference stay within the interval of the control's reliance, and that reliance is high or
low. Otherwise it is unclear: with few patients or seeds, no visible change does not mean no change.

| map | reliance | arm |
|---|---|---|
| moved or far | followed | follows |
| back or far back | turned | follows: the arm failed, but the map went where the model went |
| far | held or turned | foolable: the map moved without the model, or against it |
| far back | held or followed | foolable, for the same reason |
| moved, but not far | held or turned | undecided |
| back, but not far | held or followed | undecided |
| still | followed or turned | missed: the model changed, and the map did not show it |
| still | held, unclear or unknown | still |
| slight | held | still |
| slight | not held | undecided: too small to follow the model, too clear to have missed it |
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
| all still, score rose on the fine-tuning images by more than it can have on others | unmoved: it does not generalise |
| all still, score did not rise on the fine-tuning images either | failed: the optimisation did not work |
| all still, neither of these | undecided |
| none | undecided |

A score did not rise where its difference reaches 0 and its high end stays within the interval of the control's score.
"""

import math
from dataclasses import dataclass
from typing import Literal

from heatcheck.judging.judgement import Answer, judge

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
_OUTCOMES: dict[tuple[MapMove, RelianceMove], Outcome] = {  # all other pairs are undecided
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
    """An estimate and the ends of its interval, NaN where undefined."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def known(self) -> bool:
        """Whether value and interval are defined."""
        return math.isfinite(self.value) and math.isfinite(self.low) and math.isfinite(self.high)

    def toward(self, direction: Direction) -> "EstimateWithInterval":
        """The same with its sign changed for misalignment, so that a change in the arm's direction is positive."""
        return self if direction == "align" else EstimateWithInterval(-self.value, -self.high, -self.low)


@dataclass(frozen=True, slots=True)
class Use:
    """How much a model relies on the outlined area, with the placebo as its floor."""

    reliance: EstimateWithInterval
    placebo: EstimateWithInterval
    size: float  # that matters: a share of the model's separation; NaN if that is unknown


@dataclass(frozen=True, slots=True)
class Arm:
    """The changes in one direction of fine-tuning, relative to the control, on patients not used for fine-tuning."""

    direction: Direction
    score: EstimateWithInterval
    reliance: EstimateWithInterval


@dataclass(frozen=True, slots=True)
class BlameEvidence:
    """The evidence on one model, method and finding."""

    base: Use
    gain: EstimateWithInterval  # the base map's score less its floor
    gain_size: float  # that matters: a share of the human readers' score less the floor; NaN if that is unknown
    control: Use
    control_score: EstimateWithInterval
    arms: tuple[Arm, ...]
    learned: EstimateWithInterval = EstimateWithInterval()  # score of aligned less control on the fine-tuning images
    judged: bool = False  # the networks were aligned through another method
    one_training: bool = False  # each network was trained with one seed


@dataclass(frozen=True, slots=True)
class LevelReading:
    """Whether reliance or a score is high or low, and the reason if that is unknown."""

    level: Level
    why: Why = ""


@dataclass(frozen=True, slots=True)
class ArmReading:
    """How map and reliance moved in one direction of fine-tuning, and what follows."""

    direction: Direction
    score: MapMove
    reliance: RelianceMove
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class BlameVerdict:
    """The verdicts before and under fine-tuning, with the readings that they follow from."""

    before: Before
    under: Under
    uses: LevelReading  # whether the model uses the area
    marks: LevelReading  # whether the map marks the area
    arms: tuple[ArmReading, ...]


def read(evidence: BlameEvidence) -> BlameVerdict:
    """The verdict from the evidence, by the tables above."""
    uses, marks = used(evidence.base), level(evidence.gain, 0.0, evidence.gain_size)
    arms = tuple(_arm(arm, evidence) for arm in evidence.arms)
    before = _BEFORE.get((uses.level, marks.level), "undecided")
    return BlameVerdict(before, _under(arms, evidence), uses, marks, arms)


def used(use: Use) -> LevelReading:
    """Whether the model relies on the area."""
    floor = use.placebo.high if use.placebo.known and use.placebo.low > 0 else 0.0
    return level(use.reliance, floor, use.size)


def level(estimate: EstimateWithInterval, floor: float, size: float) -> LevelReading:
    """High above the floor by a size that matters; low where even the interval's high end lies below that."""
    if not estimate.known:
        return LevelReading("unknown", "undefined")
    judgement = judge(estimate.value - floor, estimate.low - floor, estimate.high - floor, size)
    if judgement.answer is Answer.OPEN:
        return LevelReading("unknown", "no scale" if judgement.reason else "too wide")
    return LevelReading("high" if judgement.is_yes else "low")


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
    # the end nearer to 0 is added to the control's value, so that both intervals count
    if change.low > 0:
        return "far" if control.value + change.low > control.high else "moved"
    return "far back" if control.value + change.high < control.low else "back"


def _reliance_move(arm: Arm, control: Use) -> RelianceMove:
    change = arm.reliance.toward(arm.direction)
    if not change.known:
        return "unknown"
    placebo = control.placebo.toward(arm.direction)
    by_chance = placebo if placebo.known else EstimateWithInterval(0.0, 0.0, 0.0)
    if change.low > 0 and change.value > by_chance.high:
        return "followed"
    if change.high < 0 and change.value < by_chance.low:
        return "turned"
    within = _within(arm.reliance, control.reliance)
    return "held" if within and used(control).level != "unknown" else "unclear"


def _under(arms: tuple[ArmReading, ...], evidence: BlameEvidence) -> Under:
    outcomes = {arm.outcome for arm in arms}
    if evidence.one_training:
        return "undecided"
    if "foolable" in outcomes:
        return "foolable"
    if "undecided" in outcomes or not outcomes:
        return "undecided"
    if "follows" in outcomes:
        agreed = all(arm.outcome == "follows" or arm.reliance == "held" for arm in arms)
        return "follows" if agreed else "undecided"
    return "unmoved" if "missed" in outcomes or evidence.judged else _where_nothing_moved(evidence)


def _where_nothing_moved(evidence: BlameEvidence) -> Under:
    """Why no arm's map moved on new patients, although networks were trained to move it."""
    if not evidence.learned.known:
        return "undecided"
    control = evidence.control_score
    if evidence.learned.low <= 0:
        return "failed" if control.value + evidence.learned.high <= control.high else "undecided"
    # moved on the fine-tuning images by more than the most that it can have moved on new patients: no generalisation
    on_new = [arm.score.high for arm in evidence.arms if arm.direction == "align"]
    return "unmoved" if on_new and max(on_new) < evidence.learned.value else "undecided"


def _within(change: EstimateWithInterval, control: EstimateWithInterval) -> bool:
    """Whether the control's value plus either end of the change stays within the control's interval."""
    return control.low <= control.value + change.low and control.value + change.high <= control.high
