"""What a run says of its cost."""

import pytest

from heatcheck.core.records import ShardTables
from heatcheck.running.cost import Cost, Work, joined, left, roughly, say_cost
from heatcheck.running.progress import Silent
from heatcheck.runs.store import RunFolder

TRAINED = Work(12, "network", "to train for 20 epochs of 400 images", 650.0, disk=2.4e9)
EXPLAINED = Work(668, "image", "to explain by 7 methods with 3 models", 4.5)


class Listening(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "below 1 s"),
        (8.4, "8 s"),
        (44.0, "44 s"),
        (52.0, "1 min"),
        (754.0, "13 min"),
        (5700.0, "95 min"),
        (7800.0, "2 h 10 min"),
        (10810.0, "3 h"),
        (50000.0, "14 h"),
        (86400 * 3.2, "3 days"),
    ],
)
def test_a_time_is_said_as_roughly_as_it_is_known(seconds, words):
    assert roughly(seconds) == words


def test_a_long_run_names_its_parts_its_disk_space_and_what_would_shorten_it():
    first, second = Cost([TRAINED, EXPLAINED]).lines()
    assert first == (
        "About 3 h on this machine, within a factor of two or so: 12 networks to train for 20 epochs of 400 images "
        "(2 h 10 min) and 668 images to explain by 7 methods with 3 models (50 min); statistics, pictures and "
        "report come on top. Up to 2.4 GB are written to disk."
    )
    assert second == (
        "Shorter with fewer patients to explain (`--limit N`) or a GPU (`--device cuda`). It can be stopped at any "
        "time; the same command continues it."
    )


def test_on_a_gpu_none_is_recommended():
    assert "GPU" not in Cost([TRAINED], "cuda").lines()[1]


def test_a_short_run_says_one_line_and_work_that_is_done_is_not_named():
    (line,) = Cost([Work(0, "network", "to train", 100.0), Work(1, "image", "to explain by 2 methods", 2.0)]).lines()
    assert line == (
        "Less than a minute on this machine, within a factor of two or so: 1 image to explain by 2 methods (2 s); "
        "statistics, pictures and report come on top."
    )


def test_where_nothing_is_left_nothing_is_said():
    assert Cost([Work(0, "network", "to train", 100.0)]).lines() == []


def test_where_nobody_listens_nothing_is_measured():
    asked = []
    say_cost(lambda: asked.append(1), Silent())
    assert not asked
    watcher = Listening()
    say_cost(lambda: Cost([EXPLAINED]), watcher)
    assert watcher.said == Cost([EXPLAINED]).lines()


def test_shards_on_disk_are_not_counted(tmp_path):
    with RunFolder.locked(tmp_path / "run", {}, {}) as folder:
        folder.write_shard(1, ShardTables())
        assert left(folder, [4, 4, 1]) == [4, 0, 1]


def test_works_of_one_kind_are_joined_with_their_seconds_and_bytes():
    few, many = Work(1, "image", "to prepare", 4.0, 10.0), Work(3, "image", "to prepare", 2.0, 5.0)
    assert joined([few, EXPLAINED, many]) == [Work(4, "image", "to prepare", 2.5, 15.0), EXPLAINED]
