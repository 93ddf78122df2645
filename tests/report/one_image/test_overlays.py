"""Maps over images: the right way up, in proportion, and in words."""

import numpy as np
import pytest

from heatcheck.report.one_image.overlays import SIDE, bare, draw, scale
from heatcheck.report.one_image.slices import Volume

RAS = np.diag([1.0, 1.0, 1.0, 1.0])


def hot_at(shape, place):
    values = np.zeros(shape, np.float32)
    values[place] = 1
    return values


def redness(picture):
    colours = np.asarray(picture).astype(int)
    return colours[..., 0] - colours[..., 2]


def test_colour_lies_where_the_map_is_hot_and_nowhere_else():
    values = np.zeros((20, 40), np.float32)
    values[2:6, 30:36] = 1
    drawn = draw(np.full((20, 40), 0.5, np.float32), values)
    assert drawn.picture.size == (SIDE, SIDE // 2)
    red = redness(drawn.picture)
    assert red[4 * 8, 33 * 8] > 50
    assert (red[100:, :200] == 0).all()
    assert not drawn.is_empty
    assert "hottest at row 3 of 20, column 31 of 40" in drawn.words


def test_a_map_without_evidence_is_said_to_be_empty():
    drawn = draw(np.ones((8, 8), np.float32), -np.ones((8, 8), np.float32))
    assert drawn.is_empty
    assert (redness(drawn.picture) == 0).all()


def test_one_hot_pixel_is_seen():
    assert redness(draw(np.zeros((50, 50), np.float32), hot_at((50, 50), (7, 9))).picture).max() > 40


@pytest.mark.parametrize("codes", ["RAS", "LPS", "PIR", "SLA"])
def test_a_volume_is_shown_front_up_and_right_on_the_left_however_it_is_stored(codes):
    from nibabel.orientations import apply_orientation, axcodes2ornt, inv_ornt_aff, ornt_transform

    patient = np.zeros((5, 6, 7), np.float32)  # right, front, up
    patient[4, 5, 6] = 1  # rightmost, frontmost, topmost
    turn = ornt_transform(axcodes2ornt(tuple("RAS")), axcodes2ornt(tuple(codes)))
    stored = apply_orientation(patient, turn)
    affine = RAS @ inv_ornt_aff(turn, patient.shape)
    seen = Volume.oriented(stored, affine)
    assert seen.values.shape == (7, 6, 5)
    assert np.argwhere(seen.values).tolist() == [[6, 0, 0]], "top slice, first row, first column"


def test_slices_go_through_the_peak_and_keep_the_voxels_proportions():
    values = hot_at((10, 12, 40), (3, 4, 21))
    drawn = draw(np.zeros((10, 12, 40), np.float32), values, np.diag([2.0, 1.0, 5.0, 1.0]))
    assert "slices 17, 22, 27 of 40, patient's right on the left" in drawn.slices
    width, height = drawn.picture.size
    assert height == 2 * round(SIDE * 12 / 20) + 4
    assert width == 3 * SIDE + 8


@pytest.mark.parametrize(("shape", "plane"), [((9, 8, 1), "axial"), ((9, 1, 8), "coronal"), ((1, 9, 8), "sagittal")])
def test_a_single_slice_is_shown_in_its_own_plane(shape, plane):
    drawn = draw(np.zeros(shape, np.float32), np.ones(shape, np.float32), RAS)
    assert drawn.slices.startswith(plane)
    assert drawn.picture.size == (SIDE, round(SIDE * 8 / 9))


def test_head_is_up_in_coronal_and_sagittal_slices():
    assert np.argwhere(Volume.oriented(hot_at((9, 1, 8), (8, 0, 7)), RAS).values).tolist() == [[0, 0, 0]]
    assert np.argwhere(Volume.oriented(hot_at((1, 9, 8), (0, 8, 7)), RAS).values).tolist() == [[0, 0, 0]]


def test_the_scale_rises_in_brightness_over_most_of_its_length():
    grey = np.asarray(scale(100, 4).convert("L")).astype(int)[0]
    assert (np.diff(grey[45:]) >= -1).all()


def test_the_bare_image_of_a_volume_is_its_middle_slice():
    volume = np.zeros((6, 6, 9), np.float32)
    volume[:, :, 4] = np.linspace(0, 1, 6)
    assert np.asarray(bare(volume, RAS)).max() == 255


def test_of_an_empty_map_the_middle_is_shown():
    empty = np.zeros((6, 6, 24), np.float32)
    assert "slices 10, 13, 16 of 24" in draw(empty, empty, RAS).slices


@pytest.mark.parametrize(("peak", "shown"), [(0, "1, 2, 3 of 9"), (8, "7, 8, 9 of 9"), (4, "4, 5, 6 of 9")])
def test_a_peak_at_the_end_still_shows_three_slices(peak, shown):
    volume = np.zeros((6, 6, 9), np.float32)
    assert f"slices {shown}" in draw(volume, hot_at((6, 6, 9), (2, 2, peak)), RAS).slices
