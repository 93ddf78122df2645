"""NIfTI voxels keep their units and order; unreadable files are refused."""

import gzip

import nibabel
import numpy as np
import pytest

from heatcheck.core.errors import CaseError
from heatcheck.sources.files.reading import image_shape, is_image, read_image, read_mask
from heatcheck.sources.files.reading_nifti import voxel_grid

AFFINE = np.array([[-2.0, 0, 0, 90], [0, 1.5, 0.1, -20], [0, -0.1, 3, 7], [0, 0, 0, 1]])
VOXELS = np.random.default_rng(6).integers(-900, 900, (5, 6, 7)).astype(np.int16)


def written(path, values=VOXELS, slope=None):
    file = nibabel.Nifti1Image(values, AFFINE)
    if slope:
        file.header.set_slope_inter(*slope)
    nibabel.save(file, path)
    return path


def refusal(path):
    with pytest.raises(CaseError) as caught:
        read_image(path, "case 1")
    sentence = str(caught.value)
    assert "case 1" in sentence
    assert "; " in sentence
    assert "\n" not in sentence
    assert str(path.parent) not in sentence
    return sentence


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "A.NII.GZ"])
def test_voxels_keep_their_units_and_order(tmp_path, name):
    path = written(tmp_path / name)
    image = read_image(path, "a")
    assert is_image(path)
    assert image.dtype == np.float32
    assert image.flags.c_contiguous
    np.testing.assert_array_equal(image, VOXELS[None])
    assert image_shape(path, "a") == (5, 6, 7)


def test_slope_and_intercept_are_applied(tmp_path):
    path = tmp_path / "a.nii"
    file = nibabel.Nifti1Image(VOXELS, AFFINE)
    file.to_filename(path)
    raw = bytearray(path.read_bytes())
    raw[112:120] = np.array([0.5, -100], "<f4").tobytes()  # scl_slope and scl_inter
    path.write_bytes(raw)
    np.testing.assert_allclose(read_image(path, "a")[0], VOXELS * 0.5 - 100)


def test_a_range_gives_the_values_that_become_0_and_1(tmp_path):
    image = read_image(written(tmp_path / "a.nii"), "a", value_range=(-1000, 1000))
    np.testing.assert_allclose(image[0], (VOXELS + 1000) / 2000, rtol=1e-6)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ((5, 6), (1, 5, 6)),
        ((5, 6, 1), (1, 5, 6)),
        ((5, 6, 7, 1), (1, 5, 6, 7)),
        ((5, 6, 7, 4), (4, 5, 6, 7)),
        ((5, 6, 1, 3), (3, 5, 6)),
        ((5, 6, 7, 1, 2), (2, 5, 6, 7)),
    ],
)
def test_the_fourth_axis_holds_channels_and_a_single_slice_is_an_image(tmp_path, stored, expected):
    values = np.arange(np.prod(stored), dtype=np.float32).reshape(stored)
    image = read_image(written(tmp_path / "a.nii", values), "a")
    assert image.shape == expected
    assert image_shape(tmp_path / "a.nii", "a") == expected[1:]
    last = values[..., -1] if len(stored) > 3 else values
    np.testing.assert_array_equal(image[-1].ravel(), last.ravel())


def test_the_grid_keeps_the_affine(tmp_path):
    grid = voxel_grid(written(tmp_path / "a.nii.gz"), "a")
    assert grid.shape == (5, 6, 7)
    np.testing.assert_allclose(grid.affine, AFFINE, atol=1e-5)


def test_nan_is_refused_by_name(tmp_path):
    values = VOXELS.astype(np.float32)
    values[1, 2, 3] = np.nan
    assert "NaN" in refusal(written(tmp_path / "a.nii", values))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
def test_a_truncated_file_is_refused(tmp_path, name, share):
    path = written(tmp_path / name)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert "cannot be read as NIfTI" in refusal(path)


def test_what_is_not_nifti_is_refused(tmp_path):
    path = tmp_path / "a.nii.gz"
    path.write_bytes(b"not gzip at all")
    assert "cannot be read as NIfTI" in refusal(path)
    path.write_bytes(gzip.compress(b"zip, but no volume" * 40))
    assert "cannot be read as NIfTI" in refusal(path)
    path.write_bytes(b"")
    assert "0 bytes" in refusal(path)


def test_colour_triples_and_six_axes_are_refused(tmp_path):
    triples = np.zeros((4, 4, 4), np.dtype([("R", "u1"), ("G", "u1"), ("B", "u1")]))
    assert "not plain numbers" in refusal(written(tmp_path / "a.nii", triples))
    assert "6 axes" in refusal(written(tmp_path / "b.nii", np.zeros((2, 2, 2, 2, 2, 2), np.float32)))


@pytest.mark.parametrize("name", ["m.nii", "m.nii.gz"])
def test_mask_is_the_voxels_above_zero_on_the_grid_of_the_image(tmp_path, name):
    path = written(tmp_path / name)
    np.testing.assert_array_equal(read_mask(path, "m", VOXELS.shape), VOXELS > 0)
    with pytest.raises(CaseError, match="mask m is 5×6×7, its image 5×6×8; export it at the image's size"):
        read_mask(path, "m", (5, 6, 8))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CaseError, match="m cannot be read as NIfTI"):
        read_mask(path, "m", VOXELS.shape)
