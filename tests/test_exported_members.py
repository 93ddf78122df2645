"""The public names, and nothing else."""

import pytest

import heatcheck


def test_all_names_what_is_public():
    assert heatcheck.__all__ == ["RunOptions", "__version__", "explain", "read_run", "run_study"]
    for name in heatcheck.__all__:
        assert getattr(heatcheck, name) is not None


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = heatcheck.nothing
