"""The order of the modalities by importance: which come first, which are tied, and the order in words."""

from collections.abc import Collection, Mapping, Sequence

_SIGNS = ("=", ">", ";", ",", " is ")  # of an order in words: a name that contains one is quoted
Above = Collection[tuple[str, str]]  # pairs of names of which the first is clearly above the second


def first_among(values: Mapping[str, float], above: Above) -> tuple[str, ...]:
    """The names that share the first place, the highest value first: no other is clearly above them."""
    return tuple(name for name in _from_highest(values) if not any((other, name) in above for other in values))


def order_in_words(values: Mapping[str, float], above: Above) -> str:
    """The names from the highest value on: ">" where one is clearly above the next, "=" where that is not shown.

    Ties are not transitive: a value may be tied with two of which one is clearly above the other. Such a name follows
    after a semicolon with what it is tied with, as in "T1C > FLAIR; T2 is tied with T1C, FLAIR".
    """
    order, groups, unplaced = _from_highest(values), list[list[str]](), list[str]()
    for name in order:
        ties = [[(each, name) not in above for each in group] for group in groups]
        if any(map(any, ties[:-1])) or (ties and any(ties[-1]) and not all(ties[-1])):
            unplaced.append(name)
        elif ties and all(ties[-1]):
            groups[-1].append(name)
        else:
            groups.append([name])
    parts = [" > ".join(" = ".join(map(_quoted, group)) for group in groups)]
    before = [name for name in order if name not in unplaced]
    for name in unplaced:
        parts.append(f"{_quoted(name)} is {_relations(name, before, above)}")
        before.append(name)
    return "; ".join(parts)


def _from_highest(values: Mapping[str, float]) -> list[str]:
    return sorted(values, key=lambda name: -values[name])


def _relations(name: str, others: Sequence[str], above: Above) -> str:
    parts = {
        "below": [other for other in others if (other, name) in above],
        "above": [other for other in others if (name, other) in above],
        "tied with": [other for other in others if (other, name) not in above and (name, other) not in above],
    }
    return " and ".join(f"{word} {', '.join(map(_quoted, names))}" for word, names in parts.items() if names)


def _quoted(name: str) -> str:
    return f"“{name}”" if any(sign in name for sign in _SIGNS) else name
