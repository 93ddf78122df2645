"""Truth, readers, points and labels of a folder in the formats of other data sets."""

import json
import math
import os
from datetime import UTC, datetime

import nibabel
import numpy as np
import pytest
from pydantic import ValidationError
from tests.sources.folder_material import SHAPE, by_case, data, opened, refusal, write_picture

from heatcheck.core.errors import CaseError
from heatcheck.core.records import UNCERTAIN, Point
from heatcheck.sources.folder import FolderSettings

__all__ = ["data"]  # a fixture
SQUARE = [[1, 1], [4, 1], [4, 3], [1, 3]]


def write_json(path, content):
    path.write_text(json.dumps(content))


def test_truth_may_be_outlines_and_their_number_is_known(data):
    write_json(
        data / "truth.json",
        {
            "a": {"img_size": SHAPE, "Edema": [SQUARE, SQUARE]},
            "ward 2/c": {"img_size": SHAPE, "Lung Opacity": [SQUARE]},
        },
    )
    source = opened(data, truth="truth.json")
    assert (source.truth_kind, source.findings) == ("outlines", ("Airspace Opacity", "Edema"))
    keys = by_case(source)
    assert keys["a"].labels["Edema"] == 1
    assert math.isnan(keys["a"].labels["Airspace Opacity"])
    assert math.isnan(keys["b"].labels["Edema"])
    case = source.load(keys["a"])
    assert case.instances == {"Edema": 2}
    assert case.truth["Edema"].sum() == 12
    assert source.load(keys["b"]).truth == source.truth(keys["b"]) == {}


def test_truth_of_another_size_fails_only_that_case(data):
    write_json(data / "truth.json", {"a": {"img_size": SHAPE[::-1], "Edema": [SQUARE]}, "b": {"img_size": SHAPE}})
    source = opened(data, truth="truth.json")
    for attempt in (source.load, source.truth):
        with pytest.raises(CaseError, match=r"truth\.json says that a is 11×8, but the image is 8×11"):
            attempt(by_case(source)["a"])
    assert source.load(by_case(source)["b"]).truth == {}


def test_truth_may_be_boxes_that_name_images_without_their_folders(data):
    (data / "boxes.csv").write_text("Image Index,Finding Label,Bbox [x,y,w,h],,,\nc.png,Mass,2,1,3,2,,,\n")
    source = opened(data, truth="boxes.csv")
    case = source.load(by_case(source)["ward 2/c"])
    assert (source.truth_kind, case.instances, case.truth["Mass"].sum()) == ("boxes", {"Mass": 1}, 6)


def test_a_name_that_fits_several_images_fits_none(data):
    write_picture(data / "images/ward 3/c.png")
    (data / "boxes.csv").write_text("image,finding,x,y,w,h\nc.png,Mass,2,1,3,2\na,Mass,1,1,1,1\n")
    source = opened(data, truth="boxes.csv")
    assert [case for case, key in by_case(source).items() if source.truth(key)] == ["a"]


def test_two_names_of_one_image_are_refused(data):
    (data / "boxes.csv").write_text("image,finding,x,y,w,h\nc.png,Mass,2,1,3,2\nward 2/c,Mass,1,1,1,1\n")
    assert "'c' and 'ward 2/c' mark the same image" in refusal(data, truth="boxes.csv")


def test_readers_may_be_files_and_their_points_json(data):
    write_json(data / "hb.json", {"a": {"img_size": SHAPE, "Edema": [SQUARE]}, "b": {"img_size": SHAPE}})
    write_json(data / "points.json", {"ward 2/c": {"Edema": [[3, 2], [1, 0.5]]}})
    source = opened(data, masks="masks", readers={"one": "hb.json"}, points="points.json")
    readings = {case: source.load(key).readings[0] for case, key in by_case(source).items()}
    assert {case: reading.outlined for case, reading in readings.items()} == {"a": True, "b": True, "ward 2/c": False}
    assert readings["a"].masks["Edema"].sum() == 12
    assert readings["b"].masks == {}
    assert readings["ward 2/c"].points == {"Edema": (Point((2.0, 3.0)), Point((0.5, 1.0)))}
    assert "name one reader" in refusal(
        data, masks="masks", readers={"one": "hb.json", "two": "hb.json"}, points="points.json"
    )


def test_files_for_other_images_are_refused(data):
    write_json(data / "hb.json", {"x": {"img_size": SHAPE, "Edema": [SQUARE]}})
    assert "hb.json names none of the images, e.g. x" in refusal(data, truth="hb.json")
    assert "hb.json names none of the images, e.g. x" in refusal(data, masks="masks", readers={"one": "hb.json"})
    write_json(data / "points.json", {"x": {"Edema": [[1, 1]]}})
    (data / "one").mkdir()
    assert "no image 'x'" in refusal(data, masks="masks", readers={"one": "one"}, points="points.json")


def test_a_finding_of_the_truth_that_is_nearly_a_column_is_refused(data):
    write_json(data / "truth.json", {"a": {"img_size": SHAPE, "Lesions": [SQUARE]}})
    assert "did you mean 'Lesion'?" in refusal(data, "image,Lesion\na,1\n", truth="truth.json")


def test_masks_and_truth_together_are_refused():
    with pytest.raises(ValidationError, match="give masks or truth, not both"):
        FolderSettings(images="i", masks="m", truth="t.json")


HEADER = "Path,Sex,Age,Frontal/Lateral,AP/PA,Lung Opacity,Edema\n"


@pytest.mark.parametrize("before", ["", "CheXpert-v1.0/train/", "CheXpert-v1.0-small/train/"])
def test_chexperts_table_names_images_by_path_and_patients_by_folder(tmp_path, before):
    for name in ("patient00001/study1/view1_frontal.jpg", "patient00002/study3/view2_lateral.jpg"):
        write_picture(tmp_path / "images" / name)
    rows = f"{before}patient00002/study3/view2_lateral.jpg,Male,3,Lateral,,-1.0,\n"
    rows += f"{before}patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,1.0,0.0\n"
    source = opened(tmp_path, HEADER + rows)
    keys = source.index()
    assert source.findings == ("Airspace Opacity", "Edema")
    assert [key.case for key in keys] == ["patient00001/study1/view1_frontal", "patient00002/study3/view2_lateral"]
    assert [key.patient for key in keys] == ["patient00001", "patient00002"]
    assert keys[0].labels == {"Airspace Opacity": 1, "Edema": 0}
    assert keys[1].labels["Airspace Opacity"] == UNCERTAIN
    assert source.load(keys[1]).image.shape == (1, *SHAPE)


def test_paths_that_begin_differently_are_refused(tmp_path):
    write_picture(tmp_path / "images/patient1/study1/view1_frontal.jpg")
    rows = "".join(f"x/{split}/patient1/study1/view1_frontal.jpg,,,,,1,0\n" for split in ("train", "valid"))
    assert "paths begin with x/train and x/valid" in refusal(tmp_path, HEADER + rows)


def test_the_stamp_changes_with_any_file(data):
    write_json(data / "truth.json", {"a": {"img_size": SHAPE, "Edema": [SQUARE]}})
    before = opened(data, truth="truth.json").stamp()
    assert opened(data, truth="truth.json").stamp() == before
    write_json(data / "truth.json", {"a": {"img_size": SHAPE, "Edema": [SQUARE, SQUARE]}})
    after = opened(data, truth="truth.json").stamp()
    write_picture(data / "images/new.png")
    assert len({before, after, opened(data, truth="truth.json").stamp()}) == 3


def test_volume_keeps_its_position_in_the_patient(tmp_path):
    affine = np.array([[0, 0, -2.0, 90], [-1.5, 0, 0, 80], [0, 3.0, 0, -70], [0, 0, 0, 1]])
    (tmp_path / "images").mkdir()
    voxels = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    nibabel.save(nibabel.Nifti1Image(voxels, affine), tmp_path / "images/a.nii.gz")
    write_picture(tmp_path / "images/b.png", 100)
    source = opened(tmp_path, labels="image,Edema\na,1\nb,0\n")
    assert np.array_equal(source.load(by_case(source)["a"]).affine, affine)
    assert source.load(by_case(source)["b"]).affine is None


def test_the_first_file_that_is_newer_than_a_moment_is_named(data):
    source = opened(data, "image,Edema\na,1\n")
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    assert source.changed_since(moment.isoformat()) == source.changed_since("") == ""
    os.utime(data / "images/b.jpg", (moment.timestamp() + 2,) * 2)
    assert source.changed_since(moment.isoformat()) == str(data / "images/b.jpg")
