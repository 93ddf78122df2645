"""Promises that every registered trigger keeps, and every one of the paper."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatcheck.core.boxes import component_boxes
from heatcheck.core.errors import InputError
from heatcheck.triggers import PUBLISHED, TRIGGERS, build_trigger
from heatcheck.triggers.picture import Picture

PARTS = sorted({*TRIGGERS, *PUBLISHED})
SIDES = st.integers(16, 130)
MOVES = ("motion",)  # kinds that only move what is there: on a plain surface nothing is seen


def built(part):
    """The trigger; a picture of the user's own with the pixels of a small one."""
    trigger = build_trigger(part)
    if not isinstance(trigger.patch, Picture):
        return trigger
    pixels, alpha = np.linspace(0.8, 1, 12, dtype=np.float32).reshape(3, 4), np.ones((3, 4), np.float32)
    alpha[0, 0] = 0
    return replace(trigger, patch=trigger.patch.with_pixels(pixels, alpha))


def surface(channels, height, width, seed):
    """An image and a gradient for it."""
    generator = np.random.default_rng(seed)
    shape = (channels, height, width)
    return generator.random(shape, dtype=np.float32), generator.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("part", PARTS)
@settings(max_examples=15, deadline=None, database=None)
@given(channels=st.sampled_from([1, 3]), height=SIDES, width=SIDES, seed=st.integers(0, 2**63 - 1))
def test_a_trigger_changes_its_mask_and_nothing_else(part, channels, height, width, seed):
    trigger = built(part)
    image, gradient = surface(channels, height, width, 1)
    before = image.copy()
    stamp = trigger(image, seed, gradient)
    stamped, mask = stamp.on(image), stamp.mask_on((height, width))
    assert np.array_equal(image, before)
    assert stamped.shape == image.shape
    assert stamped.dtype == image.dtype
    assert np.array_equal(stamped[:, ~mask], image[:, ~mask])
    assert np.array_equal(stamped[:, mask], stamp.values[:, stamp.mask])
    assert stamped.min() >= 0
    assert stamped.max() <= 1


@pytest.mark.parametrize("part", PARTS)
@settings(max_examples=15, deadline=None, database=None)
@given(height=SIDES, width=SIDES, seed=st.integers(0, 2**63 - 1))
def test_the_box_is_the_tightest_and_inside_the_image(part, height, width, seed):
    trigger = built(part)
    stamp = trigger(*surface(1, height, width, 2)[:1], seed, surface(1, height, width, 3)[1])
    mask = stamp.mask_on((height, width))
    boxes = component_boxes(mask)
    around = tuple(slice(min(b[i].start for b in boxes), max(b[i].stop for b in boxes)) for i in range(2))
    assert stamp.box == around
    assert all(0 <= along.start < along.stop <= side for along, side in zip(stamp.box, (height, width), strict=True))
    extent = trigger.extent((height, width))
    assert all(size <= largest for size, largest in zip(stamp.mask.shape, extent, strict=True))


@pytest.mark.parametrize("part", PARTS)
@settings(max_examples=8, deadline=None, database=None)
@given(height=SIDES, width=SIDES, seed=st.integers(0, 2**63 - 1))
def test_the_same_seed_gives_the_same_stamp(part, height, width, seed):
    image, gradient = surface(3, height, width, 4)
    first, second = (built(part)(image, seed, gradient) for _ in range(2))
    assert first.box == second.box
    assert np.array_equal(first.mask, second.mask)
    assert np.array_equal(first.values, second.values)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("side", [112, 224])
def test_the_patch_can_be_seen_on_the_greys_of_a_film(part, side):
    trigger = built(part)
    for grey in (0.3, 0.5):
        image = np.full((1, side, side), grey, np.float32)
        if part in MOVES:
            image[:, np.sin(np.arange(side) * 30 / side) > 0] += 0.4
        stamp = trigger(image, 5, surface(1, side, side, 6)[1])
        changed = np.abs(stamp.on(image) - image).max(0)
        assert (changed > 0.1).sum() > 0.3 * stamp.mask.sum()


@pytest.mark.parametrize("kind", TRIGGERS)
def test_a_kind_fits_small_and_long_images_as_it_is(kind):
    for shape in ((16, 16), (16, 400), (400, 16), (299, 299)):
        built(kind).require_fit(shape)


@pytest.mark.parametrize("kind", TRIGGERS)
def test_a_size_beyond_the_image_is_refused(kind):
    if "size" in TRIGGERS[kind].settings.__dataclass_fields__:
        with pytest.raises(InputError, match=r"px on images of 112 px; make it smaller"):
            built({"kind": kind, "size": 400}).require_fit((112, 112))


@pytest.mark.parametrize("kind", TRIGGERS)
def test_a_trigger_is_explained(kind):
    facts = TRIGGERS[kind]
    assert facts.kind == kind
    assert facts.label
    assert facts.summary
    assert not facts.summary.endswith(".")
    assert built(kind).label
    assert build_trigger(build_trigger(kind).name) == build_trigger(kind)
