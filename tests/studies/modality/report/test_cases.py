"""The table of cases: every case once, with its scores, its answer and what failed, the worst first."""

import math

import numpy as np
import pytest
from tests.report.page_reading import read, section_text
from tests.studies.modality.report.made_estimates import case_values

from heatcheck.report.blocks.block import CaseTable
from heatcheck.report.blocks.case_table import MOST
from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import Run, read_run
from heatcheck.studies.modality.report.facts import prepared
from heatcheck.studies.modality.report.gallery import modality_gallery
from heatcheck.studies.modality.report.sections.cases import cases, scores_by_case

PLAN = {"methods": ("guided_backprop", "gradient", "grad_cam"), "folds": 2, "cases": 8, "ratings": False}


def section_of(folder):
    evidence = prepared(evidence_of(read_run(folder)))
    return cases(evidence, modality_gallery(evidence, 10**7))


def table_of(folder):
    (table,) = section_of(folder).blocks
    assert isinstance(table, CaseTable)
    return table


def test_every_case_has_one_row_the_failed_and_the_lowest_first(modality_run):
    table = table_of(modality_run(**PLAN, gallery=0))
    assert table.rows[0].case == "bad"
    assert table.rows[0].note == "failed at load: cannot read …/a.nii: cut short"
    assert {row.case for row in table.rows} == {"bad", *(f"case{fold}_{i}" for fold in (1, 2) for i in range(8))}
    means = [row.values[1] for row in table.rows[1:]]
    assert means == sorted(means)
    assert table.total == len(table.rows) == 17


def test_scores_are_the_best_method_s_and_the_mean_over_all(modality_run):
    table = table_of(modality_run(**PLAN, gallery=0))
    assert [column.name for column in table.columns] == [
        "MSFI, Guided backprop", "MSFI, mean", "In the lesion, Guided backprop", "In the lesion, mean",
        "Modality correlation, Guided backprop",
    ]  # fmt: skip
    row = next(row for row in table.rows if row.case == "case2_3")
    scores = {name: [case_values(method, name, 8, 2)[3] for method in PLAN["methods"]]
              for name in ("msfi", "lesion_share")}  # fmt: skip
    correlation = case_values("guided_backprop", "mi_correlation", 8, 2)[3]
    expected = [value for each in scores.values() for value in (each[0], np.mean(each))]
    assert row.values == pytest.approx([*expected, correlation])


def test_classes_and_answers_are_named_and_wrong_ones_counted(modality_run):
    folder = modality_run(**PLAN, gallery=0)
    assert {row.group for row in table_of(folder).rows} == {"HGG\u00a0→\u00a0HGG", "LGG\u00a0→\u00a0LGG", ""}
    swapped = read_run(folder).predictions
    swapped["probability"] = swapped["probability"].where(swapped["case"] != "case1_2", 1 - swapped["probability"])
    for file in folder.rglob("predictions.parquet"):
        swapped.to_parquet(file)
    section = section_of(folder)
    (row,) = [row for row in section.blocks[0].rows if row.case == "case1_2"]
    assert (row.group, row.note) == ("HGG\u00a0→\u00a0LGG", "wrong answer")
    assert section.summary.startswith("17 cases, 1 misclassified; mean MSFI below 0.")


def test_cases_with_a_card_link_to_it_and_have_its_picture(modality_run):
    folder = modality_run(**PLAN, gallery=1, case="case1_5")
    (row,) = [row for row in table_of(folder).rows if row.link]
    assert (row.case, row.link) == ("case1_5", "case-000")
    assert row.thumbnail.startswith("data:image/jpeg")
    text = build_report(folder).read_text()
    assert 'href="#case-000"' in section_text(text, "cases")
    assert 'id="case-000"' in section_text(text, "pictures")


def test_missing_scores_are_counted_and_shown_as_dashes(modality_run):
    folder = modality_run(**PLAN, gallery=0)
    scores = read_run(folder).scores
    gone = (scores["case"] == "case1_1") & (scores["metric"] == "msfi")
    scores["value"] = scores["value"].where(~gone)
    for file in folder.rglob("scores.parquet"):
        scores.to_parquet(file)
    (row,) = [row for row in table_of(folder).rows if row.case == "case1_1"]
    assert row.note == "3 methods without MSFI"
    assert all(math.isnan(value) for value in row.values[:2])
    assert row.badness == 1
    cells = next(row for row in read(build_report(folder).read_text()).tables if row["section"] == "cases")["rows"]
    assert next(row for row in cells if row[0] == "case1_1")[2:4] == ["–", "–"]


def test_scores_are_read_block_by_block(modality_run, monkeypatch):
    """Cut into two blocks in the middle of a case, the sums are the same, and the whole table is never read."""
    evidence = prepared(evidence_of(read_run(modality_run(**PLAN, gallery=0))))
    whole = scores_by_case(evidence, list(evidence.methods))
    blocks = Run.row_groups

    def halves(self, name, columns):
        for block in blocks(self, name, columns):
            middle = block.num_rows // 2 + 1
            yield block.slice(0, middle)
            yield block.slice(middle)

    monkeypatch.setattr(Run, "row_groups", halves)
    monkeypatch.setattr(Run, "scores", property(lambda _run: pytest.fail("all scores were read at once")))
    cut = scores_by_case(evidence, list(evidence.methods))
    assert cut.equals(whole) or np.allclose(cut.select_dtypes(float), whole.select_dtypes(float), equal_nan=True)
    assert list(cut["case"]) == list(whole["case"])


def test_long_table_keeps_the_worst_and_says_so(modality_run):
    plan = PLAN | {"methods": ("gradient",), "cases": 270}
    text = build_report(modality_run(**plan, gallery=0)).read_text()
    rows = next(table for table in read(text).tables if table["section"] == "cases")["rows"]
    assert len(rows) == 1 + MOST
    assert "500 of 541 rows: the worst, and as many drawn at random; cases.csv has all." in section_text(text, "cases")


def test_one_method_has_no_column_of_means(modality_run):
    table = table_of(modality_run(**PLAN | {"methods": ("gradient",)}, gallery=0))
    assert [column.name for column in table.columns] == [
        "MSFI, Gradient", "In the lesion, Gradient", "Modality correlation, Gradient",
    ]  # fmt: skip
    assert all(len(row.values) == 3 for row in table.rows)
