import numpy as np
import pytest

from heatcheck.sources.phantoms.chest.anatomy import (
    LEFT,
    RIGHT,
    airways,
    body,
    bones,
    draw_anatomy,
    heart,
    lung,
    lung_air,
    upper_mediastinum,
    vessels,
)
from heatcheck.sources.phantoms.chest.canvas import Canvas

CANVAS = Canvas((128, 128))
SEEDS = range(12)


def patient(seed):
    return draw_anatomy(np.random.default_rng(seed))


def width(mask):
    columns = np.nonzero(mask.any(0))[0]
    return columns[-1] - columns[0] + 1


def test_same_generator_gives_the_same_patient_and_another_one_somebody_else():
    assert patient(1) == patient(1)
    assert patient(1) != patient(2)


@pytest.mark.parametrize("seed", SEEDS)
def test_lungs_lie_on_their_sides_inside_the_body_and_do_not_meet(seed):
    anatomy = patient(seed)
    right, left = (CANVAS.exact(lung(anatomy, side)) for side in (RIGHT, LEFT))
    assert not (right & left).any()
    assert np.nonzero(right.any(0))[0].max() < 64 <= np.nonzero(left.any(0))[0].min()
    assert ((right | left) & ~CANVAS.exact(body(anatomy))).sum() == 0
    assert 0.05 < right.mean() < 0.35


@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_heart_is_narrower_than_half_the_thorax_and_points_to_the_patients_left(seed):
    anatomy = patient(seed)
    cardiac = CANVAS.exact(heart(anatomy))
    thorax = CANVAS.exact(lung(anatomy, RIGHT), lung(anatomy, LEFT))
    assert width(cardiac) < 0.5 * width(thorax)
    assert cardiac[:, 64:].sum() > 1.5 * cardiac[:, :64].sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_great_vessels_stand_on_the_heart(seed):
    anatomy = patient(seed)
    cardiac, upper = CANVAS.exact(heart(anatomy)), CANVAS.exact(upper_mediastinum(anatomy))
    assert (cardiac & upper).any()
    assert np.nonzero(upper.any(1))[0].min() < np.nonzero(cardiac.any(1))[0].min()


def test_vessel_tree_belongs_to_the_patient_and_thins_out_from_the_hila():
    trees = [vessels(patient(seed), CANVAS) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(trees[0], trees[1])
    assert not np.array_equal(trees[0], trees[2])
    middle = trees[0][48:80, 44:84].mean()
    assert middle > 2 * trees[0][48:80, 8:28].mean() > 0


def test_bones_and_airways_are_finite_and_where_they_belong():
    skeleton = bones(patient(3), CANVAS)
    air = airways(CANVAS)
    assert np.isfinite(skeleton).all()
    assert skeleton[:, 60:68].mean() > skeleton[:, 26:44].mean() > 0.01
    assert air[20:40, 62:66].mean() > 0.5
    assert air[70:].max() == 0


def test_air_is_deepest_in_the_middle_of_the_lung_and_absent_outside():
    field = CANVAS.exact(lung(patient(4), RIGHT))
    air = lung_air(CANVAS, field)
    assert 0 <= air.min() <= air.max() <= 1 + 1e-6
    row, column = (int(axis.mean()) for axis in np.nonzero(field))
    assert air[row, column] > 0.9
    assert air[:, 70:].max() == 0


def test_lung_without_a_field_has_no_air():
    assert not lung_air(CANVAS, np.zeros((128, 128), bool)).any()
