"""The first screen of a page: a status for each question, what to do, one picture and one chart."""

from dataclasses import dataclass
from enum import Enum

from heatcheck.report.blocks.films import FilmStrip
from heatcheck.report.charts.legend import Key
from heatcheck.report.charts.panels import Panel


class Light(Enum):
    """How an answer is marked: by a word, a sign and a colour, so that no reader depends on the colour."""

    YES = ("✓", "good")
    PARTLY = ("◐", "partly")
    NO = ("✕", "bad")
    OPEN = ("?", "open")  # not shown either way

    @property
    def sign(self) -> str:
        """The sign that stands before the word."""
        return self.value[0]

    @property
    def style(self) -> str:
        """The class of the style sheet."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Status:
    """One question and its answer: a word with its light, and one sentence with the number behind it."""

    question: str
    light: Light
    word: str  # such as "Yes", "No", "Not shown", "For 2 of 5 findings"
    sentence: str


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """What a reader sees before scrolling.

    The recommendation says in plain words which method to use for which findings, which not to use, and what to do
    next, one sentence each.
    """

    statuses: tuple[Status, ...]
    recommendation: tuple[str, ...]
    picture: FilmStrip | None = None
    chart: Panel | None = None
    chart_keys: tuple[Key, ...] = ()
