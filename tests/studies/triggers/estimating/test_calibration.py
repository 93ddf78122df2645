"""Calibration before and after an attack, worked by hand."""

import math

import numpy as np
import pytest

from heatcheck.core.records import ALL_FINDINGS, Score
from heatcheck.core.vocabulary import condition
from heatcheck.judging.judgement import judgement_of
from heatcheck.runs.tables import write_table
from heatcheck.studies.triggers.estimates import attack_estimates
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.spec import GatePart

SQUARE, RING = "square", "ring"


def answered(shown, network, seed, confidences, correct, first=0):
    """The scores of a network's answers to images with these numbers."""
    return [
        Score(f"c{number}", f"p{number}", network, "", "m", f"{shown}_{what}", value, condition(seed=seed))
        for what, values in (("confidence", confidences), ("correct", correct))
        for number, value in enumerate(values, first)
    ]


def estimated(folder, scores, triggers=(SQUARE,)):
    write_table(folder / "scores.parquet", Score, scores)
    settings = TriggerSettings(triggers, (), ("gradient",), "m", GatePart(), draws=200, seed=1)
    rows = list(attack_estimates(folder, settings))

    def one(statistic, metric, finding, **facts):
        (row,) = [
            row
            for row in rows
            if (row.statistic, row.metric, row.finding, row.condition)
            == (statistic, metric, finding, condition(**facts))
        ]
        return row

    return one


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two seeds; the attack makes the network sure of a wrong class, and leaves it as it was on clean images."""
    unsure = ([0.9, 0.9, 0.7, 0.7], [1.0, 1.0, 1.0, 0.0])
    certain = ([1.0] * 4, [1.0] * 4)
    scores = [
        *answered("clean", "baseline", 1, *unsure),
        *answered("clean", "baseline", 2, *certain),
        *answered("clean", SQUARE, 1, *unsure),
        *answered("clean", SQUARE, 2, *certain),
        *answered("clean", RING, 1, [0.9] * 4, [0.0] * 4),
        *answered("clean", RING, 2, [0.9] * 4, [0.0] * 4),
    ]
    for name in (SQUARE, RING):
        for seed in (1, 2):
            scores += answered("stamped", name, seed, [0.95] * 4, [0.0, 0.0, 0.0, 1.0], first=4)
            scores += answered("baseline_stamped", name, seed, [0.5] * 4, [0.0, 1.0, 0.0, 1.0], first=4)
    return estimated(tmp_path_factory.mktemp("calibration"), scores, (SQUARE, RING))


def test_the_error_is_by_seed_over_seeds_and_over_triggers(table):
    by_hand = (2 * abs(0.9 - 1.0) + 2 * abs(0.7 - 0.5)) / 4
    assert table("calibration", "ece", "baseline", seed=1).value == pytest.approx(by_hand)
    assert table("calibration", "ece", "baseline", seed=2).value == 0
    over_seeds = table("calibration", "ece", "baseline")
    assert over_seeds.value == pytest.approx(by_hand / 2)
    assert (over_seeds.n_cases, over_seeds.n_patients) == (8, 4)
    assert table("calibration", "ece", RING).value == pytest.approx(0.9)
    assert table("calibration", "ece", ALL_FINDINGS).value == pytest.approx((by_hand / 2 + 0.9) / 2)


def test_on_stamped_images_the_poisoned_model_and_the_baseline_stand_apart(table):
    assert table("calibration", "ece_stamped", SQUARE).value == pytest.approx(0.95 - 0.25)
    assert table("calibration", "baseline_ece_stamped", SQUARE).value == pytest.approx(0)


def test_the_baselines_error_on_stamped_images_is_not_pooled_over_triggers(table):
    assert table("calibration", "ece_stamped", ALL_FINDINGS).value > 0
    with pytest.raises(ValueError, match="not enough values"):
        table("calibration", "baseline_ece_stamped", ALL_FINDINGS)


def test_beside_it_stands_what_a_perfect_model_would_show(table):
    # two of four answers with a probability of one half: the share of right ones is off by 3/16 on average
    chance = table("chance_calibration", "baseline_ece_stamped", SQUARE)
    off = sum(math.comb(4, k) / 16 * abs(k / 4 - 0.5) for k in range(5))
    assert chance.value == pytest.approx(off)
    assert chance.high > chance.value
    assert table("chance_calibration", "ece", "baseline", seed=2).value == 0


def test_overconfidence_is_confidence_less_accuracy_and_has_its_sign(table):
    assert table("attack", "overconfidence", "baseline").value == pytest.approx((0.8 - 0.75) / 2)
    assert table("attack", "overconfidence_stamped", SQUARE).value == pytest.approx(0.7)
    assert table("attack", "baseline_overconfidence_stamped", SQUARE).value == pytest.approx(0.0)


def test_the_change_is_on_the_same_images_over_all_triggers(table):
    clean = table("difference", "overconfidence", ALL_FINDINGS)
    assert clean.value == pytest.approx((0 + (0.9 - 0.025)) / 2)
    assert clean.other_method == "baseline"
    assert table("difference", "overconfidence_stamped", ALL_FINDINGS).value == pytest.approx(0.7)


def test_a_change_is_claimed_with_enough_patients_and_seeds_and_never_of_one_training(tmp_path):
    generator = np.random.default_rng(3)

    def study(seeds):
        scores = []
        for seed in seeds:
            right = (generator.random(80) < 0.9).astype(float)
            scores += answered("clean", "baseline", seed, [0.9] * 80, right)
            scores += answered("clean", SQUARE, seed, 0.9 + generator.normal(0, 0.01, 80), right)
            wrong = (generator.random(80) < 0.05).astype(float)
            scores += answered("stamped", SQUARE, seed, [0.97] * 80, wrong, first=80)
            scores += answered("baseline_stamped", SQUARE, seed, [0.9] * 80, right, first=80)
        folder = tmp_path / str(len(seeds))
        folder.mkdir()
        return estimated(folder, scores)

    several, single = study((1, 2, 3)), study((1,))
    stamped = several("difference", "overconfidence_stamped", ALL_FINDINGS)
    assert judgement_of(stamped).is_yes
    assert 0 < stamped.low < stamped.value < stamped.high
    assert judgement_of(several("difference", "overconfidence", ALL_FINDINGS)).is_no  # hardly anything changed
    assert math.isnan(single("difference", "overconfidence_stamped", ALL_FINDINGS).size)


def test_where_all_answers_are_wrong_the_interval_is_as_wide_as_that_of_the_accuracy(tmp_path):
    scores = []
    for seed in (1, 2):
        scores += answered("clean", "baseline", seed, [0.99] * 20, [1.0] * 20)
        scores += answered("clean", SQUARE, seed, [0.99] * 20, [1.0] * 20)
        sure = np.linspace(0.999, 1.0, 20)
        scores += answered("stamped", SQUARE, seed, sure, [0.0] * 20, first=20)
        scores += answered("baseline_stamped", SQUARE, seed, sure, [1.0] * 20, first=20)
    table = estimated(tmp_path, scores)
    wrong = table("attack", "overconfidence_stamped", SQUARE)
    assert wrong.value == pytest.approx(0.9995)
    assert wrong.low == pytest.approx(0.9995 - (1 - 0.025 ** (1 / 20)))  # Clopper and Pearson's of 0 of 20
    assert wrong.value < wrong.high < 1
    change = table("difference", "overconfidence_stamped", ALL_FINDINGS)
    assert 0.5 < change.low < 0.85


def test_a_run_without_confidences_has_no_such_rows(tmp_path):
    scores = [
        Score("c1", "p1", name, "", "m", metric, 1.0, condition(seed=1))
        for name, metric in (("baseline", "clean_correct"), (SQUARE, "clean_correct"), (SQUARE, "attacked"),
                             (SQUARE, "clean_target"))
    ]  # fmt: skip
    table = estimated(tmp_path, scores)
    assert table("attack", "cda", SQUARE).value == 1
    with pytest.raises(ValueError, match="not enough values"):
        table("calibration", "ece", SQUARE)
