"""What trainings cost, counted by hand."""

import io
import json
import time

import pytest
import torch
from tests.conftest import small_cnn
from tests.fitting.material import PROTOCOL, SMALL, training_spec

from heatcheck.fitting import cost
from heatcheck.fitting.cost import FitSize, PlannedFit, StepSeconds, fits_to_do, step_seconds, training_cost
from heatcheck.fitting.spec import FitPart, planned
from heatcheck.fitting.train import train
from heatcheck.models import Preprocessing
from heatcheck.running.cost import Work
from heatcheck.running.progress import Lines
from heatcheck.training import Machine

pytestmark = pytest.mark.usefixtures("plain_curves")


@pytest.fixture
def measured(monkeypatch):
    """A machine on which an image takes a second to learn from, a tenth to answer, and a hundredth to read."""
    monkeypatch.setattr(cost, "step_seconds", lambda *_: StepSeconds(1.0, 0.1))
    monkeypatch.setattr(cost, "reading_seconds", lambda *_: 0.01)


def test_a_fit_goes_through_full_batches_and_checks_as_often_as_it_is_told():
    part = FitPart(epochs=3, batch_size=8)
    plain = FitSize(part, training=30, validation=10)  # three batches of 8 in each epoch
    assert (plain.steps, plain.learned, plain.judged) == (9, 72, 30)
    assert FitSize(part, 30, 10, check_every=2).judged == 50  # after steps 2, 4, 6, 8, and at the end
    assert plain.seconds(StepSeconds(2.0, 0.5)) == 72 * 2.0 + 30 * 0.5


def test_a_fit_that_has_begun_costs_what_is_left(tmp_path):
    size = FitSize(FitPart(epochs=3, batch_size=8), 30, 10)
    state = tmp_path / "a.ckpt"
    torch.save({"history": [{"step": 3}, {"step": 6}]}, state)
    fits = [PlannedFit(size, 90.0, state), PlannedFit(size, 90.0, tmp_path / "b.ckpt")]
    assert fits_to_do(fits) == Work(2, "network", "to train for 3 epochs of 30 images", (30.0 + 90.0) / 2)


def test_a_step_is_measured_within_a_moment():
    contract = Preprocessing(outputs=("a", "b", "c"), size=(24, 32), channels=2)
    before, begun = torch.get_rng_state(), time.process_time()
    found = step_seconds(small_cnn(2, 2, 3), contract, FitPart(batch_size=4), "ignore")
    assert time.process_time() - begun < 3
    assert found.learn > 0
    assert found.judge > 0
    assert torch.equal(before, torch.get_rng_state())


def test_the_update_of_the_weights_is_shared_by_the_images_of_a_step(monkeypatch):
    """A network of 60 million weights is updated in the time that it takes to learn from two images."""
    monkeypatch.setattr(cost, "seconds_per_image", lambda run, *_, **__: 8.0 if run.__name__ == "update" else 1.0)
    contract = Preprocessing(outputs=("a", "b", "c"), size=(24, 32), channels=2)
    assert step_seconds(small_cnn(2, 2, 3), contract, FitPart(batch_size=16), "ignore") == StepSeconds(1.5, 1.0)


def test_images_to_measure_prepare_learn_from_and_test_are_counted(tmp_path, measured):
    plan = planned(training_spec(tmp_path, SMALL))
    works = training_cost(plan, tmp_path, Machine(workers=2), ["ignore-1"]).works
    assert works == [
        Work(24, "image", "to measure", 0.01),
        Work(24 + 8, "image", "to prepare", 0.01, disk=2.0 * 32 * 32 * 32),
        Work(1, "network", "to train for 2 epochs of 24 images", 2 * 24 * 1.0 + 2 * 8 * 0.1),
        Work(12, "image", "to test", 0.1 + 0.01),
    ]


def test_an_ensemble_is_tested_with_all_its_members(tmp_path, measured):
    plan = planned(training_spec(tmp_path, PROTOCOL))
    *_, trained, tested = training_cost(plan, tmp_path, Machine(workers=1), ["a", "b", "c", "d"]).works
    assert trained.count == 4
    # the best alone, and of 2 strategies · 2 runs · 2 checkpoints at most all, twice
    assert tested.each == pytest.approx((1 + 8 + 8) * 0.1 + 0.01)


def test_training_says_what_it_costs_before_it_starts_and_what_is_left_when_it_goes_on(tmp_path):
    spec = training_spec(tmp_path, SMALL, runs=2)
    first, second, third = (io.StringIO() for _ in range(3))
    train(spec, tmp_path / "out", Lines(first))
    line = first.getvalue().splitlines()[0]
    assert line.startswith("Less than a minute on this machine")
    assert line.endswith("12 images to test (below 1 s).")
    assert "2 networks to train for 2 epochs of 24 images" in line
    (tmp_path / "out" / "runs" / "ignore-2.json").unlink()
    train(spec, tmp_path / "out", Lines(second))
    line = second.getvalue().splitlines()[0]
    assert "1 network to train for 2 epochs of 24 images" in line
    assert "to prepare" not in line
    train(spec, tmp_path / "out", Lines(third))
    assert "on this machine" not in third.getvalue()
    assert len(json.loads((tmp_path / "out" / "runs" / "ignore-2.json").read_text())) == 2
