"""Galleries of exhibits, a case with a picture for each method or network: what those of all studies share."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from heatcheck.report.evidence import Evidence
from heatcheck.report.gallery import Weighty, fitting, ramp
from heatcheck.report.numbers import SHARE, Unit, number


class Exhibit(Weighty, Protocol):
    """A card that can be chosen by two things."""

    @property
    def finding(self) -> str:
        """What it shows."""

    @property
    def group(self) -> str:
        """The other thing by which it can be chosen; may be empty."""


Card = TypeVar("Card", bound=Exhibit)


@dataclass(frozen=True, slots=True)
class Exhibits(Generic[Card]):
    """The cards that fit, and what was left out in plain sentences."""

    cards: tuple[Card, ...]
    left_out: tuple[str, ...]
    ramp: str = field(default_factory=ramp)  # the colours of the maps, as CSS has them

    @property
    def findings(self) -> list[str]:
        """What the cards show, in their order."""
        return list(dict.fromkeys(card.finding for card in self.cards))

    @property
    def groups(self) -> list[str]:
        """The other thing by which cards can be chosen, in their order."""
        return list(dict.fromkeys(card.group for card in self.cards if card.group))


def exhibits_of(evidence: Evidence, made: Callable[[Mapping[str, Any], Path], Card], budget: int) -> Exhibits[Card]:
    """As many cards as fit into `budget` bytes, in the order the study chose them; `made` also gets their folder."""
    folder = evidence.run.path / "gallery"
    return Exhibits(*fitting(items_of(evidence), lambda item: made(item, folder), budget))


def items_of(evidence: Evidence) -> Sequence[Mapping[str, Any]]:
    """What the study chose to show."""
    found: Sequence[Mapping[str, Any]] = evidence.run.gallery.get("items", [])
    return found


def in_order(maps: Sequence[Mapping[str, Any]], key: str, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """The maps in the order of the names; those of no name last."""
    return sorted(maps, key=lambda each: names.index(each[key]) if each[key] in names else len(names))


def told(value: float | None, unit: Unit) -> str:
    """A number that the index may not have."""
    return number(math.nan if value is None else float(value), unit)


def likely(chance: float | None) -> str:
    """A probability in whole percent; nothing where it is not known."""
    return "" if chance is None or math.isnan(chance) else number(float(chance), SHARE.rounded(0))
