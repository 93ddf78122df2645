"""A label of −1 says that the reader would not say: for every number of a study it is unknown."""

import numpy as np
import pandas as pd
from PIL import Image as Pictures

from heatcheck.core.records import CaseKey
from heatcheck.fitting.results import judged
from heatcheck.running.run import run_study
from heatcheck.running.study import RunOptions


def test_an_uncertain_label_counts_as_unknown(write_spec, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "masks/Edema").mkdir(parents=True)
    random = np.random.default_rng(1)
    for name in "abcd":
        Pictures.fromarray(random.integers(0, 255, (40, 36), np.uint8)).save(tmp_path / f"images/{name}.png")
    Pictures.fromarray(np.eye(40, 36, dtype=bool)).save(tmp_path / "masks/Edema/a.png")
    (tmp_path / "labels.csv").write_text("image,Edema\na,1\nb,0\nc,-1\nd,\n")
    source = {"name": "folder", "images": "images", "masks": "masks", "labels": "labels.csv"}
    spec = write_spec(source=source, methods=["random"], findings=["Edema"], gallery=0)
    run_study(spec, tmp_path / "run", RunOptions())
    predictions = pd.read_parquet(tmp_path / "run/predictions.parquet").set_index("case")["label"]
    assert predictions[["a", "b"]].tolist() == [1, 0]
    assert predictions[["c", "d"]].isna().all()
    scores = pd.read_parquet(tmp_path / "run/scores.parquet")
    assert set(scores["case"][scores["metric"] != "empty_map"]) == {"a", "b"}  # which is counted of every map


def test_unknown_and_uncertain_labels_are_unknown_to_the_results_of_a_training():
    keys = [CaseKey(f"p{number}_study1_view1", f"p{number}", {}) for number in range(4)]
    labels = np.array([[1.0], [0.0], [np.nan], [-1.0]], np.float32)
    found = judged(keys, labels, np.full((4, 1), 0.5), ["a"], "each")
    np.testing.assert_array_equal(found.labels[:, 0], [1, 0, np.nan, np.nan])
