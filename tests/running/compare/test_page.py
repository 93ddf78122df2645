"""The page of several runs, from made-up scores."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.report.page_reading import cell, outline, read, saved_tables

from heatcheck.core.records import ALL_FINDINGS, HUMAN, CaseRecord, Estimate, Score, ShardTables
from heatcheck.core.vocabulary import MEAN, condition
from heatcheck.report.first_screen import Light
from heatcheck.running.compare.answer import recommendation, statuses
from heatcheck.running.compare.page import page_text, write_page
from heatcheck.running.compare.side_by_side import side_by_side
from heatcheck.running.facts import metric_facts
from heatcheck.runs.store import RunFolder

FINDINGS = ("Edema", "Nodule")
METHODS = [{"name": "cam", "label": "CAM"}, {"name": "lime", "label": "LIME"},
           {"name": "random", "label": "Noise", "kind": "floor"}]  # fmt: skip
LEVELS = {"cam": 0.4, "lime": 0.4, "random": 0.1, HUMAN: 0.6}
N = 40


def write_run(path, lifts, under="{}", cases=range(N), seeds=()):
    """A run whose methods score by so much more than the usual level, each case with noise of its own."""
    noise = np.random.default_rng(0).normal(0, 0.03, (N, len(LEVELS)))
    own = np.random.default_rng(len(lifts)).normal(0, 0.004, (N, len(LEVELS)))
    scores = [
        Score(f"c{case}", f"p{case}", finding, method, "" if method == HUMAN else "net", "iou",
              level + lifts.get(method, 0.0) + noise[case, i] + (own[case, i] if method in lifts else 0.0), under)
        for finding in FINDINGS for i, (method, level) in enumerate(LEVELS.items()) for case in cases
    ]  # fmt: skip
    facts = {
        "study": "localization", "status": "complete", "title": f"Title of {path.name}", "methods": METHODS,
        "metrics": [metric_facts("iou")], "model": {"name": "net", "description": "A network"}, "seeds": list(seeds),
        "findings": list(FINDINGS), "source": {"description": "Drawn films"}, "spec": {"seed": path.name},
    }  # fmt: skip
    with RunFolder.locked(path, {}, facts) as folder:
        records = tuple(CaseRecord(f"c{case}", f"p{case}", "ok") for case in cases)
        folder.write_shard(0, ShardTables(scores=tuple(scores), cases=records))
        folder.join_shards(1)
        folder.write_estimates([Estimate(MEAN, "iou", ALL_FINDINGS, "cam", "net", 0.4, 0.3, 0.5, size=0.05)])
    return path


@pytest.fixture
def side(tmp_path):
    """Three runs: in the second CAM is better, in the third LIME is worse, and CAM is missing."""
    first = write_run(tmp_path / "before", {})
    second = write_run(tmp_path / "after", {"cam": 0.2, "lime": 0.01})
    third = write_run(tmp_path / "third", {"lime": -0.2}, cases=range(N - 4))
    scores = pd.read_parquet(third / "scores.parquet")
    scores[scores["method"] != "cam"].to_parquet(third / "scores.parquet")
    return side_by_side([first, second, third], draws=200)


def test_each_run_is_judged_against_the_first_by_methods_that_both_have(side):
    after, third = statuses(side)
    assert (after.light, after.word) == (Light.PARTLY, "For 1 of 2 methods")
    assert after.question == "Overlap (IoU): is after better than before?"
    numbers = r"0\.59\d instead of 0\.39\d \(difference \+0\.20\d, \+0\.\d+ to \+0\.\d+\)\."
    assert re.match(f"Largest for CAM: {numbers}", after.sentence)
    assert (third.light, third.word) == (Light.NO, "Worse")
    assert recommendation(side) == (
        "Prefer after to before for maps by CAM: clearly better by a metric, clearly worse by none.",
        "Keep before: in third, maps by LIME are clearly worse, and none are clearly better.",
    )


def test_numbers_rest_on_the_cases_of_all_runs_that_have_the_method(side):
    means = side.means("iou")
    assert {mean.n_cases for (method, _), mean in means.items() if method == "lime"} == {2 * (N - 4)}
    assert {mean.n_cases for (method, _), mean in means.items() if method == "cam"} == {2 * N}
    assert ("cam", 2) not in means
    rows = {(row.method, row.run): row for row in side.rows("iou")}
    assert rows["lime", 2].difference == pytest.approx(means["lime", 2].value - means["lime", 0].value)
    assert {row.family for row in rows.values()} == {"iou over all findings"}


def test_more_runs_make_intervals_wider(side, tmp_path):
    two = side_by_side([tmp_path / "before", tmp_path / "after"], draws=200)

    def width(which):
        (row,) = [row for row in which.rows("iou", 1) if row.method == "cam"]
        return row.high - row.low

    assert width(side) > width(two)


def test_the_page_has_methods_by_runs_and_the_differences(side, tmp_path):
    text = write_page(side, tmp_path / "compare.html").read_text()
    parsed, page = outline(text), read(text)
    assert (parsed.faults, parsed.open) == ([], [])
    where = ("methods", "Overlap (IoU)")
    assert cell(page, where, "CAM", "third") == "–"
    assert re.match(r"0\.\d{3}\|0\.\d{3}–0\.\d{3}", cell(page, where, "LIME", "after"))
    assert "✓ clearly higher" in cell(page, where, "CAM", "after − before")
    assert "✕ clearly lower" in cell(page, where, "LIME", "third − before")
    assert "no difference that matters" in cell(page, where, "LIME", "after − before")
    assert "clearly lower" in cell(page, ("findings", "Overlap (IoU): third less before"), "LIME", "Nodule")
    assert "before, after and third side by side" in text
    assert "36 cases are in all runs (40, 40 and 36 in each)." in text
    assert str(tmp_path) not in text
    table = saved_tables(text)["compare.csv"].splitlines()
    assert len(table) == 1 + len(side.compared.rows)
    assert "://" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)


def test_nothing_is_claimed_of_networks_that_the_runs_trained(tmp_path):
    under = condition(seed=1)
    runs = [write_run(tmp_path / name, lifts, under, seeds=(1,)) for name, lifts in (("a", {}), ("b", {"cam": 0.2}))]
    side = side_by_side(runs, draws=200)
    (status,) = statuses(side)
    assert (status.light, status.word) == (Light.OPEN, "Not shown")
    assert status.sentence.endswith("its interval says nothing of other trainings.")
    assert "nothing is claimed of them" in page_text(side)
