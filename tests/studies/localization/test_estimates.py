"""The numbers of the tables, from scores written by hand."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from heatcheck.core.records import Estimate, Prediction, Score
from heatcheck.runs.tables import write_table
from heatcheck.studies.localization.estimates import localization_estimates
from heatcheck.studies.localization.settings import LocalizationSettings

RULE = LocalizationSettings(("f", "g"), ("good", "bad", "floor"), ("floor",), ("hit",), "model", draws=300, seed=0)
COUNTS = ("true_positive_pixels", "false_positive_pixels", "false_negative_pixels", "true_negative_pixels")


def table_of(folder, values, counts=(), predictions=()):
    """Estimates as a table, from (case, patient, finding, method, value) and counts."""
    scores = [Score(c, p, f, m, "model", "hit", v, reason="why" if math.isnan(v) else "") for c, p, f, m, v in values]
    scores += [
        Score(c, p, f, m, "model", metric, float(v))
        for c, p, f, m, four in counts
        for metric, v in zip(COUNTS, four, strict=True)
    ]
    write_table(folder / "scores.parquet", Score, scores)
    write_table(folder / "predictions.parquet", Prediction, list(predictions))
    rows = localization_estimates(folder, RULE)
    return pd.DataFrame(rows, columns=list(Estimate.__dataclass_fields__))


def one(table, statistic, finding, method, other=""):
    rows = table.query(
        "statistic == @statistic and finding == @finding and method == @method and other_method == @other"
    )
    assert len(rows) == 1
    return rows.iloc[0]


def simple(n_f=30, n_g=10, human=True):
    """good always hits, bad hits every second time, floor never, human always; g is rarer than f."""
    rows = []
    for finding, count in (("f", n_f), ("g", n_g)):
        for n in range(count):
            case = (f"{finding}{n:02d}", f"{finding}p{n:02d}", finding)
            rows += [(*case, "good", 1.0), (*case, "bad", float(n % 2)), (*case, "floor", 0.0)]
            rows += [(*case, "human", 1.0)] if human else []
    return rows


def test_means_and_what_they_rest_on(tmp_path):
    table = table_of(tmp_path, simple())
    bad = one(table, "mean", "f", "bad")
    assert bad["value"] == 0.5
    assert bad["low"] < 0.5 < bad["high"]
    assert (bad["n_cases"], bad["n_patients"], bad["n_undefined"]) == (30, 30, 0)
    assert one(table, "mean", "All findings", "human")["value"] == 1


def test_over_all_findings_each_counts_the_same(tmp_path):
    rows = [(c, p, f, m, 1.0 if (m == "bad" and f == "g") else v if m != "bad" else 0.0) for c, p, f, m, v in simple()]
    assert one(table_of(tmp_path, rows), "mean", "All findings", "bad")["value"] == 0.5


def test_distance_from_human_by_hand(tmp_path):
    table = table_of(tmp_path, simple())
    assert one(table, "difference", "f", "bad", "human")["value"] == -0.5
    assert one(table, "percent_decrease", "f", "bad", "human")["value"] == 50
    assert one(table, "percent_decrease", "All findings", "bad", "human")["value"] == 50


def test_the_comparison_uses_the_cases_both_have(tmp_path):
    rows = [
        (c, p, f, m, math.nan if (m == "human" and c in {"f01", "f03"}) or (m == "bad" and c == "f05") else v)
        for c, p, f, m, v in simple()
    ]
    table = table_of(tmp_path, rows)
    bad = one(table, "difference", "f", "bad", "human")
    assert bad["value"] == pytest.approx(12 / 27 - 1)  # 15 hits less those of f01, f03 and f05
    assert (bad["n_cases"], bad["n_undefined"]) == (27, 3)
    assert one(table, "mean", "f", "bad")["n_undefined"] == 1
    overall = one(table, "difference", "All findings", "bad", "human")
    assert overall["value"] == pytest.approx((12 / 27 - 1 + 0.5 - 1) / 2)


def test_a_clear_win_over_the_floor_is_significant_and_corrected(tmp_path):
    table = table_of(tmp_path, simple())
    tests = table.query("statistic == 'test' and finding == 'All findings'").set_index("method")
    assert tests.loc["good", "value"] == 1
    assert tests.loc["good", "p_value"] < 1e-6  # all 40 patients differ in one direction
    assert tests.loc["good", "p_adjusted"] == pytest.approx(2 * tests.loc["good", "p_value"])
    assert 0 < tests.loc["good", "low"] < tests.loc["good", "high"] == 1
    assert tests.loc["bad", "low"] > 0
    assert tests.loc["bad", "p_adjusted"] < 0.05
    assert (tests["family"].nunique(), set(tests["other_method"])) == (1, {"floor"})
    assert "floor" not in tests.index
    each = table.query("statistic == 'test' and finding != 'All findings'")
    assert len(each) == 4


def test_no_difference_is_not_significant(tmp_path):
    rows = [(c, p, f, m, 0.0 if m == "bad" else v) for c, p, f, m, v in simple()]
    tests = table_of(tmp_path, rows).query("statistic == 'test' and method == 'bad'")
    assert (tests["p_value"] == 1).all()


def test_without_readers_nothing_is_said_about_them(tmp_path):
    table = table_of(tmp_path, simple(human=False))
    assert "human" not in set(table["method"]) | set(table["other_method"])


def test_precision_recall_and_specificity_are_ratios_of_summed_pixels(tmp_path):
    counts = [("a", "p", "f", "good", (1, 3, 0, 6)), ("b", "q", "f", "good", (5, 1, 4, 0))]
    table = table_of(tmp_path, simple(4, 4), counts).query(
        "statistic == 'ratio' and method == 'good' and finding == 'f'"
    )
    table = table.set_index("metric")
    assert table.loc["precision", "value"] == pytest.approx(6 / 10)
    assert table.loc["recall", "value"] == pytest.approx(6 / 10)
    assert table.loc["specificity", "value"] == pytest.approx(6 / 10)


def test_each_findings_ratio_rests_on_its_own_cases_over_all_findings_too(tmp_path):
    """No case is known for both findings, as with labels that are often blank; patient p has one of each."""
    nothing = (math.nan,) * 4
    counts = [
        *(
            ("a", "p", "f", "good", (1, 3, 0, 6)),
            ("b", "q", "f", "good", (5, 1, 4, 0)),
            ("c", "p", "f", "good", nothing),
        ),
        *(("c", "p", "g", "good", (1, 1, 3, 5)), ("a", "p", "g", "good", nothing)),
        *(("a", "p", "f", "bad", (1, 3, 0, 6)), ("b", "q", "f", "bad", (5, 1, 4, 0)), ("c", "p", "g", "bad", nothing)),
    ]
    table = table_of(tmp_path, simple(4, 4), counts).query("metric == 'precision'")
    overall = one(table, "ratio", "All findings", "good")
    assert overall["value"] == pytest.approx((6 / 10 + 1 / 2) / 2)
    assert (overall["n_cases"], overall["n_patients"], overall["n_undefined"]) == (3, 2, 0)
    half = one(table, "ratio", "All findings", "bad")
    assert half["value"] == pytest.approx(6 / 10)
    assert (half["n_cases"], half["n_undefined"]) == (2, 1)
    assert "over 1 of 2 findings" in half["reason"]
    nowhere = one(table, "ratio", "g", "bad")
    assert math.isnan(nowhere["value"])
    assert nowhere["reason"] == "no patient"


def test_readers_without_points_do_not_take_the_hit_rate_from_the_methods(tmp_path):
    rows = [(c, p, f, m, math.nan if m == "human" else v) for c, p, f, m, v in simple()]
    table = table_of(tmp_path, rows)
    assert one(table, "mean", "All findings", "bad")["value"] == 0.5
    assert table.query("finding == 'All findings' and method == 'human'").empty


def test_a_finding_without_any_value_is_left_out_of_the_mean_and_said_so(tmp_path):
    rows = [(c, p, f, m, math.nan if f == "g" else v) for c, p, f, m, v in simple()]
    table = table_of(tmp_path, rows)
    overall = one(table, "mean", "All findings", "bad")
    assert overall["value"] == 0.5
    assert "1 of 2 findings" in overall["reason"]
    missing = one(table, "mean", "g", "bad")
    assert math.isnan(missing["value"])
    assert missing["reason"]


def test_model_estimates_match_scikit_learn(tmp_path):
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(2)
    predictions, columns = [], {}
    for finding in ("f", "g"):
        labels = generator.integers(0, 2, 60).astype(float)
        said = np.clip(0.3 * labels + 0.7 * generator.random(60), 0, 1)
        columns[finding] = (labels, said)
        predictions += [
            Prediction(f"c{n:02d}", f"p{n // 2:02d}", finding, "model", labels[n], 0.0, said[n]) for n in range(60)
        ]
    table = table_of(tmp_path, simple(4, 4), predictions=predictions)
    expected = {finding: roc_auc_score(*columns[finding]) for finding in columns}
    for finding, value in expected.items():
        row = one(table, "auroc", finding, "")
        assert row["value"] == pytest.approx(value)
        assert row["low"] < value < row["high"]
        assert row["n_patients"] == 30
    assert one(table, "auroc", "All findings", "")["value"] == pytest.approx(np.mean(list(expected.values())))
    assert 0 < one(table, "calibration", "f", "")["value"] < 1
    assert table.query("statistic == 'reliability' and finding == 'f'")["n_cases"].sum() == 60


def test_rates_of_one_and_nothing_have_intervals(tmp_path):
    table = table_of(tmp_path, simple())
    always, never = one(table, "mean", "f", "good"), one(table, "mean", "f", "floor")
    assert 0.8 < always["low"] < always["high"] == 1
    assert 0 == never["low"] < never["high"] < 0.2
    overall = one(table, "mean", "All findings", "good")
    assert overall["low"] < 1


def test_a_finding_with_one_patient_does_not_remove_the_interval_over_all_findings(tmp_path):
    table = table_of(tmp_path, simple(n_g=1))
    row = one(table, "mean", "All findings", "bad")
    assert row["low"] < row["value"] < row["high"]
    rarely = one(table, "mean", "g", "bad")
    assert math.isnan(rarely["low"])
    assert rarely["reason"] == "one patient"


def test_intervals_and_corrected_p_values_of_tests_agree(tmp_path):
    generator = np.random.default_rng(5)
    rows = [
        (f"c{n:03d}", f"p{n // 2:02d}", finding, method, float(generator.random() < chance))
        for finding in ("f", "g")
        for n in range(60)
        for method, chance in (("good", 0.6), ("bad", 0.35), ("floor", 0.25))
    ]
    tests = table_of(tmp_path, rows).query("statistic == 'test'")
    assert len(tests) == 6
    beyond = (tests["low"] > 0) | (tests["high"] < 0)
    assert beyond.any()
    assert not beyond.all()
    assert beyond.equals(tests["p_adjusted"] < 0.05)


def test_scores_of_fewer_than_six_patients_have_no_interval(tmp_path):
    table = table_of(tmp_path, [row for row in simple(5, 5) if row[3] != "human"])
    row = one(table, "test", "f", "bad", "floor")
    assert math.isnan(row["low"])
    assert row["reason"] == "fewer than 6 patients"


def test_the_interval_of_rates_over_findings_holds_their_mean_where_one_has_one_patient(tmp_path):
    rows = [(f"f{n}", f"p{n}", "f", "good", 1.0) for n in range(20)] + [("g0", "q", "g", "good", 0.0)]
    row = one(table_of(tmp_path, rows), "mean", "All findings", "good")
    assert row["low"] < 0.5 == row["value"] < row["high"]


def test_rates_on_other_cases_than_the_readers_are_compared_without_error(tmp_path):
    rows = [(f"c{n}", f"p{n}", "f", "good", 1.0) for n in range(12)] + [
        (f"c{n}", f"p{n}", "f", "human", 0.0) for n in range(8)
    ]
    scores = [Score(c, p, f, m, "model", "hit", v) for c, p, f, m, v in rows]
    write_table(tmp_path / "scores.parquet", Score, scores)
    write_table(tmp_path / "predictions.parquet", Prediction, [])
    apart = replace(RULE, rules=replace(RULE.rules, human_common_cases=False), methods=("good",), floors=())
    (row,) = [r for r in localization_estimates(tmp_path, apart) if r.statistic == "difference" and r.finding == "f"]
    assert (row.value, row.n_cases) == (1, 12)


def test_methods_are_compared_on_the_findings_that_all_of_them_have(tmp_path):
    """good lacks g, the harder finding, and leads by its mean; on f, which both have, bad is better."""
    values = {("good", "f"): (0.0, 1.0, 0.0), ("bad", "f"): (1.0, 1.0, 0.0), ("bad", "g"): (0.0, 0.0, 0.0)}
    rows = [
        (f"{finding}{n:02d}", f"{finding}p{n:02d}", finding, method, hits[n % 3])
        for (method, finding), hits in values.items()
        for n in range(30)
    ]
    rows += [(case, patient, finding, "floor", 0.0) for case, patient, finding, method, _ in rows if method == "bad"]
    table = table_of(tmp_path, rows)
    means = {m: one(table, "mean", "All findings", m)["value"] for m in ("good", "bad")}
    assert means == pytest.approx({"good": 1 / 3, "bad": 1 / 3})
    common = {m: one(table, "mean", "Findings of all methods", m)["value"] for m in ("good", "bad")}
    assert common == pytest.approx({"good": 1 / 3, "bad": 2 / 3})
    pair = one(table, "method_pair", "Findings of all methods", "good", "bad")
    assert pair["value"] == pytest.approx(-1 / 3)
    assert pair["high"] < 0
    assert pair["size"] == 0.1


def test_with_all_findings_in_common_the_pairs_are_over_all_of_them(tmp_path):
    table = table_of(tmp_path, simple())
    assert one(table, "method_pair", "All findings", "good", "bad")["value"] == pytest.approx(0.5)
    assert "Findings of all methods" not in set(table["finding"])


def test_a_distance_from_a_floor_matters_from_a_tenth_of_the_room_up_to_the_readers(tmp_path):
    rows = [(c, p, f, m, 0.8 if m == "human" else v) for c, p, f, m, v in simple()]
    table = table_of(tmp_path, rows)
    assert one(table, "test", "All findings", "bad", "floor")["size"] == pytest.approx(0.08)
    alone = table_of(tmp_path, simple(human=False))
    assert one(alone, "test", "All findings", "bad", "floor")["size"] == pytest.approx(0.1)


def test_distances_from_the_readers_hold_together(tmp_path):
    """The interval of the method that happens to be the best must not be too narrow."""
    luck = np.random.default_rng(1)
    rows = [(c, p, f, m, v if m == "human" else float(luck.random() < 0.5)) for c, p, f, m, v in simple(40, 40)]
    table = table_of(tmp_path, rows)
    distances = table.query("statistic == 'difference' and finding == 'All findings'")
    assert len(set(distances["family"])) == 1
    assert (distances["size"] == 0.1).all()
    bad, alone = (one(table, name, "All findings", "bad", "human") for name in ("difference", "percent_decrease"))
    assert (bad["high"] - bad["low"]) * 100 > 1.1 * (alone["high"] - alone["low"])  # the readers always hit


def test_a_calibration_error_stands_beside_that_of_a_perfect_model(tmp_path):
    generator = np.random.default_rng(0)
    chances = generator.random(100)
    labels = (generator.random(100) < chances).astype(float)
    predictions = [
        Prediction(f"c{n:03d}", f"p{n:03d}", "f", "model", label, 0.0, chance)
        for n, (label, chance) in enumerate(zip(labels, chances, strict=True))
    ]
    table = table_of(tmp_path, simple(6, 6), predictions=predictions)
    error, chance = (one(table, name, "f", "") for name in ("calibration", "chance_calibration"))
    assert chance["value"] > 0.05  # not 0, although the model is perfect
    assert error["value"] < chance["high"]


def test_methods_without_a_common_finding_are_not_compared(tmp_path):
    rows = [
        (f"{finding}{n:02d}", f"{finding}p{n:02d}", finding, method, float(n % 2))
        for finding, method in (("f", "good"), ("g", "bad"), ("f", "floor"), ("g", "floor"))
        for n in range(12)
    ]
    table = table_of(tmp_path, rows)
    assert "method_pair" not in set(table["statistic"])
    assert "Findings of all methods" not in set(table["finding"])
