"""What an alignment study costs, counted by hand."""

import numpy as np
import pytest
import torch
from tests.studies.alignment.squares_material import FINDINGS, write_alignment, write_films
from torch import nn

from heatcheck.core.records import ShardTables
from heatcheck.explaining.cost import PassSeconds
from heatcheck.fitting.cost import StepSeconds
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.runs.store import RunFolder
from heatcheck.studies.alignment import cost
from heatcheck.studies.alignment.cost import Split, copies_of
from heatcheck.studies.alignment.plan import plan_alignment
from heatcheck.studies.alignment.reliance import Probe, RelianceSettings, drops

TRUSTED = RunOptions(trust_code=True, workers=1)


@pytest.fixture
def measured(monkeypatch):
    """A machine on which a forward pass takes a second, and a backward pass ten."""
    monkeypatch.setattr(cost, "pass_seconds", lambda *_, **__: PassSeconds(1.0, 10.0))
    monkeypatch.setattr(cost, "_seconds_to_score", lambda _: 0.0)


def works_of(folder, finished=(), options=TRUSTED, **changes):
    plan = plan_alignment(read_spec(str(write_alignment(folder, **changes))), options, folder / "run")
    with RunFolder.locked(folder / "run", {}, {}) as run:
        for shard in finished:
            run.write_shard(shard, ShardTables())
        return plan, plan.cost(run).works


def test_networks_and_what_is_measured_on_them_are_counted(tmp_path, measured):
    changes = {"seeds": 1, "methods": ["gradient"], "judged": [], "findings": [FINDINGS[0]], "selection": 0.25}
    plan, (prepared, bases, tuned) = works_of(tmp_path, **changes)
    assert (prepared.count, prepared.disk) == (24 + 16, 4 * 40 * 24 * 24)
    counts = {name: Split.of(plan.sources[name], plan.findings, None) for name in ("finetune", "evaluation")}
    shown, learned = (counts[name].positives[FINDINGS[0]] for name in ("evaluation", "finetune"))
    assert 0 < shown < 16
    # two shifts and two films: 3 · (1 + 3 · 3) copies, and two put together from each film
    copies = 3 * 10 + 4
    answers = 16 + shown * copies
    maps = 1 + 10  # a gradient
    assert (bases.count, bases.each) == (1, answers + shown * maps + 3 * answers)
    # 18 images fill two batches of 8 in each of two epochs, and 6 choose the checkpoint: one control, two aligned
    images, measured_maps = 3 * 2 * 16 + 2 * 6, answers + (shown + 0.75 * learned) * maps
    assert tuned.count == 3
    assert tuned.seconds == pytest.approx(3 * (images + measured_maps) + 2 * images * learned / 24 * maps)


def test_a_continued_run_counts_what_is_left(tmp_path, measured):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    _, (_, bases, tuned) = works_of(tmp_path / "first")
    assert (bases.count, tuned.count) == (1, 2 * 2 * 5)  # findings, seeds, a control and two arms of two methods
    _, (_, bases, tuned) = works_of(tmp_path / "second", finished=[0, 1, 2])
    assert (bases.count, tuned.count) == (0, 19)


class Sum(nn.Module):
    """Adds up the pixels, and counts the images that it sees."""

    images = 0

    def forward(self, images):
        self.images += len(images)
        return images.flatten(1).sum(1, keepdim=True)


def test_copies_are_those_that_reliance_is_measured_on():
    settings = RelianceSettings(shifts=3, films=2)
    mask = np.zeros((16, 16), bool)
    mask[2:5, 2:5] = True
    picture, *films = torch.rand(3, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    network = Sum()
    contract = Preprocessing(outputs=("a",), size=(16, 16), channels=1)
    drops(NetworkClassifier("sum", network, contract), [0], [Probe(picture, mask, films, 1)], settings)
    assert copies_of(settings) == network.images


def test_bases_that_are_trained_are_counted(tmp_path, measured, monkeypatch):
    monkeypatch.setattr(cost, "step_seconds", lambda *_: StepSeconds(2.0, 0.5))
    part = {
        "training": write_films(tmp_path, "training", 20),
        "validation": write_films(tmp_path, "validation", 6),
        "fit": {"epochs": 2, "batch_size": 8},
        "seeds": 3,
    }
    random = [{"name": "random", "channels": 1}]
    changes = {"models": ["densenet_compact"], "size": [32, 32], "initialisations": random, "base": part}
    _, (_, prepared, trained, measured_bases, _) = works_of(tmp_path, **changes, methods=["gradient"], judged=[])
    assert prepared.count == 26
    assert (trained.count, trained.doing) == (3, "to train as a base for 2 epochs of 20 images")
    assert trained.each == 2 * 16 * 2.0 + 2 * 6 * 0.5
    assert measured_bases.count == 3
