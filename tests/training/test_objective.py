import math
from dataclasses import dataclass, field

import pytest
import torch
from tests.training.fit_material import DATA, job
from torch.utils.data import TensorDataset

from heatcheck.core.errors import DivergedError, InputError, ModelError
from heatcheck.training.fit import fit, steps_done
from heatcheck.training.machine import Machine
from heatcheck.training.objective import LabelObjective, LossTerm, ValidationBatch, mean_loss

HERE = Machine()
NUMBERED = tuple(TensorDataset(*data.tensors, torch.arange(len(data))) for data in DATA)  # each example has a number


@dataclass
class Watched:
    """Learns from labels and records every batch; some steps fail."""

    stops_at_nan: bool = True
    bad_loss: int = -1
    bad_gradient: int = -1
    wrong: float = math.nan
    learned: list = field(default_factory=list)
    judged: list = field(default_factory=list)

    def check(self, machine):
        if machine.precision == "16-mixed":
            raise InputError("not so coarse")

    def learn(self, means, batch):
        images, labels, numbers = batch
        self.learned.append((means.step, images, labels, numbers))
        loss = LabelObjective().learn(means, (images, labels))
        if means.step == self.bad_gradient:
            next(means.network.parameters()).grad.fill_(self.wrong)
        return self.wrong if means.step == self.bad_loss else loss

    def judge(self, means, batch):
        assert not means.network.training
        assert not torch.is_grad_enabled()
        images, labels, numbers = batch
        self.judged += [(means.step, number) for number in numbers.tolist()]
        return ValidationBatch((LossTerm(float(numbers.sum()), len(numbers)), LossTerm(1.0, 2)), images[:, :2], labels)


def test_loss_of_the_validation_data_adds_the_means_of_its_parts():
    nothing = torch.zeros(0, 1)
    batches = [((1.0, 2), (4.0, 1), (0.0, 0)), ((5.0, 1), (0.0, 0), (0.0, 0))]
    every = [ValidationBatch(tuple(LossTerm(*part) for part in parts), nothing, nothing) for parts in batches]
    assert mean_loss(every) == pytest.approx(6 / 3 + 4 / 1 + 0)


def test_objective_gets_whatever_the_examples_carry(tmp_path):
    objective = Watched()
    history = fit(job(tmp_path, NUMBERED, objective=objective), HERE, lambda *_: None)
    assert [step for step, *_ in objective.learned] == list(range(12))
    for _, images, labels, numbers in objective.learned:
        for here, there in zip((images, labels), NUMBERED[0].tensors, strict=False):
            torch.testing.assert_close(here, there[numbers], equal_nan=True)
    assert objective.judged == [(step, number) for step in (4, 8, 12) for number in range(10)]
    assert [check.validation_loss for check in history] == [pytest.approx(4.5 + 0.5)] * 3
    assert all(check.auroc.keys() == {"right"} for check in history)


def test_unreadable_image_keeps_its_other_parts_and_loses_its_labels(tmp_path):
    points, labels, numbers = (tensor.clone() for tensor in NUMBERED[0].tensors)
    points[3] = math.nan
    objective = Watched()
    fit(
        job(tmp_path, (TensorDataset(points, labels, numbers), NUMBERED[1]), objective=objective), HERE, lambda *_: None
    )
    unread = [
        (image, label)
        for _, images, given, numbers in objective.learned
        for image, label, number in zip(images, given, numbers, strict=True)
        if number == 3
    ]
    assert unread
    assert all((image == 0).all() and label.isnan().all() for image, label in unread)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("where", ["bad_loss", "bad_gradient"])
def test_a_loss_or_gradient_that_is_not_finite_ends_the_fit_at_once(tmp_path, where, wrong):
    objective = Watched(**{where: 6}, wrong=wrong)
    task = job(tmp_path, NUMBERED, objective=objective)
    with pytest.raises(DivergedError, match="the loss was no longer a number in step 7; lower the learning rate"):
        fit(task, HERE, lambda *_: None)
    assert len(objective.learned) == 7
    assert steps_done(task.state_file) == 4
    assert all(weight.isfinite().all() for weight in task.module.parameters())


def test_an_objective_that_does_not_ask_for_it_continues_after_a_loss_that_is_not_finite(tmp_path):
    history = fit(job(tmp_path, NUMBERED, objective=Watched(stops_at_nan=False, bad_loss=2)), HERE, lambda *_: None)
    assert [math.isnan(check.training_loss) for check in history] == [True, False, False]


def test_objective_may_refuse_a_machine_before_the_first_step(tmp_path):
    objective = Watched()
    with pytest.raises(InputError, match="not so coarse"):
        fit(job(tmp_path, NUMBERED, objective=objective), Machine(precision="16-mixed"), lambda *_: None)
    assert not objective.learned


def test_diverged_fit_is_a_fault_of_the_model():
    assert issubclass(DivergedError, ModelError)
