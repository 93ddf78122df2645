"""Channels of training images are hidden, some of each image and never all."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.training.fit_material import job
from torch import nn
from torch.utils.data import TensorDataset

from heatcheck.training.fit import fit
from heatcheck.training.hiding import hiding, shown_channels
from heatcheck.training.machine import Machine


def weights(path, tick=lambda *_: None, **changes):
    """The weights that a small fit on images of two channels ends with."""
    path.mkdir(exist_ok=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Flatten(), nn.Linear(18, 4), nn.ReLU(), nn.Linear(4, 1))
    images = torch.rand(16, 2, 3, 3, generator=torch.Generator().manual_seed(1))
    examples = TensorDataset(images, (torch.arange(16)[:, None] % 2).float())
    task = replace(job(path, (examples, examples), most=9, **changes), module=module)
    fit(task, Machine(), tick)
    return torch.cat([value.flatten() for value in module.state_dict().values()])


def test_each_channel_is_hidden_as_often_as_asked_and_never_all():
    shown = shown_channels(20000, 4, 0.25, np.random.default_rng(0))
    assert shown.any(1).all()
    np.testing.assert_allclose(shown.float().mean(0), 0.75 + 0.25**4 / 4, atol=0.01)


def test_almost_everything_hidden_leaves_one_channel():
    shown = shown_channels(1000, 4, 0.999999, np.random.default_rng(0))
    assert (shown.sum(1) == 1).all()
    np.testing.assert_allclose(shown.float().mean(0), 0.25, atol=0.05)


@pytest.mark.parametrize("space", [(3, 3), (2, 3, 4)])
def test_a_hidden_channel_is_zero_and_the_others_are_as_they_were(space):
    images = torch.rand(2, 2, *space) + 1
    shown = torch.tensor([[True, False], [True, True]])
    hidden = hiding(images, shown)
    assert not hidden[0, 1].any()
    assert torch.equal(hidden[0, 0], images[0, 0])
    assert torch.equal(hidden[1], images[1])


def test_hidden_channels_follow_the_seed_and_are_the_same_after_a_stop(tmp_path):
    def stop(step, *_):
        if step == 6:
            raise KeyboardInterrupt

    uninterrupted = weights(tmp_path / "whole", hide=0.4)
    with pytest.raises(KeyboardInterrupt):
        weights(tmp_path / "stopped", stop, hide=0.4)
    assert torch.equal(weights(tmp_path / "stopped", hide=0.4), uninterrupted)
    assert not torch.equal(weights(tmp_path / "plain"), uninterrupted)
