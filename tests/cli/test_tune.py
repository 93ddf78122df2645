"""`heatcheck tune`: equal to the benchmark's own tables, and without its flaws."""

import csv
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from heatcheck.sources.files import restricted_pickle


@pytest.fixture
def files(golden):
    return golden / "data" / "maps", golden / "data" / "gt_annotations.json"


def test_the_benchmarks_tables_come_out_to_the_byte(heatcheck, golden, files, tmp_path) -> None:
    maps, truth = files
    code, printed, _ = heatcheck(
        "tune", "--maps", maps, "--truth", truth, "--preset", "chexlocalize", "--out", tmp_path
    )
    assert code == 0
    assert "Lung Lesion                  threshold 0.6  cutoff 0.6  (9 cases)" in printed
    for name in ("tuning_results.csv", "probability_tuning_results.csv"):
        assert (tmp_path / name).read_bytes() == (golden / "expected" / name).read_bytes()
    record = json.loads((tmp_path / "tuning.json").read_text())
    assert len(record["patients"]) == 16


def test_every_map_is_read_once(heatcheck, files, tmp_path, monkeypatch) -> None:
    opened: list[str] = []
    read = Path.read_bytes

    def counted(path: Path) -> bytes:
        if path.name.endswith("_map.pkl"):
            opened.append(path.name)
        return read(path)

    monkeypatch.setattr(restricted_pickle.Path, "read_bytes", counted)
    maps, truth = files
    heatcheck("tune", "--maps", maps, "--truth", truth, "--preset", "chexlocalize", "--out", tmp_path, "-q")
    assert len(opened) == len(set(opened)) == 240


def write_case(folder: Path, image: str, values: np.ndarray, probability: float | None) -> None:
    content = {"map": torch.from_numpy(values.astype(np.float32))[None, None], "cxr_dims": values.shape[::-1]}
    if probability is not None:
        content["prob"] = probability
    with (folder / f"{image}_Edema_map.pkl").open("wb") as file:
        pickle.dump(content, file)


@pytest.fixture
def by_hand(tmp_path):
    """Two patients with a known answer: one map that thresholds of 0.5 and more leave empty inside the truth."""
    maps = tmp_path / "maps"
    maps.mkdir()
    truth = {}
    for image, probability in (("p1_view1", 0.9), ("p2_view1", 0.35)):
        values = np.zeros((10, 10))
        values[2:5, 2:5], values[9, 9] = 0.45, 1.0
        write_case(maps, image, values, probability)
        truth[image] = {"img_size": [10, 10], "Edema": [[[2, 2], [4, 2], [4, 4], [2, 4]]]}
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    return maps, tmp_path / "truth.json"


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_recommended_counts_a_threshold_that_misses_everything(heatcheck, by_hand, tmp_path) -> None:
    maps, truth = by_hand
    code, _, _ = heatcheck("tune", "--maps", maps, "--truth", truth, "--out", tmp_path / "out")
    assert code == 0
    curve = {float(row["threshold"]): float(row["mIoU"]) for row in table(tmp_path / "out" / "threshold_curves.csv")}
    # 9 of 10 marked pixels are the truth up to 0.4; above, only the one wrong pixel is left
    assert curve == {t: pytest.approx(0.9) for t in (0.2, 0.3, 0.4)} | dict.fromkeys((0.5, 0.6, 0.7, 0.8), 0.0)
    (chosen,) = table(tmp_path / "out" / "tuning_results.csv")
    assert chosen == {"threshold": "0.2", "task": "Edema"}
    cutoffs = {
        float(r["prob_threshold"]): float(r["mIoU"]) for r in table(tmp_path / "out" / "probability_tuning_results.csv")
    }
    # Otsu's region is the same nine pixels (the lone one is a speck); from 0.4 on the second case is called negative
    assert cutoffs[0.3] == pytest.approx(1.0)
    assert cutoffs[0.4] == pytest.approx(0.5)


def test_smoothing_is_tuned_when_asked_for(heatcheck, by_hand, tmp_path) -> None:
    maps, truth = by_hand
    flags = ("--smooth", "0.1", "--smooth", "0.3")
    code, printed, _ = heatcheck("tune", "--maps", maps, "--truth", truth, *flags, "--out", tmp_path / "out")
    assert code == 0
    assert [row["smooth"] for row in table(tmp_path / "out" / "smoothing_results.csv")] == ["0.0", "0.1", "0.3"]
    assert "with Otsu instead: smooth 0" in printed
    code, _, error = heatcheck("tune", "--maps", maps, "--truth", truth, "--smooth", "50", "--out", tmp_path / "o2")
    assert code == 2
    assert "fraction of the image's side" in error


def test_maps_without_probabilities_have_thresholds_only(heatcheck, by_hand, tmp_path) -> None:
    maps, truth = by_hand
    for image in ("p1_view1", "p2_view1"):
        write_case(maps, image, np.eye(10), None)
    code, printed, _ = heatcheck("tune", "--maps", maps, "--truth", truth, "--out", tmp_path / "out")
    assert code == 0
    assert "No cutoff for Edema" in printed
    assert "cutoff –  (" in printed
    assert "nan" not in printed
    rows = table(tmp_path / "out" / "probability_tuning_results.csv")
    assert {row["mIoU"] for row in rows} == {""}


def test_several_methods_are_refused(heatcheck, by_hand, tmp_path) -> None:
    maps, truth = by_hand
    code, _, error = heatcheck(
        "tune", "--maps", f"a={maps}", "--maps", f"b={maps}", "--truth", truth, "--out", tmp_path
    )
    assert code == 2
    assert "one method at a time" in error


def test_nothing_is_written_when_a_map_is_damaged(heatcheck, by_hand, tmp_path) -> None:
    maps, truth = by_hand
    shutil.copy(truth, maps / "p1_view1_Edema_map.pkl")
    code, _, error = heatcheck("tune", "--maps", maps, "--truth", truth, "--out", tmp_path / "out")
    assert code == 2
    assert "p1_view1_Edema_map.pkl is not a whole map file" in error
    assert not (tmp_path / "out").exists()
