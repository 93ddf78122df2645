"""One name for each finding, whatever a data set calls it, and what its label says."""

import math

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
