import math
import shutil

import numpy as np
import pytest
from PIL import Image as Pictures
from tests.sources.folder_material import SHAPE, by_case, data, opened, refusal, same, size_of, write_picture

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.records import UNCERTAIN
from heatcheck.sources.files.tables import read_csv
from heatcheck.sources.folder import FolderSettings, FolderSource

__all__ = ["data"]  # a fixture


def test_index_holds_every_row_of_the_labels_sorted_by_id(data):
    source = opened(data, "image,patient,Edema,Lesion\nward 2/c.png,p2,1,0\nb,p1,0,\na.png,p1,1,-1\n")
    assert source.findings == ("Edema", "Lesion")
    keys = source.index()
    assert [(key.case, key.patient) for key in keys] == [("a", "p1"), ("b", "p1"), ("ward 2/c", "p2")]
    assert same(keys[0].labels.values(), [1, UNCERTAIN])
    assert same(keys[1].labels.values(), [0, math.nan])
    assert same(keys[2].labels.values(), [1, 0])


def test_image_without_a_patient_is_a_separate_patient(data):
    assert [key.patient for key in opened(data, "image,Edema\na,1\nb,0\n").index()] == ["a", "b"]
    keys = by_case(opened(data, "image,patient,Edema\na,,1\nb, p7 ,0\n"))
    assert (keys["a"].patient, keys["b"].patient) == ("a", "p7")


@pytest.mark.parametrize("ending", ["", ".png", ".PNG", ".jpeg"])
def test_labels_may_name_images_with_or_without_an_ending(data, ending):
    source = opened(data, f"image,Edema\n a{ending} ,1\n")
    (key,) = source.index()
    assert key.case == "a"
    assert source.load(key).image.shape == (1, *SHAPE)


def test_a_dot_that_is_not_an_ending_is_kept(data):
    write_picture(data / "images/scan.v2.png")
    source = opened(data, "image,Edema\nscan.v2,0\n")
    (key,) = source.index()
    assert key.case == "scan.v2"
    assert source.load(key).image.shape == (1, *SHAPE)


@pytest.mark.parametrize(
    ("cell", "label"),
    [("1", 1), ("1.0", 1), ("0", 0), ("0.0", 0), ("", math.nan), (" ", math.nan), ("-1", UNCERTAIN),
     ("-1.0", UNCERTAIN), ("NaN", math.nan)],
)  # fmt: skip
def test_label_is_present_absent_uncertain_or_unknown(data, cell, label):
    (key,) = opened(data, f"image,Edema\na,{cell}\n").index()
    assert same([key.labels["Edema"]], [label])


@pytest.mark.parametrize("cell", ["2", "yes", "0.5", "positive"])
def test_unknown_label_is_refused_with_its_line(data, cell):
    sentence = refusal(data, f"image,Edema\na,1\n\nb,{cell}\n")
    assert f"labels.csv, line 4: Edema is {cell!r}; expected 1, 0, blank or -1" in sentence


def test_chexperts_name_of_airspace_opacity_is_understood(data):
    (data / "masks/Lung Opacity").mkdir()
    shape = size_of(data / "images/a.png")
    Pictures.new("L", shape, 255).save(data / "masks/Lung Opacity/a.png")
    source = opened(data, "image,Lung Opacity\na,1\n", masks="masks")
    assert source.findings == ("Airspace Opacity",)
    assert list(source.truth(source.index()[0])) == ["Airspace Opacity"]


def test_colour_images_keep_their_channels_on_request(data):
    Pictures.fromarray(np.full((*SHAPE, 3), (200, 100, 0), np.uint8)).save(data / "images/a.png")
    key = by_case(opened(data, masks="masks"))["a"]
    assert opened(data, masks="masks").load(key).image.shape == (1, *SHAPE)
    np.testing.assert_allclose(
        opened(data, masks="masks", colour="rgb").load(key).image[:, 0, 0] * 255, [200, 100, 0], rtol=1e-6
    )


def test_two_images_with_the_same_id_are_refused(data):
    write_picture(data / "images/a.bmp")
    assert refusal(data, masks="masks") == "a.bmp and a.png are two images with the same id; rename one"


@pytest.mark.parametrize("twice", ["a,1\nb,0\na,0\n", "a.png,1\na,1\n"])
def test_image_listed_twice_is_refused(data, twice):
    assert "labels.csv: 'a' is listed twice; keep one row" in refusal(data, f"image,Edema\n{twice}")


@pytest.mark.parametrize("row", ["a", "a,1,0,1", "a,"])
def test_line_with_another_number_of_cells_is_refused_with_its_number(data, row):
    sentence = refusal(data, f"image,Edema,Lesion\nb,1,0\n\n{row}\n")
    assert "labels.csv, line 4: another number of cells than the header" in sentence


def test_byte_order_mark_and_spaces_around_the_names_of_columns_are_ignored(data):
    source = opened(data, "\ufeffimage, Edema \na,1\n")
    assert source.findings == ("Edema",)
    assert by_case(source)["a"].labels == {"Edema": 1}


@pytest.mark.parametrize("header", ["image,Edema,Edema", "image,Edema,", ",image,Edema"])
def test_columns_without_unique_names_are_refused(data, header):
    assert "column names must be unique and not empty" in refusal(data, f"{header}\na,1,1\n")


def test_row_without_an_image_is_refused(data):
    assert "labels.csv, line 3: the image is missing" in refusal(data, "image,Edema\na,1\n,1\n")


def test_labels_without_a_column_of_images_are_refused(data):
    assert "has no column 'image'; its columns are file, Edema" in refusal(data, "file,Edema\na,1\n")


def test_labels_without_findings_are_refused(data):
    assert refusal(data, "image,patient\na,1\n").startswith("no findings")
    assert refusal(data).startswith("no findings")


@pytest.mark.parametrize("content", [b"image,Edema\n\xff\xfe,1\n", b'image,Edema\n"a,1\n'])
def test_file_that_is_not_csv_is_refused(tmp_path, content):
    (tmp_path / "broken.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"broken\.csv is not a readable CSV file \(.*\); export it again as UTF-8"):
        read_csv(tmp_path / "broken.csv")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"masks": "msks"}, "msks: no such folder"),
        ({"masks": "masks", "readers": {"one": "readers/1"}}, "readers/1: no such folder"),
        ({"masks": "masks", "points": "points.csv"}, "points.csv: no such file"),
    ],
)
def test_missing_file_or_folder_is_refused_with_a_remedy(data, settings, complaint):
    sentence = refusal(data, **settings)
    assert complaint in sentence
    assert "correct the source in the spec" in sentence


def test_missing_labels_and_images_are_refused(data):
    with pytest.raises(InputError, match=r"list\.csv: no such file; correct the source in the spec"):
        FolderSource(FolderSettings(images="images", labels="list.csv").resolved(data))
    shutil.rmtree(data / "images")
    assert "images: no such folder" in refusal(data, masks="masks")
    (data / "images").mkdir()
    (data / "images/notes.txt").write_text("nothing to see")
    assert "images holds no images that can be read (it has files of other formats: 1 .txt)" in refusal(
        data, masks="masks"
    )


def test_a_listed_but_missing_image_is_an_error_of_that_case_only(data):
    source = opened(data, "image,Edema\na,1\nlost.png,1\n", masks="masks")
    keys = by_case(source)
    for attempt in (source.load, source.truth):
        with pytest.raises(CaseError, match=r"^lost does not exist; correct its name or add the file$"):
            attempt(keys["lost"])
    assert source.load(keys["a"]).truth


def test_paths_are_relative_to_the_spec(tmp_path):
    settings = FolderSettings(
        images="i", labels="l.csv", masks="/elsewhere/m", readers={"one": "r"}, points="p.csv"
    ).resolved(tmp_path)
    assert settings.images == tmp_path / "i"
    assert settings.labels == tmp_path / "l.csv"
    assert str(settings.masks) == "/elsewhere/m"
    assert settings.readers == {"one": tmp_path / "r"}
    assert settings.points == tmp_path / "p.csv"
    minimal = FolderSettings(images="i").resolved(tmp_path)
    assert (minimal.labels, minimal.masks, minimal.points, minimal.readers) == (None, None, None, {})


def test_hidden_files_are_ignored(tmp_path):
    picture = Pictures.new("L", (4, 4))
    for name in ("a.png", "._a.png", ".ipynb_checkpoints/b.png"):
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        picture.save(tmp_path / "images" / name)
    (tmp_path / "masks" / "f").mkdir(parents=True)
    source = FolderSource(FolderSettings(images=tmp_path / "images", masks=tmp_path / "masks"))
    assert [key.case for key in source.index()] == ["a"]


def test_dicom_and_nifti_are_images_too(tmp_path):
    import nibabel
    from pydicom import examples

    (tmp_path / "images" / "sub").mkdir(parents=True)
    shutil.copy(examples.get_path("mr"), tmp_path / "images" / "1.2.840.dcm")
    shutil.copy(examples.get_path("ct"), tmp_path / "images" / "sub" / "IM0001")
    volume = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), tmp_path / "images" / "head.nii.gz")
    (tmp_path / "labels.csv").write_text("image,Edema\n1.2.840.dcm,1\nhead,0\nsub/IM0001,1\n")
    source = FolderSource(FolderSettings(images=tmp_path / "images", labels=tmp_path / "labels.csv"))
    keys = source.index()
    assert [key.case for key in keys] == ["1.2.840", "head", "sub/IM0001"]
    shapes = [source.load(key).image.shape for key in keys]
    assert shapes == [(1, 64, 64), (1, 3, 4, 5), (1, 128, 128)]


@pytest.mark.parametrize("name", ["A", "a.jpeg2"])
def test_an_id_that_differs_in_capitals_or_an_ending_is_answered_with_the_near_one(data, name):
    source = opened(data, f"image,Edema\n{name},1\n")
    with pytest.raises(CaseError, match="does not exist; did you mean 'a'"):
        source.load(source.index()[0])
