"""What a folder of images says before the work: which take no part, and which state no window."""

import numpy as np
import pytest
from tests.sources.files.test_reading_dicom import STORED, written
from tests.sources.folder_material import data, opened  # noqa: F401 - a fixture

from heatcheck.running.open_source import cautions_of
from heatcheck.running.pseudonyms import pseudonymous
from heatcheck.sources.files import folder_cautions

ALL = "image,Edema\na.png,1\nb.jpg,0\nward 2/c.png,1\n"


def test_images_without_a_row_are_counted(data):  # noqa: F811
    assert opened(data, ALL).cautions() == ()
    (one,) = opened(data, "image,Edema\na.png,1\nward 2/c.png,1\n").cautions()
    assert one == (
        "1 of 3 images in images/ has no row in labels.csv and takes no part; add rows if they belong to the study."
    )
    (two,) = opened(data, "image,Edema\na.png,1\nz.png,0\n").cautions()
    assert two.startswith("2 of 3 images in images/ have no row in labels.csv and take no part")
    assert opened(data, masks="masks").cautions() == ()


def test_pseudonymous_source_says_the_same(data, tmp_path):  # noqa: F811
    source = opened(data, "image,Edema\na.png,1\n")
    hidden = pseudonymous(source, source.index(), tmp_path / "run")
    assert cautions_of([hidden, source, object()]) == source.cautions() != ()


def write_dicom(root, number, **tags):
    (root / "images").mkdir(exist_ok=True)
    return [written(root / "images" / f"scan{index}.dcm", **tags) for index in range(number)]


def test_dicom_files_without_a_window_are_counted_with_what_their_pixels_become(tmp_path):
    write_dicom(tmp_path, 3)
    written(tmp_path / "images" / "seen.dcm", WindowCenter=2000, WindowWidth=1000)
    written(tmp_path / "images" / "half.dcm", WindowCenter=2000)
    rows = "".join(f"{name},1\n" for name in ("scan0", "scan1", "seen", "half"))
    (rest, window) = opened(tmp_path, f"image,Edema\n{rows}").cautions()
    assert rest.startswith("1 of 5 images in images/ has no row")
    assert window.startswith("3 of 4 DICOM files state no window: pixels are spread from the smallest to the largest")
    assert window.endswith("If so, set `value_range` of the source.")
    assert len(opened(tmp_path, f"image,Edema\n{rows}", value_range=(0, 4095)).cautions()) == 1


@pytest.mark.parametrize(
    "tags",
    [
        {"WindowCenter": [2000, 1], "WindowWidth": [1000, 2]},
        {"PhotometricInterpretation": "RGB", "SamplesPerPixel": 3, "PlanarConfiguration": 0},
    ],
)
def test_nothing_is_said_of_windows_and_colours(tmp_path, tags):
    stored = np.stack([STORED] * 3, -1) if "SamplesPerPixel" in tags else STORED
    (tmp_path / "images").mkdir()
    path = written(tmp_path / "images" / "a.dcm", stored, **tags)
    assert folder_cautions.without_window([path]) == ""


def test_of_many_dicom_files_some_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_cautions, "HEADERS", 2)
    paths = write_dicom(tmp_path, 5)
    (tmp_path / "images" / "scan3.dcm").write_bytes(b"nothing")
    assert folder_cautions.without_window(paths).startswith("1 of the 2 looked at of 5 DICOM files states no window")
