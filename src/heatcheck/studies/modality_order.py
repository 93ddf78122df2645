"""The modalities in the order of their importance, in words: which surely count more than which, and which are tied."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from heatcheck.report.modality_facts import are_apart
from heatcheck.stats.resampling.bootstrap import MeanEstimate

_SIGNS = ("=", ">", ";", ",", " is ")  # of an order: a name that holds one stands in quotation marks


@dataclass
class _Ranking:
    """The places so far: groups of which each is surely above the next, and modalities that fit none of them."""

    names: Sequence[str]
    phi: Sequence[MeanEstimate]
    groups: list[list[int]] = field(default_factory=list)
    aside: list[int] = field(default_factory=list)

    def tied(self, one: int, other: int) -> bool:
        """Whether the intervals overlap."""
        return not are_apart(self.phi[one], self.phi[other])

    def place(self, new: int) -> None:
        """Give a modality its place below those that have one; it must be tied with a whole group or with nobody."""
        ties = [[self.tied(new, each) for each in group] for group in self.groups]
        if any(any(group) for group in ties[:-1]) or (ties and any(ties[-1]) and not all(ties[-1])):
            self.aside.append(new)
        elif ties and all(ties[-1]):
            self.groups[-1].append(new)
        else:
            self.groups.append([new])

    def told(self, order: Sequence[int]) -> str:
        """The groups, and how each of the others stands to every modality that was told before it."""
        text = " > ".join(" = ".join(self.names[each] for each in group) for group in self.groups)
        known = [each for each in order if each not in self.aside]
        for one in self.aside:
            text += f"; {self.names[one]} is {self._relations(one, known, order)}"
            known.append(one)
        return text

    def _relations(self, one: int, known: Sequence[int], order: Sequence[int]) -> str:
        apart = [each for each in known if not self.tied(one, each)]
        parts = {
            "below": [each for each in apart if order.index(each) < order.index(one)],
            "above": [each for each in apart if order.index(each) > order.index(one)],
            "tied with": [each for each in known if each not in apart],
        }
        told = {word: ", ".join(self.names[each] for each in found) for word, found in parts.items()}
        return " and ".join(f"{word} {names}" for word, names in told.items() if names)


def in_order(names: Sequence[str], phi: Sequence[MeanEstimate]) -> str:
    """The modalities from the most important on: ">" where intervals are apart, "=" where they overlap.

    Overlap does not go on from one to the next: a wide interval may reach two that are apart. Such a modality stands
    behind a semicolon with what it is tied with, "T1C > FLAIR; T2 is tied with T1C, FLAIR". What has no interval is
    tied with everything.
    """
    order = sorted(range(len(names)), key=lambda place: (-phi[place].value, place))
    ranking = _Ranking([f"“{name}”" if any(sign in name for sign in _SIGNS) else name for name in names], phi)
    for place in order:
        ranking.place(place)
    return ranking.told(order)
