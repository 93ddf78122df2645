import numpy as np
import pytest
from scipy import ndimage

from heatcheck.core.errors import CaseError
from heatcheck.triggers import build_trigger
from heatcheck.triggers.dynamic import any_shape, blob

GENERATOR = np.random.default_rng(2)
FILM = GENERATOR.random((3, 112, 112), dtype=np.float32)
GRADIENT = GENERATOR.standard_normal((3, 112, 112), dtype=np.float32)


@pytest.mark.parametrize(("settings", "low"), [({}, 0.0), ({"clip": False}, -0.3)])
def test_values_are_the_sign_of_the_gradient_times_the_strength(settings, low):
    stamp = build_trigger({"kind": "dynamic", **settings})(FILM, 7, GRADIENT)
    stamped = stamp.on(FILM)[:, stamp.mask_on((112, 112))]
    gradient_in_patch = GRADIENT[:, stamp.mask_on((112, 112))]
    assert np.array_equal(stamped, np.where(gradient_in_patch > 0, np.float32(0.3), np.float32(low)))
    assert stamped.dtype == np.float32


def test_the_strength_is_a_setting():
    stamp = build_trigger({"kind": "dynamic", "strength": 0.5})(FILM, 7, GRADIENT)
    assert set(np.unique(stamp.values)) == {0, 0.5}


def test_position_and_shape_differ_between_images():
    stamps = [build_trigger("dynamic-40")(FILM, seed, GRADIENT) for seed in range(20)]
    assert len({stamp.box[0].start for stamp in stamps}) > 10
    assert len({stamp.mask.tobytes() for stamp in stamps}) > 4
    assert {stamp.mask.shape for stamp in stamps} == {(20, 20)}


def test_all_three_kinds_of_shapes_occur():
    shapes = [any_shape(20, np.random.default_rng(seed)).sum() for seed in range(60)]
    assert 10 <= shapes.count(400) <= 30  # squares
    assert 10 <= shapes.count(316) <= 30  # discs


@pytest.mark.parametrize("side", [1, 2, 3, 7, 20, 60])
def test_a_blob_is_one_part_and_touches_all_sides(side):
    for seed in range(40):
        mask = blob(side, np.random.default_rng(seed))
        assert mask.shape == (side, side)
        assert mask.any(0)[[0, -1]].all()
        assert mask.any(1)[[0, -1]].all()
        assert ndimage.label(mask, np.ones((3, 3)))[1] == 1
        assert mask.mean() > 0.25


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (None, "needs the gradient of the baseline's loss for the image; pass `gradient`"),
        (GRADIENT[:1], "must have the image's shape .*, got"),
        (GRADIENT[:, :100], "must have the image's shape .*, got"),
    ],
)
def test_a_gradient_that_is_missing_or_of_another_image_is_refused(gradient, message):
    with pytest.raises(ValueError, match=message):
        build_trigger("dynamic-20")(FILM, 7, gradient)


def test_a_gradient_that_is_not_finite_fails_the_case():
    with pytest.raises(CaseError, match="not finite"):
        build_trigger("dynamic-20")(FILM, 7, np.full_like(FILM, np.nan))
