"""The sentence of each row of the blame table: what the model uses, what the map marks, what fine-tuning showed.

A sentence is made from the parts of a reading (levels, moves and outcomes of both arms), of which an estimate's
condition states only the conclusions. It is therefore written where the reading is made, and stored as the row's
reason for the report and for everybody who reads the table of estimates. Nothing reads it back.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from heatcheck.methods import METHODS
from heatcheck.metrics import METRIC_FACTS
from heatcheck.report.numbers import SCORE, SPACE, number
from heatcheck.studies.alignment.blame.evidence import Arm, BlameEvidence, Part
from heatcheck.studies.alignment.blame.readings import ArmReading, BlameVerdict, Outcome
from heatcheck.studies.alignment.vocabulary import RANDOM

_UNIT = SCORE.rounded(2)
MOST_SHARE = 5.0  # of a whole that is next to nothing, a share in percent says little
_USES = {
    "used": "The model uses the outlined area (reliance {reliance})",
    "unused": "The model hardly uses the outlined area (reliance {reliance}; put on images "
    "without the finding, it adds {added})",
    "against": "Hiding the outlined area raises the model's score (reliance {reliance}): it counts the area against "
    "the finding",
    "redundant": "Hiding the outlined area hardly lowers the model's score (reliance {reliance}), but put on "
    "images without the finding it gives that score ({added}): another area may serve the model as well",
}
_UNKNOWN_USE = {
    "undefined": "What the model uses is not known: {reason}",
    "no scale": "What the model uses is not known (reliance {reliance}): {no_scale}",
    "too wide": "Whether the model uses the outlined area is not shown (reliance {reliance}){needed}",
    "untrained": "Whether the model learned to use the outlined area is not shown: its reliance ({reliance}) is not "
    "clearly above that of untrained networks of the same build",
    "added": "Hiding the outlined area hardly lowers the model's score (reliance {reliance}), but whether it "
    "gives that score to images without the finding is not shown ({added}){needed}",
}
_MARKS = {
    "marked": "the map marks it better than {best} ({score})",
    "unmarked": "the map hardly marks it better than random maps ({random})",
    "usual": "the map marks it better than random maps ({random}), but no better than {best}, made without the model "
    "({score})",
}
_UNKNOWN_MAP = {
    "undefined": "what the map marks is not known: {reason}",
    "no scale": "whether the map marks it cannot be decided ({score}): {no_room}",
    "too wide": "whether the map marks it better than {best} is not shown ({score}){needed}",
}
_NO_ROOM = (
    "not even {top} score above {best} ({top_score} against {best_score}), so no map can be shown to be better, and a "
    "map below {best} need not be wrong"
)
_THEREFORE = {
    "method": ": the method fails to show what the model uses",
    "model": ": a truthful map would look like this, so the low score is the model's",
    "looks_elsewhere": ": the map flatters the model",
    "usual": ": that says nothing about the map or the model",
    "against": ": neither a high nor a low score of the map is a fault",
    "redundant": ": neither a high nor a low score of the map shows a fault",
}
_OF_A_FLOOR = {  # of a map that was made without the model, which it cannot show
    "method": ": so it should be, for this map was made without the model",
    "shows": ": this map was made without the model, so the rule is too weak here",
    "looks_elsewhere": ": this map was made without the model, so the rule is too weak here",
}
_FLOORS = {
    RANDOM: "random maps",
    "center_prior": "a blob in the middle",
    "edge": "the image's edges",
    "location_prior": "the usual place",
}
_TOWARD = {"align": "toward the outlines", "misalign": "away from them"}
_RELIANCE = {
    "followed": "and reliance with it ({change})",
    "held": "while reliance changed by less than matters ({change})",
    "turned": "while reliance went the other way ({change})",
    "unclear": "but whether reliance did is not shown ({change})",
    "unknown": "and the change of reliance is not known",
}
_AGAINST_THE_ARM = {"followed": "turned", "turned": "followed"}  # reliance as seen from a map that moved back
_STILL = "the map's score changed by less than matters"
_UNCLEAR = "whether the map's score changed by as much as matters is not shown"
_NOT_MOVED = {  # reliance, where the map did not clearly move
    "followed": ", {joined} reliance {toward} ({change})",
    "turned": ", {joined} reliance {away} ({change})",
    "held": ", and reliance changed by less than matters ({change})",
    "unclear": ", and whether reliance changed is not shown ({change})",
    "unknown": ", and the change of reliance is not known",
}
_SEPARATION, _CONTROLS, _ROOM = "the separation of", "the control's separation of", "the room of"


@dataclass(frozen=True, slots=True)
class SentenceParts:
    """All that a row's sentence states."""

    evidence: BlameEvidence
    reading: BlameVerdict
    metric: str  # the score that was read
    through: str  # the method that the networks were aligned through, if it is another one
    reasons: Mapping[str, str]  # why reliance, the score, the separation or an arm's change may be missing
    top: str = "the readers' marks"  # whose score is 1 on the common scale
    top_score: float = math.nan
    best_score: float = math.nan  # of the best floor
    is_floor: bool = False  # the map was made without the model

    @property
    def score(self) -> str:
        """The name of the score, in the middle of a sentence."""
        label = METRIC_FACTS[self.metric].label
        return label if label.isupper() else label[:1].lower() + label[1:]


def sentence(parts: SentenceParts) -> str:
    """What the model uses and the map marks; then what fine-tuning showed."""
    return f"{_before(parts)} {_under(parts)}"


def _before(parts: SentenceParts) -> str:
    reading = parts.reading
    use, mark = _uses(parts), _marks(parts)
    joined = {"method": ", but", "looks_elsewhere": ", but", "undecided": ";"}.get(reading.before, ", and")
    therefore = _THEREFORE | (_OF_A_FLOOR if parts.is_floor else {})
    return f"{use}{joined} {mark}{therefore.get(reading.before, '')}."


def _uses(parts: SentenceParts) -> str:
    reading, use = parts.reading.uses, parts.evidence.use
    no_scale = parts.reasons.get("separation") or "it does not distinguish images with the finding from those without"
    words = {
        "reliance": _of_whole(use.reliance, _SEPARATION),
        "added": _of_whole(use.added, _SEPARATION),
        "needed": _needed(use.added if reading.why == "added" else use.reliance),
        "reason": parts.reasons["reliance"],
        "no_scale": no_scale,
    }
    return (_UNKNOWN_USE[reading.why] if reading.why else _USES[reading.level]).format(**words)


def _marks(parts: SentenceParts) -> str:
    reading, marks = parts.reading.marks, parts.evidence.marks
    best = _FLOORS.get(marks.best, marks.best)
    words = {
        "score": f"{parts.score} minus that of {best}: {_of_whole(marks.above_best, _ROOM, signed=True)}",
        "random": f"{parts.score} minus that of random maps: {_of_whole(marks.above_random, _ROOM, signed=True)}",
        "best": best,
        "needed": _needed(marks.above_best),
        "reason": parts.reasons["score"],
        "no_room": _no_room(parts, best),
    }
    return (_UNKNOWN_MAP[reading.why] if reading.why else _MARKS[reading.level]).format(**words)


def _no_room(parts: SentenceParts, best: str) -> str:
    """Why the scale does not reach above the best floor."""
    if not (math.isfinite(parts.top_score) and math.isfinite(parts.best_score)):
        return f"how {parts.top} and {best} score is not known"
    top, floor = (number(score, _UNIT) for score in (parts.top_score, parts.best_score))
    return _NO_ROOM.format(top=parts.top, best=best, top_score=top, best_score=floor)


def _needed(part: Part) -> str:
    return f"; about {part.n_needed:,} patients would decide it" if part.n_needed else ""


def _under(parts: SentenceParts) -> str:
    readings = parts.reading.arms
    if all(reading.score == "unknown" for reading in readings):
        why = next(filter(None, (parts.reasons.get(reading.direction) for reading in readings)), "")
        return f"What fine-tuning does to the map is not known{f': {why}' if why else ''}."
    through = f" through {METHODS[parts.through].label}" if parts.through else ""
    compared = (" and compared with the control", *("" for _ in readings[1:]))
    clauses = [
        f"{_TOWARD[arm.direction]}{words}, {_arm(reading, arm)}"
        for reading, arm, words in zip(readings, parts.evidence.arms, compared, strict=True)
    ]
    return f"Fine-tuned{through} {'; '.join(clauses)}. {_verdict(parts)}"


def _arm(reading: ArmReading, arm: Arm) -> str:
    """What became of the map, and of the model."""
    if reading.score == "unknown":
        return "the change of the map's score is not known"
    rose, fell = ("rose", "fell") if arm.direction == "align" else ("fell", "rose")
    change = _of_whole(arm.score, _ROOM, signed=True)
    reliance = _of_whole(arm.reliance, _CONTROLS, signed=True)
    if reading.score == "moved":
        return f"the map's score {rose} ({change}) {_RELIANCE[reading.reliance].format(change=reliance)}"
    if reading.score == "back":
        went = _AGAINST_THE_ARM.get(reading.reliance, reading.reliance)
        return f"the map's score {fell} nevertheless ({change}) {_RELIANCE[went].format(change=reliance)}"
    still = _STILL if reading.score == "still" else _UNCLEAR
    joined = "although" if reading.outcome == "missed" else "and"
    model = _NOT_MOVED[reading.reliance].format(change=reliance, joined=joined, toward=rose, away=fell)
    return f"{still} ({change}){model}"


def _verdict(parts: SentenceParts) -> str:
    if parts.evidence.one_training:
        return (
            "Each network was trained once: this is what these networks did, and nothing is claimed of how the method "
            "behaves under fine-tuning."
        )
    under = parts.reading.under
    outcomes = {reading.outcome for reading in parts.reading.arms}
    if under == "follows":
        rest = "" if outcomes == {"follows"} else ", and neither changed by as much as matters in the other direction"
        return f"The map followed the model, in proportion{rest}."
    if under == "foolable":
        also = ", even though it followed the model in the other direction" if "follows" in outcomes else ""
        return f"The map can be moved without the model{also}: by itself it is no evidence."
    if under == "undecided":
        return _undecided(outcomes)
    learned = _of_whole(parts.evidence.learned, _ROOM, signed=True)
    if under == "failed":
        return (
            f"It hardly rose on the images learned from either ({learned}): fine-tuning failed and says nothing about "
            "the map."
        )
    return _unmoved(parts, learned)


def _unmoved(parts: SentenceParts, learned: str) -> str:
    """What it means that the map did not move."""
    readings = parts.reading.arms
    if any(reading.outcome == "missed" for reading in readings):
        return "The model changed and the map did not: it missed that change."
    if parts.evidence.judged:
        held = all(reading.reliance == "held" for reading in readings)
        return f"The map changed by less than matters{', and so did the model' if held else ''}."
    return f"It rose on the images learned from ({learned}), which does not generalise to unseen patients."


def _undecided(outcomes: Collection[Outcome]) -> str:
    if "missed" not in outcomes:
        return "What that says about the map cannot be decided."
    if "follows" in outcomes:
        return (
            "The map followed the model in one direction and missed its change in the other: whether it shows what the "
            "model does cannot be decided."
        )
    return (
        "Where the map changed by less than matters, it missed a change of the model; what the rest says about it "
        "cannot be decided."
    )


def _of_whole(part: Part, name: str, *, signed: bool = False) -> str:
    """The value, its whole and its share with the interval: "0.06 of the room of 2.00 = 3 %, 95 % −1 to 7 %".

    Next to a whole that is almost nothing, and where there is none, the value has its own interval.
    """
    value = number(part.estimate.value, _UNIT, signed=signed)
    if not math.isfinite(part.whole) or abs(part.share.value) >= MOST_SHARE:
        low, high = (number(end, _UNIT, signed=signed) for end in (part.estimate.low, part.estimate.high))
        whole = f" next to {name} {number(part.whole, _UNIT)}" if math.isfinite(part.whole) else ""
        return f"{value}{whole}, " + (f"95{SPACE}% {low} to {high}" if part.known else "without an interval")
    share = part.share
    words = f"{value} of {name} {number(part.whole, _UNIT)} = {_percent(share.value, signed=signed)}{SPACE}%"
    if not part.known:
        return f"{words}, without an interval"
    if share.low == share.high:
        return f"{words} on every image"
    low, high = (_percent(end, signed=signed) for end in (share.low, share.high))
    return f"{words}, 95{SPACE}% {low} to {high}{SPACE}%"


def _percent(share: float, *, signed: bool) -> str:
    return number(100 * share, SCORE.rounded(0), signed=signed)
