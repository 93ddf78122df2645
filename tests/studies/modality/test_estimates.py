import math
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from tests.studies.modality.made_tables import estimated, msfi_of, rule_of, scored

from heatcheck.core.vocabulary import CRITICAL_DIFFERENCE, FRIEDMAN, MEAN_RANK, RANK_PAIR
from heatcheck.metrics.modality.shares import SAME_SUMS, UNINFORMATIVE, UNKNOWN_IMPORTANCE
from heatcheck.metrics.undefined import NO_RELEVANCE

METHODS = ("gradient", "lime", "grad_cam")
PRIMARY = {"importance": "lesion", "weights": "positive"}


def test_mean_of_every_method_by_fold_and_over_all_cases(tmp_path):
    """Over all folds every case counts the same, so the larger fold counts more."""
    rows = [msfi_of([0.2, 0.4], "gradient"), msfi_of([0.6, 0.6, 0.8, 0.8], "gradient", fold=2, first=10)]
    found = estimated(tmp_path, rule_of(folds=(1, 2)), *rows)
    few = found.one("mean", "msfi", "gradient", fold=1, **PRIMARY)
    assert (few.value, few.reason) == (pytest.approx(0.3), "fewer than 6 patients")
    assert found.one("mean", "msfi", "gradient", fold=2, **PRIMARY).value == pytest.approx(0.7)
    whole = found.one("mean", "msfi", "gradient", fold="all", **PRIMARY)
    assert whole.value == pytest.approx(3.4 / 6)
    assert whole.low < whole.value < whole.high
    assert (whole.n_cases, whole.n_patients, whole.n_undefined) == (6, 6, 0)


def test_conditions_of_one_metric_stay_apart(tmp_path):
    rows = [
        msfi_of([0.1, 0.3], "gradient"),
        msfi_of([0.5, 0.7], "gradient", weights="min_max"),
        scored([0.8, 1.0], "inside_share", "gradient", modality="T1C"),
        scored([0.0, 0.2], "inside_share", "gradient", modality="FLAIR"),
    ]
    found = estimated(tmp_path, rule_of(), *rows)
    at = {"importance": "lesion", "weights": "min_max", "fold": "all"}
    assert found.one("mean", "msfi", "gradient", **at).value == pytest.approx(0.6)
    assert found.one("mean", "inside_share", "gradient", fold=1, modality="T1C").value == pytest.approx(0.9)
    assert found.one("mean", "inside_share", "gradient", fold=1, modality="FLAIR").value == pytest.approx(0.1)


def test_undefined_scores_are_counted_and_their_reason_is_told_where_none_is_left(tmp_path):
    nothing = math.nan
    rows = [
        scored([0.5, nothing, 1.0], "lesion_share", "gradient", reason="no map"),
        scored([nothing] * 3, "mi_correlation", "grad_cam", reason=UNINFORMATIVE),
    ]
    found = estimated(tmp_path, rule_of(), *rows)
    some = found.one("mean", "lesion_share", "gradient", fold=1)
    assert (some.value, some.n_cases, some.n_undefined) == (0.75, 2, 1)
    none = found.one("mean", "mi_correlation", "grad_cam", fold="all")
    assert math.isnan(none.value)
    assert (none.n_undefined, none.reason) == (3, UNINFORMATIVE)


def test_maps_that_say_nothing_count_0_in_means_and_differences_and_are_counted(tmp_path):
    """Of ten maps, six are 0 everywhere: the share is 0.4 × 0.5, below the floor, not 0.5 above it."""
    nothing = math.nan
    values = np.array([0.5, 0.6, 0.4, 0.5] + [nothing] * 6)
    rows = [
        scored(values, "lesion_share", "gradient", reason=NO_RELEVANCE),
        scored(np.full(10, 0.3), "lesion_share", "uniform"),
        scored([1.0, nothing], "mi_correlation", "gradient", reason=SAME_SUMS),
        scored([nothing, nothing], "mi_correlation", "grad_cam", reason=UNINFORMATIVE),
        scored([1.0, nothing], "mi_correlation", "lime", reason=UNKNOWN_IMPORTANCE),
    ]
    found = estimated(tmp_path, rule_of(), *rows)
    share = found.one("mean", "lesion_share", "gradient", fold="all")
    assert (share.value, share.n_cases, share.n_undefined) == (pytest.approx(0.2), 10, 0)
    assert found.one("difference", "lesion_share", "gradient", versus="uniform").value == pytest.approx(-0.1)
    assert found.one("mean", "mi_correlation", "gradient", fold=1).value == 0.5
    assert math.isnan(found.one("mean", "mi_correlation", "grad_cam", fold=1).value)
    assert found.one("mean", "mi_correlation", "lime", fold=1).value == 1
    empty = found.one("empty", "lesion_share", "gradient", fold="all")
    assert (empty.value, empty.n_cases) == (6, 10)
    assert [one.method for one in found.all(statistic="empty", metric="mi_correlation")] == ["gradient"]


def test_floor_is_subtracted_case_by_case(tmp_path):
    generator = np.random.default_rng(0)
    floor = generator.random(30) / 2
    gain = 0.2 + generator.normal(0, 0.02, 30)
    rows = [
        msfi_of(floor, "uniform"),
        msfi_of(floor + gain, "gradient"),
        msfi_of(floor + generator.normal(0, 0.05, 30), "lime"),
        msfi_of(floor - gain, "grad_cam"),
    ]
    found = estimated(tmp_path, rule_of(), *rows)
    better, like, worse = (found.one("difference", "msfi", method, versus="uniform") for method in METHODS)
    assert better.value == pytest.approx(gain.mean())
    assert 0.19 < better.low < better.value < better.high < 0.22
    assert better.p_value <= better.p_adjusted < 0.05
    assert better.size == pytest.approx(0.1 * (1 - floor.mean()))
    assert like.low < 0 < like.high
    assert like.p_adjusted > 0.05
    assert worse.value < 0
    assert len({one.family for one in (better, like, worse)}) == 1
    assert found.one("mean", "msfi", "uniform", fold="all", **PRIMARY).value == pytest.approx(floor.mean())
    assert not found.all(statistic="difference", metric="lesion_share")


def test_ranks_and_pairs_equal_an_independent_computation(tmp_path):
    generator = np.random.default_rng(1)
    values = generator.random((25, 3)) + np.array([0.4, 0.1, 0.0])
    rows = [msfi_of(column, method) for method, column in zip(METHODS, values.T, strict=True)]
    found = estimated(tmp_path, rule_of(), *rows)
    judge = friedmanchisquare(*values.T)
    mean_ranks = rankdata(-values, axis=1).mean(0)
    test = found.one(FRIEDMAN, "msfi")
    assert (test.value, test.p_value) == pytest.approx((judge.statistic, judge.pvalue))
    for method, expected in zip(METHODS, mean_ranks, strict=True):
        row = found.one(MEAN_RANK, "msfi", method)
        assert row.value == pytest.approx(expected)
        assert row.n_cases == 25
    q = abs(mean_ranks[0] - mean_ranks[2]) / math.sqrt(3 * 4 / (12 * 25))
    pair = found.one(RANK_PAIR, "msfi", "gradient", "grad_cam")
    assert pair.p_value == pytest.approx(studentized_range.sf(q, 3, np.inf))
    assert pair.value == pytest.approx(mean_ranks[0] - mean_ranks[2])
    assert len(found.all(statistic=RANK_PAIR, metric="msfi")) == 3


def test_best_methods_differ_from_the_others_by_more_than_the_critical_difference(tmp_path):
    methods = ("gradient", "lime", "grad_cam", "occlusion")
    generator = np.random.default_rng(2)
    values = generator.random((40, 4)) / 4 + np.array([0.7, 0.7, 0.2, 0.0])
    rows = [scored(c, "lesion_share", m) for m, c in zip(methods, values.T, strict=True)]
    found = estimated(tmp_path, rule_of(methods=methods), *rows)
    ranks = {row.method: row.value for row in found.all(statistic=MEAN_RANK)}
    critical = found.one(CRITICAL_DIFFERENCE, "lesion_share").value
    assert abs(ranks["gradient"] - ranks["lime"]) < critical
    assert all(ranks[one] - ranks[other] > critical for one in methods[2:] for other in methods[:2])


def test_uninformative_maps_rank_as_0_and_other_gaps_drop_the_case(tmp_path):
    """τ of 0.5 and −0.5 in turn: a map for all modalities ranks between; the last case has no φ to compare with."""
    nothing = math.nan
    rows = [
        scored([0.5] * 6 + [nothing], "mi_correlation", "gradient", reason=UNKNOWN_IMPORTANCE),
        scored([-0.5] * 6 + [nothing], "mi_correlation", "lime", reason=UNKNOWN_IMPORTANCE),
        scored([nothing] * 7, "mi_correlation", "grad_cam", reason=UNINFORMATIVE),
    ]
    found = estimated(tmp_path, rule_of(), *rows)
    ranked = {row.method: row for row in found.all(statistic=MEAN_RANK, metric="mi_correlation")}
    assert {name: row.value for name, row in ranked.items()} == {"gradient": 1, "grad_cam": 2, "lime": 3}
    assert (ranked["gradient"].n_cases, ranked["gradient"].n_undefined) == (6, 1)


def test_cases_of_a_patient_are_one_block(tmp_path):
    """Each of eight patients four times: the test is that of eight blocks of means, not of 32."""
    values = np.random.default_rng(7).random((32, 3)) + np.array([0.2, 0.1, 0.0])
    values[5, 1] = math.nan
    rows = [
        replace(row, patient=f"p{number // 4}")
        for method, column in zip(METHODS, values.T, strict=True)
        for number, row in enumerate(scored(column, "lesion_share", method, reason="no map"))
    ]
    found = estimated(tmp_path, rule_of(), rows)
    values[5] = math.nan
    means = np.nanmean(values.reshape(8, 4, 3), axis=1)
    assert found.one(FRIEDMAN, "lesion_share").p_value == pytest.approx(friedmanchisquare(*means.T).pvalue)
    for method, expected in zip(METHODS, rankdata(-means, axis=1).mean(0), strict=True):
        row = found.one(MEAN_RANK, "lesion_share", method)
        assert row.value == pytest.approx(expected)
        assert (row.n_patients, row.n_cases, row.n_undefined) == (8, 31, 1)


def test_rank_without_a_test_says_why(tmp_path):
    rows = [scored([0.5, 0.6], "median_iou", method) for method in METHODS[:2]]
    found = estimated(tmp_path, rule_of(methods=METHODS[:2]), *rows)
    for row in found.all(metric="median_iou"):
        if row.statistic in {FRIEDMAN, CRITICAL_DIFFERENCE, RANK_PAIR}:
            assert math.isnan(row.value) or math.isnan(row.p_value)
            assert row.reason == "fewer than three methods"


def test_seconds_are_those_of_a_map(tmp_path):
    timings = [("gradient", 4, 2.0), ("gradient", 6, 1.0), ("lime", 2, 9.0)]
    found = estimated(tmp_path, rule_of(), msfi_of([0.5], "gradient"), timings=timings)
    assert found.one("seconds", "seconds", "gradient").value == pytest.approx(0.3)
    assert found.one("seconds", "seconds", "lime").value == pytest.approx(4.5)
    assert not found.all(statistic="seconds", method="grad_cam")


def test_run_without_any_score_has_no_estimates(tmp_path):
    assert estimated(tmp_path, rule_of(), []).every == []


def test_every_estimate_is_made_once_and_again_the_same(tmp_path):
    values = np.random.default_rng(3).random((12, 3))
    rows = [msfi_of(column, method) for method, column in zip(METHODS, values.T, strict=True)]
    rows.append(msfi_of(np.full(12, 0.2), "uniform"))
    one, other = (estimated(tmp_path / name, rule_of(), *rows).every for name in ("a", "b"))
    keys = [(e.statistic, e.metric, e.method, e.other_method, e.condition) for e in one]
    assert len(set(keys)) == len(keys)
    assert [repr(e) for e in one] == [repr(e) for e in other]


def test_scores_of_another_model_do_not_count(tmp_path):
    found = estimated(tmp_path, rule_of(model="other"), msfi_of([0.5], "gradient"))
    assert found.every == []


@pytest.mark.slow
def test_estimates_of_the_published_study_take_seconds(tmp_path):
    """369 cases, 16 methods and 20 rows each, 2000 draws; processor time, as others use the machine."""
    methods = tuple(f"m{n}" for n in range(16))
    rule = rule_of(methods=methods, folds=(1, 2, 3, 4, 5), draws=2000)
    generator, rows = np.random.default_rng(4), []
    kinds = [("mi_correlation", {}), ("lesion_share", {}), ("median_iou", {}), ("aupc", {}), ("delta_aupc", {})]
    kinds += [("msfi", {"importance": i, "weights": w}) for i in ("lesion", "known") for w in ("positive", "min_max")]
    kinds += [
        (metric, {"modality": m}) for metric in ("modality_sum", "inside_share") for m in ("T1", "T1C", "T2", "F")
    ]
    for metric, more in kinds:
        for method in (*methods, "uniform") if metric in {"msfi", "lesion_share"} else methods:
            for fold in rule.folds:
                values = generator.random(74)
                if metric in {"mi_correlation", "delta_aupc"}:
                    values[generator.random(74) < 0.02] = math.nan
                rows.append(scored(values, metric, method, fold=fold, first=74 * fold, **more))
    before = time.process_time()
    found = estimated(tmp_path, rule, *rows)
    assert time.process_time() - before < 20
    assert len(found.all(statistic="mean")) == 6 * (16 * len(kinds) + 5)
