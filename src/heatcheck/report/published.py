"""Published figures beside ours: separate, marked rows, with footnotes on misprints."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Matrix, Row
from heatcheck.report.numbers import MISSING, Unit, interval, number


@dataclass(frozen=True, slots=True)
class Figure:
    """A published number; `note` says what is wrong with it, where something is."""

    value: float
    low: float = math.nan
    high: float = math.nan
    stars: int = 0
    note: str = ""


_PUBLISHED = "Published ("  # how the title of published rows begins
_ABSENT = "not published"
_NO_FIGURE = Figure(math.nan)


def with_rows(table: Matrix, rows: list[Row], notes: Footnotes, source: str) -> Matrix:
    """The table with these published rows below its own, if there are any."""
    if not rows:
        return table
    title = f"{_PUBLISHED}{source})"
    return replace(table, groups=(*table.groups, (title, tuple(rows))), notes=tuple(notes.reasons))


def figure_cell(figure: Figure | None, unit: Unit, notes: Footnotes, *, signed: bool = False) -> Cell:
    """A published number as a cell; its misprint, if any, is a footnote."""
    figure = figure or _NO_FIGURE
    if math.isnan(figure.value):
        return Cell(MISSING, title=_ABSENT)
    bounds = interval(figure.low, figure.high, replace(unit, sign=""), signed=signed)
    text = number(figure.value, unit, signed=signed) + "*" * figure.stars
    return Cell(text, bounds, title=figure.note, note=notes.mark(figure.note))


def has_published_rows(content: object) -> bool:
    """Whether a table somewhere in a section's content has published rows."""
    if isinstance(content, Matrix):
        return any(title.startswith(_PUBLISHED) for title, _ in content.groups)
    if isinstance(content, Mapping):
        return any(has_published_rows(part) for part in content.values())
    if isinstance(content, list | tuple):
        return any(has_published_rows(part) for part in content)
    return has_published_rows(getattr(content, "tables", ()))
