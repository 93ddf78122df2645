"""Geometry worked by hand, under symmetries, and as the paper's scripts wrote it."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageDraw

from heatcheck.regions.shape import EMPTY, LINE, VOLUME, shape_of


def mask_of(*boxes, shape=(40, 50)):
    mask = np.zeros(shape, bool)
    for top, left, height, width in boxes:
        mask[top : top + height, left : left + width] = True
    return mask


def test_a_rectangle_by_hand():
    shape = shape_of(mask_of((4, 6, 11, 21)))
    assert (shape.components, shape.size) == (1, 11 * 21 / 2000)
    assert shape.elongation == pytest.approx(20 / 10)  # from the centre of the first pixel to that of the last
    assert shape.irrectangularity == pytest.approx(0)
    assert sorted(shape.rectangle) == [(4, 6), (4, 26), (14, 6), (14, 26)]
    assert not shape.reason


def test_a_triangle_leaves_half_of_its_rectangle_free():
    corner = np.tri(21, dtype=bool)  # half a square: the rectangle is the square
    shape = shape_of(np.pad(corner, 3))
    assert shape.elongation == pytest.approx(1, abs=1e-3)
    assert shape.irrectangularity == pytest.approx(0.5, abs=1e-3)


def test_parts_that_touch_at_a_corner_are_one():
    assert shape_of(mask_of((2, 2, 3, 3), (5, 5, 3, 3))).components == 1
    assert shape_of(mask_of((2, 2, 3, 3), (6, 6, 3, 3))).components == 2


def test_the_outline_with_most_pixels_decides():
    shape = shape_of(mask_of((2, 2, 3, 31), (10, 10, 20, 11)))
    assert shape.elongation == pytest.approx(30 / 2)
    assert shape.components == 2


@pytest.mark.parametrize("mask", [mask_of((3, 4, 1, 9)), mask_of((3, 4, 9, 1)), mask_of((3, 4, 1, 1)), np.eye(30) > 0])
def test_a_line_has_no_short_side(mask):
    shape = shape_of(mask)
    assert math.isnan(shape.elongation)
    assert math.isnan(shape.irrectangularity)
    assert shape.reason == LINE
    assert shape.components == 1


def test_an_empty_mask_has_no_outline():
    shape = shape_of(np.zeros((5, 5), bool))
    assert (shape.components, shape.size, shape.reason, shape.rectangle) == (0, 0, EMPTY, ())


def test_a_volume_has_parts_and_a_size():
    mask = np.zeros((6, 7, 8), bool)
    mask[0, 0, 0] = mask[1, 1, 1] = mask[4, 4, 4] = True
    shape = shape_of(mask)
    assert (shape.components, shape.size, shape.reason) == (2, 3 / 336, VOLUME)
    assert math.isnan(shape.elongation)


@settings(max_examples=60, deadline=None)
@given(arrays(bool, st.tuples(st.integers(1, 14), st.integers(1, 14))))
def test_transposing_and_padding_do_not_change_the_geometry(mask):
    shape = shape_of(mask)
    framed = shape_of(np.pad(mask, ((3, 2), (1, 4))))
    assert (shape.components == 0) == (not mask.any())
    assert framed.components == shape.components == shape_of(mask.T).components
    assert math.isnan(framed.elongation) == math.isnan(shape.elongation)
    if not shape.reason:
        assert shape.elongation >= 1
        assert -1e-6 <= shape.irrectangularity <= 1
        assert framed.elongation == pytest.approx(shape.elongation, rel=1e-4)
        assert framed.irrectangularity == pytest.approx(shape.irrectangularity, abs=1e-4)


def test_a_mask_that_is_not_contiguous_has_the_same_geometry():
    mask = mask_of((4, 6, 11, 21))
    assert shape_of(np.asfortranarray(mask)) == shape_of(mask)


def rasterised(polygons, size):
    picture = Image.new("1", (size[1], size[0]))
    for polygon in polygons:
        ImageDraw.Draw(picture).polygon([tuple(point) for point in polygon], outline=1, fill=1)
    return np.array(picture)


def test_the_papers_tables_to_the_last_digit(golden):
    annotations = json.loads((golden / "data" / "gt_annotations.json").read_text())
    names = ("area_ratio", "elongation", "rec_area_ratio")
    size, elongation, filled = (pd.read_csv(golden / "expected" / f"{n}.csv", index_col="img_id") for n in names)
    for image, outlines in annotations.items():
        for finding in size.columns:
            if finding not in outlines:
                assert size.loc[image, finding] == 0
                continue
            shape = shape_of(rasterised(outlines[finding], outlines["img_size"]))
            assert shape.size == size.loc[image, finding]
            assert shape.elongation == elongation.loc[image, finding]
            assert shape.irrectangularity == 1 - filled.loc[image, finding]
