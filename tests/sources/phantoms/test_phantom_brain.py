import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import mannwhitneyu

from heatcheck.sources.phantoms import phantom_brain
from heatcheck.sources.phantoms.brain.contrast import TISSUES
from heatcheck.sources.phantoms.brain.tumour import SWELLING, level
from heatcheck.sources.phantoms.phantom_brain import PhantomBrain, PhantomBrainSettings

MODALITIES = ("T1", "T1C", "T2", "FLAIR")
FORM = {"LGG": "round", "HGG": "irregular"}


def phantom(**changes):
    return PhantomBrain(PhantomBrainSettings(**{"cases": 6, "size": 48, **changes}))


def grade_of(key):
    (name,) = (name for name, label in key.labels.items() if label == 1)
    return name


def digest(case):
    """A hash of everything in a case."""
    hashed = hashlib.sha256(case.image.tobytes())
    for name, mask in case.truth.items():
        hashed.update(name.encode() + mask.tobytes())
    return hashed.hexdigest()


def forms(source):
    """The forms by modality of every case, and those that belong to their grades."""
    keys = source.index()
    shown = np.array([[look.form for look in source.looks(key.case)] for key in keys])
    return dict(zip(MODALITIES, shown.T, strict=True)), np.array([FORM[grade_of(key)] for key in keys])


def test_a_case_has_four_modalities_two_grades_and_one_of_them():
    source = phantom()
    assert source.modalities == MODALITIES
    assert source.findings == ("LGG", "HGG")
    for key in source.index():
        assert sorted(key.labels.values()) == [0, 1]
        assert source.load(key).image.shape == (4, 48, 48)


@pytest.mark.parametrize(("share", "expected"), [(0.5, 20), (0.25, 10), (0.8, 32), (0.0, 0), (1.0, 40)])
def test_grades_have_the_set_frequency_in_any_range(share, expected):
    for first in (0, 7, 1_000_003):
        counts = Counter(map(grade_of, phantom(cases=40, first=first, irregular=share).index()))
        assert counts["HGG"] == pytest.approx(expected, abs=1)


@pytest.mark.parametrize("first", [0, 999_990, 5_000_000])
def test_index_is_sorted_by_id_and_names_each_person_once(first):
    cases = [key.case for key in phantom(cases=20, first=first).index()]
    assert cases == sorted(set(cases))


def test_t1c_always_shows_the_grade_and_flair_as_often_as_set():
    shown, true = forms(phantom(cases=2000))
    assert (shown["T1C"] == true).all()
    assert (shown["FLAIR"] == true).mean() == pytest.approx(0.7, abs=0.03)


def test_the_form_in_t1_and_t2_is_independent_of_grade_and_other_modalities():
    shown, true = forms(phantom(cases=2000))
    for name in ("T1", "T2"):
        for other in (true, *(shown[each] for each in MODALITIES if each != name)):
            assert (shown[name] == other).mean() == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(("t1c", "flair"), [(1, 0), (0, 1), (0.3, 0.9)])
def test_how_often_a_modality_shows_the_grade_can_be_set(t1c, flair):
    shown, true = forms(phantom(cases=1500, t1c=t1c, flair=flair))
    assert (shown["T1C"] == true).mean() == pytest.approx(t1c, abs=0.04)
    assert (shown["FLAIR"] == true).mean() == pytest.approx(flair, abs=0.04)


def test_t1c_does_not_change_with_what_flair_shows():
    """Otherwise the importance of one modality would leak into another."""
    right, wrong = phantom(flair=1.0), phantom(flair=0.0)
    for key in right.index():
        one, other = right.load(key).image, wrong.load(key).image
        assert np.array_equal(one[:3], other[:3])
        assert not np.array_equal(one[3], other[3])


def roundness(mask):
    """The share of its convex hull that the largest part fills."""
    outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    largest = max(outlines, key=cv2.contourArea)
    return cv2.contourArea(largest) / cv2.contourArea(cv2.convexHull(largest))


@pytest.mark.parametrize("size", [64, 96])
def test_the_mask_of_t1c_shows_the_form_at_the_sizes_of_networks(size):
    source = phantom(cases=60, size=size)
    right = [(roundness(source.truth(key)["T1C"]) > 0.88) == (grade_of(key) == "LGG") for key in source.index()]
    assert np.mean(right) >= 0.95


def coarseness(picture, mask, pixel):
    """How alike pixels about 2.6 mm apart are within the bright rim, away from its edges."""
    rim = mask & (picture > 0.5 * np.percentile(picture[mask], 90))
    rim = cv2.erode(rim.astype(np.uint8), np.ones((3, 3))).astype(bool)
    middle = picture[rim].mean() if rim.any() else 0.0
    values, lag, alike, own = np.where(rim, picture - middle, 0), max(1, round(2.6 / pixel)), 0.0, 0.0
    for moved, inside in ((values, rim), (values.T, rim.T)):
        both = inside[lag:] & inside[:-lag]
        alike += (moved[lag:] * moved[:-lag])[both].sum()
        own += (moved[lag:] ** 2 + moved[:-lag] ** 2)[both].sum() / 2
    return alike / own if own else 0.0  # a rim too thin for two pixels away from its edges


def reveals(source, feature):
    """The AUROC of a feature of T1C's tumour for HGG; 0.5 is chance."""
    keys = source.index()
    cases = [source.load(key) for key in keys]
    values = np.array([feature(case.image[1], case.truth["T1C"]) for case in cases])
    high = np.array([key.labels["HGG"] == 1 for key in keys])
    return mannwhitneyu(values[high], values[~high]).statistic / (high.sum() * (~high).sum())


@pytest.mark.parametrize("texture", [False, True])
@pytest.mark.parametrize("shape", [False, True])
def test_shape_and_texture_each_show_the_grade_when_switched_on_and_nothing_when_off(shape, texture):
    source = phantom(cases=100, size=80, shape=shape, texture=texture)
    found = {
        "shape": reveals(source, lambda _, mask: -roundness(mask)),
        "texture": reveals(source, lambda picture, mask: coarseness(picture, mask, 204 / 80)),
    }
    for name, is_on in (("shape", shape), ("texture", texture)):
        # of 50 and 50 cases, chance lies within 0.5 ± 0.17 in 99.7 of 100 draws
        assert (found[name] > 0.93) if is_on else (0.33 < found[name] < 0.67), found


def test_texture_is_that_of_the_form_and_shape_switched_off_is_chance():
    keys = phantom(cases=1000).index()
    both, alone = phantom(cases=1000, texture=True), phantom(cases=1000, texture=True, shape=False)
    texture_of = {"round": "fine", "irregular": "coarse"}
    for key in keys:
        assert all(look.texture == texture_of[look.form] for look in both.looks(key.case))
        assert [look.texture for look in alone.looks(key.case)] == [look.texture for look in both.looks(key.case)]
        assert all(look.texture is None for look in phantom().looks(key.case))
    shown, true = forms(alone)
    for name in MODALITIES:
        assert (shown[name] == true).mean() == pytest.approx(0.5, abs=0.06)
        assert shown[name].tolist() != forms(both)[0][name].tolist()


def test_texture_changes_rim_and_core_alone():
    plain, textured = phantom(cases=4, size=64, noise=0), phantom(cases=4, size=64, noise=0, texture=True)
    for key in plain.index():
        one, other = plain.load(key), textured.load(key)
        for channel, name in enumerate(MODALITIES):
            assert np.array_equal(one.truth[name], other.truth[name])
            changed = one.image[channel] != other.image[channel]
            assert changed.any()
            near = cv2.dilate(other.truth[name].astype(np.uint8), np.ones((3, 3))).astype(bool)
            assert not (changed & ~near).any()  # the outermost voxels are rim in part
            middle = one.image[channel][other.truth["T1C"]].mean()
            assert other.image[channel][other.truth["T1C"]].mean() == pytest.approx(middle, rel=0.2)


def test_size_of_the_tumour_does_not_reveal_its_form():
    source = phantom(cases=120, size=64)
    sizes = {"LGG": [], "HGG": []}
    for key in source.index():
        sizes[grade_of(key)].append(source.truth(key)["T1C"].sum())
    assert np.mean(sizes["HGG"]) == pytest.approx(np.mean(sizes["LGG"]), rel=0.12)


@settings(deadline=None, max_examples=10)
@given(size=st.sampled_from([16, 33, 48, 97]), slices=st.sampled_from([None, 2, 9, 20]), first=st.integers(0, 10**7))
def test_image_of_any_size_is_finite_with_a_mask_for_each_modality_on_its_grid(size, slices, first):
    source = phantom(cases=1, first=first, size=size, slices=slices)
    space = (size, size) if slices is None else (slices, size, size)
    case = source.load(source.index()[0])
    assert case.image.dtype == np.float32
    assert case.image.shape == (4, *space)
    assert np.isfinite(case.image).all()
    assert tuple(case.truth) == MODALITIES
    assert all(mask.shape == space and mask.dtype == bool for mask in case.truth.values())


@pytest.mark.parametrize("slices", [None, 24])
def test_background_is_exactly_zero_and_the_head_never_is(slices):
    source = phantom(cases=4, slices=slices)
    for key in source.index():
        case = source.load(key)
        outside = case.image == 0
        assert (outside == outside[0]).all()  # the modalities are registered
        assert 0.25 < 1 - outside.mean() < 0.75
        parts, _ = cv2.connectedComponents(np.atleast_3d(outside[0].astype(np.uint8))[..., 0] if slices is None else
                                           outside[0][slices // 2].astype(np.uint8))  # fmt: skip
        assert parts == 2  # no holes in the head
        assert case.image.min() >= 0
        assert all((case.image[:, mask] > 0).all() for mask in case.truth.values())


@pytest.mark.parametrize(("size", "slices"), [(32, None), (96, None), (24, 24)])
def test_every_modality_shows_a_tumour(size, slices):
    source = phantom(cases=40 if slices is None else 10, size=size, slices=slices)
    for key in source.index():
        truth = source.truth(key)
        assert tuple(truth) == MODALITIES
        assert all(mask.sum() >= 5 for mask in truth.values()), key.case


def test_mask_of_t1c_is_the_tumour_and_those_of_the_others_its_swelling_too():
    source = phantom(cases=20, size=96, flair=1.0)
    for key in source.index():
        truth = source.truth(key)
        assert truth["T1C"].sum() < 0.8 * truth["FLAIR"].sum()
        assert (truth["T1C"] & ~truth["FLAIR"]).sum() <= 0.02 * truth["T1C"].sum()


def test_nothing_outside_its_mask_reveals_the_form_in_t1c():
    right, wrong = phantom(size=96, noise=0.0, cases=10), phantom(size=96, noise=0.0, cases=10, t1c=0.0)
    for key in right.index():
        one, other = right.load(key), wrong.load(key)
        differs = np.abs(one.image[1] - other.image[1]) > 60
        masks = (one.truth["T1C"] | other.truth["T1C"]).astype(np.uint8)
        assert not (differs & (cv2.dilate(masks, np.ones((3, 3), np.uint8)) == 0)).any()


def test_tissues_are_as_bright_as_in_real_images():
    t1, t1c, t2, flair = ({name: tissue[m] for name, tissue in TISSUES.items()} for m in range(4))
    assert t1["fluid"] < t1["grey"] < t1["white"] < t1["fat"]
    assert t2["white"] < t2["grey"] < t2["swelling"] < t2["fluid"]
    assert flair["fluid"] < flair["white"] < flair["grey"] < flair["swelling"]
    assert t1["core"] < t1["rim"] < t1["white"]
    assert t1c["rim"] > 2 * t1["rim"]
    assert max(t1c.values()) == t1c["rim"]


def parts(source, key):
    """The brightness of core, rim, swelling and of healthy white matter, by modality."""
    scene, case = source._scene(key.case), source.load(key)
    healthy = (source._draw(key.case, scene)[0].white[0] == 1) & ~np.logical_or.reduce(list(case.truth.values()))
    bright = {}
    for channel, (name, look) in enumerate(zip(MODALITIES, source.looks(key.case), strict=True)):
        far = level(scene.tumour, look.form, scene.position).far[0]
        picture, mask = case.image[channel], case.truth[name]
        bright[name] = {
            "core": np.median(picture[mask & (far < 0.4)]),
            "rim": np.median(picture[mask & (far > 0.68) & (far < 0.92)]),
            "white": np.median(picture[healthy]),
        }
        if name in ("T2", "FLAIR"):
            bright[name]["swelling"] = np.median(picture[mask & (far > 1.12) & (far < SWELLING - 0.12)])
    return bright


def test_rim_lights_up_in_t1c_and_swelling_in_t2_and_flair():
    source = phantom(cases=20, size=128)
    for key in source.index():
        bright = parts(source, key)
        assert bright["T1"]["core"] < bright["T1"]["rim"] < bright["T1"]["white"]
        assert bright["T1C"]["rim"] > 1.5 * bright["T1C"]["white"]
        assert bright["T1C"]["rim"] > 3 * bright["T1C"]["core"]
        assert bright["T2"]["core"] > bright["T2"]["white"]
        assert bright["FLAIR"]["swelling"] > 1.4 * bright["FLAIR"]["white"]
        assert bright["FLAIR"]["swelling"] > bright["FLAIR"]["core"]


def test_tumour_only_keeps_the_tumour_unchanged_and_nothing_else():
    full, bare = phantom(), phantom(tumour_only=True)
    for key in bare.index():
        one, other = full.load(key), bare.load(key)
        for channel, name in enumerate(MODALITIES):
            mask = one.truth[name]
            assert np.array_equal(mask, other.truth[name])
            assert np.array_equal(other.image[channel][mask], one.image[channel][mask])
            assert (other.image[channel][~mask] == 0).all()
            assert np.ptp(other.image[channel][mask]) > 50  # so that it can be scaled by its spread


def test_the_set_share_of_cases_shows_only_the_tumour():
    source, every = phantom(cases=200, size=16, tumour_only=0.3), phantom(cases=200, size=16)
    bare = [np.count_nonzero(source.load(key).image) < np.count_nonzero(every.load(key).image) for key in every.index()]
    assert np.mean(bare) == pytest.approx(0.3, abs=0.1)


def test_other_numbers_are_other_people():
    images = {digest(source.load(key)) for source in (phantom(), phantom(first=6)) for key in source.index()}
    assert len(images) == 12


def test_person_does_not_depend_on_range_or_order():
    full, part = phantom(cases=8), phantom(cases=3, first=4)
    wanted = {key.case: key for key in full.index()}
    for key in reversed(part.index()):
        assert key == wanted[key.case]
        assert digest(part.load(key)) == digest(full.load(key))


def test_another_seed_gives_other_images():
    key = phantom().index()[1]
    one, other = phantom().load(key), phantom(seed=21).load(key)
    assert not np.array_equal(one.truth["T1C"], other.truth["T1C"])


@pytest.mark.slow
def test_image_is_the_same_in_another_process():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_phantom_brain import digest, phantom; "
        "print(digest(phantom().load(phantom().index()[3])))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "77"},
    )
    assert answer.stdout.strip() == digest(phantom().load(phantom().index()[3]))


def test_truth_alone_equals_the_truth_of_the_case_and_measures_nothing(monkeypatch):
    for source in (phantom(), phantom(slices=8, size=24)):
        key = source.index()[2]
        expected = source.load(key).truth
        with monkeypatch.context() as patch:
            patch.setattr(phantom_brain, "measured", lambda *_: pytest.fail("the image was measured"))
            alone = source.truth(key)
        assert all(np.array_equal(mask, alone[name]) for name, mask in expected.items())


def test_masks_at_two_sizes_agree():
    small, large = phantom(cases=10, size=96), phantom(cases=10, size=288)
    for key in small.index():
        fine = large.truth(key)
        for name, mask in small.truth(key).items():
            shrunk = cv2.resize(fine[name].astype(np.float32), (96, 96), interpolation=cv2.INTER_AREA) > 0.5
            assert (shrunk & mask).sum() > 0.85 * (shrunk | mask).sum(), key.case


def test_affine_locates_the_tumour_at_any_size():
    """In a head that lies straight the outline's middle is where it was drawn; the patient's left is on the right."""
    for size, slices in ((32, 24), (48, 64)):
        source = phantom(cases=4, size=size, slices=slices)
        for key in source.index():
            case, tumour = source.load(key), source._scene(key.case).tumour
            middle = np.argwhere(case.truth["T1C"]).mean(0)
            right, front, up, _ = case.affine @ [*middle, 1]
            assert (-right, front, up) == pytest.approx(tumour.centre, abs=12)
            assert np.sign(right) == np.sign(size / 2 - middle[2])


def test_a_slice_has_no_affine():
    assert phantom().load(phantom().index()[0]).affine is None


def test_a_changed_label_does_not_change_the_image():
    source = phantom()
    key = source.index()[2]
    flipped = type(key)(key.case, key.patient, {"LGG": 0.0, "HGG": 1.0})
    assert digest(source.load(flipped)) == digest(source.load(key))


def test_the_stamp_is_the_settings():
    assert phantom().stamp() == phantom().stamp()
    assert phantom().stamp() != phantom(flair=0.8).stamp()


@pytest.mark.parametrize(
    "wrong", [{"cases": 0}, {"size": 8}, {"first": -1}, {"slices": 1}, {"flair": 1.1}, {"t1c": -0.1}, {"noise": 1}]
)
def test_settings_that_cannot_be_drawn_are_refused(wrong):
    with pytest.raises(ValidationError):
        PhantomBrainSettings(**wrong)
