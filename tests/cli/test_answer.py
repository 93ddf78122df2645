"""What is printed after a run: the answer of the report, in a few lines of a terminal."""

import pytest
from tests.golden.make import SPECS, unpack

from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import page_of
from heatcheck.runs.store import RunFolder, read_run

COLUMNS = 80


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


def lines_without_the_path(out):
    return [line for line in out.splitlines() if not line.startswith("Report: ")]


@pytest.mark.parametrize("name", SPECS)
def test_the_terminal_says_what_the_report_says(heatcheck, name, tmp_path):
    folder = unpack(name, tmp_path / "run")
    code, out, _ = heatcheck("report", folder)
    assert code == 0
    lines = lines_without_the_path(out)
    assert max(map(len, lines)) <= COLUMNS
    assert len(lines) <= 30
    page = page_of(evidence_of(read_run(folder)))
    said = " ".join(" ".join(lines).replace(" - ", " ").split())
    sentences = [each for status in page.answer.statuses for each in (status.question, status.word, status.sentence)]
    for sentence in (*sentences, *page.answer.recommendation, *page.best):
        assert " ".join(sentence.split()) in " ".join(said.split())
    assert f"Report: {folder / 'report.html'}" in out
    assert "none failed" in out
    assert "nan" not in said.split()


def test_the_methods_that_come_first_have_their_intervals(heatcheck, tmp_path):
    run = read_run(unpack("localization", tmp_path / "run"))
    out = " ".join(heatcheck("report", run.path)[1].replace("\u00a0", " ").split())
    row = next(run.table("hit").query("method == 'gradient'").itertuples())
    assert f"May have the best hit rate: Gradient {row.value:.0%}".replace("%", " %") in out
    assert f"({row.low * 100:.0f}–{row.high * 100:.0f} %)" in out
    for name, words in (("triggers", "Highest overlap with the trigger"), ("modality", "Highest share of heat in")):
        assert f"{words}" in heatcheck("report", unpack(name, tmp_path / name))[1]


def test_failed_cases_are_named_with_their_reasons(heatcheck, tmp_path):
    folder = RunFolder(unpack("localization", tmp_path / "run"))
    cases = folder.read_table("cases")
    failed = cases.index[:5]
    cases.loc[failed, ["status", "stage", "reason"]] = ["failed", "load", "the file has 0 bytes; copy it again " * 4]
    cases.to_parquet(folder.path / "cases.parquet")
    folder.record(n_failed=5)
    out = heatcheck("report", folder.path)[1]
    assert "29 cases, 5 failed" in out
    assert max(map(len, lines_without_the_path(out))) <= COLUMNS
    first = min(cases.loc[failed, "case"])
    assert f"- {first}: the file has 0 bytes" in out
    assert "- and 2 more; the report lists them" in out


def test_a_run_that_is_not_finished_says_so(heatcheck, tmp_path):
    with RunFolder.locked(tmp_path / "run", {}, {"study": "localization"}):
        pass
    out = heatcheck("report", tmp_path / "run")[1]
    assert "Not finished" in out
    assert "There is no verdict yet" in out
