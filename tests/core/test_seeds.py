import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from heatcheck.core.seeds import generator_for, seed_for

parts = st.lists(st.one_of(st.integers(), st.text(st.characters(exclude_characters="\x1f", codec="utf-8"))), max_size=4)


def test_seed_is_the_same_on_every_machine():
    assert seed_for(7, "patient1", "occlusion") == 981703242289866896


@settings(deadline=None)
@given(parts, parts)
def test_seeds_differ_whenever_the_parts_do(first, second):
    assert (seed_for(*first) == seed_for(*second)) == (first == second)


def test_number_and_its_text_are_different_parts():
    assert seed_for(1) != seed_for("1")


def test_order_of_parts_matters():
    assert seed_for("a", "b") != seed_for("b", "a")


@settings(deadline=None)
@given(parts)
def test_seed_fits_the_signed_integers_that_torch_takes(some):
    assert 0 <= seed_for(*some) < 2**63


def test_generator_repeats_its_numbers_and_leaves_the_global_state_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - it is the global state that is looked at
    first, second = generator_for(1, "case").random(5), generator_for(1, "case").random(5)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002 - as above
