"""The box rule that a verdict follows, and whether the order of the methods would be another under another rule."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN, PLAIN, facts_of
from heatcheck.judging.best import best_set
from heatcheck.judging.judgement import judgement_of
from heatcheck.judging.sizes import Sizes
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, few, listed, number
from heatcheck.studies.triggers.report.facts import manifest, trainings
from heatcheck.studies.triggers.report.sections.differences import method_pairs
from heatcheck.studies.triggers.vocabulary import SIZES, BoxPreset

METRIC = "trigger_iou"  # by which methods are ordered
Pair = tuple[str, str]
_OF_RULES = frozenset({"preset", "sigma", "threshold"})  # the facts of a condition that name another rule


@dataclass(frozen=True, slots=True)
class OtherRule:
    """A rule beside the leading one, with the pairs of methods that clearly change places under it."""

    preset: BoxPreset
    swapped: tuple[Pair, ...]  # the second is clearly above the first
    highest: tuple[str, ...]  # the methods that may have the highest overlap, where none of them may under the leading
    before: tuple[str, ...]  # those that may under the leading rule

    @property
    def changes(self) -> bool:
        """Whether the order of methods clearly is another one."""
        return bool(self.swapped or self.highest)


@dataclass(frozen=True, slots=True)
class Shift:
    """The method whose mean overlap another rule changes most."""

    method: str  # label
    preset: str  # label of the other rule
    main: float
    other: float

    @property
    def size(self) -> float:
        """How much the overlap changes."""
        return abs(self.other - self.main)


def other_rules(evidence: Evidence) -> list[OtherRule]:
    """The rules beside the leading one under which methods were compared, with what clearly changes."""
    under = {preset: _pairs(evidence.under(preset=preset.name), evidence) for preset in _presets(evidence)[1:]}
    main = _pairs(evidence, evidence)
    return [_other_rule(evidence, preset, main, rows) for preset, rows in under.items() if rows]


def largest_shift(evidence: Evidence) -> Shift | None:
    """The largest change of a method's mean overlap under another rule; None where no other rule was tried."""
    every = [
        Shift(method.label, preset.label, _overlap(evidence, method), _overlap(under, method))
        for preset in _presets(evidence)[1:]
        if (under := evidence.under(preset=preset.name)).estimates
        for method in evidence.methods
    ]
    known = [shift for shift in every if not math.isnan(shift.size)]
    return max(known, key=lambda shift: shift.size, default=None)


def moved(evidence: Evidence) -> str:
    """The mean overlap that another rule changes most, under both rules; empty where no other rule was tried."""
    shift = largest_shift(evidence)
    if shift is None:
        return ""
    main, other = (number(value, SCORE.rounded(2)) for value in (shift.main, shift.other))
    return (
        f"{shift.method}\u2019s mean overlap is {main} under \u201c{_presets(evidence)[0].label}\u201d and {other} "
        f"under \u201c{shift.preset}\u201d."
    )


def under_other_rules(evidence: Evidence, methods: Collection[str]) -> list[float]:
    """The mean overlaps of these methods under every other rule, named ones and single numbers that were changed."""
    key = (MEAN, METRIC, ALL_FINDINGS)
    return [
        row.value
        for (model, under), rows in evidence.slices.items()
        if model == evidence.primary and under != PLAIN and _OF_RULES.issuperset(facts_of(under))
        for each, row in rows.items()
        if each[:3] == key and each[3] in methods
    ]


def _overlap(evidence: Evidence, method: Entrant) -> float:
    return evidence.value(MEAN, METRIC, ALL_FINDINGS, method.name)


def _presets(evidence: Evidence) -> tuple[BoxPreset, ...]:
    """All rules, the leading one first."""
    return manifest(evidence).detection.presets


def box_rule(evidence: Evidence) -> str:
    """The sentence on the rule, and on each other rule under which methods clearly change places."""
    presets = _presets(evidence)
    if not presets:
        return ""
    others = other_rules(evidence)
    follows = f"Boxes follow the rule \u201c{presets[0].label}\u201d"
    if not others:
        return f"{follows}."
    changes = [_change(evidence, other) for other in others if other.changes]
    if changes:
        return f"{follows}, and the order of methods depends on it: {'; '.join(changes)}."
    labels = listed([f"\u201c{other.preset.label}\u201d" for other in others])
    return f"{follows}; no two methods are shown to change places under {labels}."


def _pairs(under: Evidence, evidence: Evidence) -> list[Estimate]:
    """Every two methods under a rule, judged by the size that matters between two of them.

    One training claims nothing of a method, so its rows have no size; of its own network the order can be judged.
    """
    rows = method_pairs(under, METRIC)
    if trainings(evidence) != 1:
        return rows
    size = Sizes(**manifest(evidence).sizes).between_methods(SIZES[METRIC])
    return [replace(row, size=size) if math.isnan(row.size) else row for row in rows]


def _other_rule(evidence: Evidence, preset: BoxPreset, main: Sequence[Estimate], rows: Sequence[Estimate]) -> OtherRule:
    """What clearly changes under the rule."""
    names = [method.name for method in evidence.methods]
    other = _clear(rows)
    swapped = tuple((high, low) for high, low in sorted(_clear(main)) if (low, high) in other)
    before, after = (_may_be_best(each, names) for each in (main, rows))
    highest = () if before & after else tuple(name for name in names if name in after)
    return OtherRule(preset, swapped, highest, tuple(name for name in names if name in before))


def _change(evidence: Evidence, other: OtherRule) -> str:
    """What changes under another rule in words."""
    labels = {method.name: method.label for method in evidence.methods}
    parts = []
    if other.swapped:
        pairs = [f"{labels[low]} is clearly above {labels[high]}" for high, low in other.swapped]
        parts.append(few(pairs) if len(pairs) > 3 else listed(pairs))
    if other.highest:
        names, was = (listed([labels[name] for name in group]) for group in (other.highest, other.before))
        parts.append(f"the highest overlap may be that of {names}, not of {was}")
    return f"under \u201c{other.preset.label}\u201d {listed(parts)}"


def _clear(rows: Sequence[Estimate]) -> set[Pair]:
    """The pairs whose first method is clearly above the second; rows have the higher mean first."""
    return {(row.method, row.other_method) for row in rows if judgement_of(row).is_yes}


def _may_be_best(rows: Sequence[Estimate], names: Sequence[str]) -> set[str]:
    compared = {name for row in rows for name in (row.method, row.other_method)}
    found = best_set(
        [name for name in names if name in compared], {(row.method, row.other_method): row for row in rows}
    )
    return set(found.members)
