"""The published tables of the alignment paper, and how they are found."""

import math

import pytest

from heatcheck.report import reference
from heatcheck.studies.alignment.report import literature


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("alignment_robustness", 24 * 4),
        ("alignment_regression", 14),
        ("alignment_metric_correlation", 12),
        ("alignment_initialization_auroc", 12),
        ("alignment_label_counts", 14 * 4),
        ("alignment_grad_cam_example", 6),
    ],
)
def test_table_has_all_its_rows_each_once(table, rows):
    found = [tuple(row.values()) for row in reference.rows(table)]
    assert len(found) == len(set(found)) == rows


def test_counts_of_each_part_add_up_to_the_same_number_of_images():
    totals = {"training": 219329, "validation": 4085, "finetune": 668, "evaluation": 234}
    for row in reference.rows("alignment_label_counts"):
        assert int(row["positives"]) + int(row["negatives"]) == totals[row["split"]]


def test_robustness_is_found_by_architecture_method_and_pre_training():
    assert literature.robustness("swin_tiny", "smooth_grad", "robustness_rank", pretrained=False).value == 0.243
    assert literature.robustness("swin_base", "smooth_grad", "robustness_rank", pretrained=True).value == 0.101
    assert math.isnan(literature.robustness("swin_tiny", "lrp", "robustness_mass", pretrained=False).value)
    assert literature.robustness("densenet121", "gradient", "robustness_mass", pretrained=False) is None
    assert literature.robustness("densenet201", "grad_cam", "robustness_mass", pretrained=False) is None


def test_low_auroc_and_swin_carry_a_note():
    assert literature.robustness("vit_base_16", "lrp", "auroc_misalign", pretrained=True).note == literature.LOW_AUROC
    assert literature.robustness("swin_base", "lrp", "auroc_align", pretrained=False).note == literature.SWIN
    assert not literature.robustness("densenet201", "gradient", "auroc_align", pretrained=True).note
    assert literature.initialisation("swin_tiny", "imagenet21k").note == literature.SWIN


def test_p_value_below_what_was_printed_is_a_bound():
    found = literature.regression("mass", "architecture:Swin")
    assert (found.value, found.standard_error, found.p_value, found.p_is_bound) == (0.058, 0.0026, 2e-32, True)
    assert not literature.regression("rank", "pretrained").p_is_bound
    assert literature.regression("mass", "method:grad_cam") is None


def test_finding_is_found_under_either_of_its_names():
    assert literature.counted("Airspace Opacity") == literature.counted("Lung Opacity")
    assert literature.counted("Airspace Opacity")["evaluation"] == (126, 108)
    assert literature.counted("nodule") == {}
