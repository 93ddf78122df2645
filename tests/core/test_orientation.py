from itertools import permutations, product

import numpy as np
import pytest
from nibabel.orientations import apply_orientation, inv_ornt_aff

from heatcheck.core.orientation import radiological

RAS = np.array([[2.0, 0, 0, -90], [0, 1.0, 0, -120], [0, 0, 3.0, -70], [0, 0, 0, 1]])
WAYS = [np.column_stack([axes, flips]) for axes in permutations(range(3)) for flips in product((1, -1), repeat=3)]


def patient_of(affine, *index):
    return (affine @ [*index, 1])[:3]


@pytest.mark.parametrize("turn", WAYS, ids=lambda turn: f"{turn[:, 0].astype(int)}{turn[:, 1].astype(int)}")
def test_however_a_volume_is_stored_the_front_is_up_and_the_right_on_the_left(turn):
    turn = turn.astype(float)
    stored = apply_orientation(np.zeros((4, 5, 6)), turn)
    affine = RAS @ inv_ornt_aff(turn, (4, 5, 6))
    shown = radiological(affine, stored.shape)
    moved = shown.turned_affine(affine, stored.shape)
    right, front, up = patient_of(moved, 0, 0, 0)
    assert shown.turned(stored).shape == (6, 5, 4)
    assert patient_of(moved, 1, 0, 0) == pytest.approx([right, front, up + 3])
    assert patient_of(moved, 0, 1, 0) == pytest.approx([right, front - 1, up])
    assert patient_of(moved, 0, 0, 1) == pytest.approx([right - 2, front, up])
    assert shown.voxel == pytest.approx((3, 1, 2))
    assert (shown.plane, shown.sides) == ("axial", "patient's right on the left")


@pytest.mark.parametrize("signs", list(product((1, -1), repeat=3)))
def test_turned_voxels_stay_where_they_are_in_the_patient(signs):
    affine = np.array([[0, -0.9, 0.1, 30], [-1.1, 0.05, 0, 60], [0, 0.1, 2, -20], [0, 0, 0, 1]]) * [*signs, 1]
    stored = np.arange(24).reshape(4, 3, 2)
    shown = radiological(affine, stored.shape)
    seen, moved = shown.turned(stored), shown.turned_affine(affine, stored.shape)
    for number in range(24):
        was, now = (np.argwhere(array == number)[0] for array in (stored, seen))
        assert patient_of(moved, *now) == pytest.approx(patient_of(affine, *was))


def test_without_an_affine_or_with_an_axis_of_no_direction_images_are_shown_as_stored():
    volume, picture = np.arange(24).reshape(2, 3, 4), np.arange(12).reshape(3, 4)
    for affine in (None, np.diag([1.0, 1.0, 0.0, 1.0])):
        assert np.array_equal(radiological(affine, volume.shape).turned(volume), volume)
        assert np.array_equal(radiological(affine, picture.shape).turned(picture), picture[None])


def test_picture_of_one_slice_is_shown_in_its_own_plane():
    picture = np.arange(12).reshape(3, 4)
    axial = radiological(RAS, picture.shape)  # stored from left to right and from back to front
    assert axial.plane == "axial"
    assert np.array_equal(axial.turned(picture)[0], picture[::-1, ::-1].T)
    coronal = radiological(RAS[:, [0, 2, 1, 3]], picture.shape)
    assert coronal.plane == "coronal"
    assert np.array_equal(coronal.turned(picture)[0], picture[::-1, ::-1].T)
    sagittal = radiological(RAS[:, [1, 2, 0, 3]], picture.shape)
    assert (sagittal.plane, sagittal.sides) == ("sagittal", "front on the left")
    assert np.array_equal(sagittal.turned(picture)[0], picture[::-1, ::-1].T)
