"""What the galleries of all studies share: one card per case, with a picture for each method or network."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from heatcheck.report.blocks.pictures import RAMP, PictureError
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SHARE, Unit, count, number
from heatcheck.runs.gallery import Entry, items_of, read_entry


class Card(Protocol):
    """A case on the page, which can be filtered by finding and by group."""

    @property
    def finding(self) -> str:
        """The finding it shows, for the filter."""

    @property
    def group(self) -> str:
        """The group it belongs to, for the filter; may be empty."""

    @property
    def weight(self) -> int:
        """About how many bytes it adds to the page."""


AnyCard = TypeVar("AnyCard", bound=Card)
AnyMap = TypeVar("AnyMap")
BROKEN = (PictureError, KeyError, TypeError, ValueError)  # the card of an entry cannot be made


def ramp() -> str:
    """The colours of the maps from cold to hot over dark tissue, as a CSS gradient."""
    return ", ".join(f"rgb({red} {green} {blue})" for red, green, blue in RAMP)


@dataclass(frozen=True, slots=True)
class Gallery(Generic[AnyCard]):
    """The cards that fit, and what was left out in plain sentences."""

    cards: tuple[AnyCard, ...]
    left_out: tuple[str, ...]
    ramp: str = field(default_factory=ramp)  # the colours of the maps, as CSS has them

    @property
    def findings(self) -> list[str]:
        """The findings of the cards, in their order."""
        return list(dict.fromkeys(card.finding for card in self.cards))

    @property
    def groups(self) -> list[str]:
        """The groups of the cards, in their order."""
        return list(dict.fromkeys(card.group for card in self.cards if card.group))


def gallery_of(
    evidence: Evidence, record: type[Entry], make_card: Callable[[Entry, Path], AnyCard], budget: int
) -> Gallery[AnyCard]:
    """As many cards as fit into `budget` bytes, in the order that the study chose.

    `record` is the study's, and `make_card` also gets the folder of the pictures.
    """
    folder, items = evidence.run.path / "gallery", items_of(evidence.run.gallery)
    cards: list[AnyCard] = []
    broken = used = 0
    for item in items:
        try:
            card = make_card(read_entry(record, item), folder)
        except BROKEN:
            broken += 1
            continue
        if used + card.weight > budget:
            break
        used += card.weight
        cards.append(card)
    return Gallery(tuple(cards), tuple(_sentences(len(items) - len(cards) - broken, broken, budget)))


def _sentences(over: int, broken: int, budget: int) -> list[str]:
    sentences = []
    if over:
        cases = count(over, "more case was", "more cases were")
        sentences.append(
            f"{cases} chosen but left out, to keep the pictures of this page under {budget / 1e6:.0f} MB; "
            "they lie in the run's gallery folder."
        )
    if broken:
        sentences.append(f"{count(broken, 'case')} could not be shown because a picture is missing or damaged.")
    return sentences


def entries_of(evidence: Evidence, record: type[Entry]) -> list[Entry]:
    """The entries that can be read, in the order the study chose them."""
    entries = []
    for item in items_of(evidence.run.gallery):
        with suppress(ValueError):
            entries.append(read_entry(record, item))
    return entries


def by_name(maps: Iterable[AnyMap], name_of: Callable[[AnyMap], str], names: Sequence[str]) -> list[AnyMap]:
    """The maps in the order of these names; the others follow."""
    return sorted(maps, key=lambda each: names.index(name_of(each)) if name_of(each) in names else len(names))


def orientation(plane: str, sides: str) -> str:
    """The plane and sides of a picture in words, as far as they are known."""
    return ", ".join(filter(None, (plane, sides))).replace("'", "\u2019")


def number_or_dash(value: float | None, unit: Unit) -> str:
    """The number in its unit; a dash where it is unknown."""
    return number(math.nan if value is None else float(value), unit)


def likely(chance: float | None) -> str:
    """A probability in whole percent; nothing where it is not known."""
    return "" if chance is None or math.isnan(chance) else number(float(chance), SHARE.rounded(0))
