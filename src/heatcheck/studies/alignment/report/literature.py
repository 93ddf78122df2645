"""The figures of the alignment paper: robustness, regressions, correlations, AUROC and counts, with notes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from heatcheck.core.findings import spellings
from heatcheck.report import reference
from heatcheck.report.published import Figure

SOURCE = "Baniecki et al. 2023"
DATA_SET = "chexlocalize"  # of the published counts
ARCHITECTURES = {"densenet201": "densenet201", "vit_base_16": "vit_base", "swin_base": "swin", "swin_tiny": "swin"}
EXAMPLE = "densenet121"  # the model behind the example of Grad-CAM
EXAMPLE_METHOD = "grad_cam"
PRINTED = {"densenet201": "DenseNet-201", "vit_base": "ViT-base", "swin": "Swin"}
SWIN = "The paper\u2019s text names Swin-base; the weights its authors released are of Swin-tiny."
LOW_AUROC = (
    "AUROC below 0.65: this network lost much of its predictive performance while its maps were tuned, so its "
    "robustness is not that of a working model."
)
_GUESSING = 0.65  # AUROC below which a published network gets a footnote
_AUROCS = ("auroc_align", "auroc_misalign")


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A published coefficient; with `p_is_bound` its p-value is below the printed one."""

    value: float
    standard_error: float
    p_value: float
    p_is_bound: bool


def _row(table: str, **columns: str) -> Mapping[str, str] | None:
    """The first row of a published table with these values."""
    return next((row for row in reference.rows(table) if columns.items() <= row.items()), None)


def robustness(architecture: str, method: str, quantity: str, *, pretrained: bool) -> Figure | None:
    """A cell of the robustness table: "robustness_mass", "robustness_rank", "auroc_align" or "auroc_misalign"."""
    name = ARCHITECTURES.get(architecture, "")
    row = _row(
        "alignment_robustness", pretrained=str(int(pretrained)), architecture=name, method=method, quantity=quantity
    )
    if row is None:
        return None
    value = float(row["value"] or math.nan)
    low = quantity in _AUROCS and value < _GUESSING
    return Figure(value, note=LOW_AUROC if low else SWIN if name == "swin" else "")


def label(architecture: str, *, pretrained: bool) -> str:
    """The published table's name for this kind of base model."""
    name = ARCHITECTURES.get(architecture, architecture)
    return f"{PRINTED.get(name, name)}, {'pretrained' if pretrained else 'not pretrained'}"


def initialisation(architecture: str, initialisation: str) -> Figure | None:
    """The published AUROC of a base model, before any fine-tuning."""
    name = ARCHITECTURES.get(architecture, "")
    row = _row("alignment_initialization_auroc", initialisation=initialisation, architecture=name)
    return Figure(float(row["auroc"]), note=SWIN if name == "swin" else "") if row else None


def regression(metric: str, term: str) -> Coefficient | None:
    """A published coefficient of the differences between aligned and misaligned."""
    row = _row("alignment_regression", metric=metric, term=term)
    if row is None:
        return None
    value, error, p_value = (float(row[name]) for name in ("value", "standard_error", "p_value"))
    return Coefficient(value, error, p_value, row["p_is_bound"] == "1")


def correlation(kind: str, left: str, right: str) -> Figure | None:
    """A published correlation of two of the four scores."""
    row = _row("alignment_metric_correlation", kind=kind, left=left, right=right)
    return Figure(float(row["value"])) if row else None


def example(finding: str, arm: str, metric: str) -> Figure | None:
    """A cell of the example with Grad-CAM: "auroc", "mutual_information", "hit" or "iou"."""
    for row in reference.rows("alignment_grad_cam_example"):
        if row["finding"] in spellings(finding) and row["arm"] == arm:
            return Figure(float(row[metric]))
    return None


def counted(finding: str) -> Mapping[str, tuple[int, int]]:
    """Published numbers of positives and negatives of a finding, by split."""
    return {row["split"]: (int(row["positives"]), int(row["negatives"]))
            for row in reference.rows("alignment_label_counts") if row["finding"] in spellings(finding)}  # fmt: skip


def caveat() -> str:
    """How far the published figures may be compared with ours."""
    return (
        f"Rows marked \u201cpublished\u201d are copied from {SOURCE} (\u201cBe Careful When Evaluating Explanations "
        "Regarding Ground Truth\u201d). They rest on other weights and another training, come from one seed and have "
        "no intervals. They show what is usual and are not a target. A dash means not published; footnotes mark "
        "figures to be read with care."
    )
