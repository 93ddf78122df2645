"""The studies a spec can name."""

from importlib import import_module

from heatcheck.core.registry import Registry
from heatcheck.running.study import Study

_MODULES = (
    "heatcheck.studies.localization.study",
    "heatcheck.studies.triggers.study",
    "heatcheck.studies.alignment.study",
    "heatcheck.studies.modality.study",
)
STUDIES: Registry[Study] = Registry("study")
for _module in _MODULES:
    _study: Study = import_module(_module).STUDY
    STUDIES.add(_study.name, _study)
