import json

import numpy as np
import pytest
from PIL import Image as Pictures
from pycocotools import mask as coco

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.findings import LOCALIZED
from heatcheck.sources.files.annotations import read_annotations, read_points

SQUARE = [[1, 1], [4, 1], [4, 3], [1, 3]]


def written(folder, content, name="truth.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def refusal(folder, content, name="truth.json", read=read_annotations):
    path = written(folder, content, name)
    with pytest.raises(InputError) as caught:
        read(path)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("who", ["gt", "hb"])
def test_polygons_give_the_masks_of_the_papers_scripts(golden, who):
    truth = read_annotations(golden / f"data/{who}_annotations.json")
    expected = json.loads((golden / f"expected/{who}_segmentations.json").read_text())
    assert truth.kind == "outlines"
    assert set(truth.images) == set(expected)
    for image, of_image in expected.items():
        for finding in LOCALIZED:
            mask = truth.mask(image, finding, truth.size(image))
            code = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
            assert code["counts"].decode() == of_image[finding]["counts"], (image, finding)
            assert truth.is_empty(image, finding) == (not mask.any())


def test_run_length_codes_of_the_papers_scripts_give_the_same_masks(golden):
    drawn = read_annotations(golden / "data/gt_annotations.json")
    stored = read_annotations(golden / "expected/gt_segmentations.json")
    assert stored.kind == "masks"
    assert stored.images == drawn.images
    for image in stored.images:
        assert stored.size(image) == drawn.size(image)
        assert set(stored.findings_of(image)) == set(LOCALIZED)
        for finding in LOCALIZED:
            mask = stored.mask(image, finding, stored.size(image))
            np.testing.assert_array_equal(mask, drawn.mask(image, finding, drawn.size(image)))
            assert stored.is_empty(image, finding) == (finding not in drawn.findings_of(image))
            assert stored.instances(image, finding) is None


def test_polygons_are_counted_and_returned(golden):
    truth = read_annotations(golden / "data/gt_annotations.json")
    content = json.loads((golden / "data/gt_annotations.json").read_text())
    for image in truth.images:
        for finding in truth.findings_of(image):
            polygons = content[image][finding]
            assert truth.instances(image, finding) == len(polygons)
            assert [outline.tolist() for outline in truth.outlines(image, finding)] == polygons


def test_points_of_the_readers_are_read(golden):
    points = read_points(golden / "data/hb_salient_pt.json")
    assert points == json.loads((golden / "data/hb_salient_pt.json").read_text())


def test_both_names_of_airspace_opacity_are_one_finding(tmp_path):
    truth = read_annotations(written(tmp_path, {"a": {"img_size": [5, 6], "Lung Opacity": [SQUARE]}}))
    assert truth.findings_of("a") == truth.findings == ("Airspace Opacity",)
    assert truth.mask("a", "Airspace Opacity", (5, 6)).sum() == 12
    assert truth.mask("a", "Lung Opacity", (5, 6)).sum() == 12
    points = read_points(written(tmp_path, {"a": {"Lung Opacity": [[1, 2.5]]}}, "points.json"))
    assert points == {"a": {"Airspace Opacity": [[1.0, 2.5]]}}


def test_image_ids_may_contain_underscores_spaces_and_dots(tmp_path):
    names = ["ward_2_scan.v1.png", "ward 2 é", "a.b.c"]
    truth = read_annotations(written(tmp_path, {name: {"img_size": [5, 6], "Edema": [SQUARE]} for name in names}))
    assert truth.images == tuple(sorted(names))


def test_an_image_or_finding_without_an_entry_has_an_empty_mask(tmp_path):
    truth = read_annotations(written(tmp_path, {"a": {"img_size": [5, 6], "Edema": [SQUARE]}}))
    for image, finding in (("a", "Mass"), ("b", "Edema")):
        assert not truth.mask(image, finding, (5, 6)).any()
        assert truth.is_empty(image, finding)
        assert truth.instances(image, finding) == 0
        assert truth.outlines(image, finding) == []
    assert truth.findings_of("b") == ()
    assert truth.size("b") is None


def test_a_finding_of_another_data_set_is_a_finding(tmp_path):
    truth = read_annotations(written(tmp_path, {"a": {"img_size": [5, 6], "Mass": [SQUARE], "Glioma": [SQUARE]}}))
    assert truth.findings == ("Glioma", "Mass")


def test_marks_of_another_size_than_the_image_are_refused(tmp_path):
    truth = read_annotations(written(tmp_path, {"a": {"img_size": [5, 6], "Edema": [SQUARE]}}))
    with pytest.raises(CaseError, match=r"truth.json says that a is 5×6, but the image is 6×5; correct one"):
        truth.mask("a", "Edema", (6, 5))


def polygon_file(**changes):
    return {"film 1": {"img_size": [5, 6], "Edema": [SQUARE]} | changes}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"a": {"img_size": [5, 6], "Edema": [[[1,', "is not readable JSON"),
        ("", "is not readable JSON"),
        ("[" * 100_000, "is not readable JSON"),
        ("[]", "is not a JSON object"),
        ({}, "has no images"),
        ('{"a": {"img_size": [5, 6]}, "a": {"img_size": [5, 6]}}', "'a' occurs twice"),
        ('{"a": {"img_size": [5, 6], "Edema": [], "Edema": []}}', "'Edema' occurs twice"),
        ({"film 1": [1]}, "image film 1: expected an object"),
        ({"film 1": {"Edema": [SQUARE]}}, "image film 1: img_size is missing"),
        (polygon_file(img_size=[5]), "image film 1: its size is [5]"),
        (polygon_file(img_size=[5, 0]), "its size is [5, 0]"),
        (polygon_file(img_size=[5.0, 6.0]), "its size is [5.0, 6.0]"),
        (polygon_file(img_size=[10**30, 6]), "its size is"),
        (polygon_file(img_size=None), "its size is None"),
        (polygon_file(Edema=[SQUARE[:2]]), "image film 1, Edema: a polygon has 2 points; draw at least 3"),
        (polygon_file(Edema=[]), "has no polygon"),
        (polygon_file(Edema=SQUARE), "expected a polygon [[x, y], …]"),
        (polygon_file(Edema="1 1 4 1"), "expected polygons or a run-length code, got '1 1 4 1'"),
        (polygon_file(Edema=[[[1, 1], [2, "3"], [4, 5]]]), "expected a polygon"),
        (polygon_file(Edema=[[[1, 1], [2], [4, 5]]]), "expected a polygon"),
        (polygon_file(Edema=[[[1, 1], [2, None], [4, 5]]]), "expected a polygon"),
        (polygon_file(Edema=[[[1, 1], [2, 10**400], [4, 5]]]), "expected a polygon"),
        ('{"a": {"img_size": [5, 6], "Edema": [[[1, 1], [NaN, 2], [3, 4]]]}}', "cannot be a pixel position"),
        ('{"a": {"img_size": [5, 6], "Edema": [[[1, 1], [Infinity, 2], [3, 4]]]}}', "cannot be a pixel position"),
        (polygon_file(Edema=[[[10, 1], [12, 1], [12, 4]]]), "lies outside the image of 5×6"),
        (polygon_file(Edema=[[[1, -9], [2, -9], [2, -4]]]), "lies outside the image of 5×6"),
        (polygon_file(Edma=[SQUARE]), "unknown finding 'Edma'; did you mean 'Edema'?"),
        (polygon_file(edema=[SQUARE]), "unknown finding 'edema'; did you mean 'Edema'?"),
        (polygon_file(Pleural_Effusion=[SQUARE]), "did you mean 'Pleural Effusion'?"),
        (polygon_file(**{"Lung opacity": [SQUARE]}), "did you mean 'Lung Opacity'?"),
        (polygon_file(**{" ": [SQUARE]}), "the name of a finding is ' '"),
        (polygon_file(**{"Lung Opacity": [SQUARE], "Airspace Opacity": [SQUARE]}), "two names mean Airspace Opacity"),
    ],
)  # fmt: skip
def test_polygons_that_are_unusable_are_refused_in_one_line(tmp_path, content, words):
    assert words in refusal(tmp_path, content)


def code(counts="54", size=(2, 2)):
    return {"size": list(size), "counts": counts}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"Edema": code("", (2, 2))}, "film 1, Edema: the run-length code is damaged (its counts cover 0 pixels"),
        ({"Edema": code("0T")}, "the run-length code is damaged (its counts end in the middle"),
        ({"Edema": code([1, 2, 3])}, "cover 6 pixels, not 2×2 = 4"),
        ({"Edema": {"size": [2, 2]}}, "has no counts"),
        ({"Edema": {"counts": "4"}}, "its size is None"),
        ({"Edema": code("4"), "Mass": code("6", (2, 3))}, "its masks have different sizes"),
    ],
)
def test_run_length_codes_that_are_unusable_are_refused_in_one_line(tmp_path, entry, words):
    assert words in refusal(tmp_path, {"film 1": entry})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not readable JSON"),
        ({"a": []}, "image a: expected an object"),
        ({"a": {"Edema": [1, 2]}}, "image a, Edema: expected points [[x, y], …], got [1, 2]"),
        ({"a": {"Edema": [[1, "2"]]}}, "expected points"),
        ({"a": {"Edema": [[1, 10**400]]}}, "expected points"),
        ('{"a": {"Edema": [[1, NaN]]}}', "expected points"),
        ({"a": {"Edma": [[1, 2]]}}, "did you mean 'Edema'?"),
    ],
)
def test_points_that_are_unusable_are_refused_in_one_line(tmp_path, content, words):
    assert words in refusal(tmp_path, content, read=read_points)


@pytest.mark.parametrize("read", [read_annotations, read_points])
def test_a_missing_file_is_named(tmp_path, read):
    with pytest.raises(InputError, match=r"nowhere.json: no such file"):
        read(tmp_path / "nowhere.json")


def test_a_folder_of_masks_is_read_on_demand(tmp_path):
    for name in ("Edema/a.png", "Edema/ward 2/b.v2.png", "Lung Opacity/a.png"):
        (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        Pictures.new("L", (6, 5), 255).save(tmp_path / "m" / name)
    (tmp_path / "m/Edema/c.png").write_bytes(b"oops")
    (tmp_path / "m/Edema/notes.txt").write_text("nothing")
    truth = read_annotations(tmp_path / "m")
    assert (truth.kind, truth.images) == ("masks", ("a", "c", "ward 2/b.v2"))
    assert truth.findings_of("a") == ("Edema", "Airspace Opacity")
    assert truth.size("a") == (5, 6)
    assert truth.mask("a", "Airspace Opacity", (5, 6)).all()
    assert truth.instances("a", "Edema") is None
    with pytest.raises(CaseError, match=r"mask m/Edema/a.png is 5×6"):
        truth.mask("a", "Edema", (4, 4))
    with pytest.raises(CaseError, match=r"m/Edema/c.png is not an image"):
        truth.mask("c", "Edema", (5, 6))


def test_two_masks_of_one_finding_and_an_empty_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="holds no masks"):
        read_annotations(tmp_path)
    for name in ("Edema/a.png", "Edema/a.bmp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Pictures.new("L", (6, 5)).save(tmp_path / name)
    with pytest.raises(InputError, match="two masks of Edema for a"):
        read_annotations(tmp_path)
