import importlib
from dataclasses import replace

import pytest
import torch
from tests.training.fit_material import job
from torch import nn
from torch.utils.data import TensorDataset

from heatcheck.core.errors import InputError
from heatcheck.training.fit import fit
from heatcheck.training.machine import Machine
from heatcheck.training.rotation import rotated

HERE = Machine()


def pictures(count, seed):
    """Bright where the first label says so."""
    images = torch.rand(count, 1, 5, 7, generator=torch.Generator().manual_seed(seed))
    labels = (torch.arange(count)[:, None] % 2).float()
    return TensorDataset(images + labels[..., None, None], labels)


def pictured(path, **changes):
    path.mkdir(exist_ok=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Flatten(), nn.Linear(35, 4), nn.ReLU(), nn.Linear(4, 1))
    return replace(job(path, (pictures(16, 1), pictures(8, 2)), most=9, **changes), module=module)


def weights(task, machine=HERE, tick=lambda *_: None):
    fit(task, machine, tick)
    return torch.cat([value.flatten() for value in task.module.state_dict().values()])


def test_quarter_turn_is_exact_on_a_square_and_goes_anticlockwise():
    image = torch.rand(1, 2, 5, 5)
    turned = rotated(image, torch.tensor([90.0]))
    torch.testing.assert_close(turned, torch.rot90(image, 1, (2, 3)), rtol=1e-4, atol=1e-5)


def test_a_pixel_keeps_its_distance_from_the_centre_in_an_oblong_image():
    image = torch.zeros(1, 1, 21, 41)
    image[0, 0, 10, 20 + 8] = 1  # 8 to the right of the middle
    turned = rotated(image, torch.tensor([90.0]))[0, 0]
    assert divmod(int(turned.argmax()), 41) == (10 - 8, 20)


def test_each_image_is_turned_by_its_own_angle_and_nothing_by_none():
    images = torch.rand(3, 1, 6, 6)
    turned = rotated(images, torch.tensor([0.0, 15.0, -15.0]))
    torch.testing.assert_close(turned[0], images[0])
    assert not torch.allclose(turned[1], images[1], atol=1e-2)
    back = rotated(images.flip(3), torch.tensor([0.0, -15.0, 15.0])).flip(3)
    torch.testing.assert_close(turned, back, rtol=1e-4, atol=1e-5)


def test_what_comes_in_from_outside_is_the_mean_grey():
    assert rotated(torch.ones(1, 1, 8, 8), torch.tensor([45.0]))[0, 0, 0, 0] == 0


def test_volumes_are_refused():
    with pytest.raises(InputError, match="`rotate` turns 2D images, got images of 3 axes"):
        rotated(torch.rand(1, 1, 3, 3, 3), torch.tensor([1.0]))


def test_rotations_follow_the_seed_and_are_the_same_after_a_stop(tmp_path):
    def stop(step, *_):
        if step == 6:
            raise KeyboardInterrupt

    uninterrupted = weights(pictured(tmp_path / "whole", rotate=15.0))
    with pytest.raises(KeyboardInterrupt):
        weights(pictured(tmp_path / "stopped", rotate=15.0), tick=stop)
    assert torch.equal(weights(pictured(tmp_path / "stopped", rotate=15.0)), uninterrupted)
    plain = weights(pictured(tmp_path / "plain"))
    assert not torch.equal(plain, uninterrupted)
    assert torch.equal(weights(pictured(tmp_path / "none", rotate=0.0)), plain)


def test_angles_stay_within_the_bound_and_validation_images_are_not_turned(tmp_path, monkeypatch):
    turned = []

    def watched(images, degrees):
        turned.extend(degrees.tolist())
        return rotated(images, degrees)

    monkeypatch.setattr(importlib.import_module("heatcheck.training.fit"), "rotated", watched)
    weights(pictured(tmp_path, rotate=15.0))
    assert len(turned) == 3 * 16
    assert len(set(turned)) == 48
    assert 10 < max(map(abs, turned)) <= 15


def test_two_processes_turn_the_images_as_one_does(tmp_path):
    one, two = (pictured(tmp_path / name, rotate=15.0, clip=None) for name in ("one", "two"))
    weights(one)
    weights(two, Machine(devices=2))
    alone, together = (task.keeper.states()["12.pt"] for task in (one, two))
    for name, value in alone.items():
        torch.testing.assert_close(together[name], value, rtol=1e-4, atol=1e-6)


def test_images_with_masks_are_not_turned(tmp_path):
    data = [TensorDataset(*part.tensors, torch.arange(len(part))) for part in (pictures(16, 1), pictures(8, 2))]
    with pytest.raises(InputError, match="`rotate` turns images and not the masks"):
        fit(job(tmp_path, data, rotate=15.0), HERE, lambda *_: None)
