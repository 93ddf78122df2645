"""The public names, and nothing else."""

import pytest

import heatcheck


def test_all_names_what_is_public():
    assert sorted(heatcheck.__all__) == heatcheck.__all__
    for name in heatcheck.__all__:
        assert getattr(heatcheck, name) is not None


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = heatcheck.nothing
