"""`heatcheck train` as a user sees it."""

import json
import re

import numpy as np
import pytest
import yaml

PHANTOM = {"name": "phantom_chest", "size": 40, "second_view": 0, "readers": 0}
SPEC = {
    "study": "training",
    "threads": 1,
    "model": "vgg_compact",
    "findings": ["Edema", "Support Devices"],
    "size": [32, 32],
    "training": {**PHANTOM, "patients": 8},
    "validation": {**PHANTOM, "patients": 8, "first": 100},
    "test": {**PHANTOM, "patients": 8, "first": 200},
    "fit": {"epochs": 1, "batch_size": 4},
    "checkpoints": {"by": "all", "every_steps": 1, "keep": 2},
    "ensemble": 2,
}


def written(tmp_path, **changes):
    path = tmp_path / "training.yaml"
    path.write_text(yaml.safe_dump({**SPEC, **changes}))
    return path


def test_results_of_the_best_checkpoint_and_of_the_ensemble_are_printed(heatcheck, tmp_path):
    code, out, _ = heatcheck("train", written(tmp_path), "--out", tmp_path / "t", "--workers", 1)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("Edema")
    assert re.search(r"ensemble ([01]\.\d{3}|–)", lines[0])
    assert "nan" not in out
    assert str(tmp_path / "t" / "weights.safetensors") in out.replace("\n", "")
    assert str(tmp_path / "t" / "ensemble.json") in out.replace("\n", "")


def test_accuracy_is_printed_where_classes_exclude_one_another(heatcheck, tmp_path):
    folders = {}
    for name in ("training", "validation", "test"):
        (tmp_path / name).mkdir()
        for number in range(4):
            np.save(tmp_path / name / f"{name}{number}.npy", np.full((16, 16), number / 9) + np.eye(16) / 9)
        rows = [f"{name}{number},{number % 2},{1 - number % 2}" for number in range(4)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["image,odd,even", *rows]) + "\n")
        folders[name] = {"name": "folder", "images": name, "labels": f"{name}.csv"}
    changes = {"labels": "single", "findings": "all", "ensemble": None, **folders}
    code, out, err = heatcheck("train", written(tmp_path, **changes), "--out", tmp_path / "t", "--workers", 1)
    assert code == 0, err
    accuracy = json.loads((tmp_path / "t" / "training.json").read_text())["accuracy"]
    assert f"Accuracy                           {accuracy:.3f}\n" in out


@pytest.mark.parametrize(
    ("changes", "words", "message"),
    [
        ({"uncertainty": "zeroes"}, (), "unknown label strategy 'zeroes'; did you mean 'zeros'?"),
        ({"checkpoints": {"by": ["Edma"]}}, (), "'Edma' is not an output; did you mean 'Edema'?"),
        ({"test": SPEC["validation"]}, (), "`validation` and `test` share 8 patients"),
        ({"labels": "single", "ensemble": None}, (), "6 of the training source's cases"),
        ({}, ("--precision", "16-mixed"), "16-mixed needs a GPU"),
        ({}, ("--devices", "3"), "a batch of 4 cannot be shared by 3 devices"),
        ({}, ("--device", "abacus"), "device 'abacus' cannot be used"),
    ],
)
def test_what_cannot_be_is_one_line_and_code_2(heatcheck, tmp_path, changes, words, message):
    code, _, err = heatcheck("train", written(tmp_path, **changes), "--out", tmp_path / "t", *words)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "t").exists()
