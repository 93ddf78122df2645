import importlib
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.training.fit_material import DATA, examples, job, network
from torch.utils.data import TensorDataset

from heatcheck.core.errors import InputError, ModelError
from heatcheck.core.records import UNCERTAIN
from heatcheck.training.fit import fit, steps_done
from heatcheck.training.machine import Machine
from heatcheck.training.schedule import Pace

HERE = Machine()


def fitted(path, tick=lambda *_: None, machine=HERE, **changes):
    """What the fit keeps and its history."""
    path.mkdir(exist_ok=True)
    task = job(path, **changes)
    history = fit(task, machine, tick)
    return task.keeper.states(), history


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(one[file][name], other[file][name]) for file in one for name in one[file])


def test_same_seed_gives_identical_weights_whatever_the_global_seed_is(tmp_path):
    torch.manual_seed(1)
    first, history = fitted(tmp_path / "one", most=9)
    torch.manual_seed(2)
    second, again = fitted(tmp_path / "two", most=9)
    assert same(first, second)
    assert history == again


def test_another_seed_gives_other_weights(tmp_path):
    first, _ = fitted(tmp_path / "one", most=9)
    second, _ = fitted(tmp_path / "two", most=9, seed=6)
    assert not same(first, second)


def test_global_randomness_is_left_as_it_was(tmp_path):
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    fitted(tmp_path)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("check_every", [None, 3])
@pytest.mark.parametrize("last_step", [2, 4, 5, 6, 11])
def test_interrupted_fit_continues_to_the_same_weights(tmp_path, last_step, check_every):
    """Each epoch has 4 steps: the fit is stopped inside an epoch, at its end, before and after checks."""

    def stop(step, *_):
        if step == last_step:
            raise KeyboardInterrupt

    changes = {"check_every": check_every, "most": 9}
    with pytest.raises(KeyboardInterrupt):
        fitted(tmp_path / "stopped", stop, **changes)
    every = check_every or 4
    assert steps_done(tmp_path / "stopped" / "state.ckpt") == last_step // every * every
    steps = []
    continued, history = fitted(tmp_path / "stopped", lambda step, *_: steps.append(step), **changes)
    expected_states, expected = fitted(tmp_path / "whole", **changes)
    assert steps[0] == last_step // every * every + 1
    assert [check.step for check in expected] == ([3, 6, 9, 12] if check_every else [4, 8, 12])
    assert same(continued, expected_states)
    assert history == expected


def test_fit_killed_while_it_stores_weights_continues_to_the_same(tmp_path, monkeypatch):
    folder = importlib.import_module("tests.training.fit_material").Folder
    keep = folder.keep

    def killed(self, history, module):
        keep(self, history, module)
        if len(history) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(folder, "keep", killed)
    with pytest.raises(KeyboardInterrupt):
        fitted(tmp_path / "stopped", check_every=3, most=2)
    monkeypatch.setattr(folder, "keep", keep)
    assert same(
        fitted(tmp_path / "stopped", check_every=3, most=2)[0], fitted(tmp_path / "w", check_every=3, most=2)[0]
    )


def test_a_fit_that_is_rarely_saved_resumes_and_ends_with_the_same_weights(tmp_path):
    def stop(step, *_):
        if step == 9:
            raise KeyboardInterrupt

    seldom = replace(job(tmp_path, most=9), save_every=3600.0)
    with pytest.raises(KeyboardInterrupt):
        fit(seldom, Machine(), stop)
    assert not seldom.state_file.exists()
    assert len(seldom.keeper.states()) == 2  # weights of checks that will be repeated
    again = replace(job(tmp_path, most=9), save_every=3600.0)
    history = fit(again, Machine(), lambda *_: None)
    expected_states, expected = fitted(tmp_path / "whole", most=9)
    assert same(again.keeper.states(), expected_states)
    assert history == expected
    assert steps_done(again.state_file) == 12


def test_finished_fit_is_not_repeated(tmp_path):
    expected_states, expected = fitted(tmp_path)
    again, history = fitted(tmp_path, lambda *_: pytest.fail("a step was taken"))
    assert same(again, expected_states)
    assert history == expected


def test_state_holds_nothing_that_could_be_executed_and_no_temporary_file_stays(tmp_path):
    fitted(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"state.ckpt", "kept"}
    assert len(torch.load(tmp_path / "state.ckpt", weights_only=True)["history"]) == 3


def test_weights_of_the_best_check_are_kept(tmp_path):
    # a few noisy examples and a high rate: the validation loss rises in the end
    data = examples(1, 12, noise=2.0), examples(2, 10, noise=2.0)
    kept, history = fitted(tmp_path, data=data, epochs=8, learning_rate=0.3, weight_decay=0.0, seed=2)
    losses = [check.validation_loss for check in history]
    best = losses.index(min(losses))
    assert best < len(losses) - 1
    assert list(kept) == [f"{history[best].step}.pt"]
    module = network().eval()
    module.load_state_dict(next(iter(kept.values())))
    points, labels = data[1].tensors
    known = labels.isfinite()
    with torch.no_grad():
        loss = torch.nn.functional.binary_cross_entropy_with_logits(module(points)[known], labels[known])
    assert loss.item() == pytest.approx(min(losses), rel=0.05)  # the fit weighs batches, not labels


def test_history_counts_epochs_and_the_loss_falls(tmp_path):
    _, history = fitted(tmp_path, epochs=10, weight_decay=0.0)
    assert [check.epoch for check in history] == list(range(10))
    assert history[-1].training_loss < history[0].training_loss
    assert min(check.validation_loss for check in history) < history[0].validation_loss
    assert all(0 <= check.auroc["right"] <= 1 for check in history)


def test_tick_is_called_after_every_step_with_its_loss_and_the_newest_auroc(tmp_path):
    heard = []
    _, history = fitted(tmp_path, lambda *tick: heard.append(tick))
    assert [step for step, _, _ in heard] == list(range(1, 13))
    for check in history:
        losses = [loss for _, loss, _ in heard[4 * check.epoch : 4 * check.epoch + 4]]
        assert check.training_loss == pytest.approx(sum(losses) / 4)
    assert math.isnan(heard[2][2])
    assert heard[5][2] == history[0].auroc["right"]


def test_two_processes_share_the_examples_and_only_the_first_keeps(tmp_path):
    """The network has no BatchNorm or dropout here: then two halves of a batch equal the full batch."""
    plain = {"clip": None, "data": (TensorDataset(*DATA[0][:]), DATA[1])}
    for path in ("alone", "together"):
        (tmp_path / path).mkdir()
    one, two = (job(tmp_path / path, **plain) for path in ("alone", "together"))
    for task in (one, two):
        task.module[1], task.module[3] = torch.nn.Identity(), torch.nn.Identity()
        task.training.tensors[1].nan_to_num_()  # as many known labels in each half
    heard = []
    alone = fit(one, HERE, lambda *_: None)
    together = fit(two, Machine(devices=2), lambda *tick: heard.append(tick))
    assert [check.step for check in together] == [4, 8, 12]
    assert len(heard) == 12
    for mine, ours in zip(alone, together, strict=True):
        assert ours.training_loss == pytest.approx(mine.training_loss, rel=1e-5)
        assert ours.validation_loss == pytest.approx(mine.validation_loss, rel=1e-5)
    kept = one.keeper.states(), two.keeper.states()
    for name, value in next(iter(kept[0].values())).items():
        torch.testing.assert_close(next(iter(kept[1].values()))[name], value, rtol=1e-4, atol=1e-6)


def test_two_processes_continue_where_they_were_stopped(tmp_path, monkeypatch):
    folder = importlib.import_module("tests.training.fit_material").Folder
    keep = folder.keep

    def failing(self, history, module):
        if len(history) == 2:
            raise RuntimeError("pulled the plug")
        keep(self, history, module)

    two = Machine(devices=2)
    monkeypatch.setattr(folder, "keep", failing)
    with pytest.raises(ModelError, match="pulled the plug"):
        fitted(tmp_path / "stopped", machine=two, check_every=3, most=9)
    monkeypatch.setattr(folder, "keep", keep)
    assert steps_done(tmp_path / "stopped" / "state.ckpt") == 3
    continued, history = fitted(tmp_path / "stopped", machine=two, check_every=3, most=9)
    expected_states, expected = fitted(tmp_path / "whole", machine=two, check_every=3, most=9)
    assert same(continued, expected_states)
    assert history == expected


def test_validation_data_of_which_nothing_can_be_read_are_refused(tmp_path):
    lost = TensorDataset(torch.full_like(DATA[1].tensors[0], math.nan), DATA[1].tensors[1])
    with pytest.raises(InputError, match="none of the validation images can be read"):
        fitted(tmp_path, data=(DATA[0], lost))


def test_failure_in_one_of_several_processes_is_one_sentence(tmp_path):
    task = job(tmp_path, batch_size=3)
    with pytest.raises(ModelError, match=r"failed in one of its processes .*cannot be shared by 2 devices"):
        fit(task, Machine(devices=2), lambda *_: None)


def test_half_precision_trains_too(tmp_path):
    exact, _ = fitted(tmp_path / "exact", most=9)
    coarse, history = fitted(tmp_path / "coarse", most=9, machine=Machine(precision="bf16-mixed"))
    assert math.isfinite(history[-1].validation_loss)
    assert not same(exact, coarse)
    assert all(value.dtype != torch.bfloat16 for state in coarse.values() for value in state.values())


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (Machine(precision="16-mixed"), "16-mixed needs a GPU; use bf16-mixed or 32-true on the CPU"),
        (Machine(device="cuda:0", devices=2), "is one device; use --device cuda with --devices"),
        (Machine(device="cuda", devices=64), "this machine has"),
        (Machine(device="abacus"), "device 'abacus' cannot be used"),
    ],
)
def test_machine_that_does_not_exist_is_refused(machine, message):
    with pytest.raises(InputError, match=message):
        machine.check()


def test_strategies_learn_different_things_from_uncertain_labels(tmp_path):
    points, labels = DATA[0].tensors
    unsure = labels.clone()
    unsure[::3, 0] = UNCERTAIN
    data = TensorDataset(points, unsure), DATA[1]
    losses = set()
    for strategy in ("ignore", "zeros", "ones", "three_class"):
        _, history = fitted(tmp_path / strategy, data=data, strategy=strategy)
        losses.add(history[-1].training_loss)
    assert len(losses) == 4


def test_unreadable_images_are_counted_and_ignored(tmp_path):
    points, labels = (tensor.clone() for tensor in DATA[0].tensors)
    points[[2, 7]] = math.nan
    kept, history = fitted(tmp_path / "a", data=(TensorDataset(points, labels), DATA[1]), epochs=8)
    assert 8 <= sum(check.unreadable for check in history) <= 16  # two of 18, of which 16 are seen in an epoch
    assert all(value.isfinite().all() for value in next(iter(kept.values())).values())
    labels[[2, 7]] = 1 - labels[[2, 7]]
    assert same(fitted(tmp_path / "b", data=(TensorDataset(points, labels), DATA[1]), epochs=8)[0], kept)


def test_optimizer_follows_the_schedule(tmp_path, monkeypatch):
    rates = []
    step = torch.optim.AdamW.step

    def watched(self, *arguments, **options):
        rates.append({group["lr"] for group in self.param_groups})
        return step(self, *arguments, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
    fitted(tmp_path)
    assert rates == [{Pace(0.05, 12).rate_at(step)} for step in range(12)]


def test_optimizer_is_the_one_named(tmp_path):
    one, _ = fitted(tmp_path / "adamw", most=9)
    other, _ = fitted(tmp_path / "adam", most=9, optimizer="adam")
    assert not same(one, other)


def test_fit_that_diverges_from_the_start_is_an_error_and_a_later_good_check_saves_it(tmp_path, monkeypatch):
    loop = importlib.import_module("heatcheck.training.fit")._Loop

    def losses(values):
        answers = iter(values)
        monkeypatch.setattr(loop, "_judged", lambda *_: {"validation_loss": next(answers), "auroc": {}})

    losses([math.nan] * 3)
    with pytest.raises(ModelError, match="the loss was never a number; lower the learning rate"):
        fitted(tmp_path / "bad")
    losses([math.nan, 0.7, 0.9])
    late, _ = fitted(tmp_path / "late")
    losses([0.8, 0.7, 0.9])
    expected, _ = fitted(tmp_path / "expected")
    assert same(late, expected)


def test_balanced_fit_learns_the_rare_class_and_continues_where_it_stopped(tmp_path):
    def stop(step, *_):
        if step == 6:
            raise KeyboardInterrupt

    rare = np.arange(18) < 3
    changes = {"balanced": True, "classes": rare.astype(int), "most": 9}
    with pytest.raises(KeyboardInterrupt):
        fitted(tmp_path / "stopped", stop, **changes)
    continued, history = fitted(tmp_path / "stopped", **changes)
    expected_states, expected = fitted(tmp_path / "whole", **changes)
    assert same(continued, expected_states)
    assert history == expected
    assert not same(expected_states, fitted(tmp_path / "plain", most=9)[0])


def test_balanced_fit_without_classes_is_refused(tmp_path):
    with pytest.raises(InputError, match="these examples have none"):
        fitted(tmp_path, balanced=True)
