"""What the package imports is what it asks pip for."""

import ast
import re
import sys
import tomllib
from pathlib import Path

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


def declared() -> set[str]:
    """The packages that the metadata names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {re.split(r"[<>=!~ \[;]", requirement)[0].lower() for requirement in project["dependencies"]}


def test_every_import_is_declared_and_every_declared_package_is_imported():
    assert imported() == declared() - set(NOT_IMPORTED)


def test_every_package_that_others_load_is_declared_and_not_imported_here():
    assert set(NOT_IMPORTED) <= declared()
    assert not set(NOT_IMPORTED) & imported()


def test_every_declared_package_is_locked():
    lock = {
        line.split("==")[0].lower() for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line
    }
    assert declared() <= lock
