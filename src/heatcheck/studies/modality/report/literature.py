"""What the modality paper printed: importance of each modality by fold, and numbers of its text."""

import math
from collections.abc import Sequence

from heatcheck.report import reference
from heatcheck.report.published import Figure

SOURCE = "Jin et al. 2021"
FOLDS = (1, 2, 3, 4, 5)
KINDS = {"phi_modality": "phi_mod", "phi_lesion": "phi_feat"}  # our names to the paper's
WEAK = (
    "The paper\u2019s network of fold 3 is its weakest (accuracy 82.4 %); its importances, small and in another order, "
    "depend on the class that the empty input falls into."
)


def importance(metric: str, modality: str, fold: int) -> Figure | None:
    """The published Shapley value of a modality in a fold; None where the paper has none."""
    for row in reference.rows("modality_importance"):
        if (row["kind"], row["modality"]) == (KINDS.get(metric, ""), modality):
            return Figure(float(row[f"fold_{fold}"]), note=WEAK if fold == 3 and metric == "phi_modality" else "")
    return None


def accuracy(fold: int) -> Figure | None:
    """The published test accuracy of a fold."""
    for row in reference.rows("modality_importance"):
        if row["kind"] == "test":
            return Figure(float(row[f"fold_{fold}"]))
    return None


def scalar(name: str, subject: str) -> Figure | None:
    """A number of the paper's text, with ± as its spread in `high` less the value; None where it has none."""
    for row in reference.rows("modality_scalars"):
        if (row["name"], row["subject"]) == (name, subject):
            value, spread = float(row["value"]), float(row["spread"] or math.nan)
            return Figure(value, value - spread, value + spread)
    return None


def has_modalities(modalities: Sequence[str]) -> bool:
    """Whether the paper speaks of these modalities, no more and no fewer."""
    published = {row["modality"] for row in reference.rows("modality_importance") if row["kind"] == "phi_mod"}
    return set(modalities) == published


def caveat() -> str:
    """How far the published figures may be compared with ours."""
    return (
        f"Rows marked \u201cpublished\u201d are copied from {SOURCE} (\u201cOne map does not fit all\u201d). They are "
        "of a 3D network trained on BraTS 2020 with the authors\u2019 own five folds, by accuracy, filled by 0: a fold "
        "there holds other patients than the fold of the same number here. They show what is usual and are no target; "
        "the paper gives no intervals."
    )
