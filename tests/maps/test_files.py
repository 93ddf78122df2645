import nibabel
import numpy as np
import pytest

from heatcheck.maps.files import share_nifti_bytes, write_atomically

OBLIQUE = np.array([[-0.9, 0.1, 0.0, 30.0], [-0.1, -0.9, 0.2, 40.0], [0.0, 0.1, 2.0, -50.0], [0, 0, 0, 1]])


def reloaded(path, values, affine):
    write_atomically(path, share_nifti_bytes(values, affine, "a map"))
    return nibabel.load(path)


def test_a_map_survives_writing_and_reading_to_a_thirty_thousandth(tmp_path):
    values = np.random.default_rng(1).random((5, 6, 7), dtype=np.float32)
    values[0, 0, 0], values[0, 0, 1] = 0, 1
    file = reloaded(tmp_path / "map.nii.gz", values, OBLIQUE)
    restored = file.get_fdata()
    assert file.affine == pytest.approx(OBLIQUE, abs=1e-5)
    assert np.abs(restored - values).max() < 2e-5
    assert restored[0, 0, 0] == 0
    assert restored[0, 0, 1] == pytest.approx(1, abs=1e-6)


def test_viewers_that_read_either_affine_agree(tmp_path):
    upright = np.array([[0, 0, -2.0, 90], [-1.5, 0, 0, 80], [0, 3.0, 0, -70], [0, 0, 0, 1]])
    file = reloaded(tmp_path / "map.nii.gz", np.zeros((2, 3, 4), np.float32), upright)
    for affine, code in (file.get_sform(coded=True), file.get_qform(coded=True)):
        assert code == 1
        assert affine == pytest.approx(upright, abs=1e-5)


def test_a_2d_map_gets_a_third_axis(tmp_path):
    file = reloaded(tmp_path / "map.nii.gz", np.eye(3, 4, dtype=np.float32), None)
    assert file.shape == (3, 4, 1)
    assert np.array_equal(np.round(file.get_fdata()[..., 0], 4), np.eye(3, 4))


def test_same_map_is_the_same_file():
    values = np.random.default_rng(1).random((5, 6, 7), dtype=np.float32)
    assert share_nifti_bytes(values, OBLIQUE) == share_nifti_bytes(values.copy(), OBLIQUE)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan])
def test_values_outside_zero_to_one_are_refused(value):
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        share_nifti_bytes(np.full((2, 2, 2), value, np.float32), None)
