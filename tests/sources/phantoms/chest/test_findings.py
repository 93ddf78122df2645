from dataclasses import replace

import cv2
import numpy as np
import pytest

from heatcheck.sources.phantoms.chest.anatomy import LEFT, RIGHT, draw_anatomy, heart, lung, upper_mediastinum
from heatcheck.sources.phantoms.chest.canvas import Canvas, ChestPose
from heatcheck.sources.phantoms.chest.film import Exposure, expose, new_scene
from heatcheck.sources.phantoms.chest.findings import FINDINGS, OPACITIES, enlarge

EXPOSURE = Exposure(brightness=0, contrast=1, scatter=0.05, noise=0)
IN_LUNGS = sorted(set(FINDINGS) - {"Cardiomegaly", "Enlarged Cardiomediastinum", "Support Devices"})
PATIENTS = range(0, 60, 10)


def generator(seed):
    return np.random.default_rng(seed)


def scene(patient, present=frozenset(), shape=(96, 96), **changes):
    """The patient without findings, with the anatomy that the findings require."""
    anatomy = enlarge(draw_anatomy(generator(patient)), frozenset(present), generator(patient + 1))
    return new_scene(Canvas(shape), replace(anatomy, **changes))


def draw(name, patient, shape=(96, 96), **changes):
    drawn = scene(patient, {name}, shape, **changes)
    return drawn, FINDINGS[name].draw(drawn, generator(patient + 2))


def film(drawn, patient):
    return expose(drawn, EXPOSURE, generator(patient + 3))


def change(name, patient):
    """How the finding changes the patient's film, and its mask."""
    drawn, mask = draw(name, patient)
    return film(drawn, patient) - film(scene(patient), patient), mask


def width(mask):
    columns = np.nonzero(mask.any(0))[0]
    return columns[-1] - columns[0] + 1


@pytest.mark.parametrize("name", FINDINGS)
@pytest.mark.parametrize("shape", [(32, 32), (97, 83)])
def test_mask_is_on_the_canvas_and_never_empty(name, shape):
    for patient in range(0, 200, 10):
        _, mask = draw(name, patient, shape)
        assert mask.shape == shape
        assert mask.dtype == bool
        assert mask.any()
        assert mask.mean() < 0.5


@pytest.mark.parametrize("name", IN_LUNGS)
def test_finding_of_the_lung_is_marked_inside_the_lung_fields(name):
    for patient in PATIENTS:
        drawn, mask = draw(name, patient)
        assert not (mask & ~(drawn.lungs[RIGHT] | drawn.lungs[LEFT])).any()


@pytest.mark.parametrize("name", sorted(set(FINDINGS) - {"Pneumothorax"}))
def test_film_is_brighter_inside_the_mask_than_without_the_finding(name):
    for patient in PATIENTS:
        difference, mask = change(name, patient)
        assert difference[mask].mean() > 0.03


def test_effusion_turns_the_lung_white():
    for patient in PATIENTS:
        difference, mask = change("Pleural Effusion", patient)
        assert difference[mask].mean() > 0.2


def test_effusion_lies_at_the_bottom_of_the_lung():
    for patient in PATIENTS:
        drawn, mask = draw("Pleural Effusion", patient)
        for field in drawn.lungs.values():
            rows = np.nonzero((mask & field).any(1))[0]
            assert not rows.size or rows.max() == np.nonzero(field.any(1))[0].max()
            assert not rows.size or rows.min() > np.nonzero(field.any(1))[0].min() + 20


def test_pneumothorax_is_darker_and_empty_of_vessels():
    for patient in PATIENTS:
        difference, mask = change("Pneumothorax", patient)
        assert difference[mask].mean() < -0.03
        ill, healthy = (_visible_vessels(name, patient) for name in ("Pneumothorax", None))
        assert ill[mask].mean() < 0.2 * healthy[mask].mean()
        assert ill[~mask].mean() > 0.9 * healthy[~mask].mean()


def _visible_vessels(name, patient):
    """How much vessels and lung texture add to the film."""
    films = []
    for markings in (0.0, 1.0):
        drawn = draw(name, patient, markings=markings)[0] if name else scene(patient, markings=markings)
        films.append(film(drawn, patient))
    return np.abs(films[1] - films[0])


def test_consolidation_hides_the_vessels_and_an_airspace_opacity_does_not():
    for patient in PATIENTS:
        solid, mask = draw("Consolidation", patient)
        hazy, _ = draw("Airspace Opacity", patient)
        assert solid.markings[mask].mean() < 0.4
        assert (hazy.markings == 1).all()


def test_edema_is_bilateral_and_around_the_hila():
    for patient in PATIENTS:
        drawn, mask = draw("Edema", patient)
        shares = [(mask & field).sum() / field.sum() for field in drawn.lungs.values()]
        assert min(shares) > 0.2
        middle, base = mask[35:60], mask[75:]
        assert middle.mean() > base.mean()


@pytest.mark.parametrize("name", ["Consolidation", "Pneumothorax"])
def test_one_sided_finding_stays_on_its_side_and_both_sides_occur(name):
    sides = set()
    for patient in range(0, 120, 10):
        drawn, mask = draw(name, patient)
        touched = {side for side, field in drawn.lungs.items() if (mask & field).any()}
        assert len(touched) == 1
        sides |= touched
    assert sides == {RIGHT, LEFT}


@pytest.mark.parametrize("name", ["Airspace Opacity", "Atelectasis", "Pleural Effusion"])
def test_finding_may_be_on_one_side_or_on_both(name):
    counts = set()
    for patient in range(0, 200, 10):
        drawn, mask = draw(name, patient)
        counts.add(sum((mask & field).any() for field in drawn.lungs.values()))
    assert counts == {1, 2}


def test_enlarged_heart_fills_more_of_the_thorax_than_a_healthy_one():
    ratios = []
    for patient in range(0, 300, 10):
        drawn, mask = draw("Cardiomegaly", patient, (128, 128))
        healthy = scene(patient, shape=(128, 128))
        thorax = width(healthy.lungs[RIGHT] | healthy.lungs[LEFT])
        ratios.append((width(healthy.canvas.exact(heart(healthy.anatomy))) / thorax, width(mask) / thorax))
        assert drawn.anatomy.width == healthy.anatomy.width
    healthy_ratios, enlarged_ratios = np.array(ratios).T
    assert healthy_ratios.max() < 0.5
    assert enlarged_ratios.min() > 0.45
    assert enlarged_ratios.mean() > 0.5
    assert (enlarged_ratios > 1.2 * healthy_ratios).all()


def test_wide_mediastinum_is_marked_together_with_the_heart():
    for patient in PATIENTS:
        drawn, mask = draw("Enlarged Cardiomediastinum", patient)
        healthy = scene(patient)
        upper = [one.canvas.exact(upper_mediastinum(one.anatomy)) for one in (healthy, drawn)]
        assert width(upper[1][20:36]) > 1.3 * width(upper[0][20:36])
        assert not (upper[1] & ~mask).any()
        assert not (drawn.canvas.exact(heart(drawn.anatomy)) & ~mask).any()


def test_anatomy_changes_only_for_the_findings_that_require_it():
    anatomy = draw_anatomy(generator(1))
    assert enlarge(anatomy, frozenset(set(IN_LUNGS)), generator(2)) == anatomy
    grown = enlarge(anatomy, frozenset({"Cardiomegaly"}), generator(2))
    assert grown == replace(anatomy, heart=grown.heart)
    assert grown.heart >= 1.3 * anatomy.heart
    # the draws do not depend on which findings are present
    both = enlarge(anatomy, frozenset({"Cardiomegaly", "Enlarged Cardiomediastinum"}), generator(2))
    assert both.heart == grown.heart
    assert both.mediastinum >= 1.5 * anatomy.mediastinum


@pytest.mark.parametrize("name", FINDINGS)
def test_equal_generators_draw_the_same_finding_in_the_patients_frame(name):
    """Two views differ only in the pose."""
    straight, shifted = (
        new_scene(Canvas((96, 96), pose), scene(30, {name}).anatomy)
        for pose in (ChestPose(), ChestPose(shift=(0.125, 0.0)))
    )
    first, second = (FINDINGS[name].draw(one, generator(7)) for one in (straight, shifted))
    np.testing.assert_array_equal(first[:, :90], second[:, 6:])


@pytest.mark.parametrize("name", FINDINGS)
def test_film_changes_near_the_finding_and_hardly_elsewhere(name):
    for patient in PATIENTS:
        difference, mask = change(name, patient)
        near = cv2.dilate(mask.astype(np.uint8), np.ones((9, 9), np.uint8)).astype(bool)
        assert np.abs(difference[~near]).mean() < 0.01
        assert np.abs(difference[mask]).mean() > 8 * np.abs(difference[~near]).mean()


def test_lesions_are_small_and_atelectasis_is_flat_or_a_wedge_low_in_the_lung():
    for patient in PATIENTS:
        drawn, lesion = draw("Lung Lesion", patient)
        assert lesion.sum() < 0.25 * (drawn.lungs[RIGHT] | drawn.lungs[LEFT]).sum()
        _, plates = draw("Atelectasis", patient)
        assert np.nonzero(plates.any(1))[0].min() > 45


def test_every_finding_has_a_prevalence_that_leaves_positives_and_negatives():
    assert len(FINDINGS) == 10
    assert all(0.1 <= finding.prevalence <= 0.5 for finding in FINDINGS.values())
    assert set(OPACITIES) < set(FINDINGS)
    assert list(FINDINGS) == sorted(FINDINGS)


def test_lung_outline_is_where_the_scene_says():
    drawn = scene(10)
    np.testing.assert_array_equal(drawn.lungs[LEFT], drawn.canvas.exact(lung(drawn.anatomy, LEFT)))
