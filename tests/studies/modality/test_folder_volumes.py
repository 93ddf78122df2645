"""A folder of CT with PET as NIfTI volumes, with masks as NIfTI, from the files to scores."""

import nibabel
import numpy as np
import pytest
import yaml

from heatcheck import read_run, run_study
from heatcheck.running.study import RunOptions

SHAPE = (10, 9, 8)
AFFINE = np.diag([-2.0, 2.0, 3.0, 1.0])
SPOT = (slice(3, 6), slice(2, 5), slice(4, 6))  # in PET
BODY = (slice(3, 7), slice(2, 6), slice(3, 7))  # the larger shadow in CT
CODE = '''
import torch
from torch import nn


class Reader(nn.Module):
    """Names malignant where PET has bright voxels."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv3d(2, 1, 1)
        self.relu = nn.ReLU()
        with torch.no_grad():
            self.features.weight.zero_()
            self.features.weight[0, 1] = 1.0
            self.features.bias.fill_(-2.0)

    def forward(self, volumes):
        score = self.relu(self.features(volumes))[:, 0].mean((1, 2, 3)) * 100
        return torch.stack([0.5 - score, score - 0.5], 1)


def pet():
    return Reader()
'''


def save(values, path):
    """A NIfTI file on the common grid."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values, AFFINE), path)


def marked(place):
    """A mask of a block."""
    mask = np.zeros(SHAPE, np.uint8)
    mask[place] = 1
    return mask


def write_study(folder, masks):
    """Four patients, of whom every second has a bright spot in PET; masks by the name of their folder."""
    chance = np.random.default_rng(0)
    rows = ["image,benign,malignant"]
    for number in range(4):
        volume = np.zeros((*SHAPE, 2), np.float32)
        volume[1:-1, 1:-1, 1:-1] = chance.uniform(0.8, 1.2, (*(side - 2 for side in SHAPE), 2))
        if number % 2:
            volume[(*SPOT, 1)] = 3.0
        save(volume, folder / "scans" / f"p{number}.nii.gz")
        for name, place in masks.items():
            save(marked(place), folder / "masks" / name / f"p{number}.nii.gz")
        rows.append(f"p{number}.nii.gz,{1 - number % 2},{number % 2}")
    (folder / "classes.csv").write_text("\n".join(rows))
    (folder / "pet_reader.py").write_text(CODE)
    contract = {"outputs": ["benign", "malignant"], "size": list(SHAPE), "channels": 2, "mean": [0.0], "std": [1.0]}
    paths = {"images": "scans", "labels": "classes.csv", "masks": "masks"}
    values = {
        "study": "modality",
        "threads": 1,
        "gallery": 1,
        "source": {"name": "folder", **paths, "modalities": ["CT", "PET"]},
        "model": {"name": "python:pet_reader:pet", "label": "pet", "contract": contract | {"activation": "softmax"}},
        "methods": ["input_x_gradient"],
        "removal": None,
        "bootstrap_draws": 100,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(values))
    return folder / "study.yaml"


@pytest.mark.parametrize("masks", [{"CT": BODY, "PET": SPOT}, {"tumour": SPOT}], ids=["by modality", "one for all"])
def test_nifti_masks_are_scored_with_by_modality_and_one_for_all(tmp_path, masks):
    outcome = run_study(write_study(tmp_path, masks), tmp_path / "run", RunOptions(trust_code=True, workers=1))
    assert (outcome.n_cases, outcome.n_failed) == (4, 0)
    scores = read_run(tmp_path / "run").scores.query("case == 'p1'")
    shares = scores.query("metric == 'lesion_share'").set_index("method")["value"]
    assert shares["input_x_gradient"] == pytest.approx(1)
    inside = sum(marked(masks.get(name, SPOT)).sum() for name in ("CT", "PET"))
    head = np.prod([side - 2 for side in SHAPE])
    assert shares["uniform"] == pytest.approx(inside / (2 * head))
    found = nibabel.load(tmp_path / "run" / "maps" / "nifti" / "p0" / "input_x_gradient_PET.nii.gz")
    assert np.array_equal(found.affine, AFFINE)


def test_a_mask_on_another_grid_is_recorded_and_the_rest_goes_on(tmp_path):
    spec = write_study(tmp_path, {"tumour": SPOT})
    path = tmp_path / "masks" / "tumour" / "p2.nii.gz"
    nibabel.save(nibabel.Nifti1Image(marked(SPOT), np.eye(4)), path)
    outcome = run_study(spec, tmp_path / "run", RunOptions(trust_code=True, workers=1))
    assert outcome.n_failed == 1
    cases = read_run(tmp_path / "run").cases
    (reason,) = cases.loc[cases["status"] != "ok", "reason"].unique()
    assert reason.startswith("p2.nii.gz and mask masks/tumour/p2.nii.gz differ in their affines")
