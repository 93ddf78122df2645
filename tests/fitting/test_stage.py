"""The stage that trains networks: a shard each, with its time and scores, and no state left of those on disk."""

import pytest

from heatcheck.core.records import Score
from heatcheck.fitting.stage import FitStage, FitTask
from heatcheck.training import Check

HISTORY = [Check(2, 0, 0.5, 0.25)]


@pytest.fixture
def stage(tmp_path):
    """Three networks, of which the last one is scored; a fit leaves its state behind."""

    def task(name, **more):
        state = tmp_path / f"{name}.ckpt"

        def fit():
            state.write_text(name)
            return HISTORY

        return FitTask(name, "compact", state, fit, **more)

    def scores(history):
        return [Score("", "", "", "", "compact", "loss", check.validation_loss) for check in history]

    return FitStage([task("a"), task("b"), task("c", scores=scores)])


def states(folder):
    return sorted(path.name for path in folder.glob("*.ckpt"))


def test_each_network_is_a_shard_of_one(stage):
    assert (stage.shards, [stage.cases_in(shard) for shard in range(3)]) == (3, [1, 1, 1])
    assert (stage.name, stage.what) == ("training", "networks")


def test_a_shard_has_the_time_of_its_training_and_the_scores_of_its_history(stage):
    timing = stage.work(1).timings[0]
    assert (timing.shard, timing.step, timing.method, timing.model) == (1, "training", "b", "compact")
    assert timing.seconds > 0
    assert not stage.work(1).scores
    assert [score.value for score in stage.work(2).scores] == [0.25]


def test_the_state_of_a_fit_stays_until_the_next_network_begins(stage, tmp_path):
    stage.work(0)
    assert states(tmp_path) == ["a.ckpt"]  # its shard may not be on disk yet
    stage.work(1)
    assert states(tmp_path) == ["b.ckpt"]
    stage.work(2)
    stage.remove_states()
    assert not states(tmp_path)
