"""MONAI, which takes seconds to load, is loaded for its own networks alone."""

import json
import subprocess
import sys

import pytest
import yaml
from tests.cli.map_material import small_scoring
from tests.studies.triggers.planted_material import SMALL_TRIGGERS

# runs the commands in one process; a command that loads MONAI ends it
COMMANDS = """
import json, sys
from heatcheck.cli.main import app

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "monai":
            sys.exit(f"{words} load MONAI")

sys.meta_path.insert(0, Refused())
for words in json.loads(sys.argv[1]):
    app(words, standalone_mode=False)
"""
USUAL = {"threads": 1, "shard_size": 4, "gallery": 1}
STUDIES = {
    "localization": {
        "source": {"name": "phantom_chest", "patients": 3, "first": 400, "size": 48},
        "model": "phantom_chest_densenet",
        "methods": ["grad_cam", "random"],
        "bootstrap_draws": 100,
    },
    "triggers": SMALL_TRIGGERS | {"triggers": ["square-corner-60"], "seeds": 1},
    "modality": {
        "source": {"name": "phantom_brain", "cases": 4, "first": 400, "size": 80},
        "model": "phantom_brain_vgg",
        "methods": ["gradient"],
        "removal": None,
    },
}


def run_all(*commands):
    words = json.dumps([list(map(str, command)) for command in commands])
    return subprocess.run([sys.executable, "-c", COMMANDS, words], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_no_study_of_a_convolutional_network_loads_it(study, tmp_path):
    (tmp_path / "study.yaml").write_text(yaml.safe_dump({"study": study, **USUAL, **STUDIES[study]}))
    done = run_all(["run", tmp_path / "study.yaml", "--out", tmp_path / "run", "-q"], ["report", tmp_path / "run"])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.slow
def test_no_verb_without_a_network_of_its_own_loads_it(tmp_path):
    maps = small_scoring(tmp_path)
    done = run_all(
        ["list", "models"],
        ["preflight", "vgg_compact"],
        ["score", *maps.flags("-q")],
        ["tune", "--maps", maps.maps, "--truth", maps.truth, "--out", tmp_path / "tuned", "-q"],
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_refusal_would_be_noticed():
    done = run_all(["preflight", "vit_compact"])
    assert "load MONAI" in done.stderr
    assert done.returncode == 1
