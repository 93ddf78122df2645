"""Progress output: a bar on a terminal, a line from time to time in a log, or nothing."""

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
    """Receives the progress of the work."""

    def start(self, what: str, total: int, done: int = 0) -> None:
        """Begin a step of `total` parts, `done` of which are finished."""

    def advance(self, parts: int = 1, note: str = "") -> None:
        """Count more parts of the step as finished."""

    def say(self, sentence: str) -> None:
        """Show a sentence."""


class Silent:
    """Shows nothing."""

    def start(self, what: str, total: int, done: int = 0) -> None:
        """Do nothing."""

    def advance(self, parts: int = 1, note: str = "") -> None:
        """Do nothing."""

    def say(self, sentence: str) -> None:
        """Do nothing."""


@dataclass
class Bars:
    """One bar per step with the time left; a step may begin within another, which then continues."""

    progress: Progress
    open_tasks: list[TaskID] = field(default_factory=list)

    def start(self, what: str, total: int, done: int = 0) -> None:
        """Add a bar below the others."""
        self.progress.start()  # only now, so that an error before any work is a single line
        self._forget_finished()
        self.open_tasks.append(self.progress.add_task(what, total=total, completed=done, note=""))

    def advance(self, parts: int = 1, note: str = "") -> None:
        """Move the newest unfinished bar."""
        self._forget_finished()
        if self.open_tasks:
            self.progress.update(self.open_tasks[-1], advance=parts, note=note)

    def _forget_finished(self) -> None:
        while self.open_tasks and self.progress.tasks[self.progress.task_ids.index(self.open_tasks[-1])].finished:
            self.open_tasks.pop()

    def say(self, sentence: str) -> None:
        """Print a line above the bars."""
        self.progress.console.print(sentence, highlight=False, markup=False, soft_wrap=True)  # paths are not broken


@dataclass
class _Step:
    """A step that is not finished."""

    what: str
    total: int
    done: int
    done_before: int  # parts finished by an earlier call, which say nothing about the speed
    begun_at: float
    shown_at: float

    def left(self, now: float) -> str:
        """The time left at the speed so far; empty before the first part is finished."""
        done_now = self.done - self.done_before
        if done_now < 1 or self.done >= self.total:
            return ""
        return f"{duration((now - self.begun_at) / done_now * (self.total - self.done))} left"

    def took(self, now: float) -> str:
        """The time since the step began."""
        return f"in {duration(now - self.begun_at)}"


@dataclass
class Lines:
    """A line when a step ends, and every half minute before that: for logs."""

    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    open_steps: list[_Step] = field(default_factory=list)

    def start(self, what: str, total: int, done: int = 0) -> None:
        """Begin a step; one that was finished before has its line now."""
        now = self.clock()
        step = _Step(what, total, done, done, now, now)
        if 0 < total <= done:
            self._show(step)
        if done < total:
            self.open_steps.append(step)

    def advance(self, parts: int = 1, note: str = "") -> None:
        """Write a line if the newest step is finished, or if none was written for half a minute."""
        if not self.open_steps:
            return
        step, now = self.open_steps[-1], self.clock()
        step.done += parts
        finished = step.done >= step.total
        if finished or now - step.shown_at >= SECONDS_BETWEEN_LINES:
            step.shown_at = now
            self._show(step, "" if finished else note, step.took(now) if finished else step.left(now))
        if finished:
            self.open_steps.pop()

    def say(self, sentence: str) -> None:
        """Write a line."""
        self.stream.write(f"{sentence}\n")
        self.stream.flush()  # logs are read during the work

    def _show(self, step: _Step, *more: str) -> None:
        self.say("  ".join(part for part in (step.what, f"{step.done}/{step.total}", *more) if part))


@contextmanager
def watching(*, quiet: bool) -> Iterator[Watcher]:
    """A watcher that shows bars on stderr, lines if stderr is not a terminal, or nothing if quiet."""
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
