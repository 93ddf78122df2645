"""Fixtures that write made-up run folders of the triggers study."""

import functools

import pytest
from tests.studies.triggers.report.material import VARIANTS, TriggerPlan, write_trigger_run

from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import read_run


def flat(blocks):
    """The blocks with those inside folds."""
    return [inner for block in blocks for inner in (block, *(flat(block.blocks) if block.kind == "fold" else ()))]


@pytest.fixture
def trigger_run(tmp_path):
    """A function from the differences to a default plan of a trigger study to its run folder."""

    def make(keep=lambda _row: True, facts=None, rows=None, **changes):
        path = tmp_path / f"triggers{len(list(tmp_path.iterdir()))}"
        return write_trigger_run(path, TriggerPlan(**changes), keep=keep, changes=facts, rows=rows)

    return make


@pytest.fixture(scope="session")
def usual_triggers(tmp_path_factory):
    """The evidence of the default plan, without pictures."""
    folder = write_trigger_run(tmp_path_factory.mktemp("triggers") / "run", TriggerPlan(gallery=0))
    return evidence_of(read_run(folder))


@pytest.fixture
def trigger_evidence(trigger_run, usual_triggers):
    """A function from the differences to a default plan of a trigger study to its evidence."""
    return lambda **changes: (
        evidence_of(read_run(trigger_run(**{"gallery": 0} | changes))) if changes else usual_triggers
    )


@pytest.fixture(scope="session")
def trigger_text(tmp_path_factory):
    """The page of each variant of a trigger study, by name; built once, for tests that only read."""

    @functools.cache
    def text(name="whole"):
        folder = write_trigger_run(tmp_path_factory.mktemp("triggers") / "run", TriggerPlan(**VARIANTS[name]))
        return build_report(folder).read_text()

    return text
