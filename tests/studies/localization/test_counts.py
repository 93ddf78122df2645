"""What a test set holds."""

import math

from tests.studies.localization.paper_material import rule_of, table_of, write_folder

from heatcheck.core.records import CaseRecord, Prediction, Score, TruthShape
from heatcheck.core.vocabulary import condition
from heatcheck.runs.tables import write_table
from heatcheck.studies.localization.chexlocalize.estimates import paper_estimates


def test_counts_by_hand(tmp_path):
    said = [
        Prediction("a", "p", "f", "model", 1.0, 0.0, 0.5),
        Prediction("b", "p", "f", "model", 1.0, 0.0, 0.5),
        Prediction("c", "q", "f", "model", 0.0, 0.0, 0.5),
        Prediction("a", "p", "g", "model", math.nan, 0.0, 0.5),
        Prediction("d", "r", "g", "model", 0.0, 0.0, 0.5),
    ]
    shapes = [TruthShape("a", "p", "f", 3, 1, 0.1, 2.0, 0.1), TruthShape("b", "p", "f", 1, 1, 0.1, 2.0, 0.1)]
    scores = [
        Score("a", "p", "f", "human", "", metric, value, condition=condition(reader=reader))
        for reader, pixels in (("one", (5.0, 0.0)), ("two", (0.0, 7.0)), ("three", (0.0, 0.0)))
        for metric, value in zip(("true_positive_pixels", "false_positive_pixels"), pixels, strict=True)
    ]
    scores += [Score("a", "p", "f", "human", "", "true_positive_pixels", 2.0)]
    table = table_of(paper_estimates(write_folder(tmp_path, scores, said, shapes), rule_of(["f", "g"], ["good"])))
    counts = table.query("statistic == 'count'").pivot_table("value", "metric", "finding")
    without = counts.loc["without_finding", "All findings"]
    counts = counts.drop(index="without_finding")
    assert counts["f"].to_dict() == {
        "annotated": 2,
        "images": 3,
        "patients": 2,
        "positives": 2,
        "readers": 2,
        "segmentations": 4,
        "segmentations_by_reader": 2,
    }
    in_g = {**dict.fromkeys(counts.index.drop("readers"), 0), "images": 1, "patients": 1}
    assert counts["g"].dropna().to_dict() == in_g
    assert counts.loc["images", "All findings"] == 4
    assert counts.loc["patients", "All findings"] == 3
    assert without == 2


def test_views_of_one_examination_are_counted_once_and_only_where_all_are_known(tmp_path):
    views = {"p_study1_view1": "p", "p_study1_view2": "p", "p_study2_view1": "p", "q_study1_view1": "q"}
    cases = [CaseRecord(case, patient, "ok", examination=case[:8]) for case, patient in views.items()]
    write_table(tmp_path / "cases.parquet", CaseRecord, cases)
    said = [Prediction(case, patient, "f", "model", 1.0, 0.0, 0.5) for case, patient in views.items()]
    said += [Prediction("p_study1_view1", "p", "g", "model", 1.0, 0.0, 0.5)]
    said += [Prediction("p_study1_view2", "p", "g", "model", math.nan, 0.0, 0.5)]
    folder, rule = write_folder(tmp_path, predictions=said), rule_of(["f", "g"], ["good"])
    counts = table_of(paper_estimates(folder, rule)).query("metric == 'examinations'").set_index("finding")["value"]
    assert counts.to_dict() == {"f": 3, "g": 1, "All findings": 3}
    write_table(tmp_path / "cases.parquet", CaseRecord, [*cases, CaseRecord("r1", "r", "ok")])
    counts = table_of(paper_estimates(folder, rule)).query("metric == 'examinations'").set_index("finding")["value"]
    assert counts.to_dict() == {"f": 3, "g": 1}


def test_maps_without_probabilities_have_images_and_patients_and_no_labels(tmp_path):
    """Labels come with the model's answers; without them nothing is 0 that is not known."""
    cases = [CaseRecord("a", "p", "ok"), CaseRecord("b", "p", "ok"), CaseRecord("c", "q", "ok")]
    write_table(tmp_path / "cases.parquet", CaseRecord, [*cases, CaseRecord("d", "r", "failed")])
    shapes = [TruthShape("a", "p", "f", 3, 1, 0.1, 2.0, 0.1), TruthShape("b", "p", "f", 1, 1, 0.1, 2.0, 0.1)]
    rule = rule_of(["f", "g"], ["good"])
    table = table_of(paper_estimates(write_folder(tmp_path, shapes=shapes), rule)).query("statistic == 'count'")
    counts = {
        finding: dict(zip(rows["metric"], rows["value"], strict=True)) for finding, rows in table.groupby("finding")
    }
    outlines = {"annotated": 2, "segmentations": 4, "segmentations_by_reader": 0}
    assert counts["f"] == outlines
    assert counts["g"] == dict.fromkeys(outlines, 0)
    assert counts["All findings"] == {"images": 3, "patients": 2, **outlines}


def test_labels_are_not_counted_over_all_findings_where_one_has_none(tmp_path):
    write_table(tmp_path / "cases.parquet", CaseRecord, [CaseRecord("a", "p", "ok"), CaseRecord("b", "q", "ok")])
    said = [Prediction("a", "p", "f", "model", 0.0, 0.0, 0.5)]
    rule = rule_of(["f", "g"], ["good"])
    table = table_of(paper_estimates(write_folder(tmp_path, predictions=said), rule)).query("statistic == 'count'")
    counts = table.set_index(["finding", "metric"])["value"]
    assert counts["f", "positives"] == 0
    assert counts["All findings", "images"] == 2
    assert not {("g", "positives"), ("All findings", "positives"), ("All findings", "without_finding")} & {
        *counts.index
    }


def test_empty_maps_are_counted_among_all_maps_and_among_those_of_outlined_findings(tmp_path):
    said = [Prediction(case, case, "f", "model", float(case != "d"), 0.0, 0.5) for case in "abcd"]
    shapes = [TruthShape(case, case, "f", 1, 1, 0.1, 2.0, 0.1) for case in "abc"]
    empty = {"good": (0, 0, 0, 0), "blank": (1, 0, 1, 1)}  # of which d has no finding
    scores = [
        Score(case, case, "f", method, "model", "empty_map", float(value))
        for method, values in empty.items()
        for case, value in zip("abcd", values, strict=True)
    ]
    table = table_of(paper_estimates(write_folder(tmp_path, scores, said, shapes), rule_of(["f", "g"], list(empty))))
    counted = table[table["metric"].isin(["empty_maps", "failed_maps"])]
    assert {(row.metric, row.finding, row.method): (row.value, row.n_cases) for row in counted.itertuples()} == {
        (metric, finding, method): value
        for finding in ("f", "All findings")
        for (metric, method), value in {
            ("empty_maps", "good"): (0, 4),
            ("failed_maps", "good"): (0, 3),
            ("empty_maps", "blank"): (3, 4),
            ("failed_maps", "blank"): (2, 3),
        }.items()
    }
