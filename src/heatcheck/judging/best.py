"""Which of several methods may be best, by the differences of all pairs with intervals that hold together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heatcheck.core.records import Estimate
from heatcheck.judging.judgement import Judgement, judgement_of, opposite_of


@dataclass(frozen=True, slots=True)
class BestSet:
    """The methods that no other one beats beyond chance."""

    members: tuple[str, ...]  # in the order of the names given
    best: str = ""  # the one that is clearly better than every other; empty where there is none
    incomparable: tuple[str, ...] = ()  # members with no interval against any other: nothing could have removed them


def best_set(names: Sequence[str], differences: Mapping[tuple[str, str], Estimate]) -> BestSet:
    """The methods that may be best, and the one that is, if there is one.

    `differences` holds for a pair (method, other) the method's score less the other's; each pair is needed in one order
    only. With intervals that hold together over all pairs, as `simultaneous_intervals` gives, the truly best method is
    among the members as often as the intervals hold: a method leaves only where another one's interval lies above it,
    however small the difference. To be called best takes more: a clear difference, by the size that matters, from every
    other. A pair without a row or an interval removes nobody, and lets nobody be called best.
    """
    members = tuple(name for name in names if not any(_beats(differences, other, name) for other in names))
    clear = [
        name
        for name in members
        if len(names) > 1 and all(_better(differences, name, other).is_yes for other in names if other != name)
    ]
    alone = [name for name in names if not any(_has_interval(differences, name, other) for other in names)]
    return BestSet(members, clear[0] if clear else "", tuple(alone) if len(names) > 1 else ())


def _beats(differences: Mapping[tuple[str, str], Estimate], method: str, other: str) -> bool:
    """Whether the method lies above the other beyond chance, by whatever size; False where nothing is known."""
    if (method, other) in differences:
        return differences[method, other].low > 0
    return (other, method) in differences and differences[other, method].high < 0


def _better(differences: Mapping[tuple[str, str], Estimate], method: str, other: str) -> Judgement:
    if (method, other) in differences:
        return judgement_of(differences[method, other])
    return opposite_of(differences.get((other, method)))


def _has_interval(differences: Mapping[tuple[str, str], Estimate], method: str, other: str) -> bool:
    rows = (differences.get((method, other)), differences.get((other, method)))
    return any(row is not None and row.low <= row.high for row in rows)
