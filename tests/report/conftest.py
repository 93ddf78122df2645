"""Fixtures that write made-up run folders."""

from tests.studies.localization.report.conftest import made_run  # noqa: F401 - fixtures
from tests.studies.triggers.report.conftest import trigger_run  # noqa: F401 - fixtures
