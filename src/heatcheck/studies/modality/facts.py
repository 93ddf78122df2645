"""What run.json says of a modality run."""

from typing import TYPE_CHECKING, Any

from heatcheck.core.contracts import Method
from heatcheck.core.vocabulary import facts_of
from heatcheck.explaining.methods import skipped_facts
from heatcheck.explaining.study_models import StudyModel
from heatcheck.methods import METHODS
from heatcheck.models import MODELS
from heatcheck.running.facts import RESIZED, architecture_label, describe_model, method_facts, study_facts
from heatcheck.running.open_source import cautions_of
from heatcheck.runs.store import RunFolder
from heatcheck.sources import SOURCES
from heatcheck.studies.modality.vocabulary import (
    PUBLISHED,
    RATING,
    FoldEntry,
    ModalityManifest,
    ModalityMethod,
    ModalityModel,
    PrimarySettings,
)

if TYPE_CHECKING:
    from heatcheck.studies.modality.plan import ModalityPlan

METRICS_SHOWN = ("msfi", "mi_correlation", "lesion_share", "median_iou", "modality_sum", "inside_share", PUBLISHED)
REMOVAL_METRICS = ("delta_aupc", "aupc")
NOTES = (
    RESIZED,
    "Maps explain the class that the network predicts, whether right or wrong.",
    "Evidence against that class counts as 0, and the highest 1 % of a map is capped.",
    "The modalities of a map are scaled together, never one by one: that would hide which of them it points to.",
    "A modality that is left out is shown as 0, or as other tissue of the same image, with the intact image's scaling.",
    "Every subset of the modalities is shown to the network, so the modalities' importance is exact for these cases.",
    "Floors never see the network: the whole head, and in each modality what is bright, edges, and the usual place.",
    "Intervals are computed by resampling patients, not images.",
)


def modality_run_facts(plan: "ModalityPlan") -> dict[str, Any]:
    """The manifest of the run, as far as it is known before work starts."""
    body, trained = plan.body, plan.given is None
    metrics = (*METRICS_SHOWN, *(REMOVAL_METRICS if body.removal else ()), RATING)
    cautions = (*plan.cautions, *cautions_of([plan.source, *plan.known.values()]))
    shared = study_facts(plan.classes, plan.methods, metrics, str(body.source["name"]), _notes(plan), cautions)
    model = _model(plan)
    facts = {
        **shared,
        **skipped_facts(plan.choice.skipped),
        "methods": [_method(name, method, plan) for name, method in plan.methods.items()],
        "model": model,
        "models": (model,),
        "modalities": plan.modalities,
        "classes": plan.classes,
        "sizes": body.sizes.model_dump(mode="json"),
        "trained": trained,
        "folds": len(plan.folds),
        "primary": PrimarySettings(
            measure=body.measure,
            filled=body.fills[0],
            weights=body.weights,
            importance=body.importance,
            masks=body.masks,
            boxes=body.boxes,
            dilate=body.dilate,
        ),
        "fills": body.fills,
        "known": tuple(plan.known),
        "removal": body.removal.model_dump() if body.removal else None,
        "fit": body.fit.model_dump(mode="json") if trained else None,
        "plain": _plain(plan),
        "space": len(plan.contract.size),
        "exact": plan.coalitions.exact,
        "subsets": len(plan.coalitions.members),
    }
    return ModalityManifest(**facts).facts()


def _method(name: str, method: Method, plan: "ModalityPlan") -> ModalityMethod:
    group = METHODS[name].group
    return ModalityMethod(
        **method_facts(name, method),
        shares_modalities=name in plan.shared,
        access=group.access,
        models=group.models,
        speed=group.speed,
    )


def _notes(plan: "ModalityPlan") -> tuple[str, ...]:
    limit = plan.options.limit
    limited = f"Cases of at most {limit} patients of each fold were tested (--limit {limit})." if limit else ""
    remark = SOURCES[str(plan.body.source["name"])].remark
    exact = (
        ""
        if plan.coalitions.exact
        else f"There are too many modalities for every subset: their importance is estimated from "
        f"{len(plan.coalitions.members)} subsets, and its interval includes that error."
    )
    return (limited, remark, exact, *NOTES)


def left_out(ratings: int) -> str:
    """The note on ratings of cases without maps."""
    if ratings == 1:
        return "1 rating is left out because its case failed or was not tested."
    return f"{ratings} ratings are left out because their cases failed or were not tested."


def _model(plan: "ModalityPlan") -> ModalityModel:
    settings, contract = plan.body.model, plan.contract
    name, trained = settings.name, plan.given is None
    start = f", starting from {plan.start.name}" if plan.start else ""
    origin = f"trained for this study in {len(plan.folds)} folds{start}" if trained else ""
    return ModalityModel(
        name=plan.model,
        label=settings.label or architecture_label(name),
        description=_described(settings, origin),
        architecture=name,
        kind="single",
        members=1,
        weights_hash=plan.given.weights_hash if plan.given else "",
        primary=True,
        input=contract.size,
        channels=contract.channels,
        outputs=contract.outputs,
    )


def _plain(plan: "ModalityPlan") -> str:
    """What the networks from which no modality was hidden are; empty where there are none."""
    settings = plan.body.plain
    if isinstance(settings, bool):
        return "the same networks, trained here without hiding modalities" if settings else ""
    return _described(settings)


def _described(settings: StudyModel, origin: str = "") -> str:
    """The summary of a shipped network, or what another one is and where its weights are from."""
    shipped = not origin and settings.name in MODELS and MODELS[settings.name].weights
    return MODELS[settings.name].summary if shipped else describe_model(settings, origin)


def fold_facts(plan: "ModalityPlan", folder: RunFolder) -> dict[str, Any]:
    """The number of training, validation and test cases of each fold, and the epoch that was kept."""
    epochs = _epochs(folder) if plan.given is None else {}
    per_fold = [
        FoldEntry(
            fold=fold.number,
            training=len(fold.training),
            validation=len(fold.validation),
            test=len(keys),
            classes={name: sum(key.labels[name] == 1 for key in keys) for name in plan.classes},
            epoch=epochs.get(fold.number),
        )
        for fold, keys in ((fold, plan.tested(fold).keys) for fold in plan.folds)
    ]
    return ModalityManifest(per_fold=tuple(per_fold)).facts()


def _epochs(folder: RunFolder) -> dict[int, int]:
    table = folder.within("training").read_table("scores")
    rows = table[table["metric"] == "epoch"]
    return {
        int(facts_of(text)["fold"]): int(value) for text, value in zip(rows["condition"], rows["value"], strict=True)
    }
