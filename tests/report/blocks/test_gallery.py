"""What the galleries of all studies share: entries become cards, until the page's share of bytes is used up."""

import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from heatcheck.report.blocks.gallery import by_name, entries_of, gallery_of, likely, orientation
from heatcheck.report.blocks.pictures import RAMP, PictureError


@dataclass(frozen=True)
class Entry:
    """An entry of the index."""

    case: str
    group: str = ""


@dataclass(frozen=True)
class Shown:
    """A card."""

    finding: str
    group: str
    weight: int = 100


def evidence(*items):
    return SimpleNamespace(run=SimpleNamespace(path=Path("run"), gallery={"items": list(items)} if items else {}))


def card(entry, folder):
    assert folder == Path("run/gallery")
    if entry.case == "damaged":
        raise PictureError("damaged")
    return Shown(entry.case, entry.group)


ITEMS = ({"case": "b", "group": "x"}, {"case": "damaged"}, {"group": "no case"}, {"case": "a"}, {"case": "b"})


def test_cards_are_in_the_studys_order_and_what_cannot_be_shown_is_counted():
    gallery = gallery_of(evidence(*ITEMS), Entry, card, 10**6)
    assert [each.finding for each in gallery.cards] == ["b", "a", "b"]
    assert (gallery.findings, gallery.groups) == (["b", "a"], ["x"])
    assert gallery.left_out == ("2 cases could not be shown because a picture is missing or damaged.",)
    assert gallery.ramp.count("rgb(") == len(RAMP)


def test_cards_stop_at_the_budget():
    gallery = gallery_of(evidence(*ITEMS), Entry, card, 250)
    assert len(gallery.cards) == 2
    assert gallery.left_out[0].startswith("1 more case was chosen but left out")


def test_a_run_without_a_gallery_has_no_cards():
    assert gallery_of(evidence(), Entry, card, 250).cards == ()
    assert entries_of(evidence(), Entry) == []


def test_entries_that_cannot_be_read_are_passed_over():
    assert [entry.case for entry in entries_of(evidence(*ITEMS), Entry)] == ["b", "damaged", "a", "b"]


def test_maps_follow_the_names_and_unknown_ones_come_last():
    assert by_name(["z", "b", "y", "a"], str, ["a", "b"]) == ["a", "b", "z", "y"]


@pytest.mark.parametrize(
    ("plane", "sides", "words"),
    [("", "", ""), ("axial", "", "axial"), ("axial", "patient's right", "axial, patient\u2019s right")],
)
def test_how_a_picture_lies_is_said_as_far_as_it_is_known(plane, sides, words):
    assert orientation(plane, sides) == words


@pytest.mark.parametrize(("chance", "words"), [(None, ""), (math.nan, ""), (0.934, "93\u00a0%")])
def test_a_probability_that_is_not_known_is_not_shown(chance, words):
    assert likely(chance) == words
