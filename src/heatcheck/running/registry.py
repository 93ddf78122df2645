"""The studies a spec can name: those of heatcheck, and those of other installed packages."""

import warnings
from importlib import import_module

from heatcheck.core.errors import HeatcheckWarning, RunFolderError, briefly
from heatcheck.core.registry import Registry
from heatcheck.core.study_packages import study_packages
from heatcheck.running.study import Study
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.store import Run

STUDIES: Registry[Study] = Registry("study")


def _register(package: str) -> None:
    """Add the study of one package; a study of another distribution that does not load is left out with a warning."""
    try:
        study = import_module(f"{package}.study").STUDY
        if not isinstance(study, Study):
            raise TypeError("its STUDY is not a heatcheck.running.study.Study")  # noqa: TRY301 - handled like any other fault
        STUDIES.add(study.name, study)
    except (Exception, SystemExit) as error:
        if package.startswith("heatcheck."):
            raise
        why = f"{type(error).__name__}: {briefly(error)}"
        text = f"the study in {package} cannot be used ({why}); update or uninstall it"
        warnings.warn(text, HeatcheckWarning, stacklevel=2)


for _package in study_packages():
    _register(_package)


def study_of(run: Run) -> Study:
    """The study that made a run."""
    name = run.manifest_as(Manifest).study
    if name not in STUDIES:
        raise RunFolderError(f"{run.path} was made by the study {name!r}, which is not installed; install its package")
    return STUDIES[name]
