"""Regions equal those that the CheXlocalize scripts cut out of the golden maps, to the last pixel."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from pycocotools import mask as rle

from heatcheck.core.geometry import place
from heatcheck.maps.prepare import prepare
from heatcheck.maps.resize import to_image
from heatcheck.regions.colours import colour_region
from heatcheck.regions.rule import RegionRule, region_of
from heatcheck.sources.files.map_files import StoredMap, find_maps, read_map


def on_image(stored: StoredMap) -> np.ndarray:
    assert stored.shape is not None
    values = torch.from_numpy(stored.values)[None]
    return prepare(to_image(values, place(stored.shape, values.shape[1:], "stretch"))[0])


@pytest.mark.parametrize("kind", ["otsu", "smooth50", "thr"])
def test_every_region_equals_the_benchmarks(golden: Path, kind: str) -> None:
    expected = json.loads((golden / "expected" / f"pred_segmentations_{kind}.json").read_text())
    with (golden / "expected" / "tuning_results.csv").open() as file:
        tuned = {row["task"]: float(row["threshold"]) for row in csv.DictReader(file)}
    for image, files in find_maps(golden / "data" / "maps").items():
        for finding, file in files.items():
            rule = {"otsu": RegionRule(), "smooth50": RegionRule(colours=50), "thr": RegionRule(tuned[finding])}[kind]
            region = region_of(on_image(read_map(file, "reference order")), rule)
            encoded = rle.encode(np.asfortranarray(region.view(np.uint8)))
            assert encoded["counts"].decode() == expected[image][finding]["counts"], (image, finding)


def test_smoothed_colours_keep_cold_and_hot_alike() -> None:
    ramp = np.tile(np.linspace(0, 1, 60, dtype=np.float32), (20, 1))
    region = colour_region(ramp, 3)
    assert region[10, 0]
    assert region[10, -1]
    assert not region[10, 20:40].any()


def test_with_smoothed_colours_a_constant_map_is_all_region() -> None:
    assert colour_region(np.zeros((9, 9), np.float32), 5).all()


def test_colours_are_smoothed_on_planes_only() -> None:
    with pytest.raises(ValueError, match="2D maps only"):
        colour_region(np.zeros((4, 4, 4), np.float32), 3)


@pytest.mark.parametrize("wrong", [{"smooth": 0.1, "colours": 5}, {"colours": -1}, {"threshold": 0.5, "colours": 5}])
def test_contradicting_rules_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="smooth"):
        RegionRule(**wrong)
