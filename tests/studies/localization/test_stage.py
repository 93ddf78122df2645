"""Which model a shard belongs to, who speaks for readers and truth, and what one model's failure costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from heatcheck.core.errors import CaseError
from heatcheck.core.geometry import place
from heatcheck.core.records import Case, CaseKey, Reading
from heatcheck.explaining.batch import Explained, GridMaps
from heatcheck.explaining.ensemble import EnsembleExplainer
from heatcheck.explaining.study_models import Split
from heatcheck.regions.rule import RegionRule
from heatcheck.runs.spec import Envelope
from heatcheck.runs.store import RunFolder
from heatcheck.scoring.rows import ScoringRule
from heatcheck.studies.localization.stage import ScoringStage, cases_per_call

TRUTH = np.zeros((6, 6), bool)
TRUTH[1:3, 1:4] = True
KEYS = [CaseKey(f"c{n}", f"p{n}", {"f": 1.0}) for n in range(5)]
RULE = ScoringRule(("iou", "hit"), RegionRule())


class Films:
    """Five films with one finding each; the fourth is damaged."""

    findings = ("f",)

    def index(self):
        return KEYS

    def load(self, key):
        if key.case == "c3":
            raise CaseError("the film is damaged")
        reading = Reading("reader", {"f": TRUTH}, {})
        return Case(key, np.zeros((1, 6, 6), np.float32), {"f": TRUTH}, (reading,), instances={"f": 4})


@dataclass(frozen=True)
class Pointer:
    """Points at the truth, and fails on some cases."""

    fails: tuple[str, ...] = ()
    findings: tuple[str, ...] = ("f",)
    methods: Mapping[str, object] = field(default_factory=dict)

    def __call__(self, cases):
        if any(case.key.case in self.fails for case in cases):
            raise CaseError("the model's output is not finite", stage="model")
        grid = torch.from_numpy(TRUTH.astype(np.float32))[None]
        at = place((6, 6), (6, 6), "stretch")
        return [Explained(case, (1.0,), (0.7,), {"cam": GridMaps(grid)}, at) for case in cases], {"cam": 0.5}


@pytest.fixture
def stage():
    explainers = {"first": Pointer(), "second": Pointer(fails=("c1",))}
    return ScoringStage(
        "", "maps", Split("scored", Films(), KEYS), dict.fromkeys(explainers, RULE), explainers.__getitem__,
        Envelope(study="localization", shard_size=3, batch_size=2, keep_maps="all"), 1,
    )  # fmt: skip


def test_a_shard_belongs_to_one_model_and_every_case_meets_every_model(stage):
    assert stage.shards == 4
    assert [part.group for part in stage.parts] == ["first", "first", "second", "second"]
    assert [stage.cases_in(shard) for shard in range(4)] == [3, 2, 3, 2]
    tables = [stage.work(shard) for shard in range(4)]
    assert {row.model for row in tables[0].scores} == {"first", ""}
    assert {row.model for row in tables[2].scores} == {"second"}
    assert {row.model for row in (*tables[3].predictions, *tables[3].timings)} == {"second"}


class Together(EnsembleExplainer):
    """Notes how many cases each call is given."""

    def __init__(self):
        object.__setattr__(self, "calls", [])
        object.__setattr__(self, "findings", ("f",))

    def __call__(self, cases):
        self.calls.append(len(cases))
        return Pointer()(cases)


def test_an_ensemble_explains_a_shard_in_one_call_and_a_network_in_batches(stage):
    ensemble = Together()
    replace(stage, explainer=lambda _: ensemble).work(0)
    assert ensemble.calls == [3]  # of batches of two: its members are read once
    assert [cases_per_call(ensemble, size) for size in (1, 3, 8, 16, 50)] == [16, 15, 16, 16, 50]
    assert cases_per_call(Pointer(), 2) == 2


def test_the_first_model_speaks_for_readers_and_truth(stage):
    first, second = stage.work(0), stage.work(2)
    assert {row.method for row in first.scores} == {"cam", "human"}
    assert {row.method for row in second.scores} == {"cam"}
    assert [(row.case, row.instances, row.components) for row in first.shapes] == [(f"c{n}", 4, 1) for n in range(3)]
    assert second.shapes == ()


def test_kept_maps_of_several_models_have_different_names(stage):
    assert set(stage.work(0).maps) == {f"first/c{n}/f/cam" for n in range(3)}


def test_a_case_that_one_model_fails_on_is_recorded_once_and_names_the_model(stage, tmp_path):
    with RunFolder.locked(tmp_path / "run", {}, {}) as folder:
        for shard in range(stage.shards):
            folder.write_shard(shard, stage.work(shard))
        folder.join_shards(stage.shards)
        cases, scores = folder.read_table("cases"), folder.read_table("scores")
    assert cases["case"].tolist() == ["c0", "c1", "c2", "c3", "c4"]
    assert cases["status"].tolist() == ["ok", "failed", "ok", "failed", "ok"]
    assert cases["reason"].tolist()[1] == "model second: the model's output is not finite"
    assert cases["reason"].tolist()[3] == "the film is damaged"
    assert set(scores.query("case == 'c1'")["model"]) == {"first", ""}
