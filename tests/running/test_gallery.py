"""How a gallery is stored, and how values become grey pictures."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

from heatcheck.running.gallery import DrawnCase, grey, store_gallery, write_grey
from heatcheck.runs.store import RunFolder


@dataclass(frozen=True)
class OneCase:
    """An entry."""

    case: str


class Counting:
    """A watcher that remembers."""

    def __init__(self):
        self.events = []

    def start(self, name, total):
        self.events.append((name, total))

    def advance(self):
        self.events.append("step")


@pytest.fixture
def folder(tmp_path):
    with RunFolder.locked(tmp_path / "run", {"study": "any"}, {}) as folder:
        yield folder


def items(folder):
    return json.loads((folder.path / "gallery" / "index.json").read_text())["items"]


def test_cases_are_stored_in_their_order_and_those_with_nothing_to_show_left_out(folder):
    watcher = Counting()
    store_gallery(folder, iter([DrawnCase(OneCase("b")), None, DrawnCase(OneCase("a"))]), 3, watcher)
    assert items(folder) == [{"case": "b"}, {"case": "a"}]
    assert watcher.events == [("gallery", 3), "step", "step", "step"]
    assert not list((folder.path / "maps").iterdir())


def test_progress_begins_before_the_first_case_is_drawn(folder):
    watcher = Counting()

    def drawn():
        assert watcher.events == [("gallery", 1)]
        yield DrawnCase(OneCase("a"))

    store_gallery(folder, drawn(), 1, watcher)
    assert len(items(folder)) == 1


def test_maps_of_all_cases_are_kept_together(folder):
    one, two = np.eye(3, dtype=np.float16), np.ones((2, 2), np.float16)
    drawn = [DrawnCase(OneCase("a"), {"a/m": one}), DrawnCase(OneCase("b"), {"b/m": two})]
    store_gallery(folder, drawn, 2, Counting())
    kept = folder.read_maps({"a/m", "b/m"})
    assert np.array_equal(kept["a/m"], one)
    assert np.array_equal(kept["b/m"], two)


def test_an_empty_gallery_has_an_index(folder):
    store_gallery(folder, [], 0, Counting())
    assert items(folder) == []


def test_grey_is_rounded_and_cut_off():
    assert grey(np.array([[-1.0, 0.0, 0.5, 0.999, 2.0]])).tolist() == [[0, 0, 128, 255, 255]]


def test_a_picture_is_no_longer_than_its_side(folder):
    write_grey(folder, "small.png", np.ones((400, 100), np.float32), 200)
    write_grey(folder, "whole.png", np.ones((40, 10), np.float32), 200)
    shapes = [np.asarray(Image.open(folder.path / "gallery" / name)).shape for name in ("small.png", "whole.png")]
    assert shapes == [(200, 50), (40, 10)]
