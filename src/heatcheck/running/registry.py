"""The studies a spec can name: heatcheck's own, and those that other distributions bring."""

import warnings
from importlib import import_module

from heatcheck.core.registry import Registry
from heatcheck.core.study_packages import study_packages
from heatcheck.running.study import Study

STUDIES: Registry[Study] = Registry("study")


def _register(package: str) -> None:
    """Add the study of one package; one that somebody else made and that does not load must not stop the others."""
    try:
        study: Study = import_module(f"{package}.study").STUDY
        STUDIES.add(study.name, study)
    except Exception as error:
        if package.startswith("heatcheck."):
            raise
        why = f"{type(error).__name__}: {error}"
        warnings.warn(f"the study in {package} cannot be used ({why}); update or uninstall it", stacklevel=2)


for _package in study_packages():
    _register(_package)
