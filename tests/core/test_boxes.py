import numpy as np
from hypothesis import given, settings
from hypothesis.extra.numpy import array_shapes, arrays
from skimage.measure import label, regionprops

from heatcheck.core.boxes import boxed, component_boxes


def test_each_part_has_its_box_and_corners_join():
    mask = np.zeros((6, 8), bool)
    mask[0, 0] = mask[1, 1] = True  # one part: they touch at a corner
    mask[3:5, 4:7] = True
    mask[4, 5] = False
    assert component_boxes(mask) == [(slice(0, 2), slice(0, 2)), (slice(3, 5), slice(4, 7))]
    assert boxed(mask).sum() == 4 + 6


def test_an_empty_mask_has_no_box():
    assert component_boxes(np.zeros((3, 4), bool)) == []
    assert not boxed(np.zeros((3, 4), bool)).any()


@settings(deadline=None)
@given(arrays(bool, array_shapes(min_dims=2, max_dims=3, min_side=2, max_side=7)))
def test_boxes_equal_those_of_scikit_image(mask):
    expected = [part.slice for part in regionprops(label(mask, connectivity=mask.ndim))]
    assert sorted(map(str, component_boxes(mask))) == sorted(map(str, expected))
