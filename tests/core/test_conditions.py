"""Conditions as text: canonical, whatever was asked for before."""

import pytest

from heatcheck.core.vocabulary import condition, condition_of, facts_of


def test_equal_facts_are_equal_text_in_any_order():
    assert condition(seed=1, arm="base") == condition(arm="base", seed=1) == '{"arm":"base","seed":1}'
    assert facts_of(condition(seed=1, arm="base")) == {"seed": 1, "arm": "base"}


def test_numbers_that_are_equal_but_of_another_type_keep_their_own_text():
    for _ in range(2):
        assert [condition_of({"x": fact}) for fact in (1, 1.0, True)] == ['{"x":1}', '{"x":1.0}', '{"x":true}']


def test_facts_of_another_package_may_be_lists_and_none_may_be_undefined():
    assert condition_of({"x": [1, 2]}) == '{"x":[1,2]}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        condition_of({"x": float("nan")})
