"""A folder whose images have one channel a modality, and masks by modality or one for all."""

import numpy as np
import pytest

from heatcheck.core.errors import HeatcheckError
from heatcheck.sources import SOURCES


def opened(tmp_path, *masks, **settings):
    """A source of one image with two channels, and a mask in each of the named folders."""
    (tmp_path / "scans").mkdir()
    np.save(tmp_path / "scans" / "a.npy", np.ones((2, 4, 5), np.float32))
    for number, name in enumerate(masks):
        (tmp_path / "masks" / name).mkdir(parents=True)
        mask = np.zeros((4, 5), np.uint8)
        mask[number] = 1
        np.save(tmp_path / "masks" / name / "a.npy", mask)
    (tmp_path / "classes.csv").write_text("image,benign,malignant\na,0,1\n")
    facts = SOURCES["folder"]
    values = {"images": "scans", "labels": "classes.csv", "masks": "masks", "modalities": ["CT", "PET"]} | settings
    return facts.open(facts.settings.model_validate(values).resolved(tmp_path))


def test_masks_are_read_by_modality_and_classes_from_the_labels(tmp_path):
    source = opened(tmp_path, "CT", "PET")
    assert source.modalities == ("CT", "PET")
    assert source.findings == ("benign", "malignant")
    truth = source.load(source.index()[0]).truth
    assert {name: np.argwhere(mask)[0, 0] for name, mask in truth.items()} == {"CT": 0, "PET": 1}


def test_one_folder_of_any_name_holds_for_all(tmp_path):
    source = opened(tmp_path, "tumour")
    assert list(source.truth(source.index()[0])) == ["tumour"]


def test_classes_cannot_come_from_masks_of_modalities(tmp_path):
    with pytest.raises((HeatcheckError, ValueError), match="give `labels`"):
        opened(tmp_path, "CT", labels=None)
