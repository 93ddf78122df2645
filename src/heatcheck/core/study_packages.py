"""Where studies are: one package each, heatcheck's own and those that other distributions bring.

A study's package has a module `study`, whose STUDY describes it, and may have a folder `specs` with the YAML files it
ships. Another distribution names its package under the entry point group "heatcheck.studies".
"""

from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

GROUP = "heatcheck.studies"
_OWN = Path(__file__).parents[1] / "studies"


def study_packages() -> list[str]:
    """The packages that hold a study: heatcheck's own by name, then the others."""
    ours = [f"{GROUP}.{module.name}" for module in iter_modules([str(_OWN)]) if module.ispkg]
    named = {entry.module.removesuffix(".study") for entry in entry_points(group=GROUP)}
    return [*ours, *sorted(named - set(ours))]


def specs_folder(package: str) -> Path | None:
    """The folder of the specs that a study ships; None where it has none, or where the package cannot be found."""
    try:
        spec = find_spec(package)
    except Exception:  # noqa: BLE001 - the package around a study of somebody else is imported, and may do anything
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "specs"
    return folder if folder.is_dir() else None
