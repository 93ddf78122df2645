"""A run as a notebook shows it, and its methods in one table."""

import pandas as pd
import pytest
from tests.golden.make import unpack

from heatcheck.core.errors import UnknownNameError
from heatcheck.core.records import HUMAN
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.store import Run, read_run
from heatcheck.runs.summary import method_table

METHODS = ["grad_cam", "gradient", "occlusion", "random", "location_prior", HUMAN]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two models with two presets."""
    return read_run(unpack("localization", tmp_path_factory.mktemp("run")))


def test_a_run_is_shown_in_a_few_lines(run):
    for shown in (repr(run), str(run), run._repr_html_()):
        assert len(shown) < 2500
        for fact in (run.manifest["title"], "localization (finished)", "29", "Cardiomegaly", 'run.table("hit")'):
            assert fact in shown.replace("&quot;", '"')
    assert repr(run).count("\n") < 15
    assert "estimates" not in vars(run)  # no table was read to show it


def test_titles_are_not_taken_for_html(tmp_path):
    shown = Run(tmp_path, {"title": "<script>", "findings": ["x" * 999]}, {})
    assert "<script>" not in shown._repr_html_()
    assert "not finished" in repr(shown)
    assert len(repr(shown)) < 800


def test_the_table_has_one_row_for_each_method(run):
    table = run.table("hit")
    assert table["method"].tolist() == METHODS
    assert table["kind"].tolist() == ["method"] * 3 + ["floor"] * 2 + ["human"]
    rows = run.estimates.query(
        "statistic == 'mean' and metric == 'hit' and finding == 'All findings' and condition == '{}' and "
        "model == 'phantom_chest_densenet'"
    )
    columns = ["method", "value", "low", "high", "n_cases"]
    pd.testing.assert_frame_equal(table[columns], rows[columns].reset_index(drop=True))


def test_a_terminal_of_80_columns_shows_the_whole_table(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    longest = run.table("hit").replace({"method": {"occlusion": "shapley_value_sampling"}})
    with pd.option_context("display.max_columns", 0, "display.width", 80):  # as in an interactive session
        shown = repr(longest).splitlines()
    assert shown[0].split() == ["method", "kind", "value", "low", "high", "n_cases"]
    assert max(map(len, shown)) <= 80


def test_an_undefined_mean_says_why(run):
    estimates = run.estimates.assign(value=float("nan"), reason="too few")
    assert (
        method_table(estimates, run.manifest_as(Manifest), ("hit", "All findings", ""), {})["reason"]
        .eq("too few")
        .all()
    )


def test_another_finding_model_or_preset_is_another_table(run):
    tables = [
        run.table("hit"),
        run.table("hit", "Cardiomegaly"),
        run.table("hit", model="Transformer"),
        run.table("iou", preset="chexlocalize"),
    ]
    assert all(table["method"].tolist() == METHODS for table in tables)
    assert len({tuple(table["value"]) for table in tables}) == len(tables)


@pytest.mark.parametrize(
    ("metric", "finding", "facts", "message"),
    [
        ("hot", "All findings", {}, "this run has no mean of the metric 'hot'; did you mean 'hit'?"),
        (
            "hit",
            "Cardiomegally",
            {},
            "this run has no mean on the finding 'Cardiomegally'; did you mean 'Cardiomegaly'?",
        ),
        ("hit", "All findings", {"model": "transformer"}, "no model of this run is named 'transformer'; did you mean"),
        ("hit", "All findings", {"fold": 1}, "has no mean with fold=1; ask for one that exists: "),
    ],
)
def test_what_is_not_there_is_named_with_what_is(run, metric, finding, facts, message):
    with pytest.raises(UnknownNameError) as caught:
        run.table(metric, finding, **facts)
    assert message in str(caught.value)


def test_a_run_of_one_model_needs_no_name_of_it(tmp_path):
    run = read_run(unpack("triggers", tmp_path))
    assert len(run.table("trigger_iou")) == 4
    with pytest.raises(UnknownNameError, match="without a condition; ask for one that exists: arm="):
        read_run(unpack("alignment", tmp_path / "other")).table("hit")
