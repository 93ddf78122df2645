"""From the estimates of an alignment run to its blame table: a sentence for each model, method and finding."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.records import HUMAN, ONE_VALUE, Estimate, Prediction
from heatcheck.core.vocabulary import condition
from heatcheck.methods import METHODS
from heatcheck.metrics import METRIC_FACTS
from heatcheck.metrics.reliance import separation
from heatcheck.report.numbers import SCORE, SPACE, number
from heatcheck.runs.tables import read_batches
from heatcheck.stats.blame import (
    Arm,
    ArmReading,
    BlameEvidence,
    BlameVerdict,
    Direction,
    EstimateWithInterval,
    Outcome,
    Use,
    read,
)
from heatcheck.stats.resampling.nested import ONE_SEED
from heatcheck.studies.alignment.cells import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import (
    FINETUNE,
    FLOOR,
    FLOOR_METHOD,
    HUMAN_ARM,
    network_key,
)

_UNIT = SCORE.rounded(2)
_BEFORE = {
    "method": "The model uses the outlined area ({reliance}), but the map marks it no better than chance ({score}): "
    "the method fails to show what the model uses.",
    "model": "Hiding the outlined area lowers the model's score no more than hiding other places ({reliance}), and "
    "the map does not mark it better than chance ({score}): a truthful map would look like this, so the low score is "
    "the model's.",
    "shows": "The model uses the outlined area ({reliance}), and the map marks it better than chance ({score}).",
    "looks_elsewhere": "The map marks the outlined area better than chance ({score}), but hiding it lowers the model's "
    "score no more than hiding other places ({reliance}): the map flatters the model.",
}
_UNKNOWN_USE = {
    "undefined": "What the model uses is not known: {reason}.",
    "no scale": "What the model uses is not known ({reliance}): {whole}.",
    "too wide": "Whether the model uses the outlined area cannot be told ({reliance}): the images leave room for "
    "nothing as for all that it knows of the finding.",
}
_UNKNOWN_MAP = {
    "undefined": "What the map marks is not known: {reason}.",
    "no scale": "Whether the map marks the outlined area cannot be told ({score}): not even a human's marks would "
    "score above chance.",
    "too wide": "Whether the map marks the outlined area better than chance cannot be told ({score}).",
}
_TOWARD = {"align": "toward the outlines", "misalign": "away from them"}
_RELIANCE = {
    "followed": "and reliance with it ({change})",
    "held": "while reliance held ({change})",
    "turned": "while reliance went the other way ({change})",
    "unclear": "and whether reliance did is not clear ({change})",
    "slight": "and reliance hardly more than where nothing is ({change})",
    "unknown": "and what reliance did is not known",
}
_SEEN_FROM_BEHIND = {"followed": "turned", "turned": "followed"}  # reliance, where the map went against the arm
_REST = {  # reliance, where neither it nor the map clearly moved
    "held": ", and reliance held ({change})",
    "unclear": ", and whether reliance moved is not clear ({change})",
    "slight": ", and reliance moved hardly more than where nothing is ({change})",
    "unknown": ", and what reliance did is not known",
}


@dataclass(frozen=True, slots=True)
class SentenceParts:
    """What a row's sentence is made of."""

    evidence: BlameEvidence
    reading: BlameVerdict
    metric: str  # the score that was read
    through: str  # the method that the networks were aligned through, if it is another one
    reasons: Mapping[str, str]  # why reliance, the score, the separation or an arm's change may be missing
    one_training: bool  # intervals of changes are those of a single seed

    @property
    def score(self) -> str:
        """The name of the score, in the middle of a sentence."""
        label = METRIC_FACTS[self.metric].label
        return label if label.isupper() else label[:1].lower() + label[1:]


def sentence(told: SentenceParts) -> str:
    """What the model uses and the map marks; then what fine-tuning showed."""
    parts = [*_before(told), _under(told)]
    if told.one_training:
        parts.append("That is one training each: another may come out otherwise.")
    return " ".join(parts)


def _before(told: SentenceParts) -> list[str]:
    reading, evidence = told.reading, told.evidence
    words = {
        "reliance": _reliance(told),
        "score": _interval(evidence.gain, f"{told.score} ", " against random maps", signed=True),
    }
    if reading.before != "undecided":
        return [_BEFORE[reading.before].format(**words)]
    parts = []
    if reading.uses.why:
        whole = told.reasons.get("separation") or "it does not tell images with the finding from those without"
        parts.append(_UNKNOWN_USE[reading.uses.why].format(**words, reason=told.reasons["reliance"], whole=whole))
    else:
        uses = "uses" if reading.uses.level == "high" else "does not use"
        parts.append(f"The model {uses} the outlined area ({words['reliance']}).")
    if reading.marks.why:
        parts.append(_UNKNOWN_MAP[reading.marks.why].format(**words, reason=told.reasons["score"]))
    else:
        than = "better" if reading.marks.level == "high" else "no better"
        parts.append(f"The map marks it {than} than chance ({words['score']}).")
    return parts


def _reliance(told: SentenceParts) -> str:
    """The base's reliance; where it is low, out of how much it could be."""
    use = told.evidence.base
    whole = f", out of {number(use.separation, _UNIT)}" if told.reading.uses.level == "low" else ""
    return _interval(use.reliance, "reliance ") + whole


def _under(told: SentenceParts) -> str:
    arms = told.reading.arms
    if all(arm.score == "unknown" for arm in arms):
        why = next((told.reasons[arm.direction] for arm in arms if told.reasons.get(arm.direction)), "")
        return f"What fine-tuning does to the map is not known{f': {why}' if why else ''}."
    through = f" through {METHODS[told.through].label}" if told.through else ""
    both = zip(arms, told.evidence.arms, strict=True)
    clauses = [f"{_TOWARD[seen.direction]}, {_arm(seen, arm)}" for seen, arm in both]
    return f"Fine-tuned{through} {'; '.join(clauses)}. {_verdict(told)}"


def _arm(seen: ArmReading, arm: Arm) -> str:
    """What became of the map, and of the model."""
    if seen.score == "unknown":
        return "what the map's score did is not known"
    rose, fell = ("rose", "fell") if arm.direction == "align" else ("fell", "rose")
    change, reliance = _interval(arm.score, signed=True), _interval(arm.reliance, signed=True)
    if seen.score in ("far", "moved"):
        return f"the map's score {rose} ({change}) {_RELIANCE[_shade(seen, arm)].format(change=reliance)}"
    if seen.score in ("far back", "back"):
        went = _SEEN_FROM_BEHIND.get(seen.reliance, _shade(seen, arm))
        return f"the map's score {fell} nevertheless ({change}) {_RELIANCE[went].format(change=reliance)}"
    told = {
        "still": "the map's score did not clearly move",
        "slight": f"the map's score {'rose' if arm.score.value > 0 else 'fell'} no further than the control's interval",
        "unclear": "whether the map's score moved is not clear",
    }[seen.score]
    moved = {"followed": rose, "turned": fell}.get(seen.reliance, "")
    if not moved:
        return f"{told} ({change})" + _REST[_shade(seen, arm)].format(change=reliance)
    joined = "although" if seen.outcome == "missed" else "and"
    return f"{told} ({change}), {joined} reliance {moved} ({reliance})"


def _shade(seen: ArmReading, arm: Arm) -> str:
    """How reliance moved; a change that is beyond 0 and still unclear is one that has no weight."""
    slight = seen.reliance == "unclear" and arm.reliance.low * arm.reliance.high > 0
    return "slight" if slight else seen.reliance


def _verdict(told: SentenceParts) -> str:
    under = told.reading.under
    outcomes = {arm.outcome for arm in told.reading.arms}
    if under == "follows":
        rest = "" if outcomes == {"follows"} else ", and stood still where the model's reliance held"
        return f"The map followed the model{rest}."
    if under == "foolable":
        also = ", even though it followed the model the other way" if "follows" in outcomes else ""
        return f"The map can be moved without the model{also}: by itself it is no evidence."
    if under == "undecided":
        return _open(outcomes)
    learned = _interval(told.evidence.learned, signed=True)
    if under == "failed":
        return (
            f"Nor did it rise on the images learned from ({learned}): fine-tuning failed and tells nothing of the map."
        )
    return _unmoved(told, learned)


def _unmoved(told: SentenceParts, learned: str) -> str:
    """What it means that the map did not move."""
    arms = told.reading.arms
    if any(arm.outcome == "missed" for arm in arms):
        return "The model changed and the map did not: it missed that change."
    if told.evidence.judged:
        held = all(arm.reliance == "held" for arm in arms)
        return f"The map stood still{', and so did the model' if held else ''}."
    return f"It rose on the images learned from ({learned}), which does not carry over to unseen patients."


def _open(outcomes: Collection[Outcome]) -> str:
    """What is left to say where nothing is decided."""
    if "missed" not in outcomes:
        return "What that says of the map cannot be decided."
    if "follows" in outcomes:
        return (
            "The map followed the model one way and missed its change the other way: whether it tells what the model "
            "does cannot be decided."
        )
    return "Where the map stood still, it missed a change of the model; what the rest says of it cannot be decided."


def _interval(seen: EstimateWithInterval, before: str = "", after: str = "", *, signed: bool = False) -> str:
    """The value, between two words, with the ends of its interval."""
    if seen.known and seen.low == seen.high:
        return f"{before}{number(seen.value, _UNIT)}{after} on every image"
    small = seen.known and max(abs(seen.low), abs(seen.high)) < 0.1
    unit = SCORE if small else _UNIT
    value = f"{before}{number(seen.value, unit, signed=signed)}{after}"
    if not seen.known:
        return f"{value}, without an interval"
    low, high = (number(end, unit, signed=signed) for end in (seen.low, seen.high))
    return f"{value}, 95{SPACE}% {low} to {high}"


SEPARATION = "separation"  # the statistic that says how far a model tells positive from negative images
DIRECTIONS: tuple[Direction, ...] = ("align", "misalign")
NO_ESTIMATE = "there is no such estimate"
_ZERO = 1e-12  # as near as rounding comes


def separation_rows(folder: Path, settings: AlignmentSettings) -> list[Estimate]:
    """How far each base, and the controls of each on average, tell images with a finding from those without."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for base in settings.fine_tuned:
        wanted[base.key, "base"] = [network_key(base.key, "base")]
        wanted[base.key, "control"] = [network_key(base.key, "control", seed) for seed in settings.seeds]
    keys = sorted({key for own in wanted.values() for key in own})
    table = _predictions(folder, keys)
    rows = []
    for (base_key, arm), networks in wanted.items():
        for finding in settings.findings:
            own = table[(table["finding"] == finding) & table["model"].isin(networks)]
            blank = Estimate(SEPARATION, "reliance", finding, model=base_key, condition=condition(arm=arm))
            rows.append(_separated(own, blank))
    return rows


def _predictions(folder: Path, networks: Sequence[str]) -> pd.DataFrame:
    columns = ["case", "finding", "model", "label", "logit"]
    only = [("model", "in", list(networks))]
    batches = [one.to_pandas() for one in read_batches(folder / "predictions.parquet", Prediction, columns, only)]
    if not batches:
        return pd.DataFrame(columns=columns)
    return pd.concat([batch.astype({"case": str, "finding": str, "model": str}) for batch in batches])


def _separated(table: pd.DataFrame, blank: Estimate) -> Estimate:
    """The mean over networks."""
    found = [
        separation(own["label"].to_numpy(float), own["logit"].to_numpy(float)) for _, own in table.groupby("model")
    ]
    values = [one.value for one in found if not math.isnan(one.value)]
    if not values:
        return replace(blank, reason=found[0].reason if found else NO_ESTIMATE)
    return replace(blank, value=float(np.mean(values)), n_cases=int(table["case"].nunique()))


def blame_rows(estimates: Sequence[Estimate], settings: AlignmentSettings) -> list[Estimate]:
    """The blame table; every number in it is one of the estimates, among them those of `separation_rows`."""
    table = _Table.of(estimates)
    return [
        _Place(table, settings, base.key, method, finding).row()
        for base in settings.fine_tuned
        for method in (*settings.methods, *settings.judged)
        for finding in settings.findings
    ]


@dataclass(frozen=True)
class _Table:
    """The estimates by what they are of."""

    rows: Mapping[tuple[str, ...], Estimate]

    @classmethod
    def of(cls, estimates: Sequence[Estimate]) -> "_Table":
        """The table of these estimates."""
        return cls({(e.statistic, e.metric, e.finding, e.method, e.model, e.condition): e for e in estimates})

    def find(self, what: tuple[str, str, str], method: str, model: str, **facts: str) -> Estimate:
        """The estimate of a statistic, metric and finding under a condition; else one that is blank."""
        under = condition(**facts)
        found = self.rows.get((*what, method, model, under))
        return found or Estimate(*what, method, model, condition=under, reason=NO_ESTIMATE)


@dataclass(frozen=True)
class _Place:
    """One model, method and finding."""

    table: _Table
    settings: AlignmentSettings
    model: str
    method: str
    finding: str

    def row(self) -> Estimate:
        """Its row of the blame table."""
        used = self._mean("reliance", "", "base")
        evidence = self._evidence()
        reading = read(evidence)
        told = SentenceParts(
            evidence,
            reading,
            metric=self.settings.blame_metric,
            through=self.settings.through if self._judged else "",
            reasons={
                "reliance": used.reason,
                "score": self._difference(self.settings.blame_metric, "base", FLOOR).reason,
                "separation": self._separation("base").reason,
                **{direction: self._changes(direction)[0].reason for direction in DIRECTIONS},
            },
            one_training=any(self._of_one_seed(self._changes(direction)[0]) for direction in DIRECTIONS),
        )
        return Estimate(
            "blame",
            self.settings.blame_metric,
            self.finding,
            self.method,
            self.model,
            condition=condition(before=reading.before, under=reading.under),
            n_cases=used.n_cases,
            n_patients=used.n_patients,
            n_undefined=used.n_undefined,
            reason=sentence(told),
        )

    def _of_one_seed(self, change: Estimate) -> bool:
        return not math.isnan(change.low) and (len(self.settings.seeds) == 1 or ONE_SEED in change.reason)

    @property
    def _judged(self) -> bool:
        return self.method in self.settings.judged

    def _evidence(self) -> BlameEvidence:
        metric = self.settings.blame_metric
        learned = EstimateWithInterval()
        if not self._judged:
            learned = interval_of(self._difference(metric, "align", "control", split=FINETUNE))
        return BlameEvidence(
            base=self._use("base"),
            gain=interval_of(self._difference(metric, "base", FLOOR)),
            room=self._room(),
            control=self._use("control"),
            control_score=interval_of(self._mean(metric, self.method, "control")),
            arms=tuple(self._arms()),
            learned=learned,
            judged=self._judged,
        )

    def _use(self, arm: str) -> Use:
        return Use(
            interval_of(self._mean("reliance", "", arm)),
            interval_of(self._mean("reliance_placebo", "", arm)),
            self._separation(arm).value,
        )

    def _arms(self) -> Iterator[Arm]:
        for direction in DIRECTIONS:
            score, reliance = self._changes(direction)
            yield Arm(direction, interval_of(score), interval_of(reliance))

    def _changes(self, direction: str) -> tuple[Estimate, Estimate]:
        """How the score and the reliance of a direction's networks differ from the control's."""
        facts = {"through": self.settings.through} if self._judged else {}
        score = self._difference(self.settings.blame_metric, direction, "control", **facts)
        networks = self.settings.through if self._judged else self.method
        what = ("difference", "reliance", self.finding)
        return score, self.table.find(what, networks, self.model, arm=direction, versus="control")

    def _room(self) -> float:
        """What a perfect map would have above one drawn at random."""
        what = ("mean", self.settings.blame_metric, self.finding)
        floor = self.table.find(what, FLOOR_METHOD, "", arm=FLOOR).value
        if self.settings.human == "truth":
            return 1.0 - floor
        return self.table.find(what, HUMAN, "", arm=HUMAN_ARM).value - floor

    def _mean(self, metric: str, method: str, arm: str) -> Estimate:
        return self.table.find(("mean", metric, self.finding), method, self.model, arm=arm)

    def _separation(self, arm: str) -> Estimate:
        return self.table.find((SEPARATION, "reliance", self.finding), "", self.model, arm=arm)

    def _difference(self, metric: str, arm: str, versus: str, **facts: str) -> Estimate:
        what = ("difference", metric, self.finding)
        return self.table.find(what, self.method, self.model, arm=arm, versus=versus, **facts)


def interval_of(row: Estimate) -> EstimateWithInterval:
    """The estimate's interval; where resampling gave none because every image has a 0, that is what is known."""
    if row.reason == ONE_VALUE and abs(row.value) <= _ZERO:
        return EstimateWithInterval(0.0, 0.0, 0.0)
    return EstimateWithInterval(row.value, row.low, row.high)
