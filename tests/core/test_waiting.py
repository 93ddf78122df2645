"""Waiting threads fall asleep soon: this is set before torch, which reads it once, is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from heatcheck.core.waiting import wait_briefly

ROOT = Path(__file__).parents[2]
BRIEFLY = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}
NAMES = ("OMP_WAIT_POLICY", *BRIEFLY)

# prints the settings as they are when torch is about to be loaded, and stops there
WITNESS = """
import os, sys

class Witness:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
            print("before torch:", {key: os.environ[key] for key in names if key in os.environ}, flush=True)
            os._exit(7)

sys.meta_path.insert(0, Witness())
"""
COMMAND = "sys.argv = ['heatcheck', 'list', 'methods']\n"
WAYS = {
    "console script": COMMAND + "from heatcheck.cli.main import main; main()",
    "python -m": COMMAND + "import runpy; runpy.run_module('heatcheck', run_name='__main__')",
    "python": "import heatcheck; heatcheck.run_study",
    "tests": "import tests.conftest",
}


def at_torch(code, **own):
    """What the program prints when it is about to load torch, started with these settings of the user's."""
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    command = [sys.executable, "-c", WITNESS + code]
    done = subprocess.run(command, env=clean | own, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("way", WAYS)
def test_the_setting_is_made_before_torch_is_loaded(way):
    assert at_torch(WAYS[way]) == f"before torch: {BRIEFLY}"


def test_a_users_own_setting_is_kept():
    own = {"OMP_WAIT_POLICY": "active"}
    assert at_torch(WAYS["console script"], **own) == f"before torch: {own}"


@pytest.mark.parametrize("name", NAMES)
def test_none_is_added_to_a_users_own(name):
    environment = {name: "5"}
    wait_briefly(environment)
    assert environment == {name: "5"}


def test_importing_heatcheck_alone_changes_nothing():
    code = f"import os, heatcheck, sys; sys.exit(any(name in os.environ for name in {NAMES}))"
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    assert subprocess.run([sys.executable, "-c", code], env=clean, check=False).returncode == 0
