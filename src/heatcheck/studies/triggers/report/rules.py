"""The rules that make a box out of a map, as the run tells them, and what the methods score under each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from heatcheck.core.vocabulary import Condition, facts_of
from heatcheck.report.evidence import Evidence
from heatcheck.report.matrix import Matrix
from heatcheck.studies.triggers.report.facts import TriggerRecord, manifest
from heatcheck.studies.triggers.report.tables import EVERY, SHORT, TriggerColumn, detection_table
from heatcheck.studies.triggers.vocabulary import CRITERION_METRICS, BoxPreset


@dataclass(frozen=True, slots=True)
class RulePart:
    """What was scored under several rules: its condition, what its means are over, and the metrics to look at."""

    facts: Condition
    every: TriggerRecord
    noun: str
    metrics: Sequence[str]  # the most telling one first

    def of(self, evidence: Evidence, **rule: Unpack[Condition]) -> Evidence:
        """The run's estimates of it under a rule; the leading one where none is named."""
        facts: Condition = {**self.facts, **rule}
        return evidence.under(**facts)

    def values(self, evidence: Evidence, fact: str) -> list[Any]:
        """Everything that one fact of the rule was, while all others were as they are in the leading rule."""
        found: list[dict[str, Any]] = [
            dict(facts_of(under)) for model, under in evidence.slices if model == evidence.primary
        ]
        return sorted({facts[fact] for facts in found if facts == {**self.facts, fact: facts.get(fact)}})


TRIGGERS = RulePart({}, EVERY, "triggers", (*CRITERION_METRICS, "box_area"))


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


def presets_tried(evidence: Evidence, part: RulePart = TRIGGERS) -> list[BoxPreset]:
    """The presets under which this part was scored, the leading one first."""
    detection = manifest(evidence).detection
    names = [detection.preset, *(str(name) for name in part.values(evidence, "preset"))]
    known = {preset.name: preset for preset in detection.presets}
    return [known.get(name) or BoxPreset(name=name, summary=name) for name in dict.fromkeys(names) if name]
