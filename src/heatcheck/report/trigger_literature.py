"""What the trigger paper printed: overlap, overlap difference and detection rate of seven methods."""

from heatcheck.report import reference
from heatcheck.report.literature import Figure

SOURCE = "Sun et al. 2023"
METRICS = {"trigger_iou": "iou", "overlap_difference": "od", "recovered": "tdr"}  # our names to the paper's
DYNAMIC = "dynamic-"
BASELINE = 0.9403  # accuracy of the model before it was poisoned
CLEAN, CLEAN_SPREAD = 0.9337, 0.0103  # mean accuracy of the poisoned models on clean images, over all triggers
LOWEST_SUCCESS = 0.95  # every attack succeeded more often than this
SECONDS_PER_PAIR = 250  # for the mutual information of two maps of 128 × 128 pixels
ARTEFACTS = (("LIME", 0.87, "severe"), ("guided Grad-CAM", 0.85, "mild"))  # overlap with static electricity


def detection(metric: str, trigger: str, method: str) -> Figure | None:
    """The published value of a method on a trigger; None where the paper has none."""
    kind = "dynamic" if trigger.startswith(DYNAMIC) else "static"
    name = trigger.replace(DYNAMIC, "random-") if kind == "dynamic" else trigger
    for row in reference.rows("trigger_detection"):
        found = row["metric"], row["trigger"], row["configuration"], row["method"]
        if found == (METRICS.get(metric, ""), kind, name, method):
            return Figure(float(row["value"]))
    return None


def caveat(architecture: str) -> str:
    """How far the published figures may be compared with ours."""
    return (
        f"Rows marked \u201cpublished\u201d are copied from {SOURCE} (Scientific Reports 13:19488). They are of VGG-16 "
        "on the full COVID-19 Radiography data, trained and poisoned by its authors; ours are of "
        f"{architecture} on this run\u2019s images. They show what is usual and are no target, and the paper gives "
        "neither box areas nor floors. A dash there was not published."
    )
