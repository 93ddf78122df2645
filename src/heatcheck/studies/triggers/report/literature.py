"""The numbers that the trigger paper printed: scores of seven methods, attack rates and times."""

import math
from dataclasses import dataclass

from heatcheck.report import reference
from heatcheck.report.evidence import Evidence
from heatcheck.report.published import Figure

SOURCE = "Sun et al. 2023"
DATA = "covid_radiography"  # the data that its figures are of
METRICS = {"trigger_iou": "iou", "overlap_difference": "od", "recovered": "tdr"}  # our names to the paper's
DYNAMIC = "dynamic-"
# what the text says of Fig. 7, which has no numbers
AGREES_MOST, AGREES_LEAST = ("occlusion", "feature_ablation"), ("guided_backprop", "guided_grad_cam")
WORDS = {
    "occlusion": "occlusion", "feature_ablation": "feature ablation", "guided_backprop": "guided backprop",
    "guided_grad_cam": "guided Grad-CAM", "gradient": "gradient", "grad_cam": "Grad-CAM", "lime": "LIME",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reported:
    """A number from the paper's text: of what, by which method where one is named (as printed), and ± where given."""

    subject: str
    method: str
    value: float
    spread: float


def is_own_data(evidence: Evidence) -> bool:
    """Whether the run is on the paper's data: only beside such runs do its figures stand."""
    return evidence.manifest.source.published_as == DATA


def reported(metric: str, subject: str = "") -> tuple[Reported, ...]:
    """The numbers of the paper's text under this name, of one subject or of all."""
    return tuple(
        Reported(row["subject"], row["method"], float(row["value"]), float(row["spread"] or math.nan))
        for row in reference.rows("trigger_attack")
        if row["metric"] == metric and subject in {"", row["subject"]}
    )


def detection(metric: str, trigger: str, method: str) -> Figure | None:
    """The published value of a method on a trigger; None where the paper has none."""
    kind = "dynamic" if trigger.startswith(DYNAMIC) else "static"
    name = trigger.replace(DYNAMIC, "random-") if kind == "dynamic" else trigger
    for row in reference.rows("trigger_detection"):
        printed = row["metric"], row["trigger"], row["configuration"], row["method"]
        if printed == (METRICS.get(metric, ""), kind, name, method):
            return Figure(float(row["value"]))
    return None


def mean_overlaps() -> dict[str, float]:
    """Each method's mean published IoU over all triggers."""
    values: dict[str, list[float]] = {}
    for row in reference.rows("trigger_detection"):
        if row["metric"] == METRICS["trigger_iou"]:
            values.setdefault(row["method"], []).append(float(row["value"]))
    return {method: sum(each) / len(each) for method, each in values.items()}


def caveat(architecture: str) -> str:
    """How far the published figures may be compared with ours."""
    return (
        f"Rows marked \u201cpublished\u201d are copied from {SOURCE} (Scientific Reports 13:19488). They are for "
        "VGG-16 on the full COVID-19 Radiography data, trained and poisoned by its authors; ours are for "
        f"{architecture}, trained and poisoned here. They show what is usual and are not a target, and the paper gives "
        "neither box areas nor floors. A dash there means not published."
    )
