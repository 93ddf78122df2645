"""Bars that stand for what they say."""

import io

from rich.console import Console
from rich.progress import Progress

from heatcheck.studies.progress import Bars


def bars() -> Bars:
    return Bars(Progress(console=Console(file=io.StringIO())))


def completed(watcher: Bars) -> dict[str, tuple[float, float | None]]:
    return {task.description: (task.completed, task.total) for task in watcher.progress.tasks}


def test_a_step_within_a_step_gives_way_when_it_is_done() -> None:
    watcher = bars()
    watcher.start("maps", 4)
    watcher.advance()
    watcher.start("usual places", 2)
    watcher.advance()
    watcher.advance()
    watcher.advance(2)
    assert completed(watcher) == {"maps": (3, 4), "usual places": (2, 2)}


def test_a_step_after_another_has_its_own_bar() -> None:
    watcher = bars()
    watcher.start("maps", 1)
    watcher.advance()
    watcher.start("nothing to do", 0)
    watcher.start("gallery", 3, done=1)
    watcher.advance()
    assert completed(watcher) == {"maps": (1, 1), "nothing to do": (0, 0), "gallery": (2, 3)}
