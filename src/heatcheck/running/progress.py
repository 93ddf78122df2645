"""How far the work is, for whoever watches: a bar on a terminal, now and then a line in a log, or nothing."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from heatcheck.report.numbers import duration

SECONDS_BETWEEN_LINES = 30.0


class Watcher(Protocol):
    """Whoever wants to know how far the work is."""

    def start(self, what: str, total: int, done: int = 0) -> None:
        """A step with so many parts begins, some of them done before."""

    def advance(self, parts: int = 1, note: str = "") -> None:
        """More parts of the step are done."""

    def say(self, sentence: str) -> None:
        """Something worth a line."""


class Silent:
    """Nobody watches."""

    def start(self, what: str, total: int, done: int = 0) -> None:
        """Nothing."""

    def advance(self, parts: int = 1, note: str = "") -> None:
        """Nothing."""

    def say(self, sentence: str) -> None:
        """Nothing."""


@dataclass
class Bars:
    """A bar with the time left for each step; a step may begin within another, which goes on when it is done."""

    progress: Progress
    under_way: list[TaskID] = field(default_factory=list)

    def start(self, what: str, total: int, done: int = 0) -> None:
        """A new bar below the others."""
        self.progress.start()  # only now, so that an error before any work is a single line
        self._forget_finished()
        self.under_way.append(self.progress.add_task(what, total=total, completed=done, note=""))

    def advance(self, parts: int = 1, note: str = "") -> None:
        """Move the newest bar that is not full."""
        self._forget_finished()
        if self.under_way:
            self.progress.update(self.under_way[-1], advance=parts, note=note)

    def _forget_finished(self) -> None:
        while self.under_way and self.progress.tasks[self.progress.task_ids.index(self.under_way[-1])].finished:
            self.under_way.pop()

    def say(self, sentence: str) -> None:
        """A line above the bars."""
        self.progress.console.print(sentence, highlight=False, markup=False, soft_wrap=True)  # a path stays whole


@dataclass
class _Step:
    """A step under way."""

    what: str
    total: int
    done: int
    begun_with: int  # parts done before, which say nothing about the speed
    begun_at: float
    told_at: float

    def left(self, now: float) -> str:
        """How long the rest takes at the speed so far, once there is a speed."""
        fresh = self.done - self.begun_with
        if fresh < 1 or self.done >= self.total:
            return ""
        return f"{duration((now - self.begun_at) / fresh * (self.total - self.done))} left"


@dataclass
class Lines:
    """A line when a step begins and ends, and at most every half minute between: for a log, where no bar can move."""

    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    under_way: list[_Step] = field(default_factory=list)

    def start(self, what: str, total: int, done: int = 0) -> None:
        """A line that says what begins."""
        now = self.clock()
        step = _Step(what, total, done, done, now, now)
        self._tell(step)
        if done < total:
            self.under_way.append(step)

    def advance(self, parts: int = 1, note: str = "") -> None:
        """A line when the newest step is done, or when none was written for a while."""
        if not self.under_way:
            return
        step, now = self.under_way[-1], self.clock()
        step.done += parts
        finished = step.done >= step.total
        if finished or now - step.told_at >= SECONDS_BETWEEN_LINES:
            step.told_at = now
            self._tell(step, note, step.left(now))
        if finished:
            self.under_way.pop()

    def say(self, sentence: str) -> None:
        """A line of its own."""
        self.stream.write(f"{sentence}\n")
        self.stream.flush()  # a log is read while the work goes on

    def _tell(self, step: _Step, *more: str) -> None:
        self.say("  ".join(part for part in (step.what, f"{step.done}/{step.total}", *more) if part))


@contextmanager
def watching(*, quiet: bool) -> Iterator[Watcher]:
    """A watcher that shows bars on stderr, lines where stderr is no terminal, or nothing when quiet."""
    if quiet:
        yield Silent()
        return
    if not sys.stderr.isatty():
        yield Lines(sys.stderr)
        return
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[note]}"),
    )
    progress = Progress(*columns, console=Console(stderr=True))
    try:
        yield Bars(progress)
    finally:
        if progress.tasks:
            progress.stop()
