"""The masks of a multi-modal case, and what takes the place of its voxels."""

import numpy as np
import pytest
from tests.studies.modality.material import MODALITIES, small_case

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Case
from heatcheck.studies.modality.cases import MaskRule, boxed, modal_case, slice_axis, tissue_samples


def test_each_modality_has_its_own_mask_and_the_case_its_class():
    case = small_case()
    seen = modal_case(case, MODALITIES, MaskRule())
    assert seen.label == "HGG"
    for mask, name in zip(seen.masks, MODALITIES, strict=True):
        assert np.array_equal(mask, case.truth[name])


def test_a_shared_mask_is_the_union_in_every_modality():
    case = small_case()
    seen = modal_case(case, MODALITIES, MaskRule("shared"))
    assert all(np.array_equal(mask, case.truth["FLAIR"]) for mask in seen.masks)


def test_masks_by_finding_hold_for_all_modalities():
    case = small_case()
    by_finding = Case(case.key, case.image, {"HGG": case.truth["T1"], "oedema": case.truth["FLAIR"]})
    seen = modal_case(by_finding, MODALITIES, MaskRule())
    assert all(np.array_equal(mask, case.truth["FLAIR"]) for mask in seen.masks)


def test_a_box_is_the_tightest_around_the_mask():
    mask = np.zeros((6, 7, 5), bool)
    mask[1, 2, 3] = mask[4, 3, 3] = True
    expected = np.zeros_like(mask)
    expected[1:5, 2:4, 3:4] = True
    assert np.array_equal(boxed(mask), expected)


def test_masks_grow_within_axial_slices_only_and_what_is_ablated_does_not():
    axial_last = np.diag([1.0, 1.0, 2.0, 1.0])
    case = small_case((12, 12, 6), affine=axial_last)
    seen = modal_case(case, MODALITIES, MaskRule(dilate=1))
    assert slice_axis(case) == 2
    assert np.array_equal(seen.lesion[0], case.truth["T1"])
    grown = seen.masks[0]
    assert np.array_equal(grown.any((0, 1)), case.truth["T1"].any((0, 1)))
    first = np.zeros((12, 12), bool)
    first[1:5, 2:4] = first[2:4, 1:5] = True
    assert np.array_equal(grown[:, :, 2], first)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, "a has no mask of its lesion"),
        ({"T1": np.ones((8, 8), bool)}, "the mask of T1C of a is empty"),
        (dict.fromkeys(MODALITIES, np.zeros((8, 8), bool)), "the mask of T1 of a is empty"),
        (
            dict.fromkeys(MODALITIES, np.ones((8, 9), bool)),
            r"the mask of T1 of a has shape \(8, 9\), the image \(8, 8\)",
        ),
    ],
)
def test_a_case_without_whole_masks_is_refused(change, told):
    case = small_case()
    with pytest.raises(CaseError, match=told):
        modal_case(Case(case.key, case.image, change), MODALITIES, MaskRule())


def test_a_case_with_other_channels_or_voxels_that_are_no_numbers_is_refused():
    case = small_case()
    with pytest.raises(CaseError, match=r"a must have 4 channels .*, got 3"):
        modal_case(Case(case.key, case.image[:3], case.truth), MODALITIES, MaskRule())
    broken = case.image.copy()
    broken[1, 4, 4] = np.nan
    with pytest.raises(CaseError, match="not finite"):
        modal_case(Case(case.key, broken, case.truth), MODALITIES, MaskRule())


def test_the_head_is_where_any_modality_is_not_zero():
    seen = modal_case(small_case(), MODALITIES, MaskRule())
    expected = np.zeros((8, 8), bool)
    expected[1:-1, 1:-1] = True
    assert np.array_equal(seen.head, expected)


def test_tissue_comes_from_outside_the_lesion_of_the_same_modality():
    case = small_case()
    seen = modal_case(case, MODALITIES, MaskRule())
    filled = tissue_samples(case.image, seen.lesion, np.random.default_rng(1))
    for channel, mask, own in zip(case.image, seen.lesion, filled, strict=True):
        outside = set(channel[~mask & (channel != 0)].tolist())
        assert set(own[channel != 0].tolist()) <= outside
        assert not own[channel == 0].any()


def test_a_lesion_that_fills_the_head_leaves_no_tissue_to_draw_from():
    case = small_case()
    every = np.ones((4, 8, 8), bool)
    with pytest.raises(CaseError, match="no tissue outside the lesion"):
        tissue_samples(case.image, every, np.random.default_rng(1))
