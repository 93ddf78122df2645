import importlib
import math

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from heatcheck.core.errors import InputError, ModelError
from heatcheck.training.fit import Epoch, FitSettings, _groups, _Schedule, fit
from heatcheck.training.labels import masked_cross_entropy

SETTINGS = FitSettings(epochs=3, batch_size=4, learning_rate=0.05, weight_decay=0.1, seed=5)


def examples(seed, count, noise=0.0):
    """Points whose first label says whether they lie to the right, and whose second is sometimes unknown."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(count, 3, generator=generator)
    labels = (points[:, :2] + noise * torch.randn(count, 2, generator=generator) > 0).float()
    labels[::5, 1] = math.nan
    return TensorDataset(points, labels)


DATA = examples(1, 18), examples(2, 10)


def network(seed=3):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 2))


def fitted(path, settings=SETTINGS, data=DATA, tick=lambda *_: None):
    module = network()
    history = fit(module, data, settings, path, tick)
    return module, history


def same_weights(one, other):
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(first, second) for first, second in pairs)


def validation_loss(module, data=DATA[1]):
    with torch.no_grad():
        points, labels = data.tensors
        batches = zip(points.split(4), labels.split(4), strict=True)
        losses = [(masked_cross_entropy(module(x), y).item(), len(x)) for x, y in batches]
    return sum(loss * count for loss, count in losses) / len(points)


def test_same_seed_gives_identical_weights_whatever_the_global_seed_is(tmp_path):
    torch.manual_seed(1)
    first, history = fitted(tmp_path / "one.ckpt")
    torch.manual_seed(2)
    second, again = fitted(tmp_path / "two.ckpt")
    assert same_weights(first, second)
    assert history == again
    assert not same_weights(first, network())


def test_another_seed_gives_other_weights(tmp_path):
    first, _ = fitted(tmp_path / "one.ckpt")
    second, _ = fitted(tmp_path / "two.ckpt", FitSettings(3, 4, 0.05, 0.1, seed=6))
    assert not same_weights(first, second)


def test_global_randomness_is_left_as_it_was(tmp_path):
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    fitted(tmp_path / "state.ckpt")
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("last_step", [2, 4, 6, 11])
def test_interrupted_fit_continues_to_the_same_weights(tmp_path, last_step):
    """Each epoch has 4 steps: the fit is stopped inside the first epoch, at its end, and later."""

    def stop(step, *_):
        if step == last_step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(tmp_path / "state.ckpt", tick=stop)
    assert (tmp_path / "state.ckpt").exists() == (last_step > 4)
    steps = []
    continued, history = fitted(tmp_path / "state.ckpt", tick=lambda step, *_: steps.append(step))
    whole, expected = fitted(tmp_path / "whole.ckpt")
    assert same_weights(continued, whole)
    assert history == expected
    assert steps[0] == 1 + 4 * ((last_step - 1) // 4)


def test_finished_fit_is_not_done_again(tmp_path):
    whole, expected = fitted(tmp_path / "state.ckpt")
    again, history = fitted(tmp_path / "state.ckpt", tick=lambda *_: pytest.fail("a step was taken"))
    assert same_weights(again, whole)
    assert history == expected


def test_state_holds_nothing_that_could_be_executed_and_no_temporary_file_stays(tmp_path):
    fitted(tmp_path / "state.ckpt")
    assert [path.name for path in tmp_path.iterdir()] == ["state.ckpt"]
    assert len(torch.load(tmp_path / "state.ckpt", weights_only=True)["history"]) == 3


def test_weights_of_the_best_epoch_are_kept(tmp_path):
    # a few noisy examples and a high rate: the validation loss rises in the end
    settings = FitSettings(epochs=8, batch_size=4, learning_rate=0.3, weight_decay=0.0, seed=2)
    data = examples(1, 12, noise=2.0), examples(2, 10, noise=2.0)
    module, history = fitted(tmp_path / "state.ckpt", settings, data)
    losses = [epoch.validation_loss for epoch in history]
    assert losses.index(min(losses)) < len(losses) - 1
    assert validation_loss(module, data[1]) == pytest.approx(min(losses), rel=1e-5)
    assert not module.training


def test_history_counts_epochs_and_the_loss_falls(tmp_path):
    _, history = fitted(tmp_path / "state.ckpt", FitSettings(10, 4, 0.05, 0.0))
    assert [epoch.epoch for epoch in history] == list(range(10))
    assert all(isinstance(epoch, Epoch) for epoch in history)
    assert history[-1].training_loss < history[0].training_loss
    assert min(epoch.validation_loss for epoch in history) < validation_loss(network().eval())


def test_tick_hears_of_every_step_with_its_loss(tmp_path):
    heard = []
    _, history = fitted(tmp_path / "state.ckpt", tick=lambda *step: heard.append(step))
    assert [(step, steps) for step, steps, _ in heard] == [(step, 12) for step in range(1, 13)]
    for epoch in history:
        losses = [loss for _, _, loss in heard[4 * epoch.epoch : 4 * epoch.epoch + 4]]
        assert epoch.training_loss == pytest.approx(sum(losses) / 4)


def test_epochs_visit_the_examples_in_new_orders_without_the_incomplete_batch(tmp_path):
    visited = []

    class Watched(TensorDataset):
        def __getitem__(self, index):
            visited.append(index)
            return super().__getitem__(index)

    fitted(tmp_path / "state.ckpt", data=(Watched(*DATA[0].tensors), DATA[1]))
    epochs = [visited[start : start + 16] for start in range(0, len(visited), 16)]
    assert len(epochs) == 3
    assert all(len(set(epoch)) == 16 for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_learning_rate_worked_by_hand():
    schedule = _Schedule(FitSettings(1, 1, learning_rate=0.1, weight_decay=0, warm_up=0.2), first=0, steps=20)
    rates = [schedule.rate(step) for step in range(20)]
    assert rates[:4] == pytest.approx([0.025, 0.05, 0.075, 0.1])
    assert rates[4] == pytest.approx(0.1)
    assert rates[12] == pytest.approx(0.05)  # half of the cosine
    assert rates[8] == pytest.approx(0.1 * (1 + math.cos(math.pi / 4)) / 2)
    assert 0 < rates[19] < 0.002
    assert rates[4:] == sorted(rates[4:], reverse=True)


def test_later_epoch_goes_on_where_the_schedule_was():
    settings = FitSettings(2, 1, learning_rate=0.1, weight_decay=0)
    whole, second = _Schedule(settings, 0, 20), _Schedule(settings, 10, 20)
    assert [second.rate(step) for step in range(10)] == [whole.rate(step) for step in range(10, 20)]


def test_fit_of_a_single_step_has_a_rate():
    assert _Schedule(FitSettings(1, 1, 0.1, 0), 0, 1).rate(0) == pytest.approx(0.1)


def test_optimizer_follows_the_schedule(tmp_path, monkeypatch):
    rates = []
    step = torch.optim.AdamW.step

    def watched(self, *arguments, **options):
        rates.append({group["lr"] for group in self.param_groups})
        return step(self, *arguments, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
    fitted(tmp_path / "state.ckpt")
    schedule = _Schedule(SETTINGS, 0, 12)
    assert rates == [{schedule.rate(at)} for at in range(12)]


def test_only_matrices_decay():
    groups = _groups(network(), 0.3)
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]
    assert {parameter.ndim for parameter in groups[0]["params"]} == {2}
    assert {parameter.ndim for parameter in groups[1]["params"]} == {1}
    assert sum(len(group["params"]) for group in groups) == len(list(network().parameters()))


def test_fewer_examples_than_a_batch_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="3 examples do not fill a batch of 4; lower the batch size"):
        fitted(tmp_path / "state.ckpt", data=(examples(1, 3), DATA[1]))
    assert not list(tmp_path.iterdir())


def test_fit_that_diverges_from_the_start_is_an_error_and_a_later_good_epoch_saves_it(tmp_path, monkeypatch):
    def losses(values):
        answers = iter(values)
        monkeypatch.setattr(importlib.import_module("heatcheck.training.fit"), "_validate", lambda *_: next(answers))

    losses([math.nan] * 3)
    with pytest.raises(ModelError, match="the loss was never a number; lower the learning rate"):
        fitted(tmp_path / "bad.ckpt")
    losses([math.nan, 0.7, 0.9])
    late, _ = fitted(tmp_path / "late.ckpt")
    losses([0.8, 0.7, 0.9])
    expected, _ = fitted(tmp_path / "expected.ckpt")
    assert same_weights(late, expected)
