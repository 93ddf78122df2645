"""Places with a range, and Kendall's τ of two orders, by hand, by scipy and by simulation."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau

from heatcheck.stats.orders import Order, agreement_of_orders
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested_studentised import simultaneous_means


def test_places_leave_room_for_every_pair_that_is_not_clear():
    # a is clearly above b and c, b and c are not clearly apart; d is below all
    order = Order(np.array([0.9, 0.5, 0.4, 0.1]), np.array([1, 1, 1, 0, 1, 1]))
    assert [(place.value, place.low, place.high) for place in order.places] == [
        (1, 1, 1),
        (2, 2, 3),
        (3, 2, 3),
        (4, 4, 4),
    ]


def test_nothing_clear_leaves_every_place_and_every_agreement_open():
    order = Order(np.array([0.9, 0.5, 0.4]), np.zeros(3, int))
    assert [(place.low, place.high) for place in order.places] == [(1, 3)] * 3
    tau = agreement_of_orders(order, order)
    assert (tau.value, tau.low, tau.high) == (1, -1, 1)


def test_agreement_by_hand():
    one = Order(np.array([3.0, 2.0, 1.0]), np.array([1, 1, 0]))
    other = Order(np.array([3.0, 1.0, 2.0]), np.array([1, 1, -1]))
    tau = agreement_of_orders(one, other)  # two pairs are clearly alike, the third is not clear in one of them
    assert (tau.value, tau.low, tau.high) == pytest.approx((1 / 3, 1 / 3, 1))


def test_agreement_is_kendalls():
    generator = np.random.default_rng(2)
    for _ in range(20):
        one, other = generator.random((2, 7))
        nothing = np.zeros(21, int)
        tau = agreement_of_orders(Order(one, nothing), Order(other, nothing))
        assert tau.value == pytest.approx(kendalltau(one, other).statistic)


def test_two_methods_have_no_agreement_of_orders():
    order = Order(np.array([2.0, 1.0]), np.array([1]))
    tau = agreement_of_orders(order, order)
    assert math.isnan(tau.value)
    assert tau.reason == "fewer than three methods"
    with pytest.raises(ValueError, match="3 means have 3 pairs, got 1"):
        Order(np.zeros(3), np.zeros(1, int))


def test_ranges_hold_the_truth_as_often_as_they_say():
    """Four methods, two quantities of each, 30 patients and three seeds whose networks differ."""
    generator = np.random.default_rng(7)
    truths = np.array([0.6, 0.5, 0.45, 0.2]), np.array([0.3, 0.6, 0.1, 0.5])
    pairs = list(combinations(range(4), 2))
    real = [Order(truth, np.sign([truth[a] - truth[b] for a, b in pairs]).astype(int)) for truth in truths]
    wanted = agreement_of_orders(*real).value
    seeds, patients = np.repeat(np.arange(3), 30), np.tile(np.arange(30), 3)
    missed, clear = 0, 0
    for _ in range(60):
        of_seed, of_patient = generator.normal(0, 0.03, (3, 8)), generator.normal(0, 0.15, (30, 8))
        values = np.concatenate(truths) + of_seed[seeds] + of_patient[patients] + generator.normal(0, 0.1, (90, 8))
        columns = [values[:, 4 * part + a] - values[:, 4 * part + b] for part in (0, 1) for a, b in pairs]
        found = simultaneous_means(np.stack(columns, 1), Design(seeds, patients), 200, generator)
        signs = np.array([int(each.mean.low > 0) - int(each.mean.high < 0) for each in found])
        orders = [Order(values[:, 4 * part : 4 * part + 4].mean(0), signs[6 * part : 6 * part + 6]) for part in (0, 1)]
        tau = agreement_of_orders(*orders)
        places = [
            place.low <= true.value <= place.high
            for order, right in zip(orders, real, strict=True)
            for place, true in zip(order.places, right.places, strict=True)
        ]
        missed += not (all(places) and tau.low - 1e-9 <= wanted <= tau.high + 1e-9)
        clear += int((signs != 0).sum())
    assert missed <= 3  # 5 % of 60; ranges from all pairs together err on the safe side
    assert clear > 0.3 * 60 * 12  # the ranges say something
