"""heatcheck tests whether the heat maps of a medical-image classifier deserve trust."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heatcheck.explaining.one_image import explain
    from heatcheck.running.run import run_study
    from heatcheck.running.study import RunOptions
    from heatcheck.runs.store import read_run

__version__ = "0.1.0"
__all__ = ["RunOptions", "__version__", "explain", "read_run", "run_study"]

_HOMES = {
    "RunOptions": "heatcheck.running.study",
    "explain": "heatcheck.explaining.one_image",
    "run_study": "heatcheck.running.run",
    "read_run": "heatcheck.runs.store",
}


def __dir__() -> list[str]:
    """The public names, which exist before they are imported."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the public names differ in type
    """The public name, imported when first asked for: `import heatcheck` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'heatcheck' has no attribute {name!r}")
    import importlib

    from heatcheck.core.waiting import wait_briefly

    wait_briefly()  # only now: whoever imports heatcheck without using it keeps the environment as it was
    return getattr(importlib.import_module(_HOMES[name]), name)
