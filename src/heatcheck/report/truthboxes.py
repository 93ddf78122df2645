"""Truth that is boxes: the overlap of regions with the boxes' area beside the overlap of boxes with boxes."""

from heatcheck.report import words
from heatcheck.report.evidence import Evidence
from heatcheck.report.matrix import Matrix, by_finding

MEASURES = ("iou", "box_iou")


def box_tables(evidence: Evidence) -> list[tuple[Matrix, str]]:
    """Both tables with what they measure, where the truth is boxes and both were scored; else nothing."""
    if evidence.run.manifest.get("truth_kind") != "boxes" or not set(MEASURES) <= set(evidence.measures):
        return []
    found = [(by_finding(evidence, "mean", metric), metric) for metric in MEASURES]
    made = [(table, words.plain(evidence.measures[metric]).sentence) for table, metric in found if table]
    return made if len(made) == len(MEASURES) else []
