"""What a modality study costs, counted by hand."""

import pytest
from tests.studies.modality.brightness_material import write_modality

from heatcheck.core.records import ShardTables
from heatcheck.explaining.cost import PassSeconds
from heatcheck.fitting.cost import StepSeconds
from heatcheck.fitting.stage import TRAINING
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality import cost
from heatcheck.studies.modality.plan import plan_modality

TRUSTED = RunOptions(trust_code=True, workers=1)
TRAINED = {
    "model": "vgg_bn_compact",
    "size": [16, 16],
    "folds": 2,
    "fit": {"epochs": 3, "batch_size": 2, "hide": 0.5},
    "plain": True,
    "methods": ["gradient", "occlusion"],
}


@pytest.fixture
def measured(monkeypatch):
    """A machine on which a forward pass takes a second, a backward pass ten, and a step twenty an image."""
    monkeypatch.setattr(cost, "pass_seconds", lambda *_, **__: PassSeconds(1.0, 10.0, 0.5))
    monkeypatch.setattr(cost, "step_seconds", lambda *_: StepSeconds(20.0, 1.0))
    monkeypatch.setattr(cost, "read_one", lambda *_: None)


def works_of(folder, options=TRUSTED, finished=(), **changes):
    plan = plan_modality(read_spec(str(write_modality(folder, **changes))), options, folder / "run")
    with RunFolder.locked(folder / "run", {}, {}) as run:
        for name, shard in finished:
            run.within(name).write_shard(shard, ShardTables())
        return {(work.noun, work.doing.split(" by ")[0].split(" for ")[0]): work for work in plan.cost(run).works}


def test_subsets_and_maps_of_a_given_network_are_counted(tmp_path, measured):
    subsets, maps = works_of(tmp_path, methods=["gradient", "random"], removal={"steps": 5, "random": 3}).values()
    assert (subsets.count, subsets.doing) == (12, "to show with 16 subsets of the modalities")
    assert subsets.each == 16 * 2 * 2  # subsets, fills, and modality or lesion
    assert (maps.count, maps.doing) == (12, "to explain by 2 methods")
    # the answer, the gradient, and six answers for each of three random orders and two maps
    assert maps.each == 1 + (1 + 10) + (3 + 2) * 6


def test_networks_of_folds_and_plain_ones_are_counted(tmp_path, measured):
    works = works_of(tmp_path, **TRAINED, removal=None)
    trained = works["network", "to train"]
    # 12 cases in two folds: 6 are tested, one of each class chooses the epoch, and 4 are learned from
    assert (trained.count, trained.each) == (4, 3 * 4 * 20.0 + 3 * 2 * 1.0)
    assert works["image", "to prepare"].count == 12
    assert works["image", "to prepare"].disk == 2 * 12 * 4 * 16 * 16
    subsets = works["case", "to show with 16 subsets of the modalities"]
    assert subsets.count == 24
    assert subsets.seconds == pytest.approx(12 * 16 * 2 * 2 + 12 * 16 * 2)  # of plain networks with one fill
    assert works["case", "to explain"].each == 1 + (1 + 10) + (1 + 64) * 0.5


def test_a_continued_run_counts_what_is_left(tmp_path, measured):
    finished = [(TRAINING, number) for number in range(4)] + [("shapley", 0), ("", 1)]
    works = works_of(tmp_path, **TRAINED, finished=finished)
    assert ("image", "to prepare") not in works
    assert works["network", "to train"].count == 0
    assert works["case", "to show with 16 subsets of the modalities"].count == 24 - 5
    assert works["case", "to explain"].count == 12 - 1  # shards of 5 and 1 in each fold


def test_a_limit_is_counted_and_reading_and_scoring_are_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "pass_seconds", lambda *_, **__: PassSeconds(0.0))
    limited = RunOptions(trust_code=True, limit=4)
    subsets, maps = works_of(tmp_path, limited, keep_maps="all").values()
    assert (subsets.count, maps.count) == (4, 4)
    assert 0 < subsets.each < maps.each < 5
    assert maps.disk == 2 * 4 * 5 * 4 * 16 * 16  # bytes, cases, methods, modalities, pixels
