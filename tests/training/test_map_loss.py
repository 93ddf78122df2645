import pytest
import torch

from heatcheck.training.map_loss import map_loss


def maps_of(*rows):
    """One map of one channel per argument, as [batch, 1, 1, height, width]."""
    return torch.tensor(rows, dtype=torch.float64)[:, None, None]


def masks_of(*rows):
    return torch.tensor(rows, dtype=torch.float64)[:, None]


def test_loss_is_the_mean_squared_difference_of_the_stretched_map_to_the_mask():
    maps = maps_of([[-3.0, 0.0], [1.0, 4.0]])  # → 0 0 ¼ 1
    mask = masks_of([[0.0, 0.0], [1.0, 1.0]])
    near = map_loss(maps, mask, "align")
    assert near.shape == (1, 1)
    assert near.item() == pytest.approx(0.75**2 / 4, rel=1e-5)
    assert map_loss(maps, mask, "misalign").item() == pytest.approx((1 + 1 + 0.25**2 + 1) / 4, rel=1e-5)


def test_a_map_without_zeros_is_stretched_from_its_lowest_value():
    maps = maps_of([[2.0, 3.0], [4.0, 6.0]])  # → 0 ¼ ½ 1
    expected = (0.25**2 + 0.5**2) / 4
    assert map_loss(maps, masks_of([[0.0, 0.0], [0.0, 1.0]]), "align").item() == pytest.approx(expected, rel=1e-5)


def test_negative_values_go_before_channels_are_averaged():
    maps = torch.tensor([[[4.0, 0.0], [-4.0, 2.0]]], dtype=torch.float64).reshape(1, 1, 2, 1, 2)  # → 2 1 → 1 0
    assert map_loss(maps, torch.tensor([[[[1.0, 0.0]]]]), "align").item() == pytest.approx(0, abs=1e-9)


def test_size_of_a_map_does_not_matter_and_pixels_are_averaged():
    maps = maps_of([[0.0, 1.0], [2.0, 4.0]])
    mask = masks_of([[0.0, 1.0], [0.0, 1.0]])
    twice = map_loss(maps.repeat_interleave(2, -1), mask.repeat_interleave(2, -1), "align")
    torch.testing.assert_close(twice, map_loss(maps, mask, "align"))
    torch.testing.assert_close(map_loss(50 * maps, mask, "align"), twice, rtol=1e-5, atol=0)


def test_each_map_is_compared_with_its_own_mask_alone():
    maps = torch.rand(3, 2, 1, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    masks = (torch.rand(3, 2, 4, 5, generator=torch.Generator().manual_seed(1)) > 0.6).double()
    together = map_loss(maps, masks, "align")
    assert together.shape == (3, 2)
    for image in range(3):
        for target in range(2):
            part = slice(image, image + 1), slice(target, target + 1)
            torch.testing.assert_close(map_loss(maps[part], masks[part], "align"), together[part])
    changed = masks.clone()
    changed[1, 0] = 1 - changed[1, 0]
    assert ((map_loss(maps, changed, "align") != together).nonzero() == torch.tensor([[1, 0]])).all()


@pytest.mark.parametrize("shape", [(3, 1, 1, 4, 4), (3, 4, 4), (1, 1, 4, 4), (3, 1, 4, 1), (4, 4)])
def test_masks_that_would_be_broadcast_over_other_maps_are_refused(shape):
    with pytest.raises(ValueError, match=r"masks \[batch, target, \*space\] of the same sizes, got \(3, 1, 1, 4, 4\)"):
        map_loss(torch.rand(3, 1, 1, 4, 4), torch.zeros(shape), "align")


def test_maps_without_an_axis_for_targets_are_refused():
    with pytest.raises(ValueError, match="maps must be"):
        map_loss(torch.rand(3, 1, 4, 4), torch.zeros(3, 1, 4), "align")


def test_volumes_have_the_same_loss():
    maps = torch.rand(2, 1, 2, 3, 4, 5)
    masks = (torch.rand(2, 1, 3, 4, 5) > 0.5).float()
    flat = map_loss(maps.flatten(3, 4), masks.flatten(2, 3), "misalign")
    torch.testing.assert_close(map_loss(maps, masks, "misalign"), flat)


@pytest.mark.parametrize("value", [-1.0, 0.0, 3.0])
def test_a_flat_map_has_a_finite_loss_and_gradient(value):
    maps = torch.full((1, 1, 1, 3, 3), value, requires_grad=True)
    mask = torch.zeros(1, 1, 3, 3)
    mask[..., 0] = 1
    loss = map_loss(maps, mask, "align")
    assert loss.item() == pytest.approx(1 / 3)
    loss.sum().backward()
    assert maps.grad.isfinite().all()


def test_half_precision_is_widened_first():
    maps = torch.rand(1, 1, 1, 6, 6).bfloat16()
    masks = torch.zeros(1, 1, 6, 6)
    torch.testing.assert_close(map_loss(maps, masks, "align"), map_loss(maps.float(), masks, "align"))


@pytest.mark.parametrize("direction", ["align", "misalign"])
def test_gradient_with_respect_to_the_map_is_right(direction):
    maps = torch.randn(2, 2, 2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    masks = (torch.rand(2, 2, 4, 4, generator=torch.Generator().manual_seed(3)) > 0.5).double()
    assert torch.autograd.gradcheck(lambda values: map_loss(values, masks, direction), (maps,), eps=1e-7)
