"""Any JSON file is either read or refused in one line that names it."""

import copy
import json

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heatcheck.core.errors import CaseError, InputError
from heatcheck.sources.files.annotations import read_annotations, read_points
from heatcheck.sources.files.rle import encode

TRIANGLE = [[1.5, 1], [4, 1], [4, 3]]
SOUND = [
    {"a": {"img_size": [5, 6], "Edema": [TRIANGLE, TRIANGLE]}, "b": {"img_size": [5, 6]}},
    {
        "a": {
            "Edema": {"size": [5, 6], "counts": encode(np.eye(5, 6, dtype=bool))},
            "Mass": {"size": [5, 6], "counts": [30]},
        }
    },
    {
        "images": [{"id": 1, "file_name": "a.png", "height": 5, "width": 6}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 2, "bbox": [1, 1, 2, 2]}],
        "categories": [{"id": 2, "name": "Mass"}],
    },
    {
        "images": [{"id": 1, "file_name": "a.png", "height": 5, "width": 6}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 2, "segmentation": [[1, 1, 4, 1, 4, 3]]}],
        "categories": [{"id": 2, "name": "Mass"}],
    },
]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def paths(value, path=()):
    """The path of each part of a JSON value."""
    yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(part, (*path, key))


def replaced(content, path, value, name=None):
    """The content with another value at one path, or with the value under another name."""
    if not path:
        return value
    content = copy.deepcopy(content)
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    if name is not None and isinstance(inner, dict):
        inner[name] = inner.pop(path[-1])
    else:
        inner[path[-1]] = value
    return content


def attempt(read, path):
    """The annotations, or None and the error message."""
    try:
        return read(path), ""
    except InputError as error:
        return None, str(error)


@given(st.data())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_part_replaced_by_anything_is_read_or_refused_in_one_line(tmp_path, data):
    content = data.draw(st.sampled_from(SOUND))
    part = data.draw(st.sampled_from(list(paths(content))))
    content = replaced(content, part, data.draw(anything), data.draw(st.none() | st.text(max_size=4)))
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(content))
    for read in (read_annotations, read_points):
        annotations, sentence = attempt(read, path)
        assert annotations is not None or (str(path) in sentence and "\n" not in sentence)
    annotations, _ = attempt(read_annotations, path)
    for image in annotations.images if annotations else ():
        for finding in annotations.findings_of(image):
            try:
                mask = annotations.mask(image, finding, (5, 6))
            except CaseError:  # of another size, or outside
                continue
            assert (mask.shape, mask.dtype) == ((5, 6), bool)


def test_sound_files_are_sound(tmp_path):
    for content in SOUND:
        (tmp_path / "truth.json").write_text(json.dumps(content))
        assert "a" in read_annotations(tmp_path / "truth.json").images
