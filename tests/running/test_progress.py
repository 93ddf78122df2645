"""Bars and lines show the progress that was reported."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from heatcheck.running.progress import Bars, Lines, watching


def bars() -> Bars:
    return Bars(Progress(console=Console(file=io.StringIO())))


def completed(watcher: Bars) -> dict[str, tuple[float, float | None]]:
    return {task.description: (task.completed, task.total) for task in watcher.progress.tasks}


def test_a_step_within_a_step_gives_way_when_it_is_done() -> None:
    watcher = bars()
    watcher.start("maps", 4)
    watcher.advance()
    watcher.start("location priors", 2)
    watcher.advance()
    watcher.advance()
    watcher.advance(2)
    assert completed(watcher) == {"maps": (3, 4), "location priors": (2, 2)}


def test_a_step_after_another_has_its_own_bar() -> None:
    watcher = bars()
    watcher.start("maps", 1)
    watcher.advance()
    watcher.start("nothing to do", 0)
    watcher.start("gallery", 3, done=1)
    watcher.advance()
    assert completed(watcher) == {"maps": (1, 1), "nothing to do": (0, 0), "gallery": (2, 3)}


class Clock:
    """A clock that stands still until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def lines() -> tuple[Lines, io.StringIO, Clock]:
    stream, clock = io.StringIO(), Clock()
    return Lines(stream, clock), stream, clock


def test_a_log_gets_a_line_every_half_minute_and_at_the_end() -> None:
    watcher, stream, clock = lines()
    watcher.start("training ignore-1", 100)
    for step in range(100):
        clock.now = 1.0 * (step + 1)
        watcher.advance(1, "loss 0.31")
    assert stream.getvalue().splitlines() == [
        "training ignore-1  30/100  loss 0.31  1 min 10 s left",
        "training ignore-1  60/100  loss 0.31  40.0 s left",
        "training ignore-1  90/100  loss 0.31  10.0 s left",
        "training ignore-1  100/100  in 1 min 40 s",
    ]


def test_what_was_done_before_says_nothing_about_the_speed() -> None:
    watcher, stream, clock = lines()
    watcher.start("maps", 1000, done=900)
    clock.now = 60.0
    watcher.advance(10)
    assert stream.getvalue().splitlines()[-1] == "maps  910/1000  9 min 0 s left"


def test_lines_of_a_step_within_a_step_give_way_when_it_is_done() -> None:
    watcher, stream, clock = lines()
    watcher.start("maps", 4)
    watcher.advance()
    watcher.start("location priors", 1)
    watcher.advance()
    watcher.start("nothing to do", 0)
    clock.now = 45.0
    watcher.advance(2)
    watcher.advance()
    watcher.advance()
    assert [line.split("  ")[:2] for line in stream.getvalue().splitlines()] == [
        ["location priors", "1/1"],
        ["maps", "3/4"],
        ["maps", "4/4"],
    ]


def test_an_output_that_is_no_terminal_gets_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with watching(quiet=False) as watcher:
        watcher.start("maps", 2, done=2)
        watcher.say("Something worth a line.")
    assert capsys.readouterr().err == "maps  2/2\nSomething worth a line.\n"
