"""One name for each finding, whatever a data set calls it, and what its label says."""

import math

import numpy as np
from jaxtyping import Bool, Float

from heatcheck.core.records import UNCERTAIN

_ALIASES = {"Lung Opacity": "Airspace Opacity"}  # CheXpert's labels and CheXlocalize's outlines differ here
LOCALIZED = (
    "Airspace Opacity",
    "Atelectasis",
    "Cardiomegaly",
    "Consolidation",
    "Edema",
    "Enlarged Cardiomediastinum",
    "Lung Lesion",
    "Pleural Effusion",
    "Pneumothorax",
    "Support Devices",
)  # the findings that CheXlocalize's radiologists outlined, in the order of every table
CHEXPERT = (*LOCALIZED, "Fracture", "No Finding", "Pleural Other", "Pneumonia")  # every label of CheXpert


def canonical(finding: str) -> str:
    """The name heatcheck writes for a finding."""
    return _ALIASES.get(finding, finding)


def spellings(finding: str) -> tuple[str, ...]:
    """Every name under which data may hold a finding, heatcheck's own first."""
    return (finding, *(alias for alias, name in _ALIASES.items() if name == finding))


def known(label: float) -> float:
    """The label where it says present or absent; NaN where nobody said or the reader was uncertain."""
    return math.nan if label == UNCERTAIN else label


def known_cases(
    labels: Float[np.ndarray, " cases"], probabilities: Float[np.ndarray, " cases"]
) -> Bool[np.ndarray, " cases"]:
    """The cases whose label says present or absent; each of them must have an answer of the model.

    Raises:
        ValueError: The lists differ in length, a label is another number, or an answer is missing.
    """
    if labels.shape != probabilities.shape or labels.ndim != 1:
        shapes = f"{labels.shape} and {probabilities.shape}"
        raise ValueError(f"labels and probabilities must be two lists of the same length, got {shapes}")
    is_known = np.asarray(~np.isnan(labels))
    if not np.isin(labels[is_known], (0, 1)).all():
        raise ValueError("labels must be 1 (present), 0 (absent) or NaN (unknown), got another number")
    if np.isnan(probabilities[is_known]).any():
        raise ValueError("a case with a known label has no probability (NaN); leave it out or record it as failed")
    return is_known
