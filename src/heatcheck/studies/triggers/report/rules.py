"""The rules that make a box out of a map, as the run tells them, and what the methods score under each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heatcheck.core.vocabulary import facts_of
from heatcheck.report.evidence import Evidence
from heatcheck.report.matrix import Matrix
from heatcheck.studies.triggers.report.facts import TriggerRecord
from heatcheck.studies.triggers.report.tables import EVERY, SHORT, TriggerColumn, detection_table


@dataclass(frozen=True, slots=True)
class Preset:
    """A way to make a box: its name in the run, in a table, and what it does with a map."""

    name: str
    label: str
    summary: str


@dataclass(frozen=True, slots=True)
class RulePart:
    """What was scored under several rules: its condition, what its means are over, and the metrics to look at."""

    facts: Mapping[str, str | float]
    every: TriggerRecord
    noun: str
    metrics: Sequence[str]  # the most telling one first

    def of(self, evidence: Evidence, **rule: str | float) -> Evidence:
        """The run's estimates of it under a rule; the leading one where none is named."""
        facts: dict[str, Any] = {**self.facts, **rule}
        return evidence.under(**facts)

    def values(self, evidence: Evidence, fact: str) -> list[Any]:
        """Everything that one fact of the rule was, while all others were as they are in the leading rule."""
        found = [facts_of(under) for model, under in evidence.slices if model == evidence.primary]
        return sorted({facts[fact] for facts in found if facts == {**self.facts, fact: facts.get(fact)}})


TRIGGERS = RulePart({}, EVERY, "triggers", ("trigger_iou", "recovered", "box_area"))


def main_rule(evidence: Evidence) -> str:
    """How the rule behind the verdict makes a box, in words; nothing where the run does not say."""
    told = _presets(evidence)
    return told[0].summary if told else ""


def rules_of(evidence: Evidence) -> Mapping[str, Mapping[str, float]]:
    """Each method's smoothing and threshold in the rule behind the verdict; none where the run does not say."""
    rules = (evidence.run.manifest.get("detection") or {}).get("rules") or {}
    return {str(name): {key: float(value) for key, value in rule.items()} for name, rule in rules.items()}


def by_preset(evidence: Evidence, part: RulePart = TRIGGERS) -> Matrix | None:
    """The metrics over all triggers under every preset; None where only one was tried."""
    presets = presets_tried(evidence, part)
    if len(presets) < 2:
        return None
    seen = [part.of(evidence), *(part.of(evidence, preset=preset.name) for preset in presets[1:])]
    places = [
        TriggerColumn(each, metric, part.every, SHORT[metric][0].upper() + SHORT[metric][1:], preset.label)
        for metric in part.metrics
        if metric in evidence.measures
        for preset, each in zip(presets, seen, strict=True)
    ]
    return detection_table(f"Ways to make a box, over all {part.noun}", places)


def presets_tried(evidence: Evidence, part: RulePart = TRIGGERS) -> list[Preset]:
    """The presets under which this part was scored, the leading one first."""
    names = [_leading(evidence), *(str(name) for name in part.values(evidence, "preset"))]
    told = {preset.name: preset for preset in _presets(evidence)}
    return [told.get(name) or Preset(name, name, name) for name in dict.fromkeys(names) if name]


def _leading(evidence: Evidence) -> str:
    return str((evidence.run.manifest.get("detection") or {}).get("preset") or "")


def _presets(evidence: Evidence) -> list[Preset]:
    """What the run says of its presets, the leading one first."""
    told = (evidence.run.manifest.get("detection") or {}).get("presets") or []
    found = [Preset(*(str(facts.get(key) or facts["name"]) for key in ("name", "label", "summary"))) for facts in told]
    return sorted(found, key=lambda preset: preset.name != _leading(evidence))
