"""Which cases the gallery shows, and their outlines."""

import math
from dataclasses import replace
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from tests.ensemble_material import FINDINGS, write_ensemble

from heatcheck import read_run, run_study
from heatcheck.core.geometry import Cells, place
from heatcheck.core.records import Case, CaseKey, Score, TruthShape
from heatcheck.explaining import kept_maps
from heatcheck.explaining.batch import Explained, GridMaps
from heatcheck.explaining.ensemble import EnsembleExplainer
from heatcheck.explaining.kept_maps import KeptMaps
from heatcheck.methods import build_method
from heatcheck.models import Ensemble, read_ensemble
from heatcheck.regions.rule import RegionRule
from heatcheck.running.gallery import outlines
from heatcheck.running.progress import Silent
from heatcheck.running.slices import view_of
from heatcheck.runs.store import RunFolder
from heatcheck.runs.tables import write_table
from heatcheck.studies.localization import gallery
from heatcheck.studies.localization.gallery import choose, fitted_rectangle, map_entry


def folder_with(tmp_path, rows):
    scores = []
    for case, finding, iou, hit in rows:
        scores += [
            Score(case, case, finding, "grad_cam", "m", name, value) for name, value in (("iou", iou), ("hit", hit))
        ]
        scores += [Score(case, case, finding, "random", "m", name, 0.9) for name in ("iou", "hit")]
    write_table(tmp_path / "scores.parquet", Score, scores)
    return RunFolder(tmp_path)


ROWS = [
    ("a", "f", 0.01, 1.0),
    ("b", "f", 0.60, 0.0),
    ("c", "g", 0.90, 1.0),
    ("d", "g", 0.35, 1.0),
    ("e", "f", 0.00, 0.0),
    ("h", "f", 0.50, 1.0),
]


def test_discordant_best_typical_and_worst_cases_are_chosen_for_the_method_not_the_floor(tmp_path):
    chosen = choose(folder_with(tmp_path, ROWS), "m", ("grad_cam", "random"), 5)
    by_why = {choice.why: choice.case for choice in chosen}
    assert by_why == {
        "low overlap but hit": "a",
        "high overlap but miss": "b",
        "best overlap": "c",
        "typical": "d",
        "worst: low overlap and miss": "e",
    }
    assert {choice.method for choice in chosen} == {"grad_cam"}


def test_the_other_findings_of_a_chosen_case_follow_it(tmp_path):
    rows = [*ROWS, ("c", "f", 0.2, 0.0), ("c", "a", 0.3, 1.0)]
    chosen = choose(folder_with(tmp_path, rows), "m", ("grad_cam", "random"), 1)
    assert [(each.case, each.finding) for each in chosen][1:] == [
        (chosen[0].case, name) for name in sorted({"a", "f", "g"} - {chosen[0].finding}) if chosen[0].case == "c"
    ]
    everything = choose(folder_with(tmp_path, rows), "m", ("grad_cam", "random"), 100)
    of_c = [each for each in everything if each.case == "c"]
    assert {each.finding for each in of_c} == {"a", "f", "g"}
    assert [bool(each.why) for each in of_c] == [True, False, False]


def test_no_more_than_asked_for_and_no_case_twice(tmp_path):
    for most in (0, 1, 3, 100):
        chosen = choose(folder_with(tmp_path, ROWS), "m", ("grad_cam",), most)
        assert len(chosen) == min(most, 6)
        assert len({choice.case for choice in chosen}) == len(chosen)


def test_low_and_high_overlap_are_what_they_say_or_there_is_no_such_case(tmp_path):
    fine = [("a", "f", 0.45, 1.0), ("b", "f", 0.60, 1.0), ("c", "g", 0.90, 1.0), ("d", "g", 0.30, 0.0)]
    reasons = {choice.why for choice in choose(folder_with(tmp_path, fine), "m", ("grad_cam",), 100)}
    assert not {"low overlap but hit", "high overlap but miss"} & reasons
    poor = [("a", "f", 0.10, 1.0), ("b", "f", 0.02, 0.0), ("c", "g", 0.03, 1.0), ("d", "g", 0.12, 0.0)]
    chosen = choose(folder_with(tmp_path, poor), "m", ("grad_cam",), 4)
    by_why = {choice.why: choice.case for choice in chosen}
    assert by_why["low overlap but hit"] == "c"  # "a" lies above the median of this method
    assert by_why["high overlap but miss"] == "d"


def test_a_run_without_scores_has_no_gallery(tmp_path):
    assert choose(folder_with(tmp_path, []), "m", ("grad_cam",), 5) == []


def test_outlines_enclose_the_mask_they_came_from():
    rows, columns = np.mgrid[:80, :90]
    mask = ((rows - 40) ** 2 + (columns - 50) ** 2 < 30**2) & ~((rows - 40) ** 2 + (columns - 50) ** 2 < 10**2)
    drawn = np.zeros(mask.shape, np.uint8)
    found = outlines(mask)
    assert len(found) == 2  # the rim and the hole
    cv2.drawContours(drawn, [np.array(max(found, key=len))], -1, 1, cv2.FILLED)
    outer = (rows - 40) ** 2 + (columns - 50) ** 2 < 30**2
    assert (drawn.astype(bool) ^ outer).mean() < 0.01


SHAPES = [  # case, finding, instances, size, elongation, irrectangularity
    ("a", "f", 1, 0.50, 1.1, 0.2),
    ("b", "f", 5, 0.10, 1.2, 0.3),
    ("c", "g", 1, 0.90, math.nan, math.nan),
    ("d", "g", 2, 0.01, 1.3, 0.3),
    ("e", "f", 3, 0.30, 7.0, 0.3),
    ("h", "f", 2, 0.40, 1.4, 0.8),
    ("i", "f", 1, 0.45, 1.1, 0.2),
]


def test_cases_are_chosen_by_number_size_and_shape_of_their_outlines(tmp_path):
    shapes = [TruthShape(case, case, *rest[:2], 1, *rest[2:]) for case, *rest in SHAPES]
    write_table(tmp_path / "shapes.parquet", TruthShape, shapes)
    rows = [(case, finding, 0.05, 0.0) for case, finding, *_ in SHAPES]
    rows += [(f"x{i}", "g", i / 40, float(i % 2)) for i in range(30)]  # of these no shape is known
    chosen = choose(folder_with(tmp_path, rows), "m", ("grad_cam",), 11)
    reasons = {choice.why: choice.case for choice in chosen if choice.case in "abcdehi"}
    assert reasons["many instances"] == "b"
    assert reasons["large"] == "c"
    assert reasons["small"] == "d"
    assert reasons["elongated"] == "e"
    assert reasons["irregular outline"] == "h"
    assert reasons["single instance"] == "a"
    assert {choice.method for choice in chosen if choice.case in "abcdehi"} == {""}


def test_only_the_named_models_scores_choose(tmp_path):
    folder = folder_with(tmp_path, ROWS)
    assert len(choose(folder, "m", ("grad_cam",), 100)) == 6
    assert choose(folder, "another", ("grad_cam",), 100) == []


def test_rectangle_is_the_tightest_around_the_longest_outline():
    mask = np.zeros((60, 80), bool)
    mask[10:20, 30:70] = True
    mask[50:52, 3:5] = True
    corners = sorted(map(tuple, fitted_rectangle(mask)))
    assert corners == [(30, 10), (30, 19), (69, 10), (69, 19)]
    assert fitted_rectangle(np.zeros((9, 9), bool)) == []


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_an_empty_map_has_neither_region_nor_hottest_point(value):
    truth = np.zeros((20, 20), bool)
    truth[2:6, 2:6] = True
    case = Case(CaseKey("c", "p", {"f": 1.0}), np.zeros((1, 20, 20), np.float32), {"f": truth})
    view = view_of(case, truth)
    flat = np.full((20, 20), value, np.float32)
    entry = map_entry("cam", "map.png", flat, truth, RegionRule(colours=3), view)
    assert (entry.iou, entry.hit, entry.peak, entry.region) == (0, 0, None, [])
    nothing = map_entry("cam", "map.png", flat, np.zeros_like(truth), RegionRule(), view)
    assert math.isnan(nothing.hit)


def test_the_gallery_shows_the_maps_that_were_scored_and_makes_none_again(write_spec, tmp_path, monkeypatch):
    changes = {"bootstrap_draws": 100, "methods": ["grad_cam", "random", "location_prior"]}
    said = []
    monkeypatch.setattr(Silent, "say", lambda _, sentence: said.append(sentence))
    with monkeypatch.context() as patch:
        patch.setattr(KeptMaps, "keep", lambda *_: None)
        run_study(write_spec(**changes), tmp_path / "again")
    cases = len({item["case"] for item in read_run(tmp_path / "again").gallery["items"]})
    again = [sentence for sentence in said if sentence.startswith("The gallery")]
    assert [sentence.split(":")[0] for sentence in again] == [
        f"The gallery explains {cases} of its {cases} cases again"
    ]
    monkeypatch.setattr(gallery, "explained_case", None)  # a call would fail
    run_study(write_spec(**changes), tmp_path / "once")
    assert [sentence for sentence in said if sentence.startswith("The gallery")] == again
    pictures = {file.name: file for file in (tmp_path / "again" / "gallery").glob("*.png")}
    assert len(pictures) > 8
    for name, file in pictures.items():
        again, once = (np.asarray(Image.open(path), int) for path in (file, tmp_path / "once" / "gallery" / name))
        assert np.abs(again - once).max() <= 1  # maps of a batch differ in their last bits
    assert not (tmp_path / "once" / "maps-to-show").exists()


def test_the_gallery_draws_regions_with_the_smoothing_that_was_chosen(write_spec, tmp_path):
    validation = {"name": "phantom_chest", "patients": 6, "first": 7200, "size": 80, "readers": 0}
    gradient = {"name": "gradient", "smooth": [0.1]}
    small = {"findings": ["Cardiomegaly", "Pleural Effusion"], "bootstrap_draws": 100, "gallery": 2}
    run_study(write_spec(**small, methods=[gradient], validation=validation), tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert run.estimates.query("statistic == 'tuned_smoothing'")["value"].item() == 0.1
    scores = run.scores.query("metric == 'iou' and condition == '{}' and method == 'gradient'")
    scores = scores.set_index(["case", "finding"])["value"]
    drawn = [(item["case"], item["finding"], item["maps"][0]["iou"]) for item in run.gallery["items"]]
    assert [iou for *_, iou in drawn] == pytest.approx([scores[case, finding] for case, finding, _ in drawn])


def test_maps_beyond_the_room_for_them_are_not_kept(tmp_path):
    case = Case(CaseKey("a", "p", {}), np.zeros((1, 4, 4), np.float32), {})
    grids = {"one": GridMaps(torch.rand(2, 4, 4), Cells((0.5, 0.5), (1.0, 1.0))), "two": GridMaps(torch.rand(2, 2, 2))}
    grids["edge"] = GridMaps(torch.rand(2, 40, 40))  # a floor, which would take all the room
    whole = place((4, 4), (4, 4), "stretch")
    explained = Explained(case, (0.1, 0.2), (0.3, 0.4), grids, whole, {"two": {1: "no donor"}})
    kept = KeptMaps(tmp_path / "maps", most_bytes=100)
    kept.keep(explained, [1])
    found = kept.explained(case, 1, whole)
    np.testing.assert_array_equal(found.map_of("one", 1), explained.map_of("one", 1))
    assert found.map_of("two", 1) is None
    assert found.why_missing("two", 1) == "no donor"
    assert found.grids["one"].cells == grids["one"].cells
    assert set(found.grids) == {"one"}
    assert kept.remark(["a", "a"]) == ""
    assert kept.explained(case, 0, whole) is None
    other = replace(explained, case=replace(case, key=CaseKey("b", "p", {})))
    kept.keep(other, [1])
    assert kept.explained(other.case, 1, whole) is None
    assert kept.remark(["a", "b", "a"]).startswith("The gallery explains 1 of its 2 cases again: ")
    assert "keeps at most" in kept.remark(["a", "b"])
    assert "keeps at most" not in KeptMaps(kept.folder, most_bytes=10**9).remark(["a", "b"])  # there was room
    kept.remove()
    assert kept.explained(case, 1, whole) is None


@pytest.mark.parametrize(("free", "room"), [(2e9, 1e9), (25e9, 2.5e9), (1e12, 4e9)])
def test_maps_have_a_tenth_of_the_free_disk_from_one_gigabyte_up_to_four(tmp_path, monkeypatch, free, room):
    monkeypatch.setattr(kept_maps.shutil, "disk_usage", lambda path: SimpleNamespace(free=free * path.exists()))
    assert KeptMaps(tmp_path / "run" / "maps-to-show").room == room


def test_floors_of_a_kept_case_are_made_without_reading_an_ensembles_members(tmp_path, monkeypatch):
    floors = {name: build_method(name, {}) for name in ("random", "edge")}
    case = Case(CaseKey("c", "p", {}), np.random.default_rng(0).random((1, 32, 32), np.float32), {})
    explainer = EnsembleExplainer(
        read_ensemble(write_ensemble(tmp_path)), FINDINGS, {"gradient": build_method("gradient", {}), **floors},
        "positive", 0,
    )  # fmt: skip
    explained = explainer([case])[0][0]
    kept = KeptMaps(tmp_path / "kept")
    kept.keep(explained, [1])
    monkeypatch.setattr(Ensemble, "loaded", lambda *_: pytest.fail("a member was read"))
    shown = gallery.kept_case(kept, explainer, case, FINDINGS[1])
    assert list(shown.maps) == ["gradient", "random", "edge"]
    for name, values in shown.maps.items():
        np.testing.assert_allclose(values, explained.map_of(name, 1), atol=1e-6)
