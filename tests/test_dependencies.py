"""What the package imports is what it asks pip for."""

import ast
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "lightning_fabric": "lightning-fabric",
}
NOT_IMPORTED = {  # asked for, but never imported by us: who loads it, and for what
    "einops": "MONAI's attention blocks import it, and MONAI does not ask for it",
    "python-gdcm": "pydicom decodes JPEG lossless and JPEG-LS pixels with it",
    "pylibjpeg": "pydicom finds pylibjpeg-openjpeg through it, which does not ask for it",
    "pylibjpeg-openjpeg": "pydicom decodes JPEG 2000 pixels with it",
}

FIXED = {  # the first release without the known advisories, and which those are
    "pydicom": ("3.0.2", "CVE-2026-32711"),
    "monai": ("1.6.0", "GHSA-wg9g-w2j2-8pgr, GHSA-qxq5-qhx6-94qw, GHSA-89gg-p5r5-q6r4, GHSA-rghg-q7wp-9767"),
}


def imported() -> set[str]:
    """The third-party packages that any module of the package imports."""
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.split(".")[0])
    return {DISTRIBUTIONS.get(n, n).lower() for n in names - set(sys.stdlib_module_names) - {"heatcheck"}}


def requirements() -> dict[str, Requirement]:
    """What the metadata asks pip for, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = map(Requirement, project["dependencies"])
    return {requirement.name.lower(): requirement for requirement in asked}


def declared() -> set[str]:
    """The packages that the metadata names."""
    return set(requirements())


def locked() -> dict[str, str]:
    """The versions the project is tested with, by name."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pairs = (line.split("==") for line in lines if "==" in line)
    return {name.lower(): version.split()[0] for name, version in pairs}


def test_every_import_is_declared_and_every_declared_package_is_imported():
    assert imported() == declared() - set(NOT_IMPORTED)


def test_every_package_that_others_load_is_declared_and_not_imported_here():
    assert set(NOT_IMPORTED) <= declared()
    assert not set(NOT_IMPORTED) & imported()


def test_every_declared_package_is_locked_in_a_version_that_is_admitted():
    assert declared() <= set(locked())
    for name, requirement in requirements().items():
        assert requirement.specifier.contains(locked()[name]), f"{requirement} and {name}=={locked()[name]}"


def lowest(name: str) -> Version:
    """The oldest version that the metadata admit."""
    (floor,) = (each.version for each in requirements()[name].specifier if each.operator == ">=")
    return Version(floor)


@pytest.mark.parametrize("name", FIXED)
def test_no_release_with_a_known_advisory_is_admitted(name):
    fixed, advisories = FIXED[name]
    assert lowest(name) >= Version(fixed), f"{name} before {fixed}: {advisories}"


def test_torch_is_no_older_than_monai_asks_for():
    (asked,) = (r for r in map(Requirement, metadata.requires("monai") or ()) if r.name == "torch" and not r.marker)
    assert asked.specifier.contains(lowest("torch")), f"monai asks for {asked}"
