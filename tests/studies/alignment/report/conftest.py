"""Fixtures that write made-up run folders of the alignment study."""

import functools

import pytest
from tests.studies.alignment.report.material import VARIANTS as ALIGNMENTS
from tests.studies.alignment.report.material import AlignmentPlan, write_alignment_run

from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import read_run


@pytest.fixture
def alignment_run(tmp_path):
    """A function from the differences to a default plan of an alignment study to its run folder."""

    def make(keep=lambda _row: True, facts=None, rows=None, **changes):
        path = tmp_path / f"alignment{len(list(tmp_path.iterdir()))}"
        return write_alignment_run(path, AlignmentPlan(**changes), keep=keep, changes=facts, rows=rows)

    return make


@pytest.fixture
def alignment_evidence(alignment_run):
    """A function from the differences to a default plan of an alignment study to its evidence."""
    return lambda **changes: evidence_of(read_run(alignment_run(**{"gallery": 0} | changes)))


@pytest.fixture(scope="session")
def alignment_text(tmp_path_factory):
    """The page of each variant of an alignment study, by name; built once, for tests that only read."""

    @functools.cache
    def text(name="whole"):
        folder = write_alignment_run(tmp_path_factory.mktemp("alignment") / "run", AlignmentPlan(**ALIGNMENTS[name]))
        return build_report(folder).read_text()

    return text
