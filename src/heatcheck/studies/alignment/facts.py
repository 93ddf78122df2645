"""The manifest of an alignment run: what run.json says of it, before it starts and once its images were read."""

from typing import TYPE_CHECKING

from heatcheck.core.vocabulary import AUROC
from heatcheck.explaining.methods import skipped_facts
from heatcheck.fitting.examples import labels_of
from heatcheck.running.facts import RESIZED, ModelRecord, architecture_label, describe_model, models_facts, study_facts
from heatcheck.running.open_source import cautions_of
from heatcheck.sources import SOURCES
from heatcheck.studies.alignment.bases import PlannedBase
from heatcheck.studies.alignment.images import Images
from heatcheck.studies.alignment.networks import NetworkCell, parts_of, seed_of
from heatcheck.studies.alignment.spec import METRICS, lacking_weights
from heatcheck.studies.alignment.vocabulary import (
    ADDED,
    FILLS,
    INFORMATION,
    PLACEBO,
    RELIANCE,
    VALIDATION,
    AlignmentManifest,
    FitEntry,
    ImageCounts,
    LearnedLabels,
    RelianceEntry,
)
from heatcheck.training.labels import STRATEGIES

if TYPE_CHECKING:
    from heatcheck.studies.alignment.plan import AlignmentPlan

METRICS_SHOWN = (*METRICS, RELIANCE, PLACEBO, ADDED, AUROC, INFORMATION)
NOTES = (
    RESIZED,
    "Evidence against a finding counts as 0, and the channels of a map are summed.",
    "Each map was compared with the mask of its own image, on the map's own grid.",
    "Networks were fine-tuned with the base's normalisation statistics and without dropout.",
    "A control is fine-tuned on the same images in the same order, without a map loss.",
    "The evaluation images took no part in fine-tuning or in the choice of a checkpoint.",
    "Reliance is measured on the model: how much more its score falls without the outlined area than without others.",
)


def alignment_manifest(plan: "AlignmentPlan") -> AlignmentManifest:
    """What run.json says before the run starts."""
    body, methods = plan.body, {**plan.trained, **plan.judged}
    cautions = (*plan.cautions, *cautions_of(plan.sources.values()))
    fit = body.fit
    return AlignmentManifest(
        **study_facts(plan.findings, methods, METRICS_SHOWN, str(body.evaluation["name"]), _notes(plan), cautions),
        **skipped_facts([*plan.through.skipped, *plan.beside.skipped]),
        sizes=body.sizes.model_dump(mode="json"),
        **models_facts([_model_record(base) for base in plan.bases], plan.bases[0].key),
        trained=tuple(plan.trained),
        judged=tuple(plan.judged),
        through=body.through_method,
        seeds=plan.rule.seeds,
        alpha=body.alpha,
        fit=FitEntry(epochs=fit.epochs, batch_size=fit.batch_size, learning_rate=fit.rates[0]),
        several=body.several,
        softplus=body.softplus,
        blame_metric=body.blame_by,
        reliance=RelianceEntry(shifts=body.reliance.shifts, films=body.reliance.films, fills=FILLS),
        human=plan.human,
        learned=_learned_labels(plan),
        left_out={base: file.name for base, _, file in lacking_weights(body, plan.spec.folder)},
    )


def _learned_labels(plan: "AlignmentPlan") -> dict[str, LearnedLabels]:
    """How many images of the training data have each output of the bases, as these learn uncertain and blank labels."""
    part = plan.body.base
    if part is None:
        return {}
    strategy, splits = STRATEGIES[part.uncertainty], ("training", VALIDATION)
    outputs = part.outputs(plan.sources["training"])
    counts: dict[str, dict[str, int]] = {finding: {} for finding in outputs}
    for split in splits:
        labels = strategy.learned(labels_of(plan.sources[split].index(), outputs, part.blank))
        for finding, column in zip(outputs, labels.T, strict=True):
            counts[finding][f"{split}_positives"] = int((column == 1).sum())
            counts[finding][f"{split}_negatives"] = int((column == 0).sum())
    return {finding: LearnedLabels(**each) for finding, each in counts.items()}


def _notes(plan: "AlignmentPlan") -> tuple[str, ...]:
    limit = plan.options.limit
    without = [f"{base} ({file.name})" for base, _, file in lacking_weights(plan.body, plan.spec.folder)]
    left_out = f"Bases left out because their weights were not there: {', '.join(without)}." if without else ""
    shown = f"Outlined images of at most {limit} patients were explained for each finding (--limit {limit})."
    remark = SOURCES[str(plan.body.evaluation["name"])].remark
    truth = (
        ""
        if plan.human == "readers"
        else "The source has no second reader: the upper end of the scale is the experts' own mask, which scores 1."
    )
    return (shown if limit else "", left_out, remark, truth, *NOTES)


def _model_record(base: PlannedBase) -> ModelRecord:
    name, label = base.settings.name, base.settings.label
    origin = f"trained for this study from {base.facts.initialisation}" if base.trained else ""
    return ModelRecord(
        name=base.key,
        label=base.key if base.trained else label or architecture_label(name),
        description=describe_model(base.settings, origin),
        architecture=name,
        weights_hash=base.weights_hash,
        contract=base.contract,
        details={
            "family": base.facts.family,
            "initialisation": base.facts.initialisation,
            "pretrained": base.facts.pretrained,
            "fine_tuned": base.facts.fine_tuned,
            "input": list(base.contract.size),
            "channels": base.contract.channels,
        },
    )


def counted_images(plan: "AlignmentPlan", finetune: Images, evaluation: Images) -> AlignmentManifest:
    """How many images and outlined findings there are, known once they were read."""
    first = seed_of(plan.envelope.seed, NetworkCell("", "control", plan.findings, 1))
    positives = {}
    for finding in plan.findings:
        subjects = plan.findings if plan.body.several else (finding,)
        parts = parts_of(finetune, subjects, plan.body.selection, first)
        outlined = set(finetune.positives(finding))
        labels = [evaluation.label(row, finding) for row in range(len(evaluation.keys))]
        positives[finding] = ImageCounts(
            finetune=len(outlined & set(parts.learned.tolist())),
            selection=len(outlined & set(parts.choosing.tolist())),
            evaluation=len(evaluation.positives(finding)),
            evaluation_positives=labels.count(1.0),
            evaluation_negatives=labels.count(0.0),
        )
    return AlignmentManifest(
        n_finetune=len(parts.learned),
        n_selection=len(parts.choosing),
        n_evaluation=len(evaluation.keys),
        positives=positives,
    )
