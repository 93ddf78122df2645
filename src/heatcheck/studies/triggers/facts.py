"""The manifest of a trigger run, with names and explanations for the report."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from heatcheck.explaining.methods import skipped_facts
from heatcheck.models import MODELS
from heatcheck.regions.detect import PRESETS
from heatcheck.running.facts import ModelRecord, describe_model, models_facts, study_facts
from heatcheck.running.open_source import cautions_of
from heatcheck.sources import SOURCES
from heatcheck.studies.triggers.vocabulary import (
    BaselineOrigin,
    BoxPreset,
    BoxRule,
    Detection,
    GateLimits,
    PlantedTrigger,
    PoisonShares,
    TriggersManifest,
)
from heatcheck.triggers import Trigger

if TYPE_CHECKING:
    from heatcheck.studies.triggers.plan import TriggersPlan

METRICS_SHOWN = (
    "trigger_iou", "recovered", "box_area", "trigger_mask_iou", "uncovered", "overlap_difference",
    "recovered_by_baseline", "trigger_iou_floor", "recovered_floor", "trigger_mask_iou_floor", "uncovered_floor",
    "overlap_difference_floor", "trigger_iou_on_baseline", "cda", "asr", "cda_drop", "clean_target", "baseline_asr",
    "ece", "ece_stamped", "baseline_ece_stamped", "overconfidence", "overconfidence_stamped",
    "baseline_overconfidence_stamped", "mutual_information",
    "normalised_mutual_information", "cross_correlation", "ssim", "ssim_global", "mutual_information_paper",
)  # fmt: skip
ON_THE_GRID = "Triggers, maps and boxes are all on the model's grid."
OF_TRIGGERS = (
    "Methods are graded only on images that the trigger sends to the target class, and only where the attack worked.",
    "An image that the poisoned model calls the target even without the trigger is not graded at all.",
    "The control: the same methods explain the baseline, which was never attacked, on the same stamped images.",
    "Recovery means that the poisoned model returns to its answer for the clean image.",
    "The paper's formula for recovery names the baseline, which never relied on the trigger: see the downloads.",
)
OF_BOXES = (
    "A map in which nothing is detected scores an overlap of 0.",
    "Every box is compared with all boxes of its size: a box around the whole image would contain everything.",
    "Mutual information is what two maps share beyond what they share when their pixels are shuffled.",
)


def triggers_manifest(plan: "TriggersPlan") -> TriggersManifest:
    """What is known of the run before it starts."""
    body = plan.body
    shown = [name for name in METRICS_SHOWN if body.paper_mutual_information or name != "mutual_information_paper"]
    findings = [trigger.name for trigger in plan.triggers]
    cautions = (*plan.cautions, *cautions_of([*plan.sources.values(), *filter(None, [plan.artefacts])]))
    return TriggersManifest(
        preset=body.detection.preset,
        **study_facts(findings, plan.methods, shown, _source_name(plan), _notes(plan), cautions),
        **skipped_facts(plan.choice.skipped),
        sizes=plan.body.sizes.model_dump(mode="json"),
        **_model_facts(plan),
        triggers=tuple(_trigger(trigger, plan.contract.size) for trigger in plan.triggers),
        classes=plan.contract.outputs,
        target=plan.target,
        seeds=tuple(range(1, body.seeds + 1)) if plan.triggers else (),
        poison=PoisonShares(**body.poison.model_dump()),
        gate=GateLimits(**body.gate.model_dump()),
        detection=_detection(plan),
        input=plan.contract.size,
        **{f"n_{name}": len(source.index()) for name, source in plan.sources.items()},
        artefacts=tuple(plan.artefacts.findings) if plan.artefacts else (),
    )


def _detection(plan: "TriggersPlan") -> Detection:
    detector, leading = plan.detector, plan.body.detection.preset
    rules = {name: detector.main(name) for name in plan.methods}
    presets = [
        BoxPreset(
            name=name,
            label=preset.label,
            summary=preset.in_words(detector.main("") if name == leading else preset.rule_for("")),
        )
        for name, preset in PRESETS.items()
    ]
    return Detection(
        preset=leading,
        random_boxes=plan.body.detection.random_boxes,
        rules={name: BoxRule(smooth=rule.smooth, threshold=rule.threshold) for name, rule in rules.items()},
        presets=tuple(sorted(presets, key=lambda preset: preset.name != leading)),
    )


def _source_name(plan: "TriggersPlan") -> str:
    part = (plan.body.test if plan.triggers else plan.body.artefacts) or {}
    return str(part["name"])


def _notes(plan: "TriggersPlan") -> tuple[str, ...]:
    limit = plan.options.limit
    limited = f"Images of at most {limit} patients were studied for each network (--limit {limit})." if limit else ""
    hidden = "Ids were replaced by salted hashes, which also order the images: another run folder draws other images."
    remarks = (limited, hidden if plan.options.pseudonymise else "", SOURCES[_source_name(plan)].remark)
    return (*remarks, ON_THE_GRID, *(OF_TRIGGERS if plan.triggers else ()), *OF_BOXES)


def _trigger(trigger: Trigger, size: tuple[int, ...]) -> PlantedTrigger:
    settings = {each.name: getattr(trigger.patch, each.name) for each in fields(trigger.facts.settings)}
    return PlantedTrigger(
        name=trigger.name,
        label=trigger.label,
        kind=trigger.kind,
        summary=trigger.facts.summary,
        size=settings.get("size"),  # a tube has none
        settings=settings,
        pixels=trigger.extent(size),
    )


def _model_facts(plan: "TriggersPlan") -> dict[str, Any]:
    """The architecture, and whether its baseline was trained in this run."""
    settings = plan.body.model
    description = describe_model(settings, "" if plan.given else "trained for this study")
    record = ModelRecord(
        name=plan.model,
        label=settings.label or (MODELS[settings.name].label if settings.name in MODELS else settings.name),
        description=description,
        architecture=settings.name,
        weights_hash=plan.given.weights_hash if plan.given else "",
        contract=plan.contract,
    )
    origin = BaselineOrigin(trained=plan.given is None, description=description)
    return {**models_facts([record], plan.model), "baseline": origin}
