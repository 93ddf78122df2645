"""The table of single cases: their scores, what failed or is missing, and where each can be looked at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heatcheck.report.numbers import Unit, number

MOST = 500  # rows on the page: half of them the worst cases, half drawn at random from the others
_SEED = 0  # of the draw, so that the same run gives the same page


@dataclass(frozen=True, slots=True)
class CaseColumn:
    """A column of scores; `higher_is_better` says which end is worst, None where neither is."""

    name: str
    decimals: int = 3
    higher_is_better: bool | None = True

    def written(self, value: float) -> str:
        """The value with the column's decimals; a dash where it is undefined."""
        return number(value, Unit(1, self.decimals))


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case, or one finding of a case; NaN stands for a score that is undefined or was not computed."""

    case: str
    group: str  # the finding, trigger or class that the table can be filtered by
    values: tuple[float, ...]
    note: str = ""  # why it failed, or what is missing
    link: str = ""  # the anchor of its card in the gallery
    thumbnail: str = ""  # data link
    picture: str = ""  # what that card shows, where it is not what was scored here
    badness: float = 0.0  # the worst cases have the highest

    @property
    def is_missing(self) -> bool:
        """Whether the case failed, or one of its scores is undefined."""
        return bool(self.note) or any(map(math.isnan, self.values))


@dataclass(frozen=True, slots=True)
class CaseTable:
    """Cases that can be sorted by every column and filtered by group."""

    caption: str
    group: str  # what the groups are, such as "Finding"
    columns: tuple[CaseColumn, ...]
    rows: tuple[CaseRow, ...]
    total: int  # cases of the run; more than rows where only some are shown
    file: str  # the download that holds all
    kind: ClassVar[str] = "cases"

    @property
    def groups(self) -> list[str]:
        """The groups of the rows, in the order of the alphabet."""
        return sorted({row.group for row in self.rows if row.group})


def worst_and_random(rows: Sequence[CaseRow], most: int = MOST) -> tuple[CaseRow, ...]:
    """All rows, the worst first; of more than `most`, the worst half of these and as many drawn from the others."""
    ranked = sorted(rows, key=lambda row: (-row.badness, row.case, row.group))
    if len(ranked) <= most:
        return tuple(ranked)
    worst, others = ranked[: most // 2], ranked[most // 2 :]
    drawn = np.random.default_rng(_SEED).choice(len(others), most - len(worst), replace=False)
    return (*worst, *(others[index] for index in sorted(drawn)))
