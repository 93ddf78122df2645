"""`heatcheck score --preset chexlocalize`: every value equals what the benchmark's own scripts wrote."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FOLDERS = {  # the golden README's five sets of flags
    "tp": (),
    "thr": ("--threshold", "tuning_results.csv"),
    "smooth50": ("--smooth", "50"),
    "full_otsu": ("--slice", "full"),
    "full": ("--slice", "full", "--probability-cutoffs", "probability_tuning_results.csv"),
}
REGIONS = {"tp": "otsu", "thr": "thr", "smooth50": "smooth50", "full_otsu": "otsu", "full": "prob"}
NOT_OF_TP = {"tuning_results.csv", "probability_tuning_results.csv", "regression_modelprob_iou.csv"}


def given(golden: Path) -> tuple[object, ...]:
    data = golden / "data"
    return (
        "--maps", data / "maps", "--truth", data / "gt_annotations.json", "--human", data / "hb_annotations.json",
        "--human-points", data / "hb_salient_pt.json",
    )  # fmt: skip


def assert_same_table(ours: Path, theirs: Path) -> None:
    """Text cells identical, numbers to 1e-9, in the same order."""
    one, other = pd.read_csv(ours), pd.read_csv(theirs)
    assert list(one.columns) == list(other.columns), ours.name
    assert len(one) == len(other), ours.name
    for column in one:
        if pd.api.types.is_numeric_dtype(other[column]):
            np.testing.assert_allclose(one[column], other[column], rtol=0, atol=1e-9, err_msg=f"{ours.name} {column}")
        else:
            assert one[column].fillna("").tolist() == other[column].fillna("").tolist(), (ours.name, column)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_golden_set_comes_out_as_the_benchmark_wrote_it(heatcheck, golden, tmp_path, folder) -> None:
    expected = golden / "expected"
    flags = [expected / flag if flag.endswith(".csv") else flag for flag in FOLDERS[folder]]
    out = tmp_path / "out"
    code, printed, error = heatcheck("score", *given(golden), "--preset", "chexlocalize", *flags, "--out", out)
    assert code == 0, error
    assert "Report:" in printed
    tables = list((expected / folder).iterdir())
    if folder == "tp":
        tables += [p for p in expected.glob("*.csv") if p.name not in NOT_OF_TP]
    if folder == "full":
        tables.append(expected / "regression_modelprob_iou.csv")
    for table in tables:
        assert_same_table(out / table.name, table)
    regions = {"pred_segmentations.json": f"pred_segmentations_{REGIONS[folder]}.json"}
    for ours, theirs in {**regions, "gt_segmentations.json": "", "hb_segmentations.json": ""}.items():
        assert json.loads((out / ours).read_text()) == json.loads((expected / (theirs or ours)).read_text()), ours
