"""A folder whose images have one channel per modality, and masks by modality or one for all."""

import nibabel
import numpy as np
import pytest

from heatcheck.core.errors import CaseError, HeatcheckError, InputError
from heatcheck.sources import SOURCES


def opened(tmp_path, *masks, **settings):
    """A source of one image with two channels, and a mask in each of the named folders."""
    (tmp_path / "scans").mkdir()
    np.save(tmp_path / "scans" / "a.npy", np.ones((2, 4, 5), np.float32))
    for number, name in enumerate(masks):
        (tmp_path / "masks" / name).mkdir(parents=True)
        mask = np.zeros((4, 5), np.uint8)
        mask[number] = 1
        np.save(tmp_path / "masks" / name / "a.npy", mask)
    (tmp_path / "classes.csv").write_text("image,benign,malignant\na,0,1\n")
    facts = SOURCES["folder"]
    values = {"images": "scans", "labels": "classes.csv", "masks": "masks", "modalities": ["CT", "PET"]} | settings
    return facts.open(facts.settings.model_validate(values).resolved(tmp_path))


def test_masks_are_read_by_modality_and_classes_from_the_labels(tmp_path):
    source = opened(tmp_path, "CT", "PET")
    assert source.modalities == ("CT", "PET")
    assert source.findings == ("benign", "malignant")
    truth = source.load(source.index()[0]).truth
    assert {name: np.argwhere(mask)[0, 0] for name, mask in truth.items()} == {"CT": 0, "PET": 1}


def test_one_folder_of_any_name_applies_to_all(tmp_path):
    source = opened(tmp_path, "tumour")
    assert list(source.truth(source.index()[0])) == ["tumour"]


def test_classes_cannot_come_from_masks_of_modalities(tmp_path):
    with pytest.raises((HeatcheckError, ValueError), match="give `labels`"):
        opened(tmp_path, "CT", labels=None)


AFFINE = np.diag([-2.0, 1.5, 3.0, 1.0])
SHAPE = (6, 5, 4)


def volumes(tmp_path, mask="a.nii.gz", affine=AFFINE, shape=SHAPE):
    """A source of one volume with two channels, and one mask for all of the given name."""
    (tmp_path / "scans").mkdir()
    nibabel.save(nibabel.Nifti1Image(np.ones((*SHAPE, 2), np.float32), AFFINE), tmp_path / "scans" / "a.nii.gz")
    (tmp_path / "masks" / "tumour").mkdir(parents=True)
    marked = np.zeros(shape, np.uint8)
    marked[1, 2, 3:] = 1
    if mask.endswith(".npy"):
        np.save(tmp_path / "masks" / "tumour" / mask, marked)
    else:
        nibabel.save(nibabel.Nifti1Image(marked, affine), tmp_path / "masks" / "tumour" / mask)
    return open_volumes(tmp_path)


def open_volumes(tmp_path):
    (tmp_path / "classes.csv").write_text("image,benign,malignant\na.nii.gz,0,1\n")
    facts = SOURCES["folder"]
    values = {"images": "scans", "labels": "classes.csv", "masks": "masks", "modalities": ["CT", "PET"]}
    return facts.open(facts.settings.model_validate(values).resolved(tmp_path))


@pytest.mark.parametrize("mask", ["a.nii.gz", "a.nii", "a.npy"])
def test_masks_of_volumes_are_nifti_or_arrays_of_three_axes(tmp_path, mask):
    source = volumes(tmp_path, mask)
    case = source.load(source.index()[0])
    assert case.image.shape == (2, *SHAPE)
    assert np.argwhere(case.truth["tumour"]).tolist() == [[1, 2, 3]]
    np.testing.assert_array_equal(source.truth(case.key)["tumour"], case.truth["tumour"])


def test_volumes_may_be_arrays_with_channels_first(tmp_path):
    (tmp_path / "scans").mkdir()
    np.save(tmp_path / "scans" / "a.npy", np.ones((2, *SHAPE), np.float32))
    (tmp_path / "masks" / "tumour").mkdir(parents=True)
    np.save(tmp_path / "masks" / "tumour" / "a.npy", np.eye(*SHAPE[:2])[..., None].repeat(SHAPE[2], 2))
    source = open_volumes(tmp_path)
    case = source.load(source.index()[0])
    assert case.image.shape == (2, *SHAPE)
    assert case.truth["tumour"].shape == SHAPE
    assert case.truth["tumour"].sum() == 5 * 4


def test_a_mask_at_another_position_than_its_image_is_refused_with_both_names(tmp_path):
    source = volumes(tmp_path, affine=np.diag([2.0, 1.5, 3.0, 1.0]))
    expected = (
        r"^a\.nii\.gz and mask masks/tumour/a\.nii\.gz differ in their affines: the same voxels lie up to 20 mm apart; "
        "export the mask on the image's grid, or correct the wrong header$"
    )
    for read in (source.load, source.truth):
        with pytest.raises(CaseError, match=expected):
            read(source.index()[0])


def test_a_mask_may_differ_from_its_image_by_a_rounding_error(tmp_path):
    source = volumes(tmp_path, affine=AFFINE + 1e-3)
    assert source.load(source.index()[0]).truth["tumour"].any()


def test_a_mask_of_two_axes_fits_an_image_of_one_slice(tmp_path):
    (tmp_path / "scans").mkdir()
    nibabel.save(nibabel.Nifti1Image(np.ones((6, 5, 1, 2), np.float32), AFFINE), tmp_path / "scans" / "a.nii")
    (tmp_path / "masks" / "tumour").mkdir(parents=True)
    nibabel.save(nibabel.Nifti1Image(np.eye(6, 5, dtype=np.uint8), AFFINE), tmp_path / "masks" / "tumour" / "a.nii")
    source = open_volumes(tmp_path)
    assert source.load(source.index()[0]).truth["tumour"].sum() == 5


def refusal_of(tmp_path, name):
    """The error message when the only mask has another name, or none if there is no mask."""
    volumes(tmp_path)
    old, new = tmp_path / "masks" / "tumour" / "a.nii.gz", tmp_path / "masks" / name
    old.rename(new) if name else old.unlink()
    with pytest.raises(InputError) as caught:
        open_volumes(tmp_path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_in_which_no_file_is_a_mask_is_refused_with_the_endings(tmp_path):
    sentence = refusal_of(tmp_path, "tumour/a.nrrd")
    assert "masks/tumour holds no masks, only files such as a.nrrd; masks end in .png," in sentence
    assert sentence.endswith(".npy, .nii, .nii.gz")


@pytest.mark.parametrize("name", ["a.nii.gz", ""])
def test_masks_without_a_folder_and_no_masks_at_all_are_refused_with_the_endings(tmp_path, name):
    sentence = refusal_of(tmp_path, name)
    assert "masks holds no masks; expected masks/<finding>/<image>.png" in sentence
    assert sentence.endswith(".npy, .nii, .nii.gz")


def test_masks_that_belong_to_no_image_are_refused_with_the_endings(tmp_path):
    sentence = refusal_of(tmp_path, "tumour/a_seg.nii.gz")
    assert "is named like an image, e.g. a_seg; give masks the names of their images" in sentence
    assert sentence.endswith(".npy, .nii, .nii.gz")


def test_masks_of_only_some_modalities_are_refused(tmp_path):
    with pytest.raises(HeatcheckError, match="has no masks of SUV; it has CT, PET"):
        opened(tmp_path, "CT", "PET", modalities=["CT", "SUV"])
