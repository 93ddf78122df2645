"""Settings of the study in words, and the views of MSFI that a run has."""

from heatcheck.report.evidence import Evidence
from heatcheck.studies.modality.report.facts import EVERY, Facts, estimate, primary

IMPORTANCES = {"lesion": "by measured importance of the lesion", "known": "by known importance"}
WEIGHTS = {"positive": "φ below 0 counts as 0", "min_max": "φ stretched from 0 to 1"}


def msfi_views(evidence: Evidence) -> list[Facts]:
    """The importances for which the run has MSFI by the primary weights, the primary one first."""
    own = primary(evidence)
    names = sorted(IMPORTANCES, key=lambda name: name != own.importance)
    return [facts for name in names if _is_made(evidence, facts := {"importance": name, "weights": own.weights})]


def _is_made(evidence: Evidence, facts: Facts) -> bool:
    return any(
        estimate(evidence, ("mean", "msfi"), {**facts, "fold": EVERY}, method.name) for method in evidence.methods
    )


def masks_in_words(evidence: Evidence) -> str:
    """What counts as the lesion."""
    own = primary(evidence)
    text = "each modality\u2019s own mask" if own.masks == "own" else "one mask for all modalities, the union of theirs"
    text += ", as its bounding box" if own.boxes else ""
    return text + (f", widened by {own.dilate} pixels within each slice" if own.dilate else "")
