"""A localization study of NIfTI volumes, from the files to the report; and how its pictures lie."""

import itertools
import json

import nibabel
import numpy as np
import pytest
import yaml
from PIL import Image
from safetensors.numpy import load_file

from heatcheck import read_run, run_study
from heatcheck.core.orientation import radiological
from heatcheck.core.records import Case, CaseKey, Point, Reading
from heatcheck.regions.rule import RegionRule
from heatcheck.running.slices import view_of
from heatcheck.running.study import RunOptions
from heatcheck.runs.store import RunFolder
from heatcheck.studies.localization.gallery import CaseWithMaps, ChosenFinding, GalleryRule, draw
from heatcheck.studies.modality.gallery import cut_of

SHAPE = (10, 9, 8)
AFFINE = np.diag([-2.0, 2.0, 3.0, 1.0])  # the first axis runs to the patient's left
FLOORS = ("random", "center_prior", "edge", "location_prior")
METHODS = ("grad_cam", "feature_permutation", *FLOORS)
METRICS = ("iou", "iou_full", "hit", "hit_margin", "mass", "rank", "box_iou")
CODE = '''
import torch
from torch import nn


class Reader(nn.Module):
    """One logit: how much lies above 2."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv3d(1, 1, 1)
        self.relu = nn.ReLU()
        with torch.no_grad():
            self.features.weight.fill_(1.0)
            self.features.bias.fill_(-2.0)

    def forward(self, volumes):
        return self.relu(self.features(volumes)).mean((2, 3, 4)) * 100 - 1


def bright():
    return Reader()
'''


def save(values, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values, AFFINE), path)


def block(number):
    """Where the spot of a patient lies: on the right, in front, from slice 2 or 3 on, and largest in the next."""
    mask = np.zeros(SHAPE, np.uint8)
    first = 2 + number % 2
    mask[1:4, 6:8, first : first + 3] = 1
    mask[4, 6, first + 1] = 1
    return mask


def write_study(folder, **changed):
    """Six patients, of whom all but two have a bright spot, outlined by the truth and a reader."""
    chance = np.random.default_rng(0)
    rows = ["image,spot"]
    for number in range(6):
        volume = chance.uniform(0.8, 1.2, SHAPE).astype(np.float32)
        if number % 3:
            volume[block(number) > 0] = 3.0
            save(block(number), folder / "masks" / "spot" / f"p{number}.nii.gz")
            save(np.roll(block(number), 1, 1), folder / "reader" / "spot" / f"p{number}.nii.gz")
        save(volume, folder / "scans" / f"p{number}.nii.gz")
        rows.append(f"p{number}.nii.gz,{int(number % 3 > 0)}")
    (folder / "labels.csv").write_text("\n".join(rows))
    (folder / "bright_reader.py").write_text(CODE)
    contract = {"outputs": ["spot"], "size": list(SHAPE), "channels": 1, "mean": [0.0], "std": [1.0]} | {
        "activation": "sigmoid"
    }
    paths = {"images": "scans", "labels": "labels.csv", "masks": "masks", "readers": {"a": "reader"}}
    values = {
        "study": "localization",
        "threads": 1,
        "gallery": 3,
        "source": {"name": "folder", **paths},
        "model": {"name": "python:bright_reader:bright", "label": "bright", "contract": contract},
        "methods": ["grad_cam", {"name": "feature_permutation", "segments": {"kind": "grid", "cells": 2}}, *FLOORS],
        "metrics": list(METRICS),
        "bootstrap_draws": 100,
        **changed,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(values))
    return folder / "study.yaml"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("volumes")
    outcome = run_study(write_study(folder), folder / "run", RunOptions(trust_code=True, workers=1))
    assert (outcome.n_cases, outcome.n_failed) == (6, 0)
    return folder / "run"


@pytest.fixture(scope="module")
def items(run):
    return json.loads((run / "gallery" / "index.json").read_text())["items"]


def test_every_method_and_floor_is_scored_on_volumes(run):
    scores = read_run(run).scores.query("condition == '{}' and method != 'human'").set_index(["method", "metric"])
    positive = scores[scores["case"].isin(["p1", "p2", "p4", "p5"])]["value"]
    # where all donors of a segment have the spot, too, its permutation has no positive relevance
    assert positive.drop([("feature_permutation", "mass"), ("feature_permutation", "rank")]).notna().all()
    assert {(method, metric) for method, metric in positive.index if metric in METRICS} == set(
        itertools.product(METHODS, METRICS)
    )
    assert positive["grad_cam", "iou"].min() == 1
    assert positive["location_prior", "hit"].min() == 1  # the spots of all patients meet in the middle
    shapes = read_run(run).shapes
    assert shapes["size"].iloc[0] == pytest.approx(block(1).mean())
    assert shapes["elongation"].isna().all()


def test_the_gallery_shows_the_slice_with_most_of_the_truth(run, items):
    assert len(items) == 3
    for item in items:
        number = int(item["case"][1:])
        assert item["slice"] == 1 + 2 + number % 2 + 1  # counted from 1, the second of the three that hold the spot
        assert item["slices"] == 8
        assert (item["plane"], item["sides"]) == ("axial", "patient's right on the left")
        assert item["shape"] == [9, 10]  # rows run along the second axis
        files = [item["image"], *(shown["file"] for shown in item["maps"])]
        assert len(files) == 1 + len(METHODS)
        for file in files:
            assert np.asarray(Image.open(run / "gallery" / file)).shape == (9, 10)


def test_pictures_maps_and_outlines_lie_upon_each_other(run, items):
    # front at the top: rows are turned round; the first axis runs to the left, as the screen's columns do
    expected = block(1)[:, ::-1, 4].T
    for item in items:
        image = np.asarray(Image.open(run / "gallery" / item["image"]))
        assert np.array_equal(image > 200, expected)
        (hot,) = [shown for shown in item["maps"] if shown["method"] == "grad_cam"]
        assert np.array_equal(np.asarray(Image.open(run / "gallery" / hot["file"])) > 127, expected)
        corners = np.array(item["truth"][0])
        assert corners.min(0).tolist() == [1, 1]
        assert corners.max(0).tolist() == [4, 2]
        assert hot["region"] == item["truth"]
        column, row = hot["peak"]
        assert expected[int(row), int(column)]
        assert item["readers"][0]["contours"]


def test_the_report_names_slice_and_plane_and_draws_every_card(run, items):
    page = (run / "report.html").read_text(encoding="utf-8")
    for item in items:
        assert f"Case {item['case']}" in page
        assert f"axial slice {item['slice']} of 8, patient’s right on the left" in page
    assert "Of a volume, the slice with most of the truth is shown" in page
    assert "could not be shown" not in page


def test_kept_maps_are_whole_volumes(run):
    stored = load_file(run / "maps" / "gallery.safetensors")
    assert {values.shape for values in stored.values()} == {SHAPE}
    assert len(stored) == 3 * len(METHODS)


def test_a_peak_in_another_slice_is_told_instead_of_drawn(run, items):
    told = [shown for item in items for shown in item["maps"] if "peak_slice" in shown]
    assert told  # a floor of noise peaks anywhere
    page = (run / "report.html").read_text(encoding="utf-8")
    assert all(f"in slice {shown['peak_slice']}" in page for shown in told)


def stored_as(order, flips):
    """A case with one voxel and one point marked, stored in another order; RAS where nothing is changed."""
    grid = (6, 7, 5)
    truth = np.zeros(grid, bool)
    truth[4, 5, 3] = True
    values = np.arange(np.prod(grid), dtype=np.float32).reshape(grid)
    ways = tuple(slice(None, None, flip) for flip in flips)
    back = np.zeros((4, 4))
    back[3, 3] = 1
    centre = [0.0, 0.0, 0.0]
    for place, (axis, flip) in enumerate(zip(order, flips, strict=True)):
        back[axis, place] = flip
        back[axis, 3] = grid[axis] - 1 if flip < 0 else 0
        position = (4.25, 5.5, 3.0)[axis] if axis < 2 else 3.5
        centre[place] = grid[axis] - position if flip < 0 else position
    affine = np.diag([1.0, 2.0, 3.0, 1.0]) @ back
    mask, image = (np.ascontiguousarray(each.transpose(order)[ways]) for each in (truth, values))
    readings = (Reading("r", {"f": mask}, {"f": (Point(tuple(centre)),)}),)
    return Case(CaseKey("a", "a", {"f": 1.0}), image[None], {"f": mask}, readings, affine=affine)


ORDERS = list(itertools.product([(0, 1, 2), (2, 1, 0), (1, 2, 0)], [(1, 1, 1), (-1, -1, 1), (1, -1, -1)]))


@pytest.mark.parametrize(("order", "flips"), ORDERS)
def test_a_picture_is_the_same_however_the_volume_is_stored(order, flips):
    plain, case = stored_as((0, 1, 2), (1, 1, 1)), stored_as(order, flips)
    expected, view = view_of(plain, plain.truth["f"]), view_of(case, case.truth["f"])
    assert (view.place, view.size) == (expected.place, expected.size) == (3, (14, 6))  # rows of 2 mm, columns of 1 mm
    assert np.array_equal(view.picture(case.image[0]), expected.picture(plain.image[0]))
    assert np.array_equal(view.mask(case.truth["f"]), expected.mask(plain.truth["f"]))
    (point,) = case.readings[0].points["f"]
    # from the left: the patient's right, 6 columns of which 4.25 lie to the other side; from the top: 7 rows of 2
    assert view.spot(point.position) == pytest.approx([6 - 4.25 - 0.5, 2 * (7 - 5.5) - 0.5])
    away = tuple(p + (axis == order.index(2)) for axis, p in enumerate(point.position))
    assert view.spot(away) is None


@pytest.mark.parametrize(("order", "flips"), ORDERS)
def test_a_slice_lies_as_in_the_gallery_of_modalities(order, flips):
    case = stored_as(order, flips)
    cut = cut_of(case, case.truth["f"][None])
    view = view_of(case, case.truth["f"])
    assert np.array_equal(cut.stack(case.image[0])[cut.start], view.cut(case.image[0]))
    assert cut.slices[cut.start] == view.place


def test_a_picture_that_does_not_say_how_it_lies_is_shown_as_it_is():
    image = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    truth = image[0] > 10
    view = view_of(Case(CaseKey("a", "a", {}), image, {"f": truth}), truth)
    assert np.array_equal(view.picture(image[0]), image[0])
    assert np.array_equal(view.mask(truth), truth)
    assert view.spot((2.0, 3.5)) == [3.0, 1.5]
    assert view.slices == 1


class Pictures:
    def __init__(self, path):
        self.path = path
        (path / "gallery").mkdir()

    write_picture = RunFolder.write_picture


@pytest.mark.parametrize(("marked", "place"), [(True, 3), (False, 1)], ids=["truth", "map where there is no truth"])
def test_the_slice_is_the_truths_or_else_the_maps(tmp_path, marked, place):
    case = stored_as((0, 1, 2), (1, 1, 1))
    if not marked:
        case = Case(case.key, case.image, {"f": np.zeros(case.image.shape[1:], bool)}, affine=case.affine)
    heat = np.zeros(case.image.shape[1:], np.float32)
    heat[2:5, 2:5, 1] = 1
    rule = GalleryRule(lambda *_: None, ("m",), "net", lambda *_: RegionRule(), 1, keep_maps=False)
    choice, shown = ChosenFinding("a", "f", "typical", "m"), CaseWithMaps(case, {"m": heat}, 0.5)
    entry = draw(Pictures(tmp_path), "000", choice, shown, rule)
    assert entry.slice == place + 1
    assert (entry.maps[0].peak is None) == marked
    assert entry.maps[0].peak_slice == (2 if marked else None)
    assert np.array_equal(radiological(case.affine, heat.shape).axes, (2, 1, 0))


def test_a_single_slice_is_turned_with_all_that_is_drawn_on_it(tmp_path):
    truth = np.zeros((8, 6), bool)
    truth[1:6, 1:3] = True  # from the first axis' left end, towards the back
    case = Case(CaseKey("a", "a", {"f": 1.0}), truth[None].astype(np.float32), {"f": truth}, affine=np.eye(4))
    rule = GalleryRule(lambda *_: None, ("m",), "net", lambda *_: RegionRule(), 1, keep_maps=False)
    shown = CaseWithMaps(case, {"m": truth.astype(np.float32)}, 0.5)
    entry = draw(Pictures(tmp_path), "000", ChosenFinding("a", "f", "elongated"), shown, rule)
    assert entry.shape == (6, 8)
    assert entry.slice is None
    assert (entry.plane, entry.sides) == ("axial", "patient's right on the left")
    for outline in (entry.truth[0], entry.rectangle, entry.maps[0].region[0]):
        # the patient's left is on the right of the screen, the back at the bottom
        assert sorted(map(tuple, outline)) == [(2, 3), (2, 4), (6, 3), (6, 4)]
    picture = np.asarray(Image.open(tmp_path / "gallery" / entry.image))
    assert np.array_equal(np.argwhere(picture > 0)[[0, -1]], [[3, 2], [4, 6]])
