"""Fixtures that write made-up run folders of the localization study."""

import pytest
from tests.studies.localization.report.material import Plan, manifest, write_run

from heatcheck.report.evidence import evidence_of
from heatcheck.runs.store import RunFolder, read_run


@pytest.fixture
def made_run(tmp_path):
    """A function from the differences to a default plan to the run folder it describes."""
    return lambda **changes: write_run(tmp_path / "run", Plan(**changes))


@pytest.fixture
def evidence_from(tmp_path):
    """A function from estimates and a number of methods to evidence, with nothing else in the run."""

    def make(rows, methods=1, status="complete"):
        path = tmp_path / "bare"
        with RunFolder.locked(path, {}, manifest(Plan(methods=methods))) as folder:
            folder.record(status=status)
            folder.write_estimates(rows)
        return evidence_of(read_run(path))

    return make
