"""The facts of a trigger run: its manifest, its triggers, and where the attack worked well enough to grade."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.footnotes import lacks_interval
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import Unit, listed, number
from heatcheck.studies.triggers.vocabulary import GRADED, PlantedTrigger, TriggersManifest, is_of_artefacts

REFERENCE_SIDE = 224  # of the images for which a trigger's size is given
PAPER_SIZE = 20  # of the triggers whose overlap difference the paper shows
LARGE_BOX = 0.2  # of the image: from this on a box can recover an image by its size
_SHADES = {0.0: "black", 1.0: "white"}  # of patches of one grey value


@dataclass(frozen=True, slots=True)
class TriggerRecord:
    """One trigger as the run describes it; `size` is its side on an image of 224 pixels, where it has one."""

    name: str
    label: str
    kind: str = ""
    summary: str = ""
    size: int | None = None
    pixels: str = ""  # its height and width on the images that the model sees
    settings: str = ""  # all but the size; empty where the run does not list them

    @property
    def is_dynamic(self) -> bool:
        """Whether its pixels come from the model's own gradient."""
        return self.kind == "dynamic"

    @property
    def family(self) -> str:
        """A key that triggers of different size share; the name where the settings are not known."""
        return f"{self.kind} {self.settings}" if self.settings else self.name


@dataclass(frozen=True, slots=True)
class AttackSummary:
    """In how many seeds the attack with a trigger worked, and why it did not in the others."""

    graded: int
    seeds: int
    reasons: Mapping[int, str]  # by seed

    @property
    def why_not(self) -> str:
        """The reasons, seed by seed; once where all seeds share one."""
        if len(set(self.reasons.values())) == 1:
            (reason,) = set(self.reasons.values())
            return f"{_seeds_named(list(self.reasons))}: {reason}"
        return "; ".join(f"seed {seed}: {reason}" for seed, reason in self.reasons.items())

    @property
    def first_reason(self) -> str:
        """One seed's reason, where all would be too long."""
        return next((f"seed {seed}: {reason}" for seed, reason in self.reasons.items()), "no reason recorded")


def noted_once(evidence: Evidence) -> Evidence:
    """The evidence without the note on every interval that rests on one training.

    For triggers a caveat says it once; for artefacts nothing is trained.
    """
    one_seed = trainings(evidence) == 1
    slices = {
        (model, under): {key: _without_note(row) for key, row in rows.items()}
        if one_seed or is_of_artefacts(under)
        else rows
        for (model, under), rows in evidence.slices.items()
    }
    return replace(evidence, slices=slices).under()


def _without_note(row: Estimate) -> Estimate:
    return row if math.isnan(row.value) or lacks_interval(row) else replace(row, reason="")


def manifest(evidence: Evidence) -> TriggersManifest:
    """What the run says of itself."""
    return evidence.run.manifest_as(TriggersManifest)


def triggers_of(evidence: Evidence) -> tuple[TriggerRecord, ...]:
    """The run's triggers in its order."""
    described = [_trigger(entry) for entry in manifest(evidence).triggers]
    names = {trigger.name for trigger in described}
    others = [TriggerRecord(name, name) for name in manifest(evidence).findings if name not in names]
    return tuple(_with_distinct_labels([*described, *others]))


def grading(evidence: Evidence, trigger: str) -> AttackSummary:
    """In which seeds methods were graded on this trigger."""
    rows = {seed: evidence.under(seed=seed).find(GRADED, "asr", trigger) for seed in manifest(evidence).seeds}
    by_seed = {seed: row for seed, row in rows.items() if row}
    if not by_seed:
        pooled = evidence.find(GRADED, "asr", trigger)
        graded = 0 if pooled is None or math.isnan(pooled.value) else int(pooled.value)
        return AttackSummary(graded, pooled.n_cases if pooled else 0, {})
    failed = {seed: row.reason or "no reason recorded" for seed, row in sorted(by_seed.items()) if row.value != 1}
    return AttackSummary(len(by_seed) - len(failed), len(by_seed), failed)


def graded_triggers(evidence: Evidence) -> tuple[TriggerRecord, ...]:
    """The triggers on which the attack worked in at least one seed."""
    return tuple(trigger for trigger in triggers_of(evidence) if grading(evidence, trigger.name).graded)


def trainings(evidence: Evidence) -> int:
    """How many seeds have a network on which methods were graded: with one, a run speaks of that network only."""
    by_trigger = [grading(evidence, trigger.name) for trigger in triggers_of(evidence)]
    every = set(manifest(evidence).seeds)
    known = [every - set(summary.reasons) for summary in by_trigger if summary.seeds == len(every)]
    return max(len(set().union(*known)), *(summary.graded for summary in by_trigger)) if by_trigger else 0


def training_each(evidence: Evidence) -> str:
    """How many trainings a network was judged on, where it is one: a network is poisoned for every trigger."""
    return "one training" if len(graded_triggers(evidence)) < 2 else "one training per trigger"


def these_networks(evidence: Evidence) -> str:
    """What a run with one training speaks of: the poisoned network of every graded trigger."""
    networks = len(graded_triggers(evidence))
    return "this network" if networks < 2 else f"these {networks} networks"


def patients_graded(evidence: Evidence) -> int:
    """How many patients these images are of."""
    rows = (evidence.find(MEAN, "trigger_iou", ALL_FINDINGS, method.name) for method in evidence.methods)
    return max((row.n_patients for row in rows if row), default=0)


def images_graded(evidence: Evidence) -> int:
    """How many poisoned images the means over all triggers rest on."""
    rows = (evidence.find(MEAN, "trigger_iou", ALL_FINDINGS, method.name) for method in evidence.methods)
    return max((row.n_cases for row in rows if row), default=0)


def span(values: Iterable[float], unit: Unit) -> str:
    """The lowest and the highest value, without what is undefined; one where they are written alike."""
    known = [value for value in values if not math.isnan(value)]
    low, high = number(min(known, default=math.nan), unit), number(max(known, default=math.nan), unit)
    return high if low == high else f"{low.removesuffix(unit.sign)} to {high}"


def _trigger(entry: PlantedTrigger) -> TriggerRecord:
    others = {key: value for key, value in entry.settings.items() if key != "size"}
    return TriggerRecord(
        entry.name,
        entry.label,
        entry.kind,
        entry.summary.replace("grey", _SHADES.get(entry.settings.get("grey", math.nan), "grey")),
        entry.size,
        pixels=" × ".join(map(str, entry.pixels)),
        settings=json.dumps(others, sort_keys=True) if others else "",
    )


def _with_distinct_labels(triggers: Sequence[TriggerRecord]) -> list[TriggerRecord]:
    """The triggers, with the name added to a label that several share."""
    times = Counter(trigger.label for trigger in triggers)
    return [replace(t, label=f"{t.label} ({t.name})") if times[t.label] > 1 else t for t in triggers]


def _seeds_named(seeds: list[int]) -> str:
    if len(seeds) > 3 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {listed([str(seed) for seed in seeds])}"
