"""Answers that are worse than guesses."""

import math

import pytest

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN, Statistic, condition
from heatcheck.judging.guessing import below_chance


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
