"""Whether a low score is the fault of the model, which uses other areas, or of the method, whose map is wrong.

Reliance shows what the model uses, without any map; the score shows what the map marks. Neither alone is evidence.
Both are read as parts of a whole: reliance of the model's separation (how much higher it scores images with the
finding), a map's score of the room between a floor and the human readers. A part is judged by `heatcheck.judging`: yes
where it is large enough to matter, no where it cannot be, and else open. Every part is judged at its own level, without
a correction for multiple testing.

What the model does with the outlined area:

| reliance | further | the area is |
|---|---|---|
| yes | more than an untrained network of the same build relies on it, or there is no such network | used |
| yes | not more than that | unknown |
| clearly below 0 | | against: hiding it raises the score |
| no | put on images without the finding, it does not give them the score either | unused |
| no | put on such images, it gives the score | redundant: another area may serve as well |
| no | whether it does is open | unknown |
| open | | unknown |

What the map does with it, against maps that are made without the model (random, centre, edges, usual place):

| above the best of them | above random maps | the map |
|---|---|---|
| yes | | marks it |
| no | yes | marks it as they do: usual |
| any but yes | no | does not mark it |
| anything else | | unknown |

| area | map | before |
|---|---|---|
| against or redundant | any | against, redundant |
| used or unused | usual | usual: no better than a map made without the model, whoever is to blame |
| used | does not mark it | method: it fails to show what the model uses |
| unused | does not mark it | model: it does not use the area, and the map shows that |
| used | marks it | shows: the map marks what the model uses |
| unused | marks it | looks_elsewhere: the map marks an area that the model does not use |
| anything else | | undecided |

Networks that were trained once show what these networks did, and nothing of another training: then everything under
fine-tuning is undecided. Else, in each arm (aligned or misaligned, against the control), the map moved where its change
is judged a yes in the arm's direction, went back where it is one in the other, and was still where it is a no in both.
Reliance moved with the map where its change lies beyond 0 in the same direction. It held where it is a no in both
directions: the margin is a share of the separation, so that a wide interval never makes reliance hold. The two are in
proportion where neither moved, as a share of its whole, more than `PROPORTION` times as far as the other.

| map | reliance | arm |
|---|---|---|
| moved or back | moved with it, in proportion | follows: the map went where the model went |
| moved or back | held, out of proportion to even the near end of the map's change | foolable |
| moved or back | clearly moved against it | foolable: the map went against the model |
| moved or back | anything else | undecided |
| still | clearly moved, in either direction | missed: the model changed, and the map did not show it |
| still | anything else | still |
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
"""

import math
from dataclasses import dataclass
from typing import Literal

from heatcheck.judging.judgement import Answer, Judgement
from heatcheck.studies.alignment.blame.evidence import Arm, BlameEvidence, Marks, Part, Use
from heatcheck.studies.alignment.vocabulary import Direction

Before = Literal["method", "model", "shows", "looks_elsewhere", "usual", "redundant", "against", "undecided"]
Under = Literal["follows", "foolable", "unmoved", "failed", "undecided"]
UseLevel = Literal["used", "unused", "redundant", "against", "unknown"]
MarkLevel = Literal["marked", "usual", "unmarked", "unknown"]
MapMove = Literal["moved", "still", "back", "unclear", "unknown"]
RelianceMove = Literal["followed", "held", "turned", "unclear", "unknown"]
Outcome = Literal["follows", "foolable", "missed", "still", "undecided"]
Why = Literal["", "undefined", "no scale", "too wide", "untrained", "added"]

PROPORTION = 3.0  # a map follows where neither it nor reliance moved more than so many times as far as the other

_BEFORE: dict[tuple[UseLevel, MarkLevel], Before] = {
    ("used", "unmarked"): "method",
    ("unused", "unmarked"): "model",
    ("used", "marked"): "shows",
    ("unused", "marked"): "looks_elsewhere",
    ("used", "usual"): "usual",
    ("unused", "usual"): "usual",
}


@dataclass(frozen=True, slots=True)
class UseReading:
    """What the model does with the area, and the reason if that is unknown."""

    level: UseLevel
    why: Why = ""


@dataclass(frozen=True, slots=True)
class MarkReading:
    """What the map does with the area, and the reason if that is unknown."""

    level: MarkLevel
    why: Why = ""


@dataclass(frozen=True, slots=True)
class ArmReading:
    """How map and reliance moved in one direction of fine-tuning, and what follows."""

    direction: Direction
    score: MapMove
    reliance: RelianceMove  # as seen from the arm's direction
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class BlameVerdict:
    """The verdicts before and under fine-tuning, with the readings that they follow from."""

    before: Before
    under: Under
    uses: UseReading
    marks: MarkReading
    arms: tuple[ArmReading, ...]


def read(evidence: BlameEvidence) -> BlameVerdict:
    """The verdict from the evidence, by the tables above."""
    uses, marks = used(evidence.use), marked(evidence.marks)
    arms = tuple(_arm(arm) for arm in evidence.arms)
    return BlameVerdict(before_of(uses, marks), _under(arms, evidence), uses, marks, arms)


def needed(evidence: BlameEvidence, verdict: BlameVerdict) -> int:
    """The patients that would decide what is open of the base; 0 where that is not known."""
    if verdict.before != "undecided":
        return 0
    parts = [evidence.use.reliance, evidence.marks.above_best, evidence.marks.above_random]
    if verdict.uses.why == "added":
        parts.append(evidence.use.added)
    counts = [part.n_needed for part in parts if part.above.answer is Answer.OPEN]
    return max(counts) if counts and all(counts) else 0


def before_of(uses: UseReading, marks: MarkReading) -> Before:
    """The verdict without fine-tuning."""
    if uses.level in ("against", "redundant"):
        return uses.level
    return _BEFORE.get((uses.level, marks.level), "undecided")


def used(use: Use) -> UseReading:
    """What the model does with the area."""
    if why := _why_open(use.reliance, use.reliance.above):
        return UseReading("unknown", why)
    if use.reliance.below.is_yes:
        return UseReading("against")
    if use.reliance.estimate.high < 0 and not use.reliance.below.is_no:  # it may count against the finding
        return UseReading("unknown", _why_open(use.reliance, use.reliance.below))
    if use.reliance.above.is_yes:
        untrained = use.above_untrained
        return UseReading("unknown", "untrained") if untrained and not untrained.low > 0 else UseReading("used")
    added = use.added.above
    if added.answer is Answer.OPEN or use.added.below.is_yes:
        return UseReading("unknown", "added")
    return UseReading("redundant" if added.is_yes else "unused")


def marked(marks: Marks) -> MarkReading:
    """What the map does with the area."""
    best, random = marks.above_best, marks.above_random
    if best.above.is_yes:
        return MarkReading("marked")
    if random.above.is_no:
        return MarkReading("unmarked")
    if best.above.is_no and random.above.is_yes:
        return MarkReading("usual")
    return MarkReading("unknown", _why_open(best, best.above) or _why_open(random, random.above))


def _why_open(part: Part, judgement: Judgement) -> Why:
    if judgement.answer is not Answer.OPEN:
        return ""
    if not part.known:
        return "undefined"
    return "no scale" if judgement.reason else "too wide"


def _arm(arm: Arm) -> ArmReading:
    score, reliance = arm.score.toward(arm.direction), arm.reliance.toward(arm.direction)
    move = _map_move(score)
    if move == "back":  # seen from where the map went
        outcome = _outcome_of_move(score.toward("misalign"), reliance.toward("misalign"))
    elif move == "moved":
        outcome = _outcome_of_move(score, reliance)
    elif move == "still":
        outcome = "missed" if reliance.above.is_yes or reliance.below.is_yes else "still"
    else:
        outcome = "undecided"
    return ArmReading(arm.direction, move, _reliance_move(reliance), outcome)


def _map_move(change: Part) -> MapMove:
    if not change.known:
        return "unknown"
    if change.above.is_yes or change.below.is_yes:
        return "moved" if change.above.is_yes else "back"
    return "still" if change.no_matter else "unclear"


def _reliance_move(change: Part) -> RelianceMove:
    if not change.known:
        return "unknown"
    if change.no_matter:
        return "held"
    if change.estimate.low > 0:
        return "followed"
    return "turned" if change.estimate.high < 0 else "unclear"


def _outcome_of_move(score: Part, reliance: Part) -> Outcome:
    """What a map that moved says, both changes seen from its direction."""
    if not reliance.known or math.isnan(reliance.size):
        return "undecided"
    if reliance.below.is_yes:
        return "foolable"
    map_share, model_share = score.share, reliance.share
    if reliance.no_matter and map_share.low > PROPORTION * max(model_share.high, 0.0):
        return "foolable"
    ratio = model_share.value / map_share.value
    in_proportion = 1 / PROPORTION <= ratio <= PROPORTION
    return "follows" if model_share.low > 0 and in_proportion else "undecided"


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
    learned = evidence.learned
    if learned.above.is_no:
        return "failed"
    # moved on the fine-tuning images by more than the most that it can have moved on new patients: no generalisation
    on_new = [arm.score.estimate.high for arm in evidence.arms if arm.direction == "align"]
    moved = learned.above.is_yes and on_new and max(on_new) < learned.estimate.value
    return "unmoved" if moved else "undecided"
