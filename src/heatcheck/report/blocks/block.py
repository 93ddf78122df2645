"""What sections are built from: each block is drawn by the macro of its kind in `templates/blocks.html`.

A section says all it has to say in one Python file, as a list of blocks. Text is escaped when it is drawn;
markup within a sentence (a bold word) is passed as `Markup`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, Union

from heatcheck.report.blocks.case_table import CaseTable
from heatcheck.report.blocks.films import FilmStrip
from heatcheck.report.blocks.matrix import Matrix
from heatcheck.report.charts.legend import Key
from heatcheck.report.charts.panels import Panel

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph; small ones are notes on what stands beside them."""

    text: str
    small: bool = False
    kind: ClassVar[str] = "prose"


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]
    kind: ClassVar[str] = "bullets"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section."""

    text: str
    kind: ClassVar[str] = "heading"


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms with their meanings, side by side."""

    pairs: Pairs
    kind: ClassVar[str] = "terms"


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, one to a line."""

    pairs: Pairs
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of estimates, with a caption of its own where the matrix's does not say enough, and a note below."""

    matrix: Matrix
    caption: str = ""
    note: str = ""
    kind: ClassVar[str] = "table"


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A column of a listing."""

    name: str
    numeric: bool = False
    wide: bool = False  # of sentences


@dataclass(frozen=True, slots=True)
class ListCell:
    """A cell of a listing: its text, small print below it, and a sign before it that repeats in form what it says."""

    text: str
    aside: str = ""
    sign: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of words and plain numbers; the first cell of a row is its heading."""

    caption: str
    columns: tuple[ListColumn, ...]
    rows: tuple[tuple[str | ListCell, ...], ...]
    notes: tuple[str, ...] = ()
    kind: ClassVar[str] = "listing"


@dataclass(frozen=True, slots=True)
class Figures:
    """Plots side by side with the key to their marks; `layout` names a class of the style sheet."""

    panels: tuple[Panel, ...]
    keys: tuple[Key, ...] = ()
    layout: str = ""
    kind: ClassVar[str] = "figures"


@dataclass(frozen=True, slots=True)
class Legend:
    """The key to the marks of the plots that follow."""

    keys: tuple[Key, ...]
    kind: ClassVar[str] = "legend"


@dataclass(frozen=True, slots=True)
class Code:
    """Text to be taken as it is, from a program or for one; with a file's name it can be copied and saved."""

    text: str
    file: str = ""
    is_prose: bool = False  # for people: set as running text
    kind: ClassVar[str] = "code"


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks behind a line that says what they are."""

    summary: str
    blocks: tuple["Block", ...]
    opened: bool = False
    kind: ClassVar[str] = "fold"


@dataclass(frozen=True, slots=True)
class Drawn:
    """What needs a template of its own; "study/NAME.html" is one of the study's package. It sees `content`."""

    template: str
    content: Mapping[str, object]
    kind: ClassVar[str] = "drawn"


Block: TypeAlias = Union[  # noqa: UP007 - the names below are strings until all are known
    Prose, Bullets, Heading, Terms, Facts, Table, Listing, Figures, Legend, FilmStrip, CaseTable, Code, Fold, Drawn
]  # fmt: skip


def prose(*sentences: str, small: bool = False) -> tuple[Prose, ...]:
    """One paragraph of the sentences that are not empty; nothing without any."""
    text = " ".join(sentence for sentence in sentences if sentence)
    return (Prose(text, small),) if text else ()


def bullets(items: Sequence[str]) -> tuple[Bullets, ...]:
    """The list; nothing where it is empty."""
    kept = tuple(item for item in items if item)
    return (Bullets(kept),) if kept else ()


def tables(matrices: Sequence[Matrix | None], ending: str = "") -> tuple[Table, ...]:
    """A table of each matrix there is; `ending` follows the matrix's own caption."""
    return tuple(Table(each, f"{each.caption}{ending}" if ending else "") for each in matrices if each)


def fold(summary: str, blocks: "Sequence[Block]", *, opened: bool = False) -> tuple[Fold, ...]:
    """The blocks behind their summary; nothing where there are none."""
    return (Fold(summary, tuple(blocks), opened),) if blocks else ()
