import math

import pytest
from tests.training.fit_material import network

from heatcheck.core.errors import InputError
from heatcheck.training.schedule import Pace, groups


def test_learning_rate_worked_by_hand():
    pace = Pace(0.1, 20, warm_up=0.2)
    rates = [pace.rate_at(step) for step in range(20)]
    assert rates[:4] == pytest.approx([0.025, 0.05, 0.075, 0.1])
    assert rates[4] == pytest.approx(0.1)
    assert rates[12] == pytest.approx(0.05)  # half of the cosine
    assert rates[8] == pytest.approx(0.1 * (1 + math.cos(math.pi / 4)) / 2)
    assert 0 < rates[19] < 0.002
    assert rates[4:] == sorted(rates[4:], reverse=True)


def test_rate_may_rise_for_a_given_number_of_steps():
    pace = Pace(0.1, 20, warm_up_steps=4)
    assert [pace.rate_at(step) for step in range(20)] == [
        Pace(0.1, 20, warm_up=0.2).rate_at(step) for step in range(20)
    ]
    with pytest.raises(InputError, match="`warm_up_steps` 2000 leaves nothing of a fit of 20 steps; lower it"):
        Pace(0.1, 20, warm_up_steps=2000)
    assert Pace(0.1, 20, "constant", warm_up_steps=2000).rate_at(3) == 0.1


def test_constant_rate_is_the_same_from_the_first_step():
    assert {Pace(0.1, 20, "constant").rate_at(step) for step in range(20)} == {0.1}


def test_fit_of_a_single_step_has_a_rate():
    assert Pace(0.1, 1).rate_at(0) == pytest.approx(0.1)


def test_only_matrices_decay():
    parts = groups(network(), 0.3)
    assert [part["weight_decay"] for part in parts] == [0.3, 0.0]
    assert {parameter.ndim for parameter in parts[0]["params"]} == {2}
    assert {parameter.ndim for parameter in parts[1]["params"]} == {1}
    assert sum(len(part["params"]) for part in parts) == len(list(network().parameters()))
