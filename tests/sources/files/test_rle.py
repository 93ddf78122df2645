import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco

from heatcheck.sources.files.rle import decode, encode, run_lengths


def masks():
    sizes = st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32 - 1), st.floats(0, 1))
    return sizes.map(lambda s: np.random.default_rng(s[2]).random(s[:2]) < s[3])


def counts_of(mask):
    return coco.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"].decode()


@given(masks())
@settings(max_examples=150, deadline=None)
def test_a_mask_survives_the_codes_of_pycocotools(mask):
    np.testing.assert_array_equal(decode(counts_of(mask), mask.shape), mask)
    assert encode(mask) == counts_of(mask)


def test_a_large_mask_is_read_correctly():
    mask = np.zeros((2600, 2100), bool)
    mask[100:2000, 50:1900] = True
    mask[700:900, 300:400] = False
    np.testing.assert_array_equal(decode(counts_of(mask), mask.shape), mask)
    assert encode(mask) == counts_of(mask)
    assert encode(~mask) == counts_of(~mask)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # from pycocotools
@given(masks(), st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_counts_are_refused_or_cover_the_picture_exactly(mask, data):
    text = list(counts_of(mask))
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(text)))
        text[index : index + data.draw(st.integers(0, 2))] = data.draw(st.text(max_size=2))
    damaged = "".join(text)
    try:
        decoded = decode(damaged, mask.shape)
    except ValueError:
        return
    judge = coco.decode({"size": list(mask.shape), "counts": damaged.encode()})  # safe: the counts are valid
    np.testing.assert_array_equal(decoded, judge.astype(bool))


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ("0T", "in the middle of a number"),
        ("0\x7f", "invalid characters"),
        ("é", "invalid characters"),
        ("o" * 9 + "0", "a number that is too large"),
        ("O1", "a negative run"),
        ([3, -1], "whole numbers of 0 or more"),
        ([3, 1.5], "whole numbers of 0 or more"),
        ([3, True], "whole numbers of 0 or more"),
        ([3, "1"], "whole numbers of 0 or more"),
    ],
)
def test_each_kind_of_damage_is_explained(counts, words):
    with pytest.raises(ValueError, match=words):
        run_lengths(counts)


@pytest.mark.parametrize("counts", ["", "7", [], [3, 4], [3, 9]])
def test_counts_of_another_size_are_refused(counts):
    with pytest.raises(ValueError, match=r"cover \d+ pixels, not 2×4 = 8"):
        decode(counts, (2, 4))


def test_plain_counts_run_down_the_columns():
    np.testing.assert_array_equal(decode([1, 2, 3], (2, 3)), [[False, True, False], [True, False, False]])
