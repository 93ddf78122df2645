"""Boxes and outlines of COCO files and of CSV tables."""

import json

import numpy as np
import pytest
from pycocotools import mask as coco
from tests.sources.files.test_annotations import refusal, written

from heatcheck.core.errors import CaseError
from heatcheck.sources.files.annotations import read_annotations

NIH = """Image Index,Finding Label,Bbox [x,y,w,h],,,
00013118_008.png,Atelectasis,225.084745762712,547.019216763771,86.7796610169492,79.1864406779661,,,
00014716_007.png,Infiltrate,686.101694915254,131.543498235867,185.491525423729,313.492881355932,,,
00014716_007.png,Infiltrate,10,20,30,40,,,
00014716_007.png,Effusion,10,20,30,40,,,
"""


def coco_file(*annotations, size=(8, 10)):
    images = [
        {"id": 7, "file_name": "ward 2/film_1.v2.png", "height": size[0], "width": size[1]},
        {"id": 9, "file_name": "b.jpg", "height": size[0], "width": size[1]},
    ]
    entries = [{"id": n, "image_id": 7, "category_id": 3} | entry for n, entry in enumerate(annotations)]
    categories = [{"id": 3, "name": "Lung Opacity"}, {"id": 4, "name": "Mass"}]
    return {"images": images, "annotations": entries, "categories": categories}


def test_the_boxes_of_nih_are_read_with_their_odd_header(tmp_path):
    truth = read_annotations(written(tmp_path, NIH, "BBox_List_2017.csv"))
    assert (truth.kind, truth.images) == ("boxes", ("00013118_008", "00014716_007"))
    assert truth.findings_of("00014716_007") == ("Effusion", "Infiltrate")
    assert truth.instances("00014716_007", "Infiltrate") == 2
    assert truth.size("00013118_008") is None
    expected = np.zeros((1024, 1024), bool)
    expected[547:626, 225:312] = True
    np.testing.assert_array_equal(truth.mask("00013118_008", "Atelectasis", (1024, 1024)), expected)
    with pytest.raises(CaseError, match="the boxes of Atelectasis lie outside the image 00013118_008"):
        truth.mask("00013118_008", "Atelectasis", (100, 100))


def test_a_plain_table_of_boxes_may_have_its_columns_in_any_order(tmp_path):
    table = "finding,image,reader,y,x,height,width\nLung Opacity,a.v1,one,1,2,3,4\n\nMass,a.v1,one,0,0,1,1\n"
    truth = read_annotations(written(tmp_path, table, "boxes.csv"))
    assert truth.findings_of("a.v1") == ("Airspace Opacity", "Mass")
    expected = np.zeros((6, 7), bool)
    expected[1:4, 2:6] = True
    np.testing.assert_array_equal(truth.mask("a.v1", "Airspace Opacity", (6, 7)), expected)
    np.testing.assert_array_equal(truth.outlines("a.v1", "Mass"), [[[0, 0], [1, 0], [1, 1], [0, 1]]])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a,Edema,1,2,0,4", "line 2, a: the box is 0 wide and 4 high"),
        ("a,Edema,1,2,3,-4", "the box is 3 wide and -4 high"),
        ("a,Edema,-9,2,3,4", "lies outside the image"),
        ("a,Edema,x,2,3,4", "the box of a is x, 2, 3, 4, not four numbers"),
        ("a,Edema,nan,2,3,4", "cannot be a position in an image"),
        ("a,Edema,1,2,3", "fewer cells than the header"),
        ("a,Edma,1,2,3,4", "did you mean 'Edema'?"),
    ],
)
def test_unusable_boxes_are_refused_with_their_line(tmp_path, row, words):
    assert words in refusal(tmp_path, f"image,finding,x,y,w,h\n{row}\n", "boxes.csv")


@pytest.mark.parametrize("header", ["", "image,finding,x,y", "Image Index,Finding Label", "a,b\n\x00"])
def test_a_table_of_something_else_is_refused(tmp_path, header):
    assert "expected columns image, finding, x, y, w, h" in refusal(tmp_path, header, "boxes.csv")


def test_coco_boxes_are_boxes(tmp_path):
    content = coco_file(
        {"bbox": [1, 2, 3, 2], "segmentation": []}, {"bbox": [0, 0, 1, 1]}, {"bbox": [5, 5, 2.5, 1], "category_id": 4}
    )
    truth = read_annotations(written(tmp_path, content))
    assert (truth.kind, truth.images) == ("boxes", ("b", "ward 2/film_1.v2"))
    assert truth.findings_of("b") == ()
    assert truth.findings_of("ward 2/film_1.v2") == ("Airspace Opacity", "Mass")
    assert truth.instances("ward 2/film_1.v2", "Airspace Opacity") == 2
    assert truth.size("b") == (8, 10)
    assert truth.mask("ward 2/film_1.v2", "Airspace Opacity", (8, 10)).sum() == 7


def test_coco_outlines_are_drawn_and_one_annotation_is_one_instance(tmp_path):
    parts = [[1, 1, 3, 1, 3, 3], [6, 6, 8, 6, 8, 7]]
    truth = read_annotations(
        written(tmp_path, coco_file({"segmentation": parts}, {"segmentation": [[0, 5, 1, 5, 1, 6]]}))
    )
    image = "ward 2/film_1.v2"
    assert truth.kind == "outlines"
    assert truth.instances(image, "Airspace Opacity") == 2
    assert len(truth.outlines(image, "Airspace Opacity")) == 3
    mask = truth.mask(image, "Airspace Opacity", (8, 10))
    assert mask[1, 1]
    assert mask[6, 8]
    assert mask[5, 0]
    assert not mask[4].any()


def test_coco_codes_are_masks_and_may_be_mixed_with_outlines(tmp_path):
    stored = np.zeros((8, 10), bool)
    stored[2:4, 5:] = True
    compressed = coco.encode(np.asfortranarray(stored.astype(np.uint8)))["counts"].decode()
    code = {"size": [8, 10], "counts": compressed}
    truth = read_annotations(written(tmp_path, coco_file({"segmentation": code})))
    assert (truth.kind, truth.instances("ward 2/film_1.v2", "Airspace Opacity")) == ("masks", 1)
    np.testing.assert_array_equal(truth.mask("ward 2/film_1.v2", "Airspace Opacity", (8, 10)), stored)
    both = coco_file({"segmentation": {"size": [8, 10], "counts": [79, 1]}}, {"segmentation": [[0, 5, 1, 5, 1, 6]]})
    truth = read_annotations(written(tmp_path, both))
    assert (truth.kind, truth.instances("ward 2/film_1.v2", "Airspace Opacity")) == ("outlines", 2)
    mask = truth.mask("ward 2/film_1.v2", "Airspace Opacity", (8, 10))
    assert mask[7, 9]
    assert mask[5, 1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (coco_file({"bbox": [1, 2, 3]}), "annotation 0 of image ward 2/film_1.v2: expected a box"),
        (coco_file({}), "expected a box [x, y, width, height], got None"),
        (coco_file({"bbox": [1, 2, 10**400, 3]}), "cannot be a position in an image"),
        (coco_file({"bbox": [10, 2, 3, 3]}), "lies outside the image"),
        (coco_file({"bbox": [1, 2, 3, 3], "image_id": [7]}), "annotation 0: its image_id or category_id"),
        (coco_file({"bbox": [1, 2, 3, 3], "category_id": 5}), "its image_id or category_id"),
        (coco_file({"segmentation": [[1, 1, 2, 2]]}), "a polygon has 2 points"),
        (coco_file({"segmentation": [[1, 1, 2, 2, 3]]}), "not a list of [x, y, x, y, …]"),
        (coco_file({"segmentation": {"size": [10, 8], "counts": [80]}}), "the mask is 10×8, its image 8×10"),
        (coco_file({"bbox": [1, 2, 3, 3]}, {"segmentation": [[1, 1, 2, 2, 3, 3]]}), "keep one kind per file"),
        (coco_file({"bbox": [1, 2, 3, 3], "id": 1}, {"bbox": [1, 2, 3, 3]}), "must have unique whole numbers as id"),
        (coco_file({"bbox": [1, 2, 3, 3]}, size=(0, 4)), "its size is [0, 4]"),
        ({"images": [], "annotations": {}, "categories": []}, "annotations is not a list of objects"),
        ({"images": [{"id": 1}], "annotations": [], "categories": []}, "file_name is missing"),
        (coco_file() | {"images": [{"id": n, "file_name": "a.png"} for n in (1, 2)]}, "images have the same file_name"),
    ],
)  # fmt: skip
def test_unusable_coco_is_refused_in_one_line(tmp_path, content, words):
    assert words in refusal(tmp_path, content)


def test_coco_of_only_healthy_images_names_them(tmp_path):
    truth = read_annotations(written(tmp_path, json.dumps(coco_file())))
    assert (truth.images, truth.findings) == (("b", "ward 2/film_1.v2"), ())
