"""What the modality paper published: the importance of each modality by fold, and numbers from its text."""

import math
from collections.abc import Sequence

from heatcheck.report import reference
from heatcheck.report.published import Figure
from heatcheck.studies.modality.vocabulary import PHI_LESION, PHI_MODALITY, ModalityManifest

SOURCE = "Jin et al. 2021"
DATA = "brats"  # the data that its figures are of
FOLDS = (1, 2, 3, 4, 5)
KINDS = {PHI_MODALITY: "phi_mod", PHI_LESION: "phi_feat"}  # the paper's names
WEAK = (
    "The paper\u2019s network of fold 3 is its weakest (accuracy 82.4 %); its importances, small and in another order, "
    "depend on the class that the empty input falls into."
)


def is_data_of(run: ModalityManifest) -> bool:
    """Whether the run is on the paper's data; only beside such runs do its figures stand."""
    return run.source.published_as == DATA


def importance(metric: str, modality: str, fold: int) -> Figure | None:
    """The published Shapley value of a modality in a fold; None where the paper has none."""
    for row in reference.rows("modality_importance"):
        if (row["kind"], row["modality"]) == (KINDS.get(metric, ""), modality):
            return Figure(float(row[f"fold_{fold}"]), note=WEAK if fold == 3 and metric == PHI_MODALITY else "")
    return None


def accuracy(fold: int) -> Figure | None:
    """The published test accuracy of a fold."""
    for row in reference.rows("modality_importance"):
        if row["kind"] == "test":
            return Figure(float(row[f"fold_{fold}"]))
    return None


def scalar(name: str, subject: str) -> Figure | None:
    """A number from the paper's text, with its ± as `low` and `high`; None where it has none."""
    for row in reference.rows("modality_scalars"):
        if (row["name"], row["subject"]) == (name, subject):
            value, spread = float(row["value"]), float(row["spread"] or math.nan)
            return Figure(value, value - spread, value + spread)
    return None


def has_modalities(modalities: Sequence[str]) -> bool:
    """Whether these are exactly the paper's modalities."""
    published = {row["modality"] for row in reference.rows("modality_importance") if row["kind"] == "phi_mod"}
    return set(modalities) == published


def caveat() -> str:
    """How far the published figures can be compared with those of the run."""
    return (
        f"Rows marked \u201cpublished\u201d are copied from {SOURCE} (\u201cOne map does not fit all\u201d). They are "
        "of a 3D network trained on BraTS 2020 with the authors\u2019 own five folds, by accuracy, filled by 0: a fold "
        "there holds other patients than the fold of the same number here. They show what is usual and are not a "
        "target; the paper gives no intervals."
    )
