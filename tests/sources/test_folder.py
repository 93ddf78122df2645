import math
import shutil

import numpy as np
import pytest
from PIL import Image as Pictures

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.records import Point
from heatcheck.sources import folder
from heatcheck.sources.folder import FolderSettings, FolderSource
from heatcheck.sources.tables import read_csv

SHAPE = (8, 11)


def write_picture(path, value=100, shape=SHAPE):
    path.parent.mkdir(parents=True, exist_ok=True)
    Pictures.fromarray(np.full(shape, value, np.uint8)).save(path)


def write_mask(path, rows, shape=SHAPE):
    path.parent.mkdir(parents=True, exist_ok=True)
    mask = np.zeros(shape, np.uint8)
    mask[rows] = 255
    Pictures.fromarray(mask).save(path)


@pytest.fixture
def data(tmp_path):
    """Three images, one in a sub-folder, with masks of two findings."""
    write_picture(tmp_path / "images/a.png", 51)
    write_picture(tmp_path / "images/b.jpg", 102)
    write_picture(tmp_path / "images/ward 2/c.png", 153)
    write_mask(tmp_path / "masks/Edema/a.png", slice(0, 2))
    write_mask(tmp_path / "masks/Edema/ward 2/c.png", slice(2, 4))
    write_mask(tmp_path / "masks/Lesion/a.png", slice(4, 5))
    return tmp_path


def opened(root, labels=None, **settings):
    """The source, with the labels written to a file."""
    if labels is not None:
        (root / "labels.csv").write_text(labels, encoding="utf-8")
        settings["labels"] = "labels.csv"
    return FolderSource(FolderSettings(images="images", **settings).resolved(root))


def by_case(source):
    return {key.case: key for key in source.index()}


def refusal(root, labels=None, **settings):
    """The sentence with which the folder is refused before any work."""
    with pytest.raises(InputError) as caught:
        opened(root, labels, **settings).index()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def same(values, expected):
    return all(math.isnan(v) if math.isnan(e) else v == e for v, e in zip(values, expected, strict=True))


def test_index_holds_every_row_of_the_labels_sorted_by_id(data):
    source = opened(data, "image,patient,Edema,Lesion\nward 2/c.png,p2,1,0\nb,p1,0,\na.png,p1,1,-1\n")
    assert source.findings == ("Edema", "Lesion")
    keys = source.index()
    assert [(key.case, key.patient) for key in keys] == [("a", "p1"), ("b", "p1"), ("ward 2/c", "p2")]
    assert same(keys[0].labels.values(), [1, math.nan])
    assert same(keys[1].labels.values(), [0, math.nan])
    assert same(keys[2].labels.values(), [1, 0])


def test_image_without_a_patient_is_its_own_patient(data):
    assert [key.patient for key in opened(data, "image,Edema\na,1\nb,0\n").index()] == ["a", "b"]
    keys = by_case(opened(data, "image,patient,Edema\na,,1\nb, p7 ,0\n"))
    assert (keys["a"].patient, keys["b"].patient) == ("a", "p7")


@pytest.mark.parametrize("ending", ["", ".png", ".PNG", ".jpeg"])
def test_labels_may_name_images_with_or_without_an_ending(data, ending):
    source = opened(data, f"image,Edema\n a{ending} ,1\n")
    (key,) = source.index()
    assert key.case == "a"
    assert source.load(key).image.shape == (1, *SHAPE)


def test_id_with_a_dot_that_is_no_ending_keeps_it(data):
    write_picture(data / "images/scan.v2.png")
    source = opened(data, "image,Edema\nscan.v2,0\n")
    (key,) = source.index()
    assert key.case == "scan.v2"
    assert source.load(key).image.shape == (1, *SHAPE)


@pytest.mark.parametrize(
    ("cell", "label"),
    [("1", 1), ("1.0", 1), ("0", 0), ("0.0", 0), ("", math.nan), (" ", math.nan), ("-1", math.nan),
     ("-1.0", math.nan), ("NaN", math.nan)],
)  # fmt: skip
def test_label_is_present_absent_or_unknown(data, cell, label):
    (key,) = opened(data, f"image,Edema\na,{cell}\n").index()
    assert same([key.labels["Edema"]], [label])


@pytest.mark.parametrize("cell", ["2", "yes", "0.5", "positive"])
def test_label_that_means_nothing_is_refused_with_its_line(data, cell):
    sentence = refusal(data, f"image,Edema\na,1\n\nb,{cell}\n")
    assert f"labels.csv, line 4: Edema is {cell!r}; expected 1, 0, blank or -1" in sentence


def test_labels_come_from_the_masks_where_there_is_no_table(data):
    keys = by_case(opened(data, masks="masks"))
    assert list(keys) == ["a", "b", "ward 2/c"]
    assert same(keys["a"].labels.values(), [1, 1])
    assert same(keys["b"].labels.values(), [math.nan, math.nan])
    assert same(keys["ward 2/c"].labels.values(), [1, math.nan])
    assert keys["ward 2/c"].patient == "ward 2/c"


def test_case_holds_pixels_and_the_masks_of_its_findings(data):
    source = opened(data, "image,Edema,Lesion\na,1,1\nward 2/c,1,0\n", masks="masks")
    case = source.load(by_case(source)["a"])
    np.testing.assert_allclose(case.image, 51 / 255)
    assert list(case.truth) == ["Edema", "Lesion"]
    np.testing.assert_array_equal(np.nonzero(case.truth["Edema"].all(1))[0], [0, 1])
    np.testing.assert_array_equal(np.nonzero(case.truth["Lesion"].all(1))[0], [4])
    other = source.load(by_case(source)["ward 2/c"])
    assert list(other.truth) == ["Edema"]
    assert other.readings == ()


def size_of(path):
    with Pictures.open(path) as picture:
        return picture.size


def test_an_empty_mask_is_no_truth_whatever_the_label(data):
    shape = size_of(data / "images/a.png")
    Pictures.new("L", shape).save(data / "masks/Lesion/a.png")
    for label in ("0", "", "1"):
        source = opened(data, f"image,Edema,Lesion\na,1,{label}\n", masks="masks")
        (key,) = source.index()
        assert list(source.load(key).truth) == list(source.truth(key)) == ["Edema"]


def test_a_mask_with_an_unknown_label_is_truth_and_one_with_label_0_is_a_contradiction(data):
    shape = size_of(data / "images/a.png")
    Pictures.new("L", shape, 255).save(data / "masks/Lesion/a.png")
    source = opened(data, "image,Edema,Lesion\na,1,\n", masks="masks")
    assert sorted(source.truth(source.index()[0])) == ["Edema", "Lesion"]
    source = opened(data, "image,Edema,Lesion\na,1,0\n", masks="masks")
    with pytest.raises(CaseError, match="a has a mask of Lesion, but its label says 0"):
        source.load(source.index()[0])


def test_without_labels_an_empty_mask_says_absent(data):
    shape = size_of(data / "images/a.png")
    Pictures.new("L", shape).save(data / "masks/Lesion/a.png")
    source = FolderSource(FolderSettings(images=data / "images", masks=data / "masks"))
    labels = by_case(source)["a"].labels
    assert (labels["Edema"], labels["Lesion"]) == (1, 0)


def test_chexperts_name_of_airspace_opacity_is_understood(data):
    (data / "masks/Lung Opacity").mkdir()
    shape = size_of(data / "images/a.png")
    Pictures.new("L", shape, 255).save(data / "masks/Lung Opacity/a.png")
    source = opened(data, "image,Lung Opacity\na,1\n", masks="masks")
    assert source.findings == ("Airspace Opacity",)
    assert list(source.truth(source.index()[0])) == ["Airspace Opacity"]


def test_a_reader_without_any_file_on_an_image_did_not_outline_it(data):
    (data / "one/Edema").mkdir(parents=True)
    shape = size_of(data / "images/a.png")
    Pictures.new("L", shape).save(data / "one/Edema/a.png")
    source = FolderSource(FolderSettings(images=data / "images", masks=data / "masks", readers={"one": data / "one"}))
    keys = by_case(source)
    assert source.load(keys["a"]).readings[0].outlined
    other = next(key for name, key in keys.items() if name != "a")
    assert not source.load(other).readings[0].outlined


def test_truth_is_read_without_decoding_the_image(data, monkeypatch):
    source = opened(data, masks="masks")
    key = by_case(source)["a"]
    expected = source.load(key).truth
    monkeypatch.setattr(folder, "read_image", lambda *_: pytest.fail("the image was decoded"))
    truth = source.truth(key)
    assert list(truth) == list(expected)
    np.testing.assert_array_equal(truth["Edema"], expected["Edema"])


def test_without_masks_there_is_no_truth(data):
    source = opened(data, "image,Edema\na,1\n")
    (key,) = source.index()
    assert source.truth(key) == source.load(key).truth == {}


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif", ".npy"])
def test_masks_are_found_in_any_lossless_format(data, suffix):
    (data / "masks/Edema/a.png").unlink()
    path = data / f"masks/Edema/a{suffix}"
    if suffix == ".npy":
        np.save(path, np.eye(*SHAPE, dtype=bool))
    else:
        Pictures.fromarray(np.eye(*SHAPE, dtype=bool)).save(path)
    source = opened(data, masks="masks")
    np.testing.assert_array_equal(source.truth(by_case(source)["a"])["Edema"], np.eye(*SHAPE, dtype=bool))


def test_mask_folder_of_a_finding_that_is_no_column_is_left_alone(data):
    source = opened(data, "image,Edema\na,1\n", masks="masks")
    assert source.findings == ("Edema",)
    assert list(source.truth(source.index()[0])) == ["Edema"]


def test_column_without_a_mask_folder_has_labels_alone(data):
    source = opened(data, "image,Edema,Fracture\na,1,1\n", masks="masks")
    (key,) = source.index()
    assert key.labels["Fracture"] == 1
    assert list(source.truth(key)) == ["Edema"]


def test_colour_images_keep_their_channels_when_asked(data):
    Pictures.fromarray(np.full((*SHAPE, 3), (200, 100, 0), np.uint8)).save(data / "images/a.png")
    key = by_case(opened(data, masks="masks"))["a"]
    assert opened(data, masks="masks").load(key).image.shape == (1, *SHAPE)
    np.testing.assert_allclose(
        opened(data, masks="masks", colour="rgb").load(key).image[:, 0, 0] * 255, [200, 100, 0], rtol=1e-6
    )


def test_readers_mark_with_masks_and_points_given_as_x_and_y(data):
    write_mask(data / "readers/one/Edema/a.png", slice(1, 3))
    write_mask(data / "readers/one/Lesion/a.png", slice(0, 0))
    (data / "readers/two").mkdir()
    (data / "points.csv").write_text(
        "reader,image,finding,x,y\none,a.png,Edema,7,1.5\none,a,Edema,3,2\ntwo,ward 2/c,Lesion,1,0\n"
    )
    source = opened(data, masks="masks", readers={"one": "readers/one", "two": "readers/two"}, points="points.csv")
    first, second = source.load(by_case(source)["a"]).readings
    assert (first.reader, second.reader) == ("one", "two")
    assert list(first.masks) == ["Edema"]
    np.testing.assert_array_equal(np.nonzero(first.masks["Edema"].all(1))[0], [1, 2])
    assert first.points == {"Edema": (Point((1.5, 7.0)), Point((2.0, 3.0)))}
    assert (second.masks, second.points) == ({}, {})
    assert source.load(by_case(source)["ward 2/c"]).readings[1].points == {"Lesion": (Point((0.0, 1.0)),)}


def test_reader_may_mark_a_finding_that_is_absent(data):
    write_mask(data / "readers/one/Edema/b.png", slice(1, 3))
    source = opened(data, "image,Edema\nb,0\n", masks="masks", readers={"one": "readers/one"})
    (key,) = source.index()
    case = source.load(key)
    assert case.truth == {}
    assert case.readings[0].masks["Edema"].sum() == 2 * SHAPE[1]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("one,a,Edma,1,1", "line 2: unknown finding 'Edma'; did you mean 'Edema'?"),
        ("oen,a,Edema,1,1", "line 2: unknown reader 'oen'; did you mean 'one'?"),
        ("one,a,Edema,left,1", "line 2: x and y must be numbers"),
        ("one,a,Edema,1,nan", "line 2: x and y must be numbers"),
        ("one,a,Edema,1", "line 2: another number of cells than the header"),
    ],
)
def test_wrong_point_is_refused_before_any_work(data, row, complaint):
    (data / "readers/one").mkdir(parents=True)
    (data / "points.csv").write_text(f"reader,image,finding,x,y\n{row}\n")
    with pytest.raises(InputError) as caught:
        opened(data, masks="masks", readers={"one": "readers/one"}, points="points.csv")
    assert complaint in str(caught.value)


def test_points_without_a_needed_column_are_refused(data):
    (data / "points.csv").write_text("reader,image,finding,x\none,a,Edema,1\n")
    assert "has no column 'y'; its columns are reader, image, finding, x" in refusal(
        data, masks="masks", points="points.csv"
    )


def test_two_images_with_one_id_are_refused(data):
    write_picture(data / "images/a.bmp")
    assert refusal(data, masks="masks") == "a.bmp and a.png are two images with one id; rename one"


@pytest.mark.parametrize("twice", ["a,1\nb,0\na,0\n", "a.png,1\na,1\n"])
def test_image_listed_twice_is_refused(data, twice):
    assert "labels.csv: 'a' is listed twice; keep one row" in refusal(data, f"image,Edema\n{twice}")


@pytest.mark.parametrize("row", ["a", "a,1,0,1", "a,"])
def test_line_with_another_number_of_cells_is_refused_with_its_number(data, row):
    sentence = refusal(data, f"image,Edema,Lesion\nb,1,0\n\n{row}\n")
    assert "labels.csv, line 4: another number of cells than the header" in sentence


def test_byte_order_mark_and_spaces_around_the_names_of_columns_do_no_harm(data):
    source = opened(data, "\ufeffimage, Edema \na,1\n")
    assert source.findings == ("Edema",)
    assert by_case(source)["a"].labels == {"Edema": 1}


@pytest.mark.parametrize("header", ["image,Edema,Edema", "image,Edema,", ",image,Edema"])
def test_columns_that_cannot_be_told_apart_are_refused(data, header):
    assert "two columns have one name, or one has none" in refusal(data, f"{header}\na,1,1\n")


def test_row_without_an_image_is_refused(data):
    assert "labels.csv, line 3: no image is named" in refusal(data, "image,Edema\na,1\n,1\n")


def test_labels_without_a_column_of_images_are_refused(data):
    assert "has no column 'image'; its columns are file, Edema" in refusal(data, "file,Edema\na,1\n")


def test_labels_without_findings_are_refused(data):
    assert refusal(data, "image,patient\na,1\n").startswith("no findings")
    assert refusal(data).startswith("no findings")


@pytest.mark.parametrize("content", [b"image,Edema\n\xff\xfe,1\n", b'image,Edema\n"a,1\n'])
def test_file_that_is_no_csv_is_refused(tmp_path, content):
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
    assert "images holds no images (.png, " in refusal(data, masks="masks")


def test_image_that_is_listed_and_missing_is_an_error_of_that_case_alone(data):
    source = opened(data, "image,Edema\na,1\nlost.png,1\n", masks="masks")
    keys = by_case(source)
    for attempt in (source.load, source.truth):
        with pytest.raises(CaseError, match=r"^lost does not exist; correct the list or add the file$"):
            attempt(keys["lost"])
    assert source.load(keys["a"]).truth


def test_errors_name_image_and_mask_without_giving_the_folder_away(data):
    write_mask(data / "masks/Edema/ward 2/c.png", slice(0, 1), (5, 5))
    source = opened(data, masks="masks")
    for attempt in (source.load, source.truth):
        with pytest.raises(CaseError) as caught:
            attempt(by_case(source)["ward 2/c"])
        assert str(caught.value).startswith("mask masks/Edema/ward 2/c.png is 5×5, its image 8×11")
    (data / "images/b.jpg").write_bytes(b"oops")
    with pytest.raises(CaseError, match=r"^b is not an image"):
        source.load(by_case(source)["b"])


def test_paths_of_the_spec_start_where_the_spec_lies(tmp_path):
    settings = FolderSettings(
        images="i", labels="l.csv", masks="/elsewhere/m", readers={"one": "r"}, points="p.csv"
    ).resolved(tmp_path)
    assert settings.images == tmp_path / "i"
    assert settings.labels == tmp_path / "l.csv"
    assert str(settings.masks) == "/elsewhere/m"
    assert settings.readers == {"one": tmp_path / "r"}
    assert settings.points == tmp_path / "p.csv"
    bare = FolderSettings(images="i").resolved(tmp_path)
    assert (bare.labels, bare.masks, bare.points, bare.readers) == (None, None, None, {})


def test_hidden_files_are_no_images(tmp_path):
    picture = Pictures.new("L", (4, 4))
    for name in ("a.png", "._a.png", ".ipynb_checkpoints/b.png"):
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        picture.save(tmp_path / "images" / name)
    (tmp_path / "masks" / "f").mkdir(parents=True)
    source = FolderSource(FolderSettings(images=tmp_path / "images", masks=tmp_path / "masks"))
    assert [key.case for key in source.index()] == ["a"]


def test_a_misspelt_folder_of_masks_is_refused(tmp_path):
    (tmp_path / "images").mkdir()
    Pictures.new("L", (4, 4)).save(tmp_path / "images" / "a.png")
    (tmp_path / "labels.csv").write_text("image,Cardiomegaly\na,1\n")
    (tmp_path / "masks" / "Cardiomegali").mkdir(parents=True)
    settings = FolderSettings(images=tmp_path / "images", labels=tmp_path / "labels.csv", masks=tmp_path / "masks")
    with pytest.raises(InputError, match="did you mean 'Cardiomegaly'"):
        FolderSource(settings)


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
