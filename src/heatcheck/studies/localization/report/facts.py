"""What the run says of itself beyond its estimates, and which model the page is about."""

from heatcheck.core.vocabulary import SELECTED
from heatcheck.report.evidence import Evidence
from heatcheck.studies.localization.vocabulary import BEST_PAIR, LocalizationManifest


def manifest(evidence: Evidence) -> LocalizationManifest:
    """The run's manifest as this study declares it."""
    return evidence.run.manifest_as(LocalizationManifest)


def speaks_of(evidence: Evidence) -> str:
    """Which of several models the page speaks of, and why that one; empty where there is only one."""
    if len(evidence.models) < 2:
        return ""
    pairs = [facts for row, facts in evidence.rows(SELECTED) if row.metric == "iou"]
    is_chosen = any(facts.get("stage") == BEST_PAIR for facts in pairs)
    why = "chosen on the validation data for overlap" if is_chosen else "the first one named"
    return f"{evidence.models[0].label}, {why}"
