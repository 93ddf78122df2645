"""The table of single cases: their scores, what failed or is missing, and where each can be looked at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

MOST = 500  # rows on the page: half of them the worst cases, half drawn at random from the others
_SEED = 0  # of the draw, so that the same run gives the same page


@dataclass(frozen=True, slots=True)
class CaseColumn:
    """A column of scores; `higher_is_better` tells which end is worst, None where neither is."""

    name: str
    decimals: int = 3
    higher_is_better: bool | None = True


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case, or one finding of a case; NaN stands for a score that is undefined or was not computed."""

    case: str
    group: str  # the finding, trigger or class that the table can be filtered by
    values: tuple[float, ...]
    note: str = ""  # why it failed, or what is missing
    link: str = ""  # the anchor of its card in the gallery
    thumbnail: str = ""  # data link
    badness: float = 0.0  # the worst cases have the highest


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


def worst_and_random(rows: Sequence[CaseRow], most: int = MOST) -> tuple[CaseRow, ...]:
    """All rows, the worst first; of more than `most`, the worst half of these and as many drawn from the others."""
    ranked = sorted(rows, key=lambda row: (-row.badness, row.case, row.group))
    if len(ranked) <= most:
        return tuple(ranked)
    worst, others = ranked[: most // 2], ranked[most // 2 :]
    drawn = np.random.default_rng(_SEED).choice(len(others), most - len(worst), replace=False)
    return (*worst, *(others[index] for index in sorted(drawn)))
