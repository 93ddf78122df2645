"""Volumes as BraTS stores them, from the files to pictures and NIfTI maps: nothing is turned or moved on the way."""

import json

import nibabel
import numpy as np
import pytest
import yaml
from PIL import Image
from tests.studies.modality.material import small_case

from heatcheck import read_run, run_study
from heatcheck.running.study import RunOptions
from heatcheck.studies.modality.gallery import cut_of, evenly, windowed

TRUSTED = RunOptions(trust_code=True, workers=1)
SHAPE = (14, 12, 10)
AFFINE = np.diag([1.5, 2.0, 3.0, 1.0])  # the first axis runs to the patient's right, the second to the front
AFFINE[:3, 3] = (20.0, -30.0, -10.0)
TUMOUR = (slice(8, 11), slice(2, 5), slice(5, 8))
CODE = '''
import torch
from torch import nn


class Reader(nn.Module):
    """Names HGG where T1C has bright voxels."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv3d(4, 1, 1)
        self.relu = nn.ReLU()
        with torch.no_grad():
            self.features.weight.zero_()
            self.features.weight[0, 1] = 1.0
            self.features.bias.fill_(-2.0)

    def forward(self, volumes):
        score = self.relu(self.features(volumes))[:, 0].mean((1, 2, 3)) * 100
        return torch.stack([0.5 - score, score - 0.5], 1)


def t1c():
    return Reader()
'''


def write_brats(folder, count=4):
    """A tree of BraTS 2020 with small heads; the tumour of every second case is bright in T1C."""
    chance = np.random.default_rng(0)
    root = folder / "MICCAI_BraTS2020_TrainingData"
    years = ",".join(f"BraTS_{year}_subject_ID" for year in (2017, 2018, 2019, 2020))
    rows = [f"Grade,{years}"]
    for number in range(1, count + 1):
        name = f"BraTS20_Training_{number:03d}"
        (root / name).mkdir(parents=True)
        labels = np.zeros(SHAPE, np.uint8)
        labels[TUMOUR] = 4
        for modality in ("t1", "t1ce", "t2", "flair"):
            volume = np.zeros(SHAPE, np.float32)
            volume[1:-1, 1:-1, 1:-1] = chance.uniform(0.8, 1.2, [side - 2 for side in SHAPE])
            if modality == "t1ce" and number % 2:
                volume[TUMOUR] = 3.0
            nibabel.save(nibabel.Nifti1Image(volume, AFFINE), root / name / f"{name}_{modality}.nii.gz")
        nibabel.save(nibabel.Nifti1Image(labels, AFFINE), root / name / f"{name}_seg.nii.gz")
        rows.append(f"{'HGG' if number % 2 else 'LGG'},,,,{name}")
    (root / "name_mapping.csv").write_text("\n".join(rows))
    return root


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study of four volumes, run once."""
    folder = tmp_path_factory.mktemp("volumes")
    write_brats(folder)
    (folder / "volume_readers.py").write_text(CODE)
    contract = {"outputs": ["LGG", "HGG"], "size": list(SHAPE), "channels": 4, "mean": [0.0], "std": [1.0]}
    values = {
        "study": "modality",
        "threads": 1,
        "gallery": 2,
        "source": {"name": "brats", "root": "MICCAI_BraTS2020_TrainingData"},
        "model": {
            "name": "python:volume_readers:t1c",
            "label": "t1c",
            "contract": contract | {"activation": "softmax"},
        },
        "methods": ["input_x_gradient", "grad_cam"],
        "removal": {"steps": 4, "random": 2},
        "bootstrap_draws": 100,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(values))
    run_study(folder / "study.yaml", folder / "run", TRUSTED)
    return folder


def test_a_map_reloaded_has_the_images_affine_and_the_tumour_where_it_was(finished):
    case = finished / "run" / "maps" / "nifti" / "BraTS20_Training_001"
    (path,) = finished.rglob("BraTS20_Training_001_t1ce.nii.gz")
    image = nibabel.load(path)
    found = nibabel.load(case / "input_x_gradient_T1C.nii.gz")
    assert np.array_equal(found.affine, image.affine)
    assert found.shape == image.shape
    tumour = np.zeros(SHAPE, bool)
    tumour[TUMOUR] = True
    values = found.get_fdata()
    assert values[tumour].min() > 0.5
    assert not values[~tumour].any()
    assert not nibabel.load(case / "input_x_gradient_T2.nii.gz").get_fdata().any()
    assert (case / "grad_cam_all.nii.gz").exists()


def test_the_tumour_is_found_in_every_voxel(finished):
    scores = read_run(finished / "run").scores.query("case == 'BraTS20_Training_001' and method == 'input_x_gradient'")
    assert scores.query("metric == 'lesion_share'")["value"].tolist() == [1]
    assert scores.query("metric == 'mi_correlation_published'")["value"].tolist() == [1]


def test_pictures_show_axial_slices_with_the_front_up_and_the_patients_right_on_the_left(finished):
    gallery = finished / "run" / "gallery"
    items = json.loads((gallery / "index.json").read_text())["items"]
    item = next(one for one in items if one["case"] == "BraTS20_Training_001")
    assert (item["plane"], item["sides"]) == ("axial", "patient's right on the left")
    rows, columns = item["shape"]
    picture = np.asarray(Image.open(gallery / item["images"]["T1C"]))
    assert picture.shape == (rows, item["slices"] * columns)
    shown = picture[:, item["start"] * columns : (item["start"] + 1) * columns]
    bright = np.argwhere(shown > 200)
    assert bright[:, 1].mean() < columns / 2
    assert bright[:, 0].mean() > rows / 2
    assert columns / rows == pytest.approx(14 * 1.5 / (12 * 2.0), abs=0.08)
    outline = np.array(item["outlines"]["T1C"][item["start"]][0])
    assert outline[:, 0].max() < columns / 2
    assert not item["outlines"]["T1C"][0]


def test_a_slice_through_the_largest_lesion_is_among_those_shown_and_comes_first():
    case = small_case((8, 8, 40), lesion=slice(3, 5), affine=np.diag([1.0, 1.0, 2.0, 1.0]))
    masks = np.zeros((4, 8, 8, 40), bool)
    masks[:, 2:6, 2:6, 25] = masks[:, 2:4, 2:4, 20:30] = True
    cut = cut_of(case, masks)
    assert cut.slices[cut.start] == 25
    assert len(cut.slices) <= 16
    assert np.diff(cut.slices).tolist() == [3] * (len(cut.slices) - 1)
    assert 1 <= cut.slices[0] <= 3
    assert 36 <= cut.slices[-1] <= 38


def test_even_steps_run_from_the_first_to_the_last():
    assert evenly(10, 4) == [0, 3, 6, 9]
    assert evenly(3, 5) == [0, 1, 2]
    assert evenly(9, 1) == [0]


def test_a_window_leaves_air_black_and_the_brightest_white():
    shown = windowed(np.array([[0.0, 10.0], [20.0, 30.0]]))
    assert shown[0, 0] == 0
    assert shown.max() == pytest.approx(1, abs=0.01)
    assert windowed(np.zeros((2, 2))).max() == 0
