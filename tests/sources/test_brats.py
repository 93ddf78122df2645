import gzip

import nibabel
import numpy as np
import pytest
from tests.brats_material import LPS, SHAPE, head, save, tumour, write_2020, write_case

from heatcheck.core.errors import CaseError, InputError
from heatcheck.sources import SOURCES

CASE = "BraTS20_Training_001"


def opened(root, **settings):
    facts = SOURCES["brats"]
    return facts.open(facts.settings.model_validate({"root": ".", **settings}).resolved(root))


@pytest.fixture
def tree(tmp_path):
    write_2020(tmp_path, ("HGG",))
    return tmp_path


def file_of(root, what, ending=".nii.gz"):
    return root / "MICCAI_BraTS2020_TrainingData" / CASE / f"{CASE}_{what}{ending}"


def complaint(root, **settings):
    source = opened(root, **settings)
    with pytest.raises(CaseError) as caught:
        source.load(source.index()[0])
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert str(root) not in sentence
    assert ";" in sentence  # a remedy follows
    return sentence


@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
def test_case_has_its_four_modalities_as_stored_and_the_tumour_in_each(tmp_path, ending):
    write_2020(tmp_path, ending=ending)
    source = opened(tmp_path)
    assert source.modalities == ("T1", "T1C", "T2", "FLAIR")
    assert source.findings == ("LGG", "HGG")
    keys = source.index()
    assert [key.case for key in keys] == [f"BraTS20_Training_00{number}" for number in (1, 2, 3)]
    assert [key.labels for key in keys] == [{"LGG": float(g == "L"), "HGG": float(g == "H")} for g in "HLH"]
    assert [key.patient for key in keys] == [key.case for key in keys]
    case = source.load(keys[1])
    assert case.image.dtype == np.float32
    for channel in range(4):
        assert np.array_equal(case.image[channel], head(4 * 2 + channel))
    assert np.array_equal(case.affine, LPS)
    assert case.spacing == (1, 1, 1)
    labels = tumour()
    assert np.array_equal(case.truth["T1C"], np.isin(labels, (1, 4)))
    for modality in ("T1", "T2", "FLAIR"):
        assert np.array_equal(case.truth[modality], labels > 0)


@pytest.mark.parametrize("deeper", ["", "MICCAI_BraTS2020_TrainingData"])
def test_root_may_be_the_folder_of_the_cases_or_one_above_it(tmp_path, deeper):
    write_2020(tmp_path / "archive" / "BraTS2020_TrainingData", ("HGG", "LGG"))
    (tmp_path / "archive" / "BraTS2020_ValidationData" / "BraTS20_Validation_001").mkdir(parents=True)
    root = tmp_path / "archive" / "BraTS2020_TrainingData" / deeper
    assert len(opened(root).index()) == 2
    assert len(opened(tmp_path / "archive").index()) == 2


def test_mask_with_its_old_name_is_found_as_in_the_public_copy(tmp_path):
    write_2020(tmp_path, ("HGG",), ending=".nii")
    file_of(tmp_path, "seg", ".nii").rename(file_of(tmp_path, "seg", ".nii").with_name("W39_1998.09.19_Segm.nii"))
    source = opened(tmp_path)
    assert np.array_equal(source.truth(source.index()[0])["T1"], tumour() > 0)
    save(file_of(tmp_path, "seg", ".nii").with_name("W39_1998.09.19_Segm.nii"), tumour() * 0)
    sentence = complaint(tmp_path)
    assert "BraTS20_Training_001/*_Segm.nii is empty" in sentence
    assert "1998" not in sentence


def test_tumour_without_enhancement_has_the_same_mask_in_every_modality(tree):
    save(file_of(tree, "seg"), np.where(tumour() == 4, 2, tumour()).astype(np.uint8))
    source = opened(tree)
    truth = source.truth(source.index()[0])
    assert np.array_equal(truth["T1C"], tumour() > 0)


def test_edition_of_2023_has_other_names_labels_and_several_examinations_per_patient(tmp_path):
    names = ("BraTS-GLI-00001-000", "BraTS-GLI-00001-001", "BraTS-GLI-00002-000")
    for number, name in enumerate(names):
        write_case(tmp_path / "TrainingData", name, number)
    (tmp_path / "grades.csv").write_text("case,grade\nBraTS-GLI-00001,hgg\nBraTS-GLI-00002-000,LGG\n")
    source = opened(tmp_path, grades="grades.csv")
    keys = source.index()
    assert [key.patient for key in keys] == ["BraTS-GLI-00001", "BraTS-GLI-00001", "BraTS-GLI-00002"]
    assert [key.labels["HGG"] for key in keys] == [1, 1, 0]
    case = source.load(keys[2])
    assert np.array_equal(case.image[3], head(4 * 2 + 3))
    assert np.array_equal(case.truth["T1C"], np.isin(tumour(), (1, 4)))
    assert np.array_equal(case.truth["FLAIR"], tumour() > 0)


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_largest_slice_is_axial_however_the_volume_is_stored_and_is_oriented_for_display(tree, axes):
    affine = LPS[:, [*axes, 3]]
    for channel, what in enumerate(("t1", "t1ce", "t2", "flair")):
        save(file_of(tree, what), head(channel).transpose(axes), affine)
    save(file_of(tree, "seg"), tumour().transpose(axes), affine)
    source = opened(tree, slices="largest")
    case = source.load(source.index()[0])
    index = int((tumour() > 0).sum((0, 1)).argmax())
    assert index == 6
    for channel in range(4):  # stored from right to left and from front to back
        assert np.array_equal(case.image[channel], head(channel)[:, :, index].T)
    assert np.array_equal(case.truth["T2"], tumour()[:, :, index].T > 0)
    assert np.array_equal(source.truth(source.index()[0])["T1C"], case.truth["T1C"])
    row, column = 3, 5
    assert case.affine @ [row, column, 0, 1] == pytest.approx(LPS @ [column, row, index, 1])
    assert case.spacing == (1, 1)


def test_slice_without_enhancement_has_the_whole_tumour_as_t1c_mask(tree):
    labels = tumour()
    labels[:, :, 6][labels[:, :, 6] > 0] = 2
    save(file_of(tree, "seg"), labels)
    source = opened(tree, slices="largest")
    truth = source.truth(source.index()[0])
    assert np.array_equal(truth["T1C"], truth["T1"])


def shifted(by):
    affine = LPS.copy()
    affine[0, 3] += by
    return affine


def test_affines_that_differ_only_by_rounding_are_accepted(tree):
    save(file_of(tree, "t2"), head(2), shifted(1e-3))
    assert opened(tree).load(opened(tree).index()[0]).affine is not None


@pytest.mark.parametrize("slices", ["all", "largest"])
@pytest.mark.parametrize("what", ["t1ce", "flair", "seg"])
def test_files_of_one_case_on_different_grids_are_both_named(tree, what, slices):
    values = head(1)
    save(file_of(tree, what), (tumour() if what == "seg" else values), shifted(5))
    sentence = complaint(tree, slices=slices)
    assert f"{CASE}/{CASE}_t1.nii.gz and {CASE}/{CASE}_{what}.nii.gz differ in their affines" in sentence
    assert "up to 5 mm apart" in sentence
    save(file_of(tree, what), (tumour() if what == "seg" else values)[:-1])
    sentence = complaint(tree, slices=slices)
    assert f"{CASE}/{CASE}_t1.nii.gz and {CASE}/{CASE}_{what}.nii.gz differ in size (12×14×10 and 11×14×10)" in sentence


@pytest.mark.parametrize(
    ("what", "missing"), [("t1ce", "no T1C image"), ("flair", "no FLAIR image"), ("seg", "no mask")]
)
def test_missing_file_is_named(tree, what, missing):
    file_of(tree, what).unlink()
    sentence = complaint(tree)
    assert f"{CASE} has {missing}" in sentence
    assert f"{CASE}_{what}.nii" in sentence


@pytest.mark.parametrize("odd", [5, 7, -1, 0.5, 300])
def test_label_of_no_edition_is_refused(tree, odd):
    labels = tumour().astype(np.float32)
    labels[0, 0, 0] = odd
    save(file_of(tree, "seg"), labels)
    assert f"_seg.nii.gz has the label {odd:g}, expected 0 to 4" in complaint(tree)


def test_labels_of_two_editions_in_one_mask_are_refused(tree):
    labels = tumour()
    labels[0, 0, 0] = 3
    save(file_of(tree, "seg"), labels)
    assert "has the labels 3 and 4" in complaint(tree)


def test_empty_mask_is_refused(tree):
    save(file_of(tree, "seg"), tumour() * 0)
    assert f"{CASE}/{CASE}_seg.nii.gz is empty" in complaint(tree)
    with pytest.raises(CaseError, match="is empty"):
        opened(tree).truth(opened(tree).index()[0])


@pytest.mark.parametrize("value", [0, 7])
def test_constant_modality_is_refused(tree, value):
    save(file_of(tree, "t2"), ((head(2) > 0) * value).astype(np.int16))
    assert f"{CASE}/{CASE}_t2.nii.gz is constant" in complaint(tree)


@pytest.mark.parametrize("what", ["t1", "seg"])
def test_voxels_that_are_not_finite_are_refused(tree, what):
    values = head(0).astype(np.float32)
    values[3, 3, 3] = np.nan
    save(file_of(tree, what), values)
    assert f"{CASE}/{CASE}_{what}.nii.gz has NaN or infinite voxels" in complaint(tree)


def test_file_of_several_volumes_or_of_one_slice_is_refused(tree):
    save(file_of(tree, "t1"), np.stack([head(0), head(1)], -1))
    assert f"{CASE}/{CASE}_t1.nii.gz has four axes, 2 volumes in one file" in complaint(tree)
    save(file_of(tree, "t1"), head(0)[:, :, :1])
    assert f"{CASE}/{CASE}_t1.nii.gz is a single slice of 12×14" in complaint(tree)
    save(file_of(tree, "t1"), head(0)[..., None])
    assert opened(tree).load(opened(tree).index()[0]).image.shape == (4, *SHAPE)


@pytest.mark.parametrize("keep", [0.0, 0.2, 0.9, 0.999])
@pytest.mark.parametrize("what", ["t2", "seg"])
def test_truncated_file_is_refused(tree, what, keep):
    content = file_of(tree, what).read_bytes()
    file_of(tree, what).write_bytes(content[: int(keep * len(content))])
    assert f"{CASE}/{CASE}_{what}.nii.gz cannot be read as NIfTI" in complaint(tree)


def test_truncated_plain_file_and_one_that_is_not_nifti_are_refused(tmp_path):
    write_2020(tmp_path, ("HGG",), ending=".nii")
    path = file_of(tmp_path, "t1", ".nii")
    path.write_bytes(path.read_bytes()[:-100])
    assert "_t1.nii cannot be read as NIfTI" in complaint(tmp_path)
    path.write_bytes(b"not an image" * 100)
    assert "_t1.nii cannot be read as NIfTI" in complaint(tmp_path)


def table_of(root):
    return root / "MICCAI_BraTS2020_TrainingData" / "name_mapping.csv"


def refusal(root, **settings):
    with pytest.raises(InputError) as caught:
        opened(root, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_folder_without_cases_is_refused(tmp_path, tree):
    assert "no such folder" in refusal(tmp_path / "nowhere")
    (tmp_path / "empty" / "BraTS20_Validation_001").mkdir(parents=True)
    assert "holds no cases" in refusal(tmp_path / "empty")
    case = tree / "MICCAI_BraTS2020_TrainingData" / CASE
    assert f"set `root: {case.parent}`" in refusal(case)


def test_root_above_several_data_sets_is_refused(tmp_path):
    write_2020(tmp_path / "one", ("HGG",))
    write_2020(tmp_path / "two", ("HGG",))
    assert "holds several data sets" in refusal(tmp_path)


def test_missing_table_of_grades_is_refused(tmp_path, tree):
    table_of(tree).unlink()
    assert "has no name_mapping.csv" in refusal(tree)
    assert "no such file; correct `grades`" in refusal(tree, grades="grades.csv")
    write_case(tmp_path / "late", "BraTS-GLI-00001-000")
    assert "give a CSV with the columns case and grade" in refusal(tmp_path / "late")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; export it again"),
        ("case,level\nx,HGG\n", "has no column 'Grade'; its columns are case, level"),
        ("id,grade\nx,HGG\n", "no ids in its last column"),
        (f"grade,case\nHGG,{CASE}\nLGG,{CASE}\n", f"{CASE} is listed twice, in lines 2 and 3"),
        (f"grade,case\nIV,{CASE}\n", f"line 2: the grade of {CASE} is 'IV'; expected LGG or HGG"),
        ("grade,case\nHGG,BraTS20_Training_002\n", f"{CASE} has no grade;"),
        ("grade,case\nHGG\n", "line 2: another number of cells"),
    ],
)
def test_odd_table_of_grades_is_refused_in_one_line(tree, text, sentence):
    table_of(tree).write_text(text)
    assert sentence in refusal(tree)


def test_table_may_list_cases_that_do_not_exist(tree):
    with table_of(tree).open("a") as file:
        file.write("LGG,NA,NA,NA,NA,BraTS20_Training_002\nLGG,x,NA,NA,NA,NA\n")
    assert [key.case for key in opened(tree).index()] == [CASE]


def test_replaced_file_changes_the_stamp(tree):
    before = opened(tree).stamp()
    assert opened(tree).stamp() == before
    save(file_of(tree, "t2"), head(77))
    assert opened(tree).stamp() != before
    between = opened(tree).stamp()
    table_of(tree).write_text(table_of(tree).read_text().replace("HGG", "LGG"))
    assert opened(tree).stamp() != between


def test_nibabel_reads_the_material(tree):
    stored = nibabel.load(file_of(tree, "t1"))
    assert np.array_equal(np.asarray(stored.dataobj), head(0 + 4))
    assert gzip.decompress(file_of(tree, "t1").read_bytes())[344:347] == b"n+1"
