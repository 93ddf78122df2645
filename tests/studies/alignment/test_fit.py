"""The objective of the alignment study in the fit loop."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
import torch
from tests.studies.alignment.objective_material import classifier_of, examples, method_of, three_layers
from torch import nn
from torch.utils.data import TensorDataset

from heatcheck.core.errors import DivergedError, InputError
from heatcheck.studies.alignment.objective import AlignmentObjective
from heatcheck.training import FitSettings, Job, Machine, fit
from heatcheck.training.map_loss import map_loss
from heatcheck.training.selection import best_checks

HERE = Machine()


@dataclass
class Best:
    """Keeps the weights of the check with the lowest loss in memory."""

    by: tuple[str, ...] = ()
    state: Mapping[str, torch.Tensor] | None = None

    def judged(self, answers, labels):
        assert answers.shape == labels.shape
        return {}

    def keep(self, history, module):
        if best_checks(history, (), 1) == [history[-1]]:
            self.state = {name: value.clone() for name, value in module.state_dict().items()}


def job_of(path, name="smooth_grad", module=None, data=None, **changes):
    path.mkdir(exist_ok=True)
    classifier = classifier_of(module or three_layers(nn.ReLU, double=False))
    method = method_of(name) if name else None
    objective = AlignmentObjective(classifier, (2, 0), method=method, seed=9, at_once=2, **changes)
    settings = FitSettings(epochs=3, batch_size=4, learning_rate=0.02, schedule="constant", clip=0.5, seed=4)
    training, chosen_by = data or (TensorDataset(*examples(12, torch.float32, seed)) for seed in (1, 2))
    return Job(classifier.module, objective, training, chosen_by, settings, path / "state.ckpt", Best())


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_stopped_fit_ends_with_the_same_weights(tmp_path, precision):
    machine = Machine(precision=precision)

    def stop(step, *_):
        if step == 5:
            raise KeyboardInterrupt

    whole = job_of(tmp_path / "whole", softplus=3.0)
    history = fit(whole, machine, lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        fit(job_of(tmp_path / "stopped", softplus=3.0), machine, stop)
    again = job_of(tmp_path / "stopped", softplus=3.0)
    steps = []
    assert fit(again, machine, lambda step, *_: steps.append(step)) == history
    assert steps[0] == 4
    assert same(again.module.state_dict(), whole.module.state_dict())
    assert all(check.validation_loss > 0 for check in history)


def test_maps_move_towards_the_masks_or_away_from_them(tmp_path):
    losses = {}
    for direction in ("align", "misalign"):
        job = job_of(tmp_path / direction, "grad_cam", direction=direction)
        job = replace(job, settings=replace(job.settings, epochs=25))
        history = fit(job, HERE, lambda *_: None)
        assert min(check.validation_loss for check in history) < history[0].validation_loss
        images, labels, masks, *_ = job.training.tensors
        there = labels[:, 0] == 1
        targets = torch.full((int(there.sum()), 1), 2)
        values = method_of("grad_cam")(job.objective.classifier, images[there], targets, [0] * len(targets)).values
        losses[direction] = map_loss(values, masks[there, :1], "align").mean().item()
    assert losses["align"] < losses["misalign"]


def test_loss_that_is_no_number_stops_the_fit_and_says_so(tmp_path):
    images, labels, masks, marked, numbers = examples(12, torch.float32)
    masks[0] = torch.nan
    bad, good = TensorDataset(images, labels, masks, marked, numbers), TensorDataset(*examples(12, torch.float32, 2))
    with pytest.raises(DivergedError, match=r"the loss was no longer a number in step [1-3]; lower the learning rate"):
        fit(job_of(tmp_path / "aligned", "gradient", data=(bad, good)), HERE, lambda *_: None)
    fit(job_of(tmp_path / "control", "", data=(bad, good)), HERE, lambda *_: None)  # looks at no mask


def test_image_that_cannot_be_read_takes_no_part(tmp_path):
    images, labels, masks, marked, numbers = examples(12, torch.float32)
    states = []
    for number, lost in enumerate((torch.nan, torch.nan)):
        images[2] = lost
        masks[2] = number
        job = job_of(
            tmp_path / str(number), "gradient", data=[TensorDataset(images, labels, masks, marked, numbers)] * 2
        )
        history = fit(job, HERE, lambda *_: None)
        states.append(job.module.state_dict())
    assert sum(check.unreadable for check in history) == 3
    assert same(*states)


def test_control_and_aligned_networks_see_the_same_batches_and_part_by_the_map_alone(tmp_path):
    jobs = [job_of(tmp_path / str(number), name) for number, name in enumerate(("", "gradient"))]
    for job in jobs:
        fit(job, HERE, lambda *_: None)
    assert not same(jobs[0].module.state_dict(), jobs[1].module.state_dict())
    nothing = job_of(tmp_path / "nothing", "gradient", alpha=0.0)
    fit(nothing, HERE, lambda *_: None)
    assert same(nothing.module.state_dict(), jobs[0].module.state_dict())


def test_statistics_of_batch_norm_are_the_bases_to_the_end(tmp_path):
    module = three_layers(nn.ReLU, double=False)
    module[1] = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(inplace=True), nn.Dropout(0.5))
    before = {name: value.clone() for name, value in module.named_buffers()}
    job = job_of(tmp_path, "gradient", module)
    fit(job, HERE, lambda *_: None)
    assert same(dict(module.named_buffers()), before)
    assert job.keeper.state is not None


def test_precision_that_would_lose_gradients_is_refused(tmp_path):
    with pytest.raises(InputError, match="16-mixed scales the loss"):
        fit(job_of(tmp_path), Machine(precision="16-mixed"), lambda *_: None)
