"""What a folder of images says before the work: which take no part, and which state no window."""

import numpy as np
import pytest
from PIL import Image as Pictures
from tests.sources.files.test_reading_dicom import STORED, written
from tests.sources.folder_material import data, opened, write_mask, write_picture  # noqa: F401 - a fixture

from heatcheck.running.open_source import cautions_of
from heatcheck.running.pseudonyms import pseudonymous
from heatcheck.sources.files import folder_cautions

ALL = "image,Edema\na.png,1\nb.jpg,0\nward 2/c.png,1\n"


def test_images_without_a_row_are_counted(data):  # noqa: F811
    assert opened(data, ALL).cautions() == ()
    (one,) = opened(data, "image,Edema\na.png,1\nward 2/c.png,1\n").cautions()
    assert one == (
        "1 of 3 images in images/ has no row in labels.csv and takes no part (b); add rows if they belong to the study."
    )
    (unnamed,) = cautions_of([opened(data, "image,Edema\na.png,1\nward 2/c.png,1\n")], named=False)
    assert unnamed == one.replace(" (b)", "")
    (two,) = opened(data, "image,Edema\na.png,1\nz.png,0\n").cautions()
    assert two.startswith("2 of 3 images in images/ have no row in labels.csv and take no part")
    assert opened(data, masks="masks").cautions() == ()


def test_pseudonymous_source_says_the_same_without_names(data, tmp_path):  # noqa: F811
    source = opened(data, "image,Edema\na.png,1\n")
    hidden = pseudonymous(source, source.index(), tmp_path / "run")
    assert cautions_of([hidden, object()]) == source.cautions(named=False) != ()


def write_dicom(root, number, **tags):
    (root / "images").mkdir(exist_ok=True)
    return [written(root / "images" / f"scan{index}.dcm", **tags) for index in range(number)]


def test_dicom_files_without_a_window_are_counted_with_what_their_pixels_become(tmp_path):
    write_dicom(tmp_path, 3)
    written(tmp_path / "images" / "seen.dcm", WindowCenter=2000, WindowWidth=1000)
    written(tmp_path / "images" / "half.dcm", WindowCenter=2000)
    rows = "".join(f"{name},1\n" for name in ("scan0", "scan1", "seen", "half"))
    (rest, _, window) = opened(tmp_path, f"image,Edema\n{rows}").cautions()
    assert rest.startswith("1 of 5 images in images/ has no row")
    assert window.startswith("3 of 4 DICOM files state no window: pixels are spread from the smallest to the largest")
    assert window.endswith("If so, set `value_range` of the source.")
    assert len(opened(tmp_path, f"image,Edema\n{rows}", value_range=(0, 4095)).cautions()) == 2


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


def labelled(root, number, **settings):
    """So many images of different patients, all with the finding, each with its own pixels."""
    for n in range(number):
        pixels = np.random.default_rng(n).integers(0, 255, (40, 40)).astype(np.uint8)
        (root / "images").mkdir(exist_ok=True)
        Pictures.fromarray(pixels).save(root / f"images/p{n}.png")
    rows = "".join(f"p{n},1\n" for n in range(number))
    return opened(root, f"image,Edema\n{rows}", **settings)


def test_images_without_an_outline_and_empty_ones_are_counted(tmp_path):
    write_mask(tmp_path / "masks/Edema/p0.png", slice(0, 2))
    write_mask(tmp_path / "masks/Edema/p1.png", slice(0, 0))
    missing, empty = labelled(tmp_path, 5, masks="masks").cautions()
    assert missing == "3 of 5 images with Edema have no outline: they are not scored."
    assert empty == (
        "1 of 2 outlines of findings that the labels call present (Edema) marks nothing: it is not scored."
    )


def test_marks_of_no_image_and_of_no_column_are_counted(tmp_path):
    for name in ("Edema/p0", "Edema/p1", "Edema/p999", "Mass/p0"):
        write_mask(tmp_path / f"masks/{name}.png", slice(0, 2))
    orphans, others = labelled(tmp_path, 2, masks="masks").cautions()
    assert orphans.startswith("1 name in masks belongs to no image and takes no part")
    assert others == "masks marks Mass, which is no column of the labels: these marks are not used."


def test_constant_and_equal_images_are_named_but_not_under_pseudonyms(tmp_path):
    source = labelled(tmp_path, 7)
    write_picture(tmp_path / "images/p1.png", 0, (40, 40))
    (tmp_path / "images/p5.png").write_bytes((tmp_path / "images/p4.png").read_bytes())
    constant, equal = source.cautions()
    assert constant == "1 image (p1) has the same value everywhere; export it again or remove it."
    assert equal.startswith("2 images of different patients are equal byte for byte (p4 = p5): correct the files")
    hidden = pseudonymous(source, source.index(), tmp_path / "run").cautions()
    assert len(hidden) == 2
    assert not any("p1" in said or "p4" in said for said in hidden)


def test_equal_images_of_one_patient_are_not_remarked_on(tmp_path):
    labelled(tmp_path, 3)
    (tmp_path / "images/p1.png").write_bytes((tmp_path / "images/p0.png").read_bytes())
    assert opened(tmp_path, "image,patient,Edema\np0,a,1\np1,a,1\np2,b,0\n").cautions() == ()


def test_source_without_any_outline_of_the_findings_says_so(tmp_path):
    assert "names neither `masks` nor `truth`" in labelled(tmp_path, 2).without_truth(["Edema"])
    (tmp_path / "masks").mkdir()
    assert "holds no masks; expected masks/<finding>/<image>.png" in labelled(tmp_path, 2, masks="masks").without_truth(
        ["Edema"]
    )
    write_mask(tmp_path / "masks/Edema/p0.png", slice(0, 2))
    assert labelled(tmp_path, 2, masks="masks").without_truth(["Edema"]) == ""
    assert "marks none of Mass on any image" in labelled(tmp_path, 2, masks="masks").without_truth(["Mass"])
