"""A gallery's entries are written and read by one record."""

import json
import math
from dataclasses import dataclass

import pytest

from heatcheck.runs.gallery import index_of, items_of, read_entry


@dataclass(frozen=True, slots=True, kw_only=True)
class OneMap:
    """A map of an entry."""

    file: str
    overlap: float | None  # written even where it is not known
    level: int | None = None  # left out where it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCase:
    """An entry."""

    case: str
    shape: tuple[int, int]
    why: str = ""
    outlines: dict[str, list[list[int]]] | None = None
    maps: tuple[OneMap, ...] = ()


ENTRIES = [
    OneCase(case="a", shape=(4, 6)),
    OneCase(
        case="b",
        shape=(4, 6),
        why="usual",
        outlines={"T1": [[1, 2]]},
        maps=(OneMap(file="0.png", overlap=None), OneMap(file="1.png", overlap=0.5, level=3)),
    ),
]
ITEMS = [
    {"case": "a", "shape": [4, 6], "why": "", "maps": []},
    {
        "case": "b",
        "shape": [4, 6],
        "why": "usual",
        "outlines": {"T1": [[1, 2]]},
        "maps": [{"file": "0.png", "overlap": None}, {"file": "1.png", "overlap": 0.5, "level": 3}],
    },
]


def test_only_a_field_whose_default_is_none_is_left_out():
    assert index_of(ENTRIES) == {"items": ITEMS}
    assert index_of([]) == {"items": []}


def test_what_was_written_is_read_back_through_the_file():
    items = items_of(json.loads(json.dumps(index_of(ENTRIES))))
    assert [read_entry(OneCase, item) for item in items] == ENTRIES


def test_an_unknown_number_stays_nan():
    entry = OneMap(file="0.png", overlap=math.nan)
    (item,) = items_of(json.loads(json.dumps(index_of([entry]))))
    assert math.isnan(read_entry(OneMap, item).overlap)


def test_a_run_without_a_gallery_has_no_items():
    assert list(items_of({})) == []


@pytest.mark.parametrize(
    "item", [{"case": "a"}, {"case": "a", "shape": [4]}, {"case": "a", "shape": [4, 6], "maps": [{}]}]
)
def test_an_entry_that_lacks_a_field_is_refused(item):
    with pytest.raises(ValueError, match="validation error"):
        read_entry(OneCase, item)


def test_what_the_record_does_not_know_is_ignored():
    assert read_entry(OneCase, {**ITEMS[0], "new": 1}) == ENTRIES[0]
