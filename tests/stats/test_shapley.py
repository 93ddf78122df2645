"""Judged by averaging over all orders of the players, one at a time."""

from itertools import permutations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heatcheck.stats.shapley import coalitions, contributions, shapley


def number(players):
    """The place of a subset among all."""
    return sum(2**player for player in players)


def by_brute_force(worth, players):
    """What each player adds when it comes in, over every order."""
    values = np.zeros(players)
    orders = list(permutations(range(players)))
    for order in orders:
        for position, player in enumerate(order):
            before = order[:position]
            values[player] += worth[number((*before, player))] - worth[number(before)]
    return values / len(orders)


def games(most=5):
    """Worths of every subset."""
    return st.integers(1, most).flatmap(lambda m: arrays(float, 2**m, elements=st.floats(-1, 1, width=32)))


def test_all_subsets_are_listed_from_none_to_everyone():
    subsets = coalitions(3)
    assert subsets.exact
    assert subsets.members.shape == (8, 3)
    assert not subsets.members[0].any()
    assert subsets.members[-1].all()
    assert [number(np.flatnonzero(row)) for row in subsets.members] == list(range(8))


def test_value_worked_by_hand():
    """A pair of gloves: left alone and right alone are worth nothing, one of two lefts with the right is worth 1."""
    worth = np.array([0, 0, 0, 0, 0, 1, 1, 1.0])  # players: left, left, right
    np.testing.assert_allclose(shapley(worth, coalitions(3)).values, [1 / 6, 1 / 6, 4 / 6])


@given(games())
def test_values_are_those_of_the_brute_force(worth):
    players = int(np.log2(len(worth)))
    result = shapley(worth, coalitions(players))
    np.testing.assert_allclose(result.values, by_brute_force(worth, players), atol=2e-12)
    np.testing.assert_array_equal(result.errors, 0)


@given(games(most=8))
def test_values_add_up_to_what_all_are_worth_beyond_none(worth):
    players = int(np.log2(len(worth)))
    assert shapley(worth, coalitions(players)).values.sum() == pytest.approx(worth[-1] - worth[0], abs=1e-9)


@given(games(most=4), st.data())
def test_player_who_never_adds_anything_has_value_0(worth, data):
    players = int(np.log2(len(worth)))
    idle = data.draw(st.integers(0, players - 1))
    without = np.arange(len(worth)) & ~(1 << idle)
    assert shapley(worth[without], coalitions(players)).values[idle] == pytest.approx(0, abs=1e-12)


def test_players_who_add_the_same_have_the_same_value_to_the_last_bit():
    """Else a rank correlation would order them, and weights stretched between 0 and 1 would tell them apart."""
    members = coalitions(4).members
    for seed in range(50):
        by_size = np.random.default_rng(seed).random((5, 2))
        result = shapley(by_size[members.sum(1), 0], coalitions(4)).values
        assert len(np.unique(result)) == 1
        idle = shapley(by_size[members[:, :3].sum(1), 1], coalitions(4)).values
        assert idle[3] == 0
        assert not np.signbit(idle[3])


def test_many_games_are_solved_at_once():
    worth = np.random.default_rng(1).random((6, 2, 16))
    result = shapley(worth, coalitions(4)).values
    assert result.shape == (6, 2, 4)
    np.testing.assert_allclose(result[3, 1], by_brute_force(worth[3, 1], 4))


def additive(members, gains):
    """A game in which every player adds the same, whichever others are present."""
    return members @ gains


def test_above_ten_players_only_the_subsets_of_the_drawn_orders_are_needed():
    subsets = coalitions(12, permutations=20, seed=3)
    assert not subsets.exact
    assert len(subsets.members) <= 20 * 11 + 2
    assert len(np.unique(subsets.members, axis=0)) == len(subsets.members)
    assert not subsets.members[0].any()
    assert subsets.members[-1].all()
    np.testing.assert_array_equal(subsets.orders[0], subsets.orders[1][::-1])
    np.testing.assert_array_equal(coalitions(12, 20, 3).members, subsets.members)
    assert not np.array_equal(coalitions(12, 20, 4).orders, subsets.orders)


def test_sampled_values_of_a_game_without_interplay_are_exact():
    among = coalitions(12, permutations=6)
    gains = np.linspace(-0.2, 0.5, 12)
    result = shapley(additive(among.members, gains), among)
    np.testing.assert_allclose(result.values, gains)
    np.testing.assert_allclose(result.errors, 0, atol=1e-12)


def voting(members):
    """The weighted majority of eleven voters; its values have a closed form only by enumeration."""
    weights = np.arange(1, members.shape[1] + 1)
    return (members @ weights > weights.sum() / 2).astype(float)


def test_sampled_values_are_true_within_their_error_bars():
    subsets = (np.arange(2**11)[:, None] >> np.arange(11) & 1).astype(bool)
    size = subsets.sum(1)
    truth = np.zeros(11)
    for player in range(11):
        without = ~subsets[:, player]
        gain = voting(subsets)[np.flatnonzero(without) + 2**player] - voting(subsets)[without]
        orders = np.array([1 / (11 * comb(10, n)) for n in range(11)])
        truth[player] = (gain * orders[size[without]]).sum()
    inside = []
    for seed in range(40):
        among = coalitions(11, permutations=200, seed=seed)
        result = shapley(voting(among.members), among)
        assert result.values.sum() == pytest.approx(1)
        assert (result.errors > 0).any()
        inside.append(np.abs(result.values - truth) <= 1.96 * result.errors)
    assert 0.88 < np.mean(inside) < 0.99


def test_mean_of_the_cases_values_is_the_value_of_the_mean():
    for players in (4, 11):
        among = coalitions(players, permutations=8)
        right = np.random.default_rng(2).integers(0, 2, (30, len(among.members))).astype(float)
        by_case = right @ contributions(among)
        np.testing.assert_allclose(by_case.mean(0), shapley(right.mean(0), among).values, atol=1e-12)


def test_game_without_players_and_worths_of_other_subsets_are_refused():
    with pytest.raises(ValueError, match="at least one player, got 0"):
        coalitions(0)
    with pytest.raises(ValueError, match=r"8 subsets needs a worth, got worths of shape \(7,\)"):
        shapley(np.zeros(7), coalitions(3))
    with pytest.raises(ValueError, match="at least 4 random orders, got 2"):
        coalitions(11, permutations=2)
