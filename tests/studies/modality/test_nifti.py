"""Maps as NIfTI files: on the image's own affine, with the tumour where it was."""

import nibabel
import numpy as np
import pytest
from tests.brats_material import LPS, head, save, tumour, write_2020

from heatcheck.sources import SOURCES
from heatcheck.studies.modality.gallery import NiftiMaps, file_name

MODALITIES = ("T1", "T1C", "T2", "FLAIR")


def opened(root, **settings):
    facts = SOURCES["brats"]
    return facts.open(facts.settings(root=root, **settings))


def millimetres(mask, affine):
    """Where the voxels of a mask lie in the patient, in a fixed order."""
    places = np.argwhere(mask if mask.ndim == 3 else mask[..., None])
    return np.unique(np.round((affine @ np.column_stack([places, np.ones(len(places))]).T).T[:, :3], 3), axis=0)


@pytest.fixture(params=[(0, 1, 2), (2, 0, 1)], ids=["as published", "slices first"])
def tree(request, tmp_path):
    """A case whose volumes are stored in one order or another."""
    axes = request.param
    folder = write_2020(tmp_path, ("HGG",)) / "BraTS20_Training_001"
    for channel, file in enumerate(("t1", "t1ce", "t2", "flair")):
        save(folder / f"BraTS20_Training_001_{file}.nii.gz", head(channel).transpose(axes), LPS[:, [*axes, 3]])
    save(folder / "BraTS20_Training_001_seg.nii.gz", tumour().transpose(axes), LPS[:, [*axes, 3]])
    return folder


def test_reloaded_map_has_the_images_affine_and_the_tumour_where_it_was(tree, tmp_path):
    source = opened(tree.parent)
    case = source.load(source.index()[0])
    maps = np.stack([case.truth[name].astype(np.float32) for name in MODALITIES])
    NiftiMaps(tmp_path / "run", MODALITIES)(case, "gradient", maps)
    published = nibabel.load(tree / "BraTS20_Training_001_t1.nii.gz")
    labels = np.asarray(nibabel.load(tree / "BraTS20_Training_001_seg.nii.gz").dataobj)
    for name in MODALITIES:
        file = nibabel.load(tmp_path / f"run/maps/nifti/BraTS20_Training_001/gradient_{name}.nii.gz")
        assert file.shape == published.shape
        assert np.array_equal(file.affine, published.affine)
        expected = np.isin(labels, (1, 4)) if name == "T1C" else labels > 0
        assert np.array_equal(file.get_fdata() > 0.5, expected)


def test_map_of_a_slice_lies_in_the_patient_where_the_slice_was_cut(tree, tmp_path):
    source = opened(tree.parent, slices="largest")
    case = source.load(source.index()[0])
    NiftiMaps(tmp_path / "run", MODALITIES)(case, "grad_cam", case.truth["FLAIR"][None].astype(np.float32))
    file = nibabel.load(tmp_path / "run/maps/nifti/BraTS20_Training_001/grad_cam_all.nii.gz")
    assert file.shape == (14, 12, 1)
    seen = millimetres(file.get_fdata() > 0.5, file.affine)
    whole = millimetres(tumour() > 0, LPS)
    assert len(seen) == (tumour() > 0).sum((0, 1)).max()
    assert np.array_equal(seen, whole[whole[:, 2] == seen[0, 2]])


def test_names_of_cases_and_modalities_stay_within_the_run(tmp_path, tree):
    source = opened(tree.parent)
    case = source.load(source.index()[0])
    object.__setattr__(case.key, "case", "../ward 2/a.b")
    NiftiMaps(tmp_path / "run", ("T1/T2",))(case, "gradient", np.zeros((1, *case.image.shape[1:]), np.float32))
    written = [path.relative_to(tmp_path / "run") for path in (tmp_path / "run").rglob("*.nii.gz")]
    assert len(written) == 1
    assert written[0].parts[:2] == ("maps", "nifti")
    assert len(written[0].parts) == 4


def test_names_that_differ_have_files_that_differ():
    names = ["a/b", "a_b", "a b", ".a_b", "a.b", "..", ""]
    assert len({file_name(name) for name in names}) == len(names)
    assert file_name("a_b-1.c") == "a_b-1.c"
    assert file_name("a/b") == file_name("a/b")
    assert all("/" not in file_name(name) and not file_name(name).startswith(".") for name in names)
