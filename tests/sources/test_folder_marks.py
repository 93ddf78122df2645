import math

import numpy as np
import pytest
from PIL import Image as Pictures
from tests.sources.folder_material import SHAPE, by_case, data, opened, refusal, same, size_of, write_mask

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.records import Point
from heatcheck.sources import folder
from heatcheck.sources.folder import FolderSettings, FolderSource

__all__ = ["data"]  # a fixture


def test_labels_come_from_the_masks_without_a_table(data):
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


def test_an_empty_mask_is_not_truth_whatever_the_label(data):
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


def test_without_labels_an_empty_mask_means_absent(data):
    shape = size_of(data / "images/a.png")
    Pictures.new("L", shape).save(data / "masks/Lesion/a.png")
    source = FolderSource(FolderSettings(images=data / "images", masks=data / "masks"))
    labels = by_case(source)["a"].labels
    assert (labels["Edema"], labels["Lesion"]) == (1, 0)


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


def test_mask_folder_of_a_finding_without_a_column_is_ignored(data):
    source = opened(data, "image,Edema\na,1\n", masks="masks")
    assert source.findings == ("Edema",)
    assert list(source.truth(source.index()[0])) == ["Edema"]


def test_column_without_a_mask_folder_has_only_labels(data):
    source = opened(data, "image,Edema,Fracture\na,1,1\n", masks="masks")
    (key,) = source.index()
    assert key.labels["Fracture"] == 1
    assert list(source.truth(key)) == ["Edema"]


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


def test_errors_name_image_and_mask_without_revealing_the_folder(data):
    write_mask(data / "masks/Edema/ward 2/c.png", slice(0, 1), (5, 5))
    source = opened(data, masks="masks")
    for attempt in (source.load, source.truth):
        with pytest.raises(CaseError) as caught:
            attempt(by_case(source)["ward 2/c"])
        assert str(caught.value).startswith("mask masks/Edema/ward 2/c.png is 5×5, its image 8×11")
    (data / "images/b.jpg").write_bytes(b"oops")
    with pytest.raises(CaseError, match=r"^b is not an image"):
        source.load(by_case(source)["b"])


def test_a_misspelt_folder_of_masks_is_refused(tmp_path):
    (tmp_path / "images").mkdir()
    Pictures.new("L", (4, 4)).save(tmp_path / "images" / "a.png")
    (tmp_path / "labels.csv").write_text("image,Cardiomegaly\na,1\n")
    (tmp_path / "masks" / "Cardiomegali").mkdir(parents=True)
    settings = FolderSettings(images=tmp_path / "images", labels=tmp_path / "labels.csv", masks=tmp_path / "masks")
    with pytest.raises(InputError, match="did you mean 'Cardiomegaly'"):
        FolderSource(settings)
