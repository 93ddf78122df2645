"""Absolute paths are cut to their last name; everything else stays as it is."""

import pytest

from heatcheck.core.paths import without_paths


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/home/jane doe/data/set 1", "…/set 1"),
        ("/data", "…/data"),
        (r"C:\Users\Jane\weights.pt", "…/weights.pt"),
        (r"\\server\share\x.dcm", "…/x.dcm"),
        ("~/data/x.png", "…/x.png"),
        ("file:///home/jane/x.png", "…/x.png"),
        ("cannot read /data/p1/x.png: cut short", "cannot read …/x.png: cut short"),
        ("no file '/home/jane doe/x y.png' there", "no file '…/x y.png' there"),
        ("/data/x.png is not an image", "…/x.png is not an image"),
        ("python:package:/opt/code/f.py", "python:package:…/f.py"),
    ],
)
def test_absolute_path_is_cut_to_its_last_name(before, after):
    assert without_paths(before) == after


@pytest.mark.parametrize(
    "text",
    ["and/or", "1/2 of cases", "CheXpert/val/patient1.jpg", "https://example.org/a/b", "a / b", "</script>", "", "m/s"],
)
def test_other_slashes_are_left_alone(text):
    assert without_paths(text) == text


def test_every_depth_of_a_json_value_is_cleaned():
    value = {"a": ["/x/y", {"b": "/z/w"}], "n": 3, "none": None}
    assert without_paths(value) == {"a": ["…/y", {"b": "…/w"}], "n": 3, "none": None}
