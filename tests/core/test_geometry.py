import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch.nn import functional

from heatcheck.core.geometry import image_to_model, map_to_image, mask_to_grid, place


def shapes(axes, smallest=1, largest=24):
    return st.tuples(*[st.integers(smallest, largest)] * axes)


def random_maps(*shape):
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32))


def blob(shape, centre, width):
    axes = torch.meshgrid(*[torch.arange(n, dtype=torch.float32) for n in shape], indexing="ij")
    return torch.exp(-sum(((axis - c) / width) ** 2 for axis, c in zip(axes, centre, strict=True)))[None]


def centre_of_mass(values):
    axes = torch.meshgrid(*[torch.arange(n, dtype=torch.float64) for n in values.shape], indexing="ij")
    return [float((axis * values).sum() / values.sum()) for axis in axes]


@pytest.mark.parametrize(("axes", "mode"), [(2, "bilinear"), (3, "trilinear")])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_stretched_map_equals_torch_interpolate_to_the_last_bit(axes, mode, data):
    grid, image, model = (data.draw(shapes(axes)) for _ in range(3))
    maps = random_maps(2, *grid)
    expected = functional.interpolate(maps[None], image, mode=mode, align_corners=False)[0]
    assert torch.equal(map_to_image(maps, place(image, model, "stretch")), expected)


@pytest.mark.parametrize("axes", [2, 3])
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_padded_image_and_back_leaves_a_blob_where_it_was(axes, data):
    image = data.draw(shapes(axes, 18, 30))
    model = data.draw(shapes(axes, 16, 34))
    centre = [data.draw(st.floats(n * 0.4, n * 0.6)) for n in image]
    placement = place(image, model, "pad")
    seen = map_to_image(image_to_model(blob(image, centre, 3.0), placement), placement)
    assert tuple(seen.shape[1:]) == image
    np.testing.assert_allclose(centre_of_mass(seen[0].double()), centre, atol=0.25)


@pytest.mark.parametrize("axes", [2, 3])
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_hot_cell_of_a_coarse_padded_map_lands_on_the_pixels_it_was_made_from(axes, data):
    image = data.draw(shapes(axes, 20, 40))
    cells = 6
    placement = place(image, (24,) * axes, "pad")
    pixel = [data.draw(st.integers(0, n - 1)) for n in image]
    on_model = [o + (p + 0.5) * s for o, p, s in zip(placement.origin, pixel, placement.scale, strict=True)]
    maps = torch.zeros(1, *[cells] * axes)
    maps[(0, *(int(position * cells / 24) for position in on_model))] = 1
    peak = np.unravel_index(int(map_to_image(maps, placement)[0].argmax()), image)
    cell_in_pixels = [24 / cells / s for s in placement.scale]
    assert all(abs(p - q) <= width for p, q, width in zip(peak, pixel, cell_in_pixels, strict=True))


def test_wide_image_on_a_square_grid_lies_between_two_bands_of_zeros():
    placement = place((4, 8), (8, 8), "pad")
    assert placement.origin == (2.0, 0.0)
    assert placement.scale == (1.0, 1.0)
    image = random_maps(1, 4, 8)
    grid = image_to_model(image, placement)
    assert torch.equal(grid[:, 2:6], image)
    assert not grid[:, :2].any()
    assert not grid[:, 6:].any()


def test_map_of_a_padded_image_loses_its_bands_and_nothing_else():
    maps = random_maps(3, 8, 8)
    seen = map_to_image(maps, place((4, 8), (8, 8), "pad"))
    np.testing.assert_allclose(seen, maps[:, 2:6], rtol=0, atol=1e-6)


def test_ramp_over_the_grid_is_read_at_the_centres_of_the_image_pixels():
    placement = place((20, 40), (16, 16), "pad")
    rows = torch.arange(16.0).expand(1, 16, 16).transpose(1, 2)
    expected = 4 + (torch.arange(20) + 0.5) * (8 / 20) - 0.5
    np.testing.assert_allclose(map_to_image(rows, placement)[0, :, 0], expected, atol=1e-5)


@given(image=shapes(2, 1, 300), model=shapes(2, 1, 300))
@settings(deadline=None)
def test_padded_image_lies_inside_the_grid_and_touches_two_opposite_sides(image, model):
    placement = place(image, model, "pad")
    covered = [round(n * s) for n, s in zip(image, placement.scale, strict=True)]
    assert all(o >= 0 and o + c <= m for o, c, m in zip(placement.origin, covered, model, strict=True))
    assert any(c == m for c, m in zip(covered, model, strict=True))


@given(image=shapes(2, 1, 300), model=shapes(2, 1, 300))
@settings(deadline=None)
def test_stretched_image_covers_the_whole_grid(image, model):
    assert place(image, model, "stretch").covers_all


def test_shrinking_averages_over_the_pixels_that_merge():
    stripes = torch.tensor([0.0, 1.0]).repeat(32).expand(1, 64, 64)
    inner = image_to_model(stripes, place((64, 64), (8, 8), "stretch"))[0, 2:6, 2:6]
    np.testing.assert_allclose(inner, 0.5, atol=0.05)


def test_shrunk_volume_holds_the_means_of_its_blocks():
    volume = random_maps(1, 8, 8, 8)
    small = image_to_model(volume, place((8, 8, 8), (4, 4, 4), "stretch"))
    np.testing.assert_allclose(small, functional.avg_pool3d(volume, 2), atol=1e-6)


def test_image_and_grid_with_different_numbers_of_axes_are_refused():
    with pytest.raises(ValueError, match="image has 3 axes, the model's grid 2"):
        place((4, 4, 4), (8, 8), "pad")


@given(data=st.data())
@settings(deadline=None)
def test_a_mask_on_the_models_own_grid_takes_the_pixel_around_each_centre(data):
    shape = data.draw(st.tuples(st.integers(1, 20), st.integers(1, 20)))
    grid = data.draw(st.tuples(st.integers(1, 20), st.integers(1, 20)))
    mask = data.draw(arrays(bool, shape))
    placement = place(shape, (64, 48), "stretch")
    rows, columns = ((2 * np.arange(size) + 1) * pixels // (2 * size) for pixels, size in zip(shape, grid, strict=True))
    expected = mask[np.ix_(rows, columns)]
    made = mask_to_grid(mask, placement, grid)
    if expected.any():
        assert np.array_equal(made, expected)
    else:
        assert made.sum() == (1 if mask.any() else 0)


def test_a_mask_moves_to_a_coarser_grid_as_torch_says():
    mask = np.random.default_rng(3).random((64, 48)) < 0.4
    expected = functional.interpolate(torch.from_numpy(mask)[None, None].float(), (24, 20), mode="nearest-exact")
    made = mask_to_grid(mask, place((64, 48), (96, 96), "stretch"), (24, 20))
    assert np.array_equal(made, expected[0, 0].bool().numpy())


def test_a_centre_on_the_edge_of_two_pixels_belongs_to_the_later_one():
    mask = np.zeros((10, 1), bool)
    mask[2] = True
    made = mask_to_grid(mask, place((10, 1), (64, 48), "stretch"), (15, 1))
    assert np.flatnonzero(made).tolist() == [3]


def test_a_padded_image_has_no_mask_on_the_padding():
    placement = place((10, 20), (40, 40), "pad")
    made = mask_to_grid(np.ones((10, 20), bool), placement, (40, 40))
    assert made[10:30].all()
    assert not made[:10].any()
    assert not made[30:].any()


def test_a_mask_that_lies_between_the_centres_keeps_the_pixel_around_its_middle():
    mask = np.zeros((100, 100), bool)
    mask[70, 21] = True
    made = mask_to_grid(mask, place((100, 100), (50, 50), "stretch"), (5, 5))
    assert np.argwhere(made).tolist() == [[3, 1]]
