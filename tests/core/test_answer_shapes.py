"""Each wrong shape of answers has its own remedy."""

import pytest

from heatcheck.core.answer_shapes import remedy_for_answers


@pytest.mark.parametrize(
    ("shape", "images", "outputs", "remedy"),
    [
        ((8,), 8, 1, "`answers[:, None]`"),
        ((1,), 1, 1, "`answers[:, None]`"),
        ((), 1, 1, "without `squeeze()`"),
        ((2,), 1, 2, "without `squeeze()`"),
        ((8, 2, 1, 1), 8, 2, "the mean over positions"),
        ((8, 3), 8, 2, "correct `outputs`"),
    ],
)
def test_remedy_fits_the_shape(shape, images, outputs, remedy):
    assert remedy in remedy_for_answers(shape, images, outputs)
