"""Strips of slices: where the hottest colour of several maps begins."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from heatcheck.report.blocks.pictures import RAMP, SliceStrip, hottest


def saved(folder, name, grey):
    Image.fromarray(grey.astype(np.uint8)).save(folder / name)
    return name


def test_hottest_half_per_cent_is_that_of_all_maps_together_without_what_is_cold(tmp_path):
    one = saved(tmp_path, "one.png", np.pad(np.full((20, 20), 40), 20))
    other = saved(tmp_path, "other.png", np.pad(np.array([[250]]), 20))
    assert hottest(tmp_path, [one]) == 40
    assert hottest(tmp_path, [one, other]) == 40  # one of 401 pixels is less than half a per cent
    assert hottest(tmp_path, [one, other], top=100) == 250
    assert hottest(tmp_path, [saved(tmp_path, "cold.png", np.zeros((4, 4)))]) == 255


@pytest.mark.parametrize(("full", "is_hottest"), [(255.0, False), (100.0, True), (40.0, True)])
def test_map_has_the_hottest_colour_from_there_on(tmp_path, full, is_hottest):
    name = saved(tmp_path, "map.png", np.full((8, 8), 100))
    uri = SliceStrip(1, (0,), 8).map_uri(tmp_path, name, full)
    pixel = np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))).convert("RGBA"))[4, 4, :3]
    assert (tuple(pixel) == RAMP[-1]) is is_hottest
