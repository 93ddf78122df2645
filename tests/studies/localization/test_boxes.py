"""Truth that was drawn as boxes is compared as boxes and as areas."""

import json

import numpy as np
import pandas as pd
from PIL import Image as Pictures

from heatcheck.running.run import run_study
from heatcheck.running.study import RunOptions


def test_boxes_are_scored_as_boxes_and_as_areas_without_being_asked(write_spec, tmp_path):
    (tmp_path / "images/images_001").mkdir(parents=True)
    random = np.random.default_rng(2)
    table = ["Image Index,Finding Label,Bbox [x,y,w,h],,,"]
    for number in range(4):
        film = Pictures.fromarray(random.integers(0, 255, (64, 64), np.uint8))
        film.save(tmp_path / f"images/images_001/0000{number}_000.png")
        table.append(f"0000{number}_000.png,Cardiomegaly,{10 + number}.5,12,30,28,,,")
    (tmp_path / "BBox_List_2017.csv").write_text("\n".join(table))
    source = {"name": "folder", "images": "images", "truth": "BBox_List_2017.csv"}
    spec = write_spec(source=source, methods=["grad_cam", "random"], findings=["Cardiomegaly"], gallery=0)
    outcome = run_study(spec, tmp_path / "run", RunOptions())
    assert outcome.n_failed == 0
    scores = pd.read_parquet(tmp_path / "run/scores.parquet")
    plain = scores[(scores["method"] == "random") & (scores["condition"] == "{}")]
    values = plain.pivot_table(index="case", columns="metric", values="value")
    assert values["box_iou"].between(0, 1).all()
    assert (values["box_iou"] != values["iou"]).any()
    assert json.loads((tmp_path / "run/run.json").read_text())["truth_kind"] == "boxes"
    assert "as boxes" in outcome.report.read_text()
