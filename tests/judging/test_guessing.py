"""Answers that are worse than guesses."""

import math

import numpy as np
import pytest

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN, Statistic, condition
from heatcheck.judging.guessing import Misplaced, below_chance, misplaced_outputs


def auroc(value, low, high, **facts):
    return Estimate(AUROC, "auroc", "Edema", model="net", value=value, low=low, high=high, **facts)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (auroc(0.1, 0.02, 0.3), True),
        (auroc(0.39, 0.31, 0.49), True),
        (auroc(0.45, 0.42, 0.48), False),  # too little for something to be wrong
        (auroc(0.3, 0.1, 0.51), False),  # a guess may do as badly
        (auroc(0.0, math.nan, math.nan), False),
        (auroc(0.9, 0.8, 0.95), False),
        (auroc(math.nan, math.nan, math.nan), False),
        (auroc(0.1, 0.02, 0.3, condition=condition(arm="base")), True),
        (auroc(0.1, 0.02, 0.3, condition=condition(arm="misalign")), False),  # tuned to be wrong
        (auroc(0.1, 0.02, 0.3, condition=condition(subgroup="sex", group="F")), False),
    ],
)
def test_model_is_worse_than_guessing_if_its_interval_lies_clearly_below(row, found):
    assert [each.row for each in below_chance([row], 2)] == [row] * found


@pytest.mark.parametrize(("classes", "found"), [(2, True), (5, False)])
def test_guess_among_many_classes_is_seldom_right(classes, found):
    rows = [
        Estimate(MEAN, "balanced_accuracy", ALL_FINDINGS, "", "n", 0.3, 0.25, 0.38, condition=condition(fold="all")),
        Estimate(Statistic("attack"), "cda", "baseline", "", "n", 0.3, 0.25, 0.38),
    ]
    assert [each.row for each in below_chance(rows, classes)] == rows * found


def test_mean_over_findings_is_not_named_beside_them():
    row = auroc(0.1, 0.02, 0.3)
    (each,) = below_chance([row, Estimate(AUROC, "auroc", ALL_FINDINGS, "", "net", 0.1, 0.0, 0.2)], 1)
    assert each.words == "AUROC 0.10, 95 % interval 0.02 to 0.30, by guessing 0.50"


def answers_in_order(order, cases=60):
    """Answers that separate each finding perfectly, with the outputs in this order."""
    labels = np.random.default_rng(0).integers(0, 2, (cases, len(order))).astype(float)
    return labels[:, order] + np.linspace(0, 0.5, cases)[:, None], labels


def test_outputs_in_another_order_are_found_and_right_ones_are_not_doubted():
    assert misplaced_outputs(*answers_in_order([1, 0, 2])) == [Misplaced(0, 1, 1.0), Misplaced(1, 0, 1.0)]
    assert misplaced_outputs(*answers_in_order([0, 1, 2])) == []


def test_order_is_not_doubted_by_chance_few_cases_or_one_output_that_fits_other_labels():
    random = np.random.default_rng(1)
    for _ in range(20):
        assert misplaced_outputs(random.random((60, 5)), random.integers(0, 2, (60, 5)).astype(float)) == []
    assert misplaced_outputs(*answers_in_order([1, 0], cases=8)) == []
    answers, labels = answers_in_order([0, 0])  # the second output tells the first finding: there is no order for that
    assert misplaced_outputs(answers, labels) == []


def test_unknown_and_uncertain_labels_say_nothing_of_the_order():
    answers, labels = answers_in_order([1, 0], cases=240)
    labels[::2] = np.nan
    labels[1::4] = -1
    answers[::2] = 1 - answers[::2]
    assert [each.fits for each in misplaced_outputs(answers, labels)] == [1, 0]
