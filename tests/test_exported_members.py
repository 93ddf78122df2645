"""The public names, and nothing else."""

import subprocess
import sys

import pytest

import heatcheck


def test_all_names_what_is_public():
    assert heatcheck.__all__ == ["RunOptions", "__version__", "explain", "read_run", "run_study"]
    for name in heatcheck.__all__:
        assert getattr(heatcheck, name) is not None


def test_dir_lists_the_public_names_and_imports_nothing():
    assert dir(heatcheck) == sorted(heatcheck.__all__)
    code = "import sys, heatcheck; dir(heatcheck); sys.exit(any(name in sys.modules for name in ('torch', 'pandas')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = heatcheck.nothing
