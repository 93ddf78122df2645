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
NEEDED_BY_OTHERS = {"einops": "MONAI's attention blocks import it, and MONAI does not ask for it"}


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
    assert imported() | set(NEEDED_BY_OTHERS) == declared()


def test_package_that_others_need_is_not_imported_here():
    assert not imported() & set(NEEDED_BY_OTHERS)


def test_every_declared_package_is_locked():
    lock = {
        line.split("==")[0].lower() for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line
    }
    assert declared() <= lock
