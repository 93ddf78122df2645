"""The sentence of each row of the blame table: what the model uses, what the map marks, what fine-tuning showed.

A sentence is made from the parts of a reading (levels, moves and outcomes of both arms), of which an estimate's
condition states only the conclusions. It is therefore written where the reading is made, and stored as the row's
reason for the report and for everybody who reads the table of estimates. Nothing reads it back.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from heatcheck.methods import METHODS
from heatcheck.metrics import METRIC_FACTS
from heatcheck.report.numbers import SCORE, SPACE, number
from heatcheck.studies.alignment.blame.readings import (
    Arm,
    ArmReading,
    BlameEvidence,
    BlameVerdict,
    EstimateWithInterval,
    LevelReading,
    Outcome,
)

_UNIT = SCORE.rounded(2)
_BEFORE = {
    "method": "The model uses the outlined area ({reliance}), but the map hardly marks it better than chance "
    "({score}): the method fails to show what the model uses.",
    "model": "Hiding the outlined area hardly lowers the model's score more than hiding other areas ({reliance}), and "
    "the map hardly marks it better than chance ({score}): a truthful map would look like this, so the low score is "
    "the model's.",
    "shows": "The model uses the outlined area ({reliance}), and the map marks it better than chance ({score}).",
    "looks_elsewhere": "The map marks the outlined area better than chance ({score}), but hiding it hardly lowers the "
    "model's score more than hiding other areas ({reliance}): the map flatters the model.",
}
_UNKNOWN_USE = {
    "undefined": "What the model uses is not known: {reason}.",
    "no scale": "What the model uses is not known ({reliance}): {no_scale}.",
    "too wide": "Whether the model uses the outlined area is not shown ({reliance}).",
}
_UNKNOWN_MAP = {
    "undefined": "What the map marks is not known: {reason}.",
    "no scale": "Whether the map marks the outlined area cannot be said ({score}): not even a human's marks would "
    "score above chance.",
    "too wide": "Whether the map marks the outlined area better than chance is not shown ({score}).",
}
_TOWARD = {"align": "toward the outlines", "misalign": "away from them"}
_RELIANCE = {
    "followed": "and reliance with it ({change})",
    "held": "while reliance held ({change})",
    "turned": "while reliance went the other way ({change})",
    "unclear": "and whether reliance did is unclear ({change})",
    "slight": "and reliance hardly more than for other areas ({change})",
    "unknown": "and the change of reliance is not known",
}
_AGAINST_THE_ARM = {"followed": "turned", "turned": "followed"}  # reliance as seen from a map that moved back
_NEITHER_MOVED = {  # reliance, where neither it nor the map clearly moved
    "held": ", and reliance held ({change})",
    "unclear": ", and whether reliance moved is unclear ({change})",
    "slight": ", and reliance moved hardly more than for other areas ({change})",
    "unknown": ", and the change of reliance is not known",
}


@dataclass(frozen=True, slots=True)
class SentenceParts:
    """All that a row's sentence states."""

    evidence: BlameEvidence
    reading: BlameVerdict
    metric: str  # the score that was read
    through: str  # the method that the networks were aligned through, if it is another one
    reasons: Mapping[str, str]  # why reliance, the score, the separation or an arm's change may be missing

    @property
    def score(self) -> str:
        """The name of the score, in the middle of a sentence."""
        label = METRIC_FACTS[self.metric].label
        return label if label.isupper() else label[:1].lower() + label[1:]


def sentence(parts: SentenceParts) -> str:
    """What the model uses and the map marks; then what fine-tuning showed."""
    return " ".join([*_before(parts), _under(parts)])


def _before(parts: SentenceParts) -> list[str]:
    reading, evidence = parts.reading, parts.evidence
    score = _interval(evidence.gain, f"{parts.score} ", " against random maps", signed=True)
    words = {
        "reliance": _interval(evidence.base.reliance, "reliance ") + _matters(reading.uses, evidence.base.size),
        "score": score + _matters(reading.marks, evidence.gain_size),
    }
    if reading.before != "undecided":
        return [_BEFORE[reading.before].format(**words)]
    if reading.uses.why:
        no_scale = (
            parts.reasons.get("separation") or "it does not distinguish images with the finding from those without"
        )
        reason = parts.reasons["reliance"]
        use = _UNKNOWN_USE[reading.uses.why].format(**words, reason=reason, no_scale=no_scale)
    else:
        uses = "uses" if reading.uses.level == "high" else "hardly uses"
        use = f"The model {uses} the outlined area ({words['reliance']})."
    if reading.marks.why:
        mark = _UNKNOWN_MAP[reading.marks.why].format(**words, reason=parts.reasons["score"])
    else:
        marks = "marks" if reading.marks.level == "high" else "hardly marks"
        mark = f"The map {marks} it better than chance ({words['score']})."
    return [use, mark]


def _matters(reading: LevelReading, size: float) -> str:
    """The size that would matter, where what was measured is not shown to reach it."""
    return f"; {number(size, _UNIT)} would matter" if reading.level == "low" or reading.why == "too wide" else ""


def _under(parts: SentenceParts) -> str:
    readings = parts.reading.arms
    if all(reading.score == "unknown" for reading in readings):
        why = next(filter(None, (parts.reasons.get(reading.direction) for reading in readings)), "")
        return f"What fine-tuning does to the map is not known{f': {why}' if why else ''}."
    through = f" through {METHODS[parts.through].label}" if parts.through else ""
    clauses = [
        f"{_TOWARD[arm.direction]}, {_arm(reading, arm)}"
        for reading, arm in zip(readings, parts.evidence.arms, strict=True)
    ]
    return f"Fine-tuned{through} {'; '.join(clauses)}. {_verdict(parts)}"


def _arm(reading: ArmReading, arm: Arm) -> str:
    """What became of the map, and of the model."""
    if reading.score == "unknown":
        return "the change of the map's score is not known"
    rose, fell = ("rose", "fell") if arm.direction == "align" else ("fell", "rose")
    change, reliance = _interval(arm.score, signed=True), _interval(arm.reliance, signed=True)
    if reading.score in ("far", "moved"):
        return f"the map's score {rose} ({change}) {_RELIANCE[_reliance_move(reading, arm)].format(change=reliance)}"
    if reading.score in ("far back", "back"):
        went = _AGAINST_THE_ARM.get(reading.reliance, _reliance_move(reading, arm))
        return f"the map's score {fell} nevertheless ({change}) {_RELIANCE[went].format(change=reliance)}"
    moved = {
        "still": "the map's score stayed within the control's interval",
        "slight": f"the map's score {'rose' if arm.score.value > 0 else 'fell'} no further than the control's interval",
        "unclear": "whether the map's score moved is unclear",
    }[reading.score]
    went = {"followed": rose, "turned": fell}.get(reading.reliance, "")
    if not went:
        return f"{moved} ({change})" + _NEITHER_MOVED[_reliance_move(reading, arm)].format(change=reliance)
    joined = "although" if reading.outcome == "missed" else "and"
    return f"{moved} ({change}), {joined} reliance {went} ({reliance})"


def _reliance_move(reading: ArmReading, arm: Arm) -> str:
    """How reliance moved; a change that excludes 0 and is still unclear is too small to matter."""
    slight = reading.reliance == "unclear" and arm.reliance.low * arm.reliance.high > 0
    return "slight" if slight else reading.reliance


def _verdict(parts: SentenceParts) -> str:
    if parts.evidence.one_training:
        return (
            "Each network was trained once: this is what these networks did, and no claim about the method rests on it."
        )
    under = parts.reading.under
    outcomes = {reading.outcome for reading in parts.reading.arms}
    if under == "follows":
        rest = "" if outcomes == {"follows"} else ", and stood still where the model's reliance held"
        return f"The map followed the model{rest}."
    if under == "foolable":
        also = ", even though it followed the model in the other direction" if "follows" in outcomes else ""
        return f"The map can be moved without the model{also}: by itself it is no evidence."
    if under == "undecided":
        return _undecided(outcomes)
    learned = _interval(parts.evidence.learned, signed=True)
    if under == "failed":
        return (
            f"It did not rise on the images learned from either ({learned}): fine-tuning failed and says nothing about "
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
        return f"The map stood still{', and so did the model' if held else ''}."
    return f"It rose on the images learned from ({learned}), which does not generalise to unseen patients."


def _undecided(outcomes: Collection[Outcome]) -> str:
    if "missed" not in outcomes:
        return "What that says about the map cannot be decided."
    if "follows" in outcomes:
        return (
            "The map followed the model in one direction and missed its change in the other: whether it shows what the "
            "model does cannot be decided."
        )
    return "Where the map stood still, it missed a change of the model; what the rest says about it cannot be decided."


def _interval(estimate: EstimateWithInterval, before: str = "", after: str = "", *, signed: bool = False) -> str:
    """The value, between two words, with the ends of its interval."""
    if estimate.known and estimate.low == estimate.high:
        return f"{before}{number(estimate.value, _UNIT)}{after} on every image"
    small = estimate.known and max(abs(estimate.low), abs(estimate.high)) < 0.1
    unit = SCORE if small else _UNIT
    value = f"{before}{number(estimate.value, unit, signed=signed)}{after}"
    if not estimate.known:
        return f"{value}, without an interval"
    low, high = (number(end, unit, signed=signed) for end in (estimate.low, estimate.high))
    return f"{value}, 95{SPACE}% {low} to {high}"
