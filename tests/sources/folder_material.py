"""A small folder of images with masks, and the ways tests open it."""

import math

import numpy as np
import pytest
from PIL import Image as Pictures

from heatcheck.core.errors import InputError
from heatcheck.sources.folder import FolderSettings, FolderSource

SHAPE = (8, 11)


def write_picture(path, value=100, shape=SHAPE):
    path.parent.mkdir(parents=True, exist_ok=True)
    Pictures.fromarray(np.full(shape, value, np.uint8)).save(path)


def write_mask(path, rows, shape=SHAPE):
    path.parent.mkdir(parents=True, exist_ok=True)
    mask = np.zeros(shape, np.uint8)
    mask[rows] = 255
    Pictures.fromarray(mask).save(path)


@pytest.fixture
def data(tmp_path):
    """Three images, one in a sub-folder, with masks of two findings."""
    write_picture(tmp_path / "images/a.png", 51)
    write_picture(tmp_path / "images/b.jpg", 102)
    write_picture(tmp_path / "images/ward 2/c.png", 153)
    write_mask(tmp_path / "masks/Edema/a.png", slice(0, 2))
    write_mask(tmp_path / "masks/Edema/ward 2/c.png", slice(2, 4))
    write_mask(tmp_path / "masks/Lesion/a.png", slice(4, 5))
    return tmp_path


def opened(root, labels=None, **settings):
    """The source, with the labels written to a file."""
    if labels is not None:
        (root / "labels.csv").write_text(labels, encoding="utf-8")
        settings["labels"] = "labels.csv"
    return FolderSource(FolderSettings(images="images", **settings).resolved(root))


def by_case(source):
    return {key.case: key for key in source.index()}


def refusal(root, labels=None, **settings):
    """The error message with which the folder is refused before any work."""
    with pytest.raises(InputError) as caught:
        opened(root, labels, **settings).index()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def same(values, expected):
    return all(math.isnan(v) if math.isnan(e) else v == e for v, e in zip(values, expected, strict=True))


def size_of(path):
    with Pictures.open(path) as picture:
        return picture.size
