import json
import math
import shutil
import time
import tracemalloc

import numpy as np
import pytest
from tests.chexlocalize_material import LABELS, write_film, write_labels, write_tree

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.findings import LOCALIZED, canonical
from heatcheck.core.records import HUMAN, UNCERTAIN
from heatcheck.sources.chexlocalize import CheXlocalize, CheXlocalizeSettings
from heatcheck.sources.files.annotations import read_annotations


@pytest.fixture(scope="module")
def published(tmp_path_factory, golden):
    return write_tree(tmp_path_factory.mktemp("published"), golden)


@pytest.fixture
def tree(tmp_path, published):
    """A copy that a test may damage."""
    return shutil.copytree(published, tmp_path / "tree")


def opened(root, **settings):
    return CheXlocalize(CheXlocalizeSettings(root=root, **settings))


def by_case(source):
    return {key.case: key for key in source.index()}


def refusal(root, **settings):
    with pytest.raises(InputError) as caught:
        opened(root, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_published_tree_is_read(published, golden):
    source = opened(published)
    keys = source.index()
    assert source.findings == LOCALIZED
    assert source.truth_kind == "outlines"
    assert len(keys) == 24
    assert [key.case for key in keys] == sorted(key.case for key in keys)
    assert keys[0].case == "patient90001_study1_view1_frontal"
    assert keys[0].patient == "patient90001"
    drawn = read_annotations(golden / "data/gt_annotations.json")
    for key in keys:
        case = source.load(key)
        assert set(case.truth) == set(drawn.findings_of(key.case))
        for finding, mask in case.truth.items():
            np.testing.assert_array_equal(mask, drawn.mask(key.case, finding, case.image.shape[1:]))
            assert case.instances[finding] == drawn.instances(key.case, finding)
            assert key.labels[finding] == 1


def test_human_readers_are_one_reading_with_points(published, golden):
    source = opened(published)
    drawn = read_annotations(golden / "data/hb_annotations.json")
    points = json.loads((golden / "data/hb_salient_pt.json").read_text())
    missing = 0
    for key in source.index():
        (reading,) = source.load(key).readings
        assert reading.reader == HUMAN
        assert reading.outlined == (key.case in drawn.images)
        assert set(reading.masks) == set(drawn.findings_of(key.case))
        points_read = {
            name: [list(point.position[::-1]) for point in marked] for name, marked in reading.points.items()
        }
        assert points_read == points.get(key.case, {})
        missing += not reading.outlined
    assert missing == 4


def test_a_film_without_truth_has_only_labels(published, golden):
    source = opened(published)
    for case in json.loads((golden / "data/manifest.json").read_text())["no_ground_truth"]:
        key = by_case(source)[case]
        assert source.load(key).truth == source.truth(key) == {}


def test_run_length_codes_replace_missing_outlines(tree, golden):
    source = opened(tree)
    expected = {key.case: source.truth(key) for key in source.index()}
    for whose in ("gt", "hb"):
        (tree / f"CheXlocalize/{whose}_annotations_test.json").unlink()
        codes = golden / f"expected/{whose}_segmentations.json"
        shutil.copy(codes, tree / f"CheXlocalize/{whose}_segmentations_test.json")
    source = opened(tree)
    assert source.truth_kind == "masks"
    for key in source.index():
        case = source.load(key)
        assert case.instances == {}
        assert set(case.truth) == set(expected[key.case])
        assert all(np.array_equal(mask, expected[key.case][name]) for name, mask in case.truth.items())


def test_views_are_distinguished_by_column_or_name(published, tmp_path, golden):
    everything = [key.case for key in opened(published).index()]
    by_name = {views: [key.case for key in opened(published, views=views).index()] for views in ("frontal", "lateral")}
    assert sorted(by_name["frontal"] + by_name["lateral"]) == everything
    assert by_name["lateral"] == [case for case in everything if case.endswith("lateral")]
    other = write_tree(tmp_path / "val", golden, "val")  # with the columns next to the labels
    assert [key.case for key in opened(other, split="val", views="lateral").index()] == by_name["lateral"]
    table = other / "CheXpert/val_labels.csv"
    table.write_text(table.read_text().replace("Lateral,", "Frontal,").replace("Frontal/Frontal", "Frontal/Lateral"))
    assert "lists no lateral film" in refusal(other, split="val", views="lateral")


def test_the_view_of_every_film_is_a_fact_also_without_its_column(published):
    facts = {key.case: dict(key.facts) for key in opened(published).index()}
    assert {case.rsplit("_", 1)[-1] for case in facts} <= {"frontal", "lateral"}
    assert all(fact["view"] == case.rsplit("_", 1)[-1] for case, fact in facts.items())


def test_all_findings_are_the_columns_in_their_order(published):
    source = opened(published, findings="all")
    assert source.findings == tuple(map(canonical, LABELS))
    labels = source.index()[0].labels
    assert list(labels) == list(source.findings)
    assert math.isnan(labels["Fracture"])


@pytest.mark.parametrize("tree_name", ["CheXpert-v1.0", "CheXpert-v1.0-small", "CheXpert", ""])
@pytest.mark.parametrize("before", ["CheXpert-v1.0/train/", "CheXpert-v1.0-small/train/", "train/", ""])
def test_the_training_split_is_found_as_chexpert_ships_it(tmp_path, tree_name, before):
    rows = {
        "patient00002_study2_view1_frontal": {"Edema": "-1.0", "Lung Opacity": "1.0"},
        "patient00001_study1_view2_lateral": {"Edema": "0.0"},
    }
    write_labels(tmp_path / tree_name / "train.csv", rows, before)
    write_film(tmp_path / tree_name / "train/patient00002/study2/view1_frontal.jpg", (8, 9))
    source = opened(tmp_path, split="train")
    first, second = source.index()
    assert (first.case, first.patient) == ("patient00001_study1_view2_lateral", "patient00001")
    assert (first.labels["Edema"], second.labels["Edema"], second.labels["Airspace Opacity"]) == (0, UNCERTAIN, 1)
    case = source.load(second)
    assert (case.image.shape, case.truth, case.readings) == ((1, 8, 9), {}, ())
    with pytest.raises(CaseError, match="patient00001_study1_view2_lateral does not exist"):
        source.load(first)


def test_the_first_editions_layout_is_read_too(tmp_path, golden):
    newer = write_tree(tmp_path / "newer", golden, "val")
    root = tmp_path / "older"
    shutil.copytree(newer / "CheXpert/val", root / "CheXpert-v1.0/valid")
    shutil.copy(newer / "CheXpert/val_labels.csv", root / "CheXpert-v1.0/valid.csv")
    shutil.copy(newer / "CheXlocalize/gt_annotations_val.json", root)
    source = opened(root, split="val")
    assert source.load(source.index()[0]).truth
    assert source.load(source.index()[0]).readings == ()


def test_chexpert_alone_suffices_for_labels(tree):
    shutil.rmtree(tree / "CheXlocalize")
    sentence = refusal(tree)
    assert "CheXlocalize has no gt_annotations_test.json or gt_segmentations_test.json" in sentence
    assert "`truth: none`" in sentence
    case = opened(tree, truth="none").load(opened(tree, truth="none").index()[0])
    assert (case.truth, case.readings) == ({}, ())


def rewrite(path, change):
    path.write_text(change(path.read_text()))


def rename(path, old, new):
    rewrite(path, lambda text: text.replace(old, new))


def no_films(tree):
    shutil.rmtree(tree / "CheXpert/test")


def no_table(tree):
    (tree / "CheXpert/test_labels.csv").unlink()


def other_images(tree):
    rename(tree / "CheXlocalize/hb_annotations_test.json", "patient9", "patient1")


def other_points(tree):
    rename(tree / "CheXlocalize/hb_salient_pt_test.json", "patient9", "patient1")


def foreign_finding(tree):
    rename(tree / "CheXlocalize/gt_annotations_test.json", "Support Devices", "Tuberculosis")


def foreign_column(tree):
    rename(tree / "CheXpert/test_labels.csv", "Fracture", "Tuberculosis")


def lost_column(tree):
    rename(tree / "CheXpert/test_labels.csv", "Edema,", "Oedema,")


def short_path(tree):
    rename(tree / "CheXpert/test_labels.csv", "test/patient90001/study1/", "")


def no_paths(tree):
    rename(tree / "CheXpert/test_labels.csv", "Path", "image")


def twice(tree):
    rewrite(tree / "CheXpert/test_labels.csv", lambda text: text + text.splitlines()[1] + "\n")


def cut_off(tree):
    rewrite(tree / "CheXlocalize/gt_annotations_test.json", lambda text: text[: len(text) // 2])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_films, "has no films such as patient90001/study1/view1_frontal.jpg; looked below CheXpert/test, "),
        (no_table, "has no labels of the test split; looked for CheXpert/test_labels.csv, CheXpert/test.csv, "),
        (other_images, "hb_annotations_test.json names none of the images of"),
        (other_points, "hb_salient_pt_test.json names none of the images of"),
        (foreign_finding, "gt_annotations_test.json: unknown finding 'Tuberculosis'; "),
        (foreign_column, "test_labels.csv: 'Tuberculosis' is not a label of CheXpert"),
        (lost_column, "test_labels.csv: 'Oedema' is not a label of CheXpert; did you mean 'Edema'?"),
        (short_path, "'view1_frontal.jpg' is not a path such as"),
        (no_paths, "test_labels.csv is not CheXpert's table"),
        (twice, "'patient90001_study1_view1_frontal' is listed twice"),
        (cut_off, "gt_annotations_test.json is not readable JSON"),
    ],
)
def test_an_unusable_tree_is_refused_in_one_line(tree, spoil, words):
    spoil(tree)
    assert words in refusal(tree)


def test_all_files_that_are_lacking_are_named_at_once(tree):
    (tree / "CheXlocalize/gt_annotations_test.json").unlink()
    no_films(tree)
    for lacking in ("has no films such as", "has no gt_annotations_test.json"):
        assert lacking in refusal(tree)
    no_table(tree)
    for lacking in ("has no labels of the test split", "has no gt_annotations_test.json", "`truth: none`"):
        assert lacking in refusal(tree)
    assert "gt_annotations" not in refusal(tree, truth="none")


def test_a_missing_root_is_refused(tmp_path):
    assert "nowhere: no such folder" in refusal(tmp_path / "nowhere")


def test_one_film_of_another_size_or_with_another_label_fails_by_itself(tree):
    write_film(tree / "CheXpert/test/patient90001/study1/view1_frontal.jpg", (20, 30))
    rewrite(
        tree / "CheXlocalize/gt_annotations_test.json",
        lambda text: json.dumps(add_outline(json.loads(text), "patient90002_study1_view1_frontal", "Cardiomegaly")),
    )
    source = opened(tree)
    with pytest.raises(
        CaseError, match="says that patient90001_study1_view1_frontal is 312×217, but the image is 20×30"
    ):
        source.load(by_case(source)["patient90001_study1_view1_frontal"])
    for attempt in (source.load, source.truth):
        with pytest.raises(CaseError, match="has an outline of Cardiomegaly, but its label says 0"):
            attempt(by_case(source)["patient90002_study1_view1_frontal"])
    assert source.load(by_case(source)["patient90003_study1_view1_frontal"]).truth
    ignoring = opened(tree, contradictions="ignore")
    case = ignoring.load(by_case(ignoring)["patient90002_study1_view1_frontal"])
    assert "Cardiomegaly" in ignoring.truth(case.key)
    assert case.key.labels == {**by_case(source)[case.key.case].labels, "Cardiomegaly": 1}


def add_outline(content, case, finding):
    content[case][finding] = [[[1, 1], [9, 1], [9, 9]]]
    return content


def test_the_stamp_changes_with_the_outlines(tree):
    before = opened(tree).stamp()
    assert opened(tree).stamp() == before
    rename(tree / "CheXlocalize/gt_annotations_test.json", "]]]", "]]] ")
    assert opened(tree).stamp() != before


def test_the_index_of_many_films_is_quick_and_small_and_opens_none(tmp_path, monkeypatch):
    rows = {
        f"patient{n // 3:05d}_study1_view{n % 3}_frontal": {"Edema": "1.0", "Fracture": "-1.0"} for n in range(22_400)
    }
    write_labels(tmp_path / "CheXpert-v1.0/train.csv", rows, "CheXpert-v1.0/train/")
    write_film(tmp_path / "CheXpert-v1.0/train/patient00000/study1/view0_frontal.jpg", (8, 9))
    monkeypatch.setattr("heatcheck.sources.chexlocalize.read_image", lambda *_: pytest.fail("a film was opened"))
    start = time.perf_counter()
    opened(tmp_path, split="train").index()
    assert time.perf_counter() - start < 2  # a tenth of CheXpert, with a factor of four for busy machines
    tracemalloc.start()
    source = opened(tmp_path, split="train", findings="all")
    source.index()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6


def test_patients_can_be_divided_at_random_and_the_parts_share_none(published):
    everyone = opened(published).index()
    parts = [opened(published, patients=ends).index() for ends in ((0, 0.5), (0.5, 1))]
    assert sorted([*parts[0], *parts[1]], key=lambda key: key.case) == list(everyone)
    patients = [{key.patient for key in part} for part in parts]
    assert all(patients)
    assert not patients[0] & patients[1]
    assert opened(published, patients=(0, 0.5)).index() == parts[0]


def test_a_range_without_patients_and_an_invalid_range_are_refused(published):
    assert "has no patient from 0.5 to 0.500001; widen `patients`" in refusal(published, patients=(0.5, 0.500001))
    for wrong in ((0.5, 0.5), (0.9, 0.1), (0, 2), (-1, 1)):
        with pytest.raises(ValueError, match="patients"):
            CheXlocalizeSettings(root=published, patients=wrong)
