"""What the CheXlocalize paper printed, with a note where the print is wrong, and its rows below our tables."""

import math
from collections.abc import Callable, Iterable

from heatcheck.core.findings import canonical
from heatcheck.core.records import ALL_FINDINGS, HUMAN
from heatcheck.core.vocabulary import MEAN, PERCENT_DECREASE, RATIO, Statistic
from heatcheck.report import reference
from heatcheck.report.blocks.matrix import Matrix, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import PERCENT
from heatcheck.report.published import Figure, figure_cell, has_published_rows, with_rows
from heatcheck.studies.localization.report.facts import footnotes_of, manifest
from heatcheck.studies.localization.vocabulary import PAPER_DATA

SOURCE = "Saporta et al. 2022"
AVERAGE = "Average"
METRICS = {"iou": "miou", "hit": "hit_rate"}  # our names to the paper's
FEATURES = {"instances": "number_of_instances"}
ARCHITECTURES = {"densenet121": "DenseNet121", "resnet152": "ResNet152", "inception_v4": "Inception-v4"}
MAIN_MODEL = "densenet121"  # of the tables that name none
PIPELINE = "grad_cam"  # the method of the tables that name none
_PIXELS = {"specificity": "specificity", "recall": "sensitivity"}  # our name to the paper's
_INTERVALS = {
    ("percentage_decrease", "percent_decrease"): ("ci_low", "ci_high", ""),
    ("geometry_regression", "saliency"): ("saliency_low", "saliency_high", "saliency_stars"),
    ("geometry_regression", "human_minus_saliency"): ("gap_low", "gap_high", "gap_stars"),
    ("confidence_regression", "linear"): ("linear_low", "linear_high", "linear_stars"),
    ("confidence_regression", "spearman"): ("spearman_low", "spearman_high", "spearman_stars"),
}


def shared(findings: Iterable[str]) -> set[str]:
    """The findings for which the paper has figures."""
    published = {row["finding"] for row in reference.rows("localization_by_method")}
    return {finding for finding in findings if canonical(finding) in published}


def same_findings(findings: Iterable[str]) -> bool:
    """Whether these are exactly the paper's findings: only then can a mean over all be compared."""
    published = {row["finding"] for row in reference.rows("localization_by_method")}
    return {canonical(finding) for finding in findings} == published


def localization(metric: str, finding: str, method: str, architecture: str = "") -> Figure | None:
    """The published mean of a method on a finding, with the paper's main model unless another is named."""
    if metric not in METRICS:
        return None
    table = "localization_by_architecture" if architecture else "localization_by_method"
    column = f"{method}/{architecture}" if architecture else method
    for row in reference.rows(table):
        key = row["metric"], row["finding"], row["method"], row["architecture"]
        if key == (METRICS[metric], canonical(finding), method, architecture or MAIN_MODEL):
            return Figure(float(row["value"]), note=_misprint(table, METRICS[metric], row["finding"], column))
    return None


def against_human(metric: str, finding: str, column: str) -> Figure | None:
    """A cell of the paper's comparison with readers: "human", "saliency" or "percent_decrease"."""
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
    """The number of images or studies in one row of the published test set."""
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


def with_published(table: Matrix | None, evidence: Evidence, statistic: Statistic, metric: str) -> Matrix | None:
    """The table with the paper's figures for the same methods and findings as a last group of rows."""
    if table is None or not is_own_data(evidence):
        return table
    unit = PERCENT if statistic == PERCENT_DECREASE else evidence.metrics[metric].unit
    notes = footnotes_of(table)
    names = [column.name for column in table.columns]
    pooled = same_findings(evidence.findings)
    rows = []
    for entrant in (evidence.readers, *evidence.methods):
        figures = [
            printed(statistic, metric, name, entrant.name) if pooled or name != ALL_FINDINGS else None for name in names
        ]
        if any(figures):
            cells = [figure_cell(figure, unit, notes) for figure in figures]
            rows.append(labelled(entrant.label, cells, kind="published"))
    return with_rows(table, rows, notes, SOURCE)


def printed(statistic: Statistic, metric: str, finding: str, method: str) -> Figure | None:
    """What the paper printed for a mean, a percentage decrease or a share of pixels."""
    lookup: dict[Statistic, Callable[[str, str, str], Figure | None]] = {
        MEAN: _printed_mean,
        PERCENT_DECREASE: _printed_decrease,
        RATIO: _printed_share,
    }
    return lookup[statistic](metric, finding, method) if statistic in lookup else None


def _printed_mean(metric: str, finding: str, method: str) -> Figure | None:
    columns = {HUMAN: "human", PIPELINE: "saliency"}
    if finding == ALL_FINDINGS or method == HUMAN:
        row = AVERAGE if finding == ALL_FINDINGS else finding
        return against_human(metric, row, columns[method]) if method in columns else None
    return localization(metric, finding, method)


def _printed_decrease(metric: str, finding: str, method: str) -> Figure | None:
    row = AVERAGE if finding == ALL_FINDINGS else finding
    return against_human(metric, row, "percent_decrease") if method == PIPELINE else None


def _printed_share(metric: str, finding: str, method: str) -> Figure | None:
    whose = {HUMAN: "human", PIPELINE: "saliency"}.get(method)
    return pixels(finding, f"{_PIXELS[metric]}_{whose}") if whose and metric in _PIXELS else None


def is_own_data(evidence: Evidence) -> bool:
    """Whether the run is of the paper's data, or of files in its formats, of which nobody else can tell."""
    run = manifest(evidence)
    return run.source.published_as == PAPER_DATA or bool(run.scores_files)


def caveat_of(evidence: Evidence, tables: Iterable[Matrix]) -> str:
    """How far the published rows of these tables may be compared with ours; empty where they have none."""
    return caveat(evidence) if has_published_rows(list(tables)) else ""


def caveat(evidence: Evidence) -> str:
    """How far the published figures may be compared with ours."""
    run = manifest(evidence)
    opening = f"Rows marked \u201cpublished\u201d are copied from the CheXlocalize paper ({SOURCE})"
    if run.source.published_as == PAPER_DATA:
        advice = (
            "They come from that data set\u2019s test images, an ensemble of DenseNet121 networks and the paper\u2019s "
            "own rules: compare them with ours only where this run used the same."
        )
    else:  # the files do not say which images and model they are of
        advice = (
            "They may come from other images, patients and another model than these maps, so compare them only where "
            "you know that all are the same."
        )
    return f"{opening}. {advice} A dash there was not published; footnotes say where the print is wrong."
