"""What a run will cost on this machine, said before it starts: how much work there is, and about how long it takes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heatcheck.report.numbers import count, listed
from heatcheck.running.progress import Silent, Watcher
from heatcheck.runs.store import RunFolder

LONG = 600.0  # seconds from which on the remedies are named
LARGE = 1e8  # bytes from which on the space on disk is named
REST = "statistics, pictures and report come on top"
LIMIT = "fewer patients to explain (`--limit N`)"


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work that is left: so many parts, the seconds that each takes, and the bytes that all leave."""

    count: int
    noun: str  # a part, such as "network"
    doing: str  # what is done with it, such as "to train for 20 epochs of 400 images"
    each: float  # seconds
    disk: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds of all parts."""
        return self.count * self.each


@dataclass(frozen=True, slots=True)
class Cost:
    """All work that is left of a run."""

    works: Sequence[Work]
    device: str = "cpu"
    remedy: str = LIMIT  # what makes the run shorter
    rest: str = REST  # what is not counted

    @property
    def seconds(self) -> float:
        """The seconds of all work."""
        return sum(work.seconds for work in self.works)

    @property
    def disk(self) -> float:
        """The bytes of all work."""
        return sum(work.disk for work in self.works)

    def lines(self) -> list[str]:
        """What the run will cost in one or two plain lines; nothing where no work is left."""
        works = [work for work in self.works if work.count]
        if not works:
            return []
        parts = [f"{count(work.count, work.noun)} {work.doing} ({roughly(work.seconds)})" for work in works]
        disk = f" Up to {_size(self.disk)} are written to disk." if self.disk >= LARGE else ""
        about = "Less than a minute" if self.seconds < 50 else f"About {roughly(self.seconds)}"
        rest = f"; {self.rest}" if self.rest else ""
        first = f"{about} on this machine, within a factor of two or so: {listed(parts)}{rest}.{disk}"
        return [first, *([self._remedies()] if self.seconds >= LONG else [])]

    def _remedies(self) -> str:
        gpu = ["a GPU (`--device cuda`)"] if self.device == "cpu" else []
        shorter = listed([self.remedy, *gpu], "or")
        return f"Shorter with {shorter}. It can be stopped at any time; the same command continues it."


def say_cost(cost: Callable[[], Cost], watcher: Watcher) -> None:
    """Say what a run will cost; where nobody listens, nothing is measured."""
    if type(watcher).say is Silent.say:
        return
    for line in cost().lines():
        watcher.say(line)


def joined(works: Sequence[Work]) -> list[Work]:
    """Works of the same kind as one."""
    kinds = dict.fromkeys((work.noun, work.doing) for work in works)
    alike = [[work for work in works if (work.noun, work.doing) == kind] for kind in kinds]
    return [
        replace(
            some[0],
            count=(number := sum(work.count for work in some)),
            each=math.fsum(work.seconds for work in some) / max(1, number),
            disk=sum(work.disk for work in some),
        )
        for some in alike
    ]


def left(folder: RunFolder, counts: Sequence[int]) -> list[int]:
    """The number of cases of each shard, 0 where the folder holds its tables."""
    return [0 if folder.has_shard(shard) else number for shard, number in enumerate(counts)]


def roughly(seconds: float) -> str:
    """A length of time, to no more digits than an estimate has."""
    if seconds < 1:
        return "below 1 s"
    if seconds < 50:
        return f"{_two_digits(seconds)} s"
    minutes = max(1, _two_digits(seconds / 60))
    if minutes < 100:
        return f"{minutes} min"
    hours = seconds / 3600
    if hours < 10:
        tens = round(seconds / 600)
        return f"{tens // 6} h" + (f" {tens % 6 * 10} min" if tens % 6 else "")
    return f"{_two_digits(hours)} h" if hours < 48 else f"{_two_digits(hours / 24)} days"


def _two_digits(value: float) -> int:
    return round(float(f"{value:.2g}"))


def _size(size: float) -> str:
    return f"{size / 1e9:.2g} GB" if size < 1e10 else f"{round(size / 1e9):,} GB"
