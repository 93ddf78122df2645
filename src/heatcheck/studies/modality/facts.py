"""What a modality run says of itself in run.json, for the report."""

import json
from typing import TYPE_CHECKING, Any

from heatcheck.core.contracts import Method
from heatcheck.methods import METHODS
from heatcheck.models import MODELS
from heatcheck.running.facts import (
    RESIZED,
    ModelRecord,
    architecture_label,
    describe_model,
    method_facts,
    model_facts,
    study_facts,
)
from heatcheck.runs.store import RunFolder
from heatcheck.sources import SOURCES

if TYPE_CHECKING:
    from heatcheck.studies.modality.plan import ModalityPlan

METRICS_SHOWN = ("msfi", "mi_correlation", "lesion_share", "median_iou", "modality_sum", "inside_share")
REMOVAL_METRICS = ("delta_aupc", "aupc")
NOTES = (
    RESIZED,
    "Maps explain the class that the network names, be it right or wrong.",
    "Evidence against that class counts as 0, and the highest hundredth of a map is capped.",
    "The modalities of a map are scaled together, never one by one: that would hide which of them it points to.",
    "A modality that is left out is shown as 0, or as other tissue of the same image, with the intact image's scaling.",
    "Every subset of the modalities is shown to the network, so the modalities' importance is exact for these cases.",
    "The floor is a map that marks the whole head alike.",
    "Patients, not images, are drawn again for the intervals.",
)


def modality_run_facts(plan: "ModalityPlan") -> dict[str, Any]:
    """Names and explanations."""
    body = plan.body
    metrics = (*METRICS_SHOWN, *(REMOVAL_METRICS if body.removal else ()), "rating")
    return {
        **study_facts(plan.classes, plan.methods, metrics, str(body.source["name"]), _notes(plan)),
        "methods": [_method(name, method, plan) for name, method in plan.methods.items()],
        **_model(plan),
        "modalities": list(plan.modalities),
        "classes": list(plan.classes),
        "trained": plan.given is None,
        "folds": len(plan.folds),
        "primary": {
            "measure": body.measure,
            "filled": body.fills[0],
            "weights": body.weights,
            "importance": body.importance,
            "masks": body.masks,
            "boxes": body.boxes,
            "dilate": body.dilate,
        },
        "fills": list(body.fills),
        "known": list(plan.known),
        "removal": body.removal.model_dump() if body.removal else None,
        "fit": body.fit.model_dump(mode="json") if plan.given is None else None,
        "space": len(plan.contract.size),
        "exact": plan.coalitions.exact,
        "subsets": len(plan.coalitions.members),
        "ratings": None,
    }


def _method(name: str, method: Method, plan: "ModalityPlan") -> dict[str, Any]:
    facts = METHODS[name]
    return {
        **method_facts(name, method),
        "shares_modalities": name in plan.shared,
        "access": facts.group.access,
        "models": facts.group.models,
        "speed": facts.group.speed,
    }


def _notes(plan: "ModalityPlan") -> tuple[str, ...]:
    limit = plan.options.limit
    limited = f"At most {limit} cases of each fold were tested (--limit {limit})." if limit else ""
    remark = SOURCES[str(plan.body.source["name"])].remark
    exact = (
        ""
        if plan.coalitions.exact
        else f"There are too many modalities for every subset: their importance is estimated from "
        f"{len(plan.coalitions.members)} subsets, and its interval holds that error, too."
    )
    return (limited, remark, exact, *NOTES)


def left_out(ratings: int) -> str:
    """The note on ratings of cases without maps."""
    are = "rating speaks of a case" if ratings == 1 else "ratings speak of cases"
    return f"{ratings} {are} that failed or were not tested, and {'is' if ratings == 1 else 'are'} left out."


def _model(plan: "ModalityPlan") -> dict[str, Any]:
    settings, wanted = plan.body.model, plan.contract
    name, trained = settings.name, plan.given is None
    shipped = not trained and name in MODELS and MODELS[name].weights
    origin = f"trained for this study in {len(plan.folds)} folds" if trained else ""
    record = ModelRecord(
        name=plan.model,
        label=settings.label or architecture_label(name),
        description=MODELS[name].summary if shipped else describe_model(settings, origin),
        architecture=name,
        weights_hash=plan.given.weights_hash if plan.given else "",
        contract=wanted,
        details={"input": list(wanted.size), "channels": wanted.channels, "outputs": list(wanted.outputs)},
    )
    shown = model_facts(record, primary=True)
    return {"model": shown, "models": [shown]}


def fold_facts(plan: "ModalityPlan", folder: RunFolder) -> list[dict[str, Any]]:
    """How many cases each fold learned from, chose its epoch by and is tested on."""
    epochs = _epochs(folder) if plan.given is None else {}
    return [
        {
            "fold": fold.number,
            "training": len(fold.training),
            "validation": len(fold.validation),
            "test": len(keys),
            "classes": {name: sum(key.labels[name] == 1 for key in keys) for name in plan.classes},
            "epoch": epochs.get(fold.number),
        }
        for fold, keys in ((fold, plan.tested(fold).keys) for fold in plan.folds)
    ]


def _epochs(folder: RunFolder) -> dict[int, int]:
    table = folder.within("training").read_table("scores")
    rows = table[table["metric"] == "epoch"]
    return {json.loads(at)["fold"]: int(value) for at, value in zip(rows["condition"], rows["value"], strict=True)}
