"""What a trigger study costs, counted by hand."""

import pytest
from tests.studies.triggers.planted_material import SMALL_TRIGGERS, write_study

from heatcheck.core.records import ShardTables
from heatcheck.fitting import cost as fitting
from heatcheck.fitting.cost import StepSeconds
from heatcheck.fitting.stage import TRAINING
from heatcheck.running.cost import Work
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.runs.store import RunFolder
from heatcheck.studies.triggers import cost
from heatcheck.studies.triggers.gate import GateResult
from heatcheck.studies.triggers.plan import plan_triggers

FIT = 2 * 24 * 1.0  # two epochs of three full batches of 8


@pytest.fixture
def measured(monkeypatch):
    """A machine on which an image takes a second to learn from, a tenth to answer, three to explain, five to score."""
    monkeypatch.setattr(cost, "step_seconds", lambda *_: StepSeconds(1.0, 0.1))
    monkeypatch.setattr(fitting, "reading_seconds", lambda *_: 0.01)
    monkeypatch.setattr(cost, "_seconds_of_one", lambda _: (3.0, 5.0))


def works_of(folder, options=RunOptions(workers=2), finished=(), **changes):
    plan = plan_triggers(read_spec(str(write_study(folder, SMALL_TRIGGERS, **changes))), options, folder / "run")
    with RunFolder.locked(folder / "run", {}, {}) as run:
        for name, shard in finished:
            run.within(name).write_shard(shard, ShardTables())
        if (TRAINING, 5) in finished:  # the last network
            run.within(TRAINING).join_shards(6)
        return plan.cost(run).works


def test_images_networks_and_attacked_images_are_counted(tmp_path, measured):
    prepared, trained, attacked, artefacts = works_of(tmp_path)
    assert prepared == Work(24 + 8 + 16, "image", "to prepare", 0.01, disk=2.0 * 48 * 32 * 32)
    # two seeds, each with a baseline and two attacks; these are checked on 6 stamped images too
    baseline, poisoned = FIT + 2 * 8 * 0.1 + 16 * 0.1, FIT + 2 * 14 * 0.1 + 2 * 16 * 0.1
    assert (trained.count, trained.doing) == (6, "to train for 2 epochs of 24 images")
    assert trained.each == pytest.approx((baseline + 2 * poisoned) / 3)
    # half of the 12 test images of other classes, under four attacks, with two models
    assert attacked == Work(24, "attacked image", "to explain by 3 methods with 2 models", 2 * 3.0 + 5.0)
    assert artefacts.count == 0


def test_a_continued_run_counts_what_is_left(tmp_path, measured):
    finished = [(TRAINING, 0), (TRAINING, 1), ("", 0), ("", 1)]
    _, trained, attacked, _ = works_of(tmp_path, finished=finished)
    assert trained.count == 4
    assert attacked.count == 24 - 3  # the first shard has the records, the second three images


def test_once_the_networks_are_trained_the_images_that_their_triggers_send_are_counted(tmp_path, measured, monkeypatch):
    worked, failed = (GateResult(1.0, 1.0, share, 0.0, ("a", "b")) for share in (1.0, 0.2))
    found = {("square-corner-60", 1): worked, ("dynamic-60", 1): failed, ("square-corner-60", 2): worked}
    monkeypatch.setattr(cost, "outcomes", lambda _: found)
    gate = {"attack_success": 0.9}
    finished = [(TRAINING, number) for number in range(6)] + [("", 0), ("", 1)]
    _, trained, attacked, _ = works_of(tmp_path, gate=gate, finished=finished)
    assert trained.count == 0
    assert attacked.count == 2  # of two networks with two images each; the first one's are done


def test_a_limit_is_counted(tmp_path, measured):
    assert works_of(tmp_path, RunOptions(limit=2))[2].count == 2 * 4


def test_maps_and_scores_are_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "step_seconds", lambda *_: StepSeconds(1.0, 0.1))
    attacked = works_of(tmp_path, triggers=["square-corner-60"], seeds=1)[2]
    assert 0 < attacked.each < 5
