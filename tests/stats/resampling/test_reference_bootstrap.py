"""The paper's bootstrap against what the paper's scripts wrote."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heatcheck.stats.resampling.reference_bootstrap import average_decrease, decreases, replicates, summaries

SETS = [
    ("tp", "iou"),
    ("tp", "hitmiss"),
    ("tp", "iou_humanbenchmark"),
    ("tp", "hitmiss_humanbenchmark"),
    ("full", "iou"),
    ("full", "iou_humanbenchmark"),
    ("full_otsu", "iou"),
    ("thr", "iou"),
    ("smooth50", "iou"),
]


def drawn(golden: Path, folder: str, name: str) -> pd.DataFrame:
    """Our replicates of the paper's scores, a column a finding in the order of the scores."""
    scores = pd.read_csv(golden / "expected" / folder / f"{name}_results_per_cxr.csv").set_index("img_id").sort_index()
    return pd.DataFrame(replicates(scores.to_numpy(float)), columns=scores.columns)


@pytest.mark.parametrize(("folder", "name"), SETS)
def test_replicates_and_summaries_equal_the_papers(golden: Path, folder: str, name: str) -> None:
    expected = golden / "expected" / folder
    ours, theirs = drawn(golden, folder, name), pd.read_csv(expected / f"{name}_bootstrap_results_per_cxr.csv")
    assert set(ours) == set(theirs)
    np.testing.assert_allclose(ours[theirs.columns], theirs, rtol=0, atol=1e-9)
    summary = pd.read_csv(expected / f"{name}_summary_results.csv").set_index("name").loc[list(ours)]
    rows = [(row.lower, row.mean, row.upper) for row in summaries(ours.to_numpy())]
    assert np.array_equal(np.array(rows), summary[["lower", "mean", "upper"]].to_numpy(), equal_nan=True)


@pytest.mark.parametrize(("metric", "file"), [("iou", "miou"), ("hitmiss", "hitrate")])
def test_percentage_decreases_equal_the_papers(golden: Path, metric: str, file: str) -> None:
    ours, human = drawn(golden, "tp", metric), drawn(golden, "tp", f"{metric}_humanbenchmark")
    rows = decreases(human.to_numpy(), ours.to_numpy())
    rows_by_name = dict(zip(ours.columns, rows, strict=True))
    rows_by_name["Average"] = average_decrease(rows, human.to_numpy(), ours.to_numpy())
    expected = pd.read_csv(golden / "expected" / f"{file}_pct_decrease.csv", index_col=0)
    for name, row in expected.iterrows():
        computed = rows_by_name[str(name)]
        np.testing.assert_allclose([computed.human, computed.saliency], [row.hb, row.pred], atol=1e-9)
        assert (computed.percent, computed.lower, computed.upper) == (
            row.pct_diff,
            row.pct_diff_lower,
            row.pct_diff_upper,
        )


def test_a_finding_nobody_has_is_undefined_on_every_draw() -> None:
    values = np.array([[0.5, np.nan], [np.nan, np.nan], [0.1, np.nan]])
    drawn = replicates(values)
    assert np.isnan(drawn[:, 1]).all()
    assert np.isfinite(drawn[:, 0]).any()
    assert np.isnan(summaries(drawn)[1].mean)
    assert np.isnan(replicates(np.empty((0, 2)))).all()
