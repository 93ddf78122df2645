"""The order of the modalities by importance: which come first, which are tied, and the order in words."""

import math
from collections.abc import Mapping, Sequence

from heatcheck.core.records import ONE_VALUE, Estimate

MANY = 10  # patients: if at least this many all agree, the value counts as certain
_TOLERANCE = 1e-9  # sums in another order differ in the last bits
_SIGNS = ("=", ">", ";", ",", " is ")  # of an order in words: a name that contains one is quoted


def bounds(row: Estimate) -> tuple[float, float]:
    """The interval, from -∞ to ∞ where there is none; where many patients all agree, the value itself."""
    if not math.isnan(row.low) and not math.isnan(row.high):
        return row.low, row.high
    if row.reason == ONE_VALUE and row.n_patients >= MANY:
        return row.value, row.value
    return -math.inf, math.inf


def are_apart(one: Estimate, other: Estimate) -> bool:
    """Whether the intervals do not overlap, so that the order of the two values is clear."""
    (low, high), (other_low, other_high) = bounds(one), bounds(other)
    return low > other_high + _TOLERANCE or other_low > high + _TOLERANCE


def first_among(estimates: Mapping[str, Estimate]) -> tuple[str, ...]:
    """The names that share the first place, the highest value first: no other value is clearly above theirs."""
    order = _from_highest(estimates)
    return tuple(
        name
        for index, name in enumerate(order)
        if not any(are_apart(estimates[higher], estimates[name]) for higher in order[:index])
    )


def order_in_words(estimates: Mapping[str, Estimate]) -> str:
    """The names from the highest value on: ">" where intervals are apart, "=" where they overlap.

    Overlap is not transitive: a wide interval may reach two that are apart. Such a name follows after a semicolon with
    what it is tied with, as in "T1C > FLAIR; T2 is tied with T1C, FLAIR".
    """
    order, groups, unplaced = _from_highest(estimates), list[list[str]](), list[str]()
    for name in order:
        ties = [[not are_apart(estimates[name], estimates[each]) for each in group] for group in groups]
        if any(map(any, ties[:-1])) or (ties and any(ties[-1]) and not all(ties[-1])):
            unplaced.append(name)
        elif ties and all(ties[-1]):
            groups[-1].append(name)
        else:
            groups.append([name])
    parts = [" > ".join(" = ".join(map(_quoted, group)) for group in groups)]
    before = [name for name in order if name not in unplaced]
    for name in unplaced:
        parts.append(f"{_quoted(name)} is {_relations(name, before, order, estimates)}")
        before.append(name)
    return "; ".join(parts)


def _from_highest(estimates: Mapping[str, Estimate]) -> list[str]:
    return sorted(estimates, key=lambda name: -estimates[name].value)


def _relations(name: str, others: Sequence[str], order: Sequence[str], estimates: Mapping[str, Estimate]) -> str:
    apart = [other for other in others if are_apart(estimates[name], estimates[other])]
    parts = {
        "below": [other for other in apart if order.index(other) < order.index(name)],
        "above": [other for other in apart if order.index(other) > order.index(name)],
        "tied with": [other for other in others if other not in apart],
    }
    return " and ".join(f"{word} {', '.join(map(_quoted, names))}" for word, names in parts.items() if names)


def _quoted(name: str) -> str:
    return f"“{name}”" if any(sign in name for sign in _SIGNS) else name
