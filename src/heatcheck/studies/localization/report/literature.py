"""What the CheXlocalize paper printed: its tables as they stand, each cell with a note where the print is wrong."""

import math
from collections.abc import Iterable

from heatcheck.core.findings import canonical
from heatcheck.report import reference
from heatcheck.report.published import Figure

SOURCE = "Saporta et al. 2022"
AVERAGE = "Average"
METRICS = {"iou": "miou", "hit": "hit_rate"}  # our names to the paper's
FEATURES = {"instances": "number_of_instances"}
ARCHITECTURES = {"densenet121": "DenseNet121", "resnet152": "ResNet152", "inception_v4": "Inception-v4"}
USUAL = "densenet121"  # the model behind the tables that name none
PIPELINE = "grad_cam"  # the method behind the tables that name none
_INTERVALS = {
    ("percentage_decrease", "percent_decrease"): ("ci_low", "ci_high", ""),
    ("geometry_regression", "saliency"): ("saliency_low", "saliency_high", "saliency_stars"),
    ("geometry_regression", "human_minus_saliency"): ("gap_low", "gap_high", "gap_stars"),
    ("confidence_regression", "linear"): ("linear_low", "linear_high", "linear_stars"),
    ("confidence_regression", "spearman"): ("spearman_low", "spearman_high", "spearman_stars"),
}


def shared(findings: Iterable[str]) -> set[str]:
    """Those of the findings that the paper has figures for."""
    published = {row["finding"] for row in reference.rows("localization_by_method")}
    return {finding for finding in findings if canonical(finding) in published}


def same_findings(findings: Iterable[str]) -> bool:
    """Whether these are the paper's findings, no more and no fewer: only then can a mean over all be compared."""
    published = {row["finding"] for row in reference.rows("localization_by_method")}
    return {canonical(finding) for finding in findings} == published


def localization(metric: str, finding: str, method: str, architecture: str = "") -> Figure | None:
    """The published mean of a method on a finding, with the paper's usual model unless another is named."""
    if metric not in METRICS:
        return None
    table = "localization_by_architecture" if architecture else "localization_by_method"
    column = f"{method}/{architecture}" if architecture else method
    for row in reference.rows(table):
        found = row["metric"], row["finding"], row["method"], row["architecture"]
        if found == (METRICS[metric], canonical(finding), method, architecture or USUAL):
            return Figure(float(row["value"]), note=_misprint(table, METRICS[metric], row["finding"], column))
    return None


def against_human(metric: str, finding: str, column: str) -> Figure | None:
    """A cell of the paper's comparison with people: "human", "saliency" or "percent_decrease"."""
    return _cell(f"percentage_decrease_{METRICS[metric]}", "", finding, column) if metric in METRICS else None


def pixels(finding: str, column: str) -> Figure | None:
    """A cell of the paper's specificity and sensitivity, such as "specificity_saliency"."""
    return _cell("specificity_sensitivity", "", finding, column)


def ensemble(metric: str, finding: str, column: str) -> Figure | None:
    """The published mean of the "ensemble" or of the "single_checkpoint"."""
    return _cell("ensemble_vs_single", METRICS[metric], finding, column) if metric in METRICS else None


def geometry(metric: str, feature: str, column: str) -> Figure | None:
    """A coefficient on the shape of a finding: "saliency" or "human_minus_saliency"."""
    return _cell("geometry_regression", metric, FEATURES.get(feature, feature), column)


def confidence(metric: str, finding: str, column: str) -> Figure | None:
    """A coefficient on the model's probability: "linear", "spearman" or "n"."""
    return _cell(f"confidence_regression_{METRICS[metric]}", "", finding, column) if metric in METRICS else None


def counted(row: str) -> Figure | None:
    """How many images or studies of the published test set the row counts."""
    return _cell("test_set_counts", "", row, "count")


def _cell(table: str, metric: str, row: str, column: str) -> Figure | None:
    for each in reference.rows(table):
        name = each.get("finding") or each.get("feature") or each.get("row")
        if name != canonical(row) or each.get("metric", "") != metric:
            continue
        family = table.removesuffix("_miou").removesuffix("_hit_rate")
        low, high, stars = _INTERVALS.get((family, column), ("", "", ""))
        note = _misprint(table, metric, name, column)
        return Figure(_number(each[column]), _number(each.get(low)), _number(each.get(high)),
                      int(each.get(stars) or 0), note)  # fmt: skip
    return None


def _number(text: str | None) -> float:
    return float(text) if text else math.nan


def _misprint(table: str, metric: str, row: str, column: str) -> str:
    for each in reference.rows("misprints"):
        if (each["table"], each["metric"], each["column"]) == (table, metric, column) and each["row"] in {row, "*"}:
            return each["note"]
    return ""
