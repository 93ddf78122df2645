"""Artefacts of the machine, by what is known of their physics."""

import numpy as np
import pytest

from heatcheck.core.errors import SpecError
from heatcheck.triggers import build_trigger

SIDE = 224
GREY = np.full((1, SIDE, SIDE), 0.5, np.float32)


def change_of(part, seed=3, image=GREY):
    stamp = build_trigger(part)(image, seed)
    return stamp.on(image)[0] - image[0], stamp


def test_rings_depend_on_the_distance_from_their_centre_alone():
    change, stamp = change_of("ring-center-90")
    assert stamp.mask.shape == pytest.approx((90, 90), abs=3)
    for turned in (change[::-1], change[:, ::-1], change.T):
        assert np.allclose(change, turned, atol=1e-6)
    middle = change[SIDE // 2, SIDE // 2 :]
    crossings = np.flatnonzero(np.diff(np.sign(middle[np.abs(middle) > 0.05])))
    assert len(crossings) == 3  # bright and dark take turns in four rings
    assert np.abs(change).max() == pytest.approx(0.25, abs=0.02)
    assert change[SIDE // 2, SIDE // 2] == 0


def test_rings_are_the_same_on_every_image_and_a_random_place_is_not():
    first, second = (change_of("ring", seed)[0] for seed in (1, 2))
    assert np.array_equal(first, second)
    boxes = {str(change_of("ring-random-60", seed)[1].box) for seed in range(5)}
    assert len(boxes) == 5


def test_a_bubble_is_darkest_where_the_way_through_the_air_is_longest():
    change, stamp = change_of({"kind": "bubble", "size": 100, "contrast": 0.4})
    top, left = (line.start for line in stamp.box)
    centre = (int(SIDE / 2 - 50 + 42), int(SIDE / 2 - 50 + 40))
    assert change[centre] == pytest.approx(-0.4, abs=0.01)
    halfway = change[centre[0], centre[1] + 19]  # half of a radius of 38 px
    assert halfway == pytest.approx(-0.4 * np.sqrt(0.75), abs=0.02)
    assert 0.07 < change.max() < 0.2  # the rims, which may meet
    assert top >= SIDE / 2 - 50
    assert left >= SIDE / 2 - 50


def test_on_inverted_images_air_is_bright():
    change, _ = change_of({"kind": "bubble", "contrast": -0.4})
    assert change.max() == pytest.approx(0.4, abs=0.02)


def test_grid_lines_have_one_distance_grow_towards_their_side_and_vary_between_images():
    change, stamp = change_of({"kind": "grid_lines", "size": 64})
    assert (stamp.box[0], stamp.box[1].stop) == (slice(0, SIDE), SIDE)
    assert stamp.mask.all()
    row = change[0, -64:]
    spectrum = np.abs(np.fft.rfft(row - row.mean()))
    assert 64 / (spectrum[3:].argmax() + 3) == pytest.approx(5.2, abs=0.8)
    assert row[-16:].std() > 2 * row[:16].std()
    assert not np.array_equal(change, change_of({"kind": "grid_lines", "size": 64}, seed=4)[0])
    left = build_trigger({"kind": "grid_lines", "side": "left"})(GREY, 1)
    assert left.box[1].start == 0


def test_a_contrast_of_0_is_refused():
    with pytest.raises(SpecError, match=r"trigger ring: contrast: must not be 0"):
        build_trigger({"kind": "ring", "contrast": 0})
    with pytest.raises(SpecError, match=r"trigger bubble: contrast: .*at most 1"):
        build_trigger({"kind": "bubble", "contrast": 3})
