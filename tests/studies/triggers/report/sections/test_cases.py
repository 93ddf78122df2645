"""The table of cases: each image with each trigger, its scores, gaps and failures, the worst first."""

import math

import pytest
from tests.report.page_reading import read, section_text

from heatcheck.core.records import CaseRecord, Score, ShardTables
from heatcheck.core.vocabulary import condition, condition_of
from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import RunFolder, read_run
from heatcheck.studies.triggers.report.gallery import trigger_gallery
from heatcheck.studies.triggers.report.sections.cases import case_scores, cases, graded_in

SQUARE, TEXT = "square-corner-20", "text"
NOTHING = "the model gives the target without the trigger"


def score(case, method, metric, value, trigger=SQUARE, reason="", **facts):
    under = condition(**facts) if "kind" not in facts else condition_of({"kind": "artefact"})
    return Score(case, case, trigger, method, "vgg16", metric, value, condition=under, reason=reason)


@pytest.fixture
def folder_with(trigger_run):
    """A function from scores to a run folder that holds them, in as many shards as there are groups."""

    def make(*shards, failed=(), **plan):
        folder = trigger_run(**{"gallery": 2} | plan)
        records = tuple(CaseRecord(*each) for each in failed)
        with RunFolder.locked(folder, {}, {}) as opened:
            for number, scores in enumerate(shards):
                opened.write_shard(number, ShardTables(scores=tuple(scores), cases=records if number == 0 else ()))
            opened.join_shards(len(shards))
        return folder

    return make


def evidence_in(folder):
    return evidence_of(read_run(folder))


def table_of(folder):
    evidence = evidence_in(folder)
    return cases(evidence, trigger_gallery(evidence, 10**8)).blocks[0]


def both(case, *overlaps, seed=0, trigger=SQUARE, recovered=1.0):
    """Overlap and recovery of the first methods on one image."""
    methods = ("gradient", "lime", "occlusion")[: len(overlaps)]
    pairs = zip(methods, overlaps, strict=True)
    rows = [score(case, method, "trigger_iou", value, trigger, seed=seed) for method, value in pairs]
    return rows + [score(case, method, "recovered", recovered, trigger, seed=seed) for method in methods]


def test_row_holds_the_highest_and_the_mean_overlap_and_the_share_that_recovers(folder_with):
    first = [*both("a", 0.2, 0.6), score("a", "random", "trigger_iou", 0.99, seed=0)]  # no method, but a floor
    other_rule = [score("a", "lime", "trigger_iou", 1.0, seed=0, sigma=4.0)]
    second = [*both("a", 0.4, 0.6, seed=1, recovered=0.0), *other_rule]  # of another seed, in another shard
    (row,) = table_of(folder_with(first, second, methods=("gradient", "lime", "random"))).rows
    assert (row.case, row.group) == ("a", "Square, bottom right, 20 px")
    assert row.values == pytest.approx((0.6, 0.45, 0.5))
    assert (row.note, row.link) == ("", "")


def test_worst_come_first_and_failed_images_before_them(folder_with):
    scores = [*both("good", 0.6, 0.8), *both("bad", 0.1, 0.2), *both("bad", 0.3, 0.4, trigger=TEXT)]
    failures = [("lost", "lost", "failed", "load", "cut short"), ("network 3", "", "failed", "training", "not finite")]
    table = table_of(folder_with(scores, failed=failures, methods=("gradient", "lime")))
    assert [(row.case, row.group) for row in table.rows] == [
        ("lost", ""), ("bad", "Square, bottom right, 20 px"), ("bad", "Burned-in text"),
        ("good", "Square, bottom right, 20 px"),
    ]  # fmt: skip
    assert table.rows[0].note == "failed at load: cut short"
    assert all(map(math.isnan, table.rows[0].values))
    assert (table.total, table.group) == (4, "Trigger")


def test_undefined_scores_are_named_with_their_reason_and_left_out_of_the_means(folder_with):
    rows = [*both("a", 0.2, 0.6, recovered=math.nan)]
    rows = [score(r.case, r.method, r.metric, r.value, seed=0, reason=NOTHING if math.isnan(r.value) else "")
            for r in rows]  # fmt: skip
    rows += [score("b", "gradient", "trigger_iou", math.nan, seed=0, reason="not finite"),
             score("b", "gradient", "recovered", 0.0, seed=0), *both("b", 0.0, 0.5)[1::2]]  # fmt: skip
    first, second = sorted(table_of(folder_with(rows, methods=("gradient", "lime"))).rows, key=lambda row: row.case)
    assert first.note == f"2 methods without a score: {NOTHING}"
    assert math.isnan(first.values[2])
    assert second.note == "1 method without a score: not finite"
    assert second.values == pytest.approx((0.5, 0.5, 0.5))


def test_image_with_a_card_links_to_it(folder_with):
    folder = folder_with([*both("Normal-0", 0.2, 0.6), *both("Normal-0", 0.2, 0.6, trigger=TEXT)])
    links = {row.group: row.link for row in table_of(folder).rows}
    assert links == {"Square, bottom right, 20 px": "picture-000", "Burned-in text": ""}
    text = build_report(folder).read_text()
    assert '<a href="#picture-000">Normal-0</a>' in section_text(text, "cases")
    assert 'id="picture-000"' in section_text(text, "pictures")


def test_summary_counts_the_images_that_no_method_shows(folder_with):
    def summary(*overlaps):
        folder = folder_with([row for i, each in enumerate(overlaps) for row in both(f"c{i}", each)])
        return cases(evidence_in(folder), trigger_gallery(evidence_in(folder), 0)).summary

    assert summary(0.05, 0.5) == "2 images; on 1 of them no method\u2019s box overlaps the trigger by 0.1 (IoU)."
    assert summary(0.5) == "1 image; on each, some method\u2019s box overlaps the trigger by at least 0.1 (IoU)."


def test_artefacts_are_listed_by_their_outlines_where_nothing_was_planted(folder_with):
    rows = [score("a", "gradient", "trigger_mask_iou", 0.2, "wire", kind="artefact"),
            score("a", "gradient", "trigger_iou", 0.9, "wire", kind="artefact")]  # fmt: skip
    folder = folder_with(rows, triggers=(), seeds=(), artefacts=("wire",), gallery=0)
    table = table_of(folder)
    assert [column.name for column in table.columns] == ["Highest IoU", "Mean IoU"]
    assert [(row.group, row.values) for row in table.rows] == [("wire", (pytest.approx(0.2), pytest.approx(0.2)))]
    assert table.group == "Artefact"


def test_run_lists_its_cases_while_it_goes_on_and_has_no_table_without_any(trigger_text, trigger_evidence):
    assert "cases" in read(trigger_text("unfinished")).sections
    evidence = trigger_evidence(triggers=(), seeds=())
    assert case_scores(evidence, graded_in(evidence)) == []
