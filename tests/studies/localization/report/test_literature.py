"""The published tables: every cell as printed, and every known misprint with its note."""

import csv
import math
from pathlib import Path

import pytest

import heatcheck
from heatcheck.report.published import Figure
from heatcheck.studies.localization.report import literature

FOLDER = Path(heatcheck.__file__).parent / "reference"


def rows_of(table):
    return list(csv.DictReader((FOLDER / f"{table}.csv").read_text(encoding="utf-8").splitlines()))


def test_cells_are_found_by_our_own_names():
    assert literature.localization("iou", "Lung Opacity", "eigen_cam") == Figure(0.293)
    assert literature.localization("hit", "Edema", "grad_cam", "inception_v4") is not None
    assert literature.against_human("hit", "Lung Lesion", "percent_decrease") == Figure(65.9, 35.3, 91.7)
    assert literature.against_human("iou", "Cardiomegaly", "human") == Figure(0.720)
    assert literature.geometry("iou", "size", "human_minus_saliency") == Figure(-0.154, -0.231, -0.076, 3)
    assert literature.confidence("hit", "All pathologies", "linear").value == -0.411
    assert literature.ensemble("hit", "Pneumothorax", "single_checkpoint") == Figure(0.491)
    assert literature.pixels("Consolidation", "specificity_human").value == 1.0
    assert literature.counted("Number CXRs") == Figure(668)


def test_what_was_not_published_is_none():
    assert literature.localization("iou", "Edema", "lime") is None
    assert literature.localization("mass", "Edema", "grad_cam") is None
    assert literature.against_human("dice", "Edema", "human") is None
    assert literature.pixels("Scoliosis", "specificity_human") is None


@pytest.mark.parametrize("row", rows_of("misprints"), ids=lambda row: f"{row['table']}-{row['row']}-{row['column']}")
def test_every_misprint_names_a_cell_that_exists(row):
    table = rows_of(row["table"])
    names = {each.get("finding") or each.get("feature") for each in table}
    assert row["row"] in {*names, "*"}
    wide = row["column"] in table[0]
    assert wide or row["column"].split("/")[0] in {each["method"] for each in table}
    assert row["metric"] in {"", *(each.get("metric", "") for each in table)}


def test_misprints_carry_their_notes():
    swapped = literature.geometry("hit", "instances", "saliency")
    assert (swapped.value, swapped.low, swapped.high) == (-0.244, -0.346, -0.051)
    assert "table says −0.051 (−0.346 to 0.244); the paper’s sentences print −0.051 (−0.364 to 0.244)" in swapped.note
    for finding in ("Pleural Effusion", "Edema", "Atelectasis", "Consolidation"):  # decreases below 0
        human, saliency = (literature.against_human("iou", finding, name).value for name in ("human", "saliency"))
        printed = literature.against_human("iou", finding, "percent_decrease")
        assert printed.value == pytest.approx(100 * (human - saliency) / saliency, abs=0.7)
        assert f"about {100 * (human - saliency) / human:.1f} %".replace("-", "−") in printed.note
    devices = [
        literature.localization("hit", "Support Devices", "grad_cam"),
        literature.localization("hit", "Support Devices", "grad_cam", "densenet121"),
        literature.against_human("hit", "Support Devices", "saliency"),
        literature.ensemble("hit", "Support Devices", "ensemble"),
    ]
    assert {(figure.value, "0.357 in a sentence" in figure.note) for figure in devices} == {(0.355, True)}
    assert "0.297" in literature.localization("iou", "Consolidation", "grad_cam_plus_plus").note
    assert "0.296" in literature.localization("iou", "Consolidation", "grad_cam_plus_plus", "densenet121").note
    assert literature.localization("iou", "Consolidation", "grad_cam_plus_plus", "resnet152").note == ""
    assert literature.localization("hit", "Consolidation", "grad_cam_plus_plus").note == ""
    assert all(literature.confidence("iou", row["finding"], "spearman").note
               for row in rows_of("confidence_regression_miou"))  # fmt: skip
    assert not literature.confidence("iou", "Edema", "linear").note


def test_tables_that_print_the_same_number_agree():
    """Grad-CAM on DenseNet121 stands in five tables, every method of three architectures in two."""
    names = {row["finding"] for row in rows_of("localization_by_method")}
    assert len(names) == 10
    for metric, printed in literature.METRICS.items():
        for finding in names:
            single = literature.localization(metric, finding, "grad_cam").value
            assert single == literature.against_human(metric, finding, "saliency").value
            assert single == literature.ensemble(metric, finding, "ensemble").value
            for method in ("grad_cam", "integrated_gradients", "grad_cam_plus_plus"):
                first = literature.localization(metric, finding, method)
                second = literature.localization(metric, finding, method, "densenet121")
                assert first.value == second.value or (first.note and second.note), (finding, method)
        for table, rows in (("localization_by_method", 7 * 10), ("localization_by_architecture", 9 * 10)):
            cells = [row for row in rows_of(table) if row["metric"] == printed]
            assert len(cells) == rows
            assert all(0 <= float(row["value"]) <= 1 for row in cells)


def test_a_blank_cell_is_undefined():
    assert math.isnan(literature.confidence("hit", "Edema", "linear").low)
