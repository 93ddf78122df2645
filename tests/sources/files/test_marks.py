import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pictures
from PIL import ImageDraw

from heatcheck.core.errors import CaseError
from heatcheck.sources.files.marks import Boxes, MaskFile, Outlines, Runs, Several, filled


def drawn(polygons, shape):
    """The mask that Pillow draws on the full image."""
    picture = Pictures.new("1", shape[::-1])
    for polygon in polygons:
        ImageDraw.Draw(picture).polygon([tuple(point) for point in np.asarray(polygon).tolist()], outline=1, fill=1)
    return np.array(picture)


coordinates = st.floats(-40, 300) | st.integers(-40, 300).map(float)
outlines = st.lists(st.tuples(coordinates, coordinates), min_size=3, max_size=12).map(np.array)


@given(st.lists(outlines, min_size=1, max_size=3), st.tuples(st.integers(1, 260), st.integers(1, 260)))
@settings(max_examples=300, deadline=None)
def test_drawing_part_of_the_picture_equals_drawing_all_of_it(polygons, shape):
    np.testing.assert_array_equal(filled(polygons, shape), drawn(polygons, shape))


def test_drawing_part_of_a_large_picture_equals_drawing_all_of_it():
    random = np.random.default_rng(3)
    for _ in range(30):
        centre, spread = random.uniform(0, 2400, 2), random.uniform(3, 300)
        polygon = centre + spread * random.normal(size=(random.integers(3, 200), 2))
        np.testing.assert_array_equal(filled([polygon], (2500, 2100)), drawn([polygon], (2500, 2100)))


def test_an_outline_beyond_the_border_is_cut_off():
    square = np.array([[-3.0, -2], [2, -2], [2, 1], [-3, 1]])
    expected = np.zeros((4, 5), bool)
    expected[:2, :3] = True
    np.testing.assert_array_equal(Outlines((square,)).mask((4, 5)), expected)


def test_outlines_are_counted_and_joined():
    first, second = np.array([[0.0, 0], [2, 0], [2, 2]]), np.array([[5.0, 5], [7, 5], [7, 7]])
    marks = Outlines((first, second))
    assert (marks.instances, marks.empty, Outlines((first, second), drawn=1).instances) == (2, False, 1)
    np.testing.assert_array_equal(marks.mask((9, 9)), drawn([first, second], (9, 9)))
    assert not Outlines(()).mask((3, 4)).any()
    assert Outlines(()).empty


@pytest.mark.parametrize(
    ("box", "rows", "columns"),
    [
        ((1, 2, 3, 2), slice(2, 4), slice(1, 4)),
        ((0.6, 0, 1.8, 1), slice(0, 1), slice(1, 2)),  # only the second column has its centre inside
        ((2.6, 1.1, 0.2, 0.3), slice(1, 2), slice(2, 3)),  # contains no centre
        ((-5, -5, 100, 6), slice(0, 1), slice(0, 7)),
        ((6.9, 4.9, 3, 3), slice(5, 6), slice(7, 7)),  # its part inside the image contains no centre
    ],
)
def test_a_box_has_the_pixels_whose_centres_it_contains(box, rows, columns):
    expected = np.zeros((6, 7), bool)
    expected[rows, columns] = True
    np.testing.assert_array_equal(Boxes((box,)).mask((6, 7)), expected)


def test_boxes_are_counted_joined_and_have_corners():
    marks = Boxes(((0, 0, 2, 1), (1, 0, 2, 2)))
    assert (marks.instances, marks.empty) == (2, False)
    np.testing.assert_array_equal(marks.mask((2, 4)), [[True, True, True, False], [False, True, True, False]])
    np.testing.assert_array_equal(marks.polygons[1], [[1, 0], [3, 0], [3, 2], [1, 2]])


def test_a_stored_mask_knows_whether_it_is_empty(tmp_path):
    assert Runs([6]).empty
    assert not Runs([1, 2, 3]).empty
    assert Several((Runs([6]), Runs([6]))).empty
    assert Several((Runs([6]), Runs([5, 1]))).mask((2, 3)).sum() == 1
    Pictures.new("L", (3, 2)).save(tmp_path / "black.png")
    Pictures.new("L", (3, 2), 1).save(tmp_path / "white.png")
    assert MaskFile(tmp_path / "black.png", "black").empty
    assert not MaskFile(tmp_path / "white.png", "white").empty
    assert MaskFile(tmp_path / "white.png", "white").mask((2, 3)).all()
    with pytest.raises(CaseError, match="mask white is 2×3, its image 4×4"):
        MaskFile(tmp_path / "white.png", "white").mask((4, 4))
