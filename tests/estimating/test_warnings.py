"""Whether a feature warns of wrong answers: its AUROC, judged together with those of other features."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import Statistic
from heatcheck.estimating.settings import EstimateSettings
from heatcheck.estimating.warnings import FEW_WRONG, NOT_KNOWN, Warner, warning_estimates
from heatcheck.judging.judgement import judgement_of, opposite_of

SETTINGS = EstimateSettings(draws=300, seed=1)
N = 200
WRONG = (np.arange(N) % 4 == 0).astype(float)
PATIENTS = np.arange(N).astype(str)


def warner(risk, wrong=WRONG, name="feature"):
    return Warner(Estimate(Statistic("warning"), name), wrong, np.asarray(risk, float))


def estimated(*warners, patients=PATIENTS):
    return {row.metric: row for row in warning_estimates(warners, patients, "all", SETTINGS)}


def test_the_value_is_the_auroc_less_one_half():
    risk = np.random.default_rng(1).normal(0.8 * WRONG, 1.0)
    row = estimated(warner(risk))["feature"]
    expected = mannwhitneyu(risk[WRONG == 1], risk[WRONG == 0]).statistic / (WRONG.sum() * (N - WRONG.sum()))
    assert row.value == pytest.approx(expected - 0.5)
    assert (row.n_cases, row.n_patients) == (N, N)
    assert row.low < row.value < row.high


def test_features_are_judged_by_one_family():
    luck = np.random.default_rng(2)
    rows = estimated(
        warner(luck.normal(2 * WRONG), name="warns"),
        warner(luck.normal(-2 * WRONG), name="turned"),
        warner(luck.random(N), name="noise"),
    )
    assert judgement_of(rows["warns"]).is_yes
    assert opposite_of(rows["turned"]).is_yes
    assert not judgement_of(rows["noise"]).is_yes
    assert {row.size for row in rows.values()} == {0.1}
    alone = estimated(warner(np.random.default_rng(2).normal(2 * WRONG)))["feature"]
    assert rows["warns"].low < alone.low  # corrected for the others


def test_answers_of_one_patient_count_once():
    luck = np.random.default_rng(3)
    fifth = np.arange(N) // 5
    risk, wrong = luck.normal(size=40)[fifth] + WRONG[: N // 5][fifth], WRONG[: N // 5][fifth]
    apart, together = (estimated(warner(risk, wrong), patients=p)["feature"] for p in (PATIENTS, fifth.astype(str)))
    assert together.value == pytest.approx(apart.value)
    assert together.high - together.low > 1.5 * (apart.high - apart.low)
    assert together.n_patients == 40


def test_few_wrong_answers_and_unknown_features_have_a_reason_instead():
    few = np.zeros(N)
    few[:3] = 1
    rows = estimated(warner(np.arange(N), few, "few"), warner(np.full(N, np.nan), name="unknown"))
    assert (rows["few"].reason, rows["unknown"].reason) == (FEW_WRONG, NOT_KNOWN)
    assert all(np.isnan(row.value) for row in rows.values())


def test_a_feature_that_says_nothing_seldom_warns():
    claimed = 0
    for seed in range(20):
        luck = np.random.default_rng([5, seed])
        rows = estimated(*(warner(luck.random(N), name=f"noise{n}") for n in range(5)))
        claimed += any(judgement_of(row).is_yes or opposite_of(row).is_yes for row in rows.values())
    assert claimed <= 3
