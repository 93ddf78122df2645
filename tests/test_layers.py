"""Data flows one way: each folder imports only what lies before it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import heatcheck

SRC = Path(heatcheck.__file__).parent
STAGES = ("sources", "triggers", "models", "training", "methods", "maps", "regions", "metrics", "stats")
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    **{stage: {"core"} for stage in STAGES},
    "runs": {"core"},
    "report": {"core", "runs"},
    "studies": {"core", "runs", "report", *STAGES},
    "cli": {"core", "runs", "report", "studies", *STAGES},
}


def imported_folders(source: str) -> set[str]:
    """The folders of heatcheck that a module's source imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                names.add("heatcheck.relative")
            elif node.module == "heatcheck":
                names |= {f"heatcheck.{alias.name}" for alias in node.names}
            elif node.module:
                names.add(node.module)
    ours = {name.split(".")[1] for name in names if name.startswith("heatcheck.")}
    return {name for name in ours if name in ALLOWED or name == "relative"}


def test_every_folder_has_its_rule():
    folders = {path.name for path in SRC.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders == set(ALLOWED)


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_folder_imports_only_what_lies_before_it(folder):
    for path in (SRC / folder).rglob("*.py"):
        extra = imported_folders(path.read_text()) - ALLOWED[folder] - {folder}
        assert not extra, f"{path.relative_to(SRC)} imports {sorted(extra)}"


@pytest.mark.parametrize(
    "planted",
    [
        "from heatcheck.models import MODELS",
        "import heatcheck.models.load",
        "from heatcheck import models",
        "def f():\n    from heatcheck.models.load import load_classifier",
    ],
)
def test_a_planted_import_is_found(planted):
    assert imported_folders(planted) - ALLOWED["metrics"] - {"metrics"} == {"models"}


def test_a_relative_import_is_found():
    assert imported_folders("from ..models import MODELS") == {"relative"}


LIGHT = {
    "import heatcheck": "torch",
    "import heatcheck.runs.spec, heatcheck.runs.store, heatcheck.runs.engine": "torch",
    "import heatcheck.report.build": "torch",
    "import heatcheck.cli.main": "torch",
    "import heatcheck.studies.compare": "torch",
    "import heatcheck.models, heatcheck.methods, heatcheck.sources": "monai",
    "import heatcheck.studies.run": "lightning_fabric",
}


@pytest.mark.parametrize("statement", LIGHT)
def test_import_stays_light(statement):
    code = f"{statement}, sys; sys.exit({LIGHT[statement]!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_light_import_test_would_notice():
    code = "import heatcheck.methods, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
