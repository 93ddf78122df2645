import numpy as np
import pytest
from scipy import ndimage

from heatcheck.triggers import build_trigger

FILM = np.full((1, 224, 224), 0.3, np.float32)


def test_a_tube_enters_at_the_top_and_ends_inside():
    for seed in range(10):
        stamp = build_trigger("tube")(FILM, seed)
        assert ndimage.label(stamp.mask, np.ones((3, 3)))[1] == 1
        assert stamp.box[0].start == 0
        assert 110 < stamp.box[0].stop < 180


@pytest.mark.parametrize(("side", "width"), [(224, 4), (112, 2)])
def test_a_tube_is_thin(side, width):
    film = np.full((1, side, side), 0.3, np.float32)
    stamp = build_trigger("tube")(film, 3)
    across = stamp.mask.sum(1)
    assert np.median(across) == pytest.approx(width * 1.3, abs=1.5)


def test_a_tube_is_brighter_than_what_it_crosses_and_hollow_up_to_its_tip():
    stamp = build_trigger("tube")(FILM, 3)
    brightest = np.where(stamp.mask, stamp.values[0], 0).max(1)
    assert (brightest > 0.6).mean() > 0.9
    middle = [row[mask][mask.sum() // 2] for row, mask in zip(stamp.values[0], stamp.mask, strict=True)]
    assert np.median(middle[:100]) < 0.65
    assert max(middle[-8:]) > 0.8


def test_the_course_differs_slightly_between_images():
    masks = [build_trigger("tube")(FILM, seed).mask_on((224, 224)) for seed in range(12)]
    assert len({mask.tobytes() for mask in masks}) == 12
    centres = [ndimage.center_of_mass(mask) for mask in masks]
    assert np.std(centres, axis=0).max() < 12


def test_the_width_is_a_setting():
    thin, thick = (build_trigger({"kind": "tube", "width": width})(FILM, 3).mask.sum() for width in (2, 8))
    assert thick > 2.5 * thin
