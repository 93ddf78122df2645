"""How far the work is, for whoever watches: a bar on a terminal, or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


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
        self.progress.console.print(sentence, highlight=False)


@contextmanager
def watching(*, quiet: bool) -> Iterator[Watcher]:
    """A watcher that shows bars on stderr, or none when quiet."""
    if quiet:
        yield Silent()
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
