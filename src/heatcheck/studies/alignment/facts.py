"""What an alignment run says of itself in run.json, for the report."""

from typing import TYPE_CHECKING

from heatcheck.running.facts import RESIZED, ModelRecord, architecture_label, describe_model, models_facts, study_facts
from heatcheck.sources import SOURCES
from heatcheck.studies.alignment.bases import PlannedBase
from heatcheck.studies.alignment.cells import NetworkCell, parts_of, seed_of
from heatcheck.studies.alignment.images import Images
from heatcheck.studies.alignment.vocabulary import FILLS, AlignmentManifest, FitEntry, ImageCounts, RelianceEntry

if TYPE_CHECKING:
    from heatcheck.studies.alignment.plan import AlignmentPlan

METRICS_SHOWN = (
    "mass", "rank", "hit", "iou", "reliance", "reliance_placebo", "auroc", "mutual_information_label",
)  # fmt: skip
NOTES = (
    RESIZED,
    "Evidence against a finding counts as 0, and the channels of a map are added up.",
    "Each map was compared with the mask of its own image, on the map's own grid.",
    "Networks were fine-tuned with the base's normalisation statistics and without dropout.",
    "A control is fine-tuned on the same images in the same order, without looking at maps.",
    "The evaluation images took no part in fine-tuning nor in the choice of a checkpoint.",
    "Reliance asks the model itself: how much more its score falls without the outlined area than without others.",
)


def run_manifest(plan: "AlignmentPlan") -> AlignmentManifest:
    """What is known before the run starts."""
    body, methods = plan.body, {**plan.trained, **plan.judged}
    fit = body.fit
    return AlignmentManifest(
        **study_facts(plan.findings, methods, METRICS_SHOWN, str(body.evaluation["name"]), _notes(plan)),
        **models_facts([_model(base) for base in plan.bases], plan.bases[0].key),
        trained=tuple(plan.trained),
        judged=tuple(plan.judged),
        through=body.through_method,
        seeds=plan.rule.seeds,
        alpha=body.alpha,
        fit=FitEntry(epochs=fit.epochs, batch_size=fit.batch_size, learning_rate=fit.rates[0]),
        several=body.several,
        softplus=body.softplus,
        blame_metric=body.blame_by,
        reliance=RelianceEntry(shifts=body.reliance.shifts, fills=FILLS),
        human=plan.human,
    )


def _notes(plan: "AlignmentPlan") -> tuple[str, ...]:
    limit = plan.options.limit
    limited = f"At most {limit} outlined images of each finding were explained (--limit {limit})." if limit else ""
    remark = SOURCES[str(plan.body.evaluation["name"])].remark
    truth = (
        ""
        if plan.human == "readers"
        else "The source has no second reader: the upper end of the scale is the experts' own mask, which scores 1."
    )
    return (limited, remark, truth, *NOTES)


def _model(base: PlannedBase) -> ModelRecord:
    name, label = base.settings.name, base.settings.label
    origin = f"trained for this study from {base.facts.initialisation}" if base.trained else ""
    return ModelRecord(
        name=base.key,
        label=label or (base.key if base.trained else architecture_label(name)),
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
