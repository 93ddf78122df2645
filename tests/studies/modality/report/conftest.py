"""Fixtures that write made-up run folders of the modality study."""

import functools

import pytest
from tests.studies.modality.report.material import VARIANTS as MODALITIES
from tests.studies.modality.report.material import ModalityPlan, write_modality_run

from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import read_run
from heatcheck.studies.modality.report.facts import prepared


@pytest.fixture
def modality_run(tmp_path):
    """A function from the differences to a default plan of a modality study to its run folder."""

    def make(keep=lambda _row: True, facts=None, rows=None, **changes):
        path = tmp_path / f"modality{len(list(tmp_path.iterdir()))}"
        return write_modality_run(path, ModalityPlan(**changes), keep=keep, changes=facts, rows=rows)

    return make


@pytest.fixture
def modality_evidence(modality_run):
    """A function from the differences to a default plan of a modality study to its evidence, as its page sees it."""
    return lambda **changes: prepared(evidence_of(read_run(modality_run(**{"gallery": 0} | changes))))


@pytest.fixture(scope="session")
def modality_text(tmp_path_factory):
    """The page of each variant of a modality study, by name; built once, for tests that only read."""

    @functools.cache
    def text(name="whole"):
        folder = write_modality_run(tmp_path_factory.mktemp("modality") / "run", ModalityPlan(**MODALITIES[name]))
        return build_report(folder).read_text()

    return text
