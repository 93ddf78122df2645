"""What a comparison answers: by which metrics the maps of a run are better than those of the first, and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.core.records import ONE_VALUE
from heatcheck.estimating.compared_scores import ComparedScore
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.first_screen import Light, Status
from heatcheck.report.numbers import count, difference_of, few, interval, number
from heatcheck.report.verdict import would_decide
from heatcheck.running.compare.side_by_side import SideBySide


@dataclass(frozen=True, slots=True)
class Tally:
    """The methods of one run that are clearly better than in the first run, clearly worse, alike, or undecided."""

    metric: str
    run: int
    better: tuple[ComparedScore, ...]
    worse: tuple[ComparedScore, ...]
    alike: tuple[ComparedScore, ...]  # no difference that matters
    undecided: tuple[ComparedScore, ...]

    @property
    def n(self) -> int:
        """How many methods were compared."""
        return len(self.better) + len(self.worse) + len(self.alike) + len(self.undecided)


def tallies(side: SideBySide, run: int) -> list[Tally]:
    """The methods of one run, counted by each of the main metrics."""
    return [found for metric in side.main if (found := tally(side, metric, run)).n]


def tally(side: SideBySide, metric: str, run: int) -> Tally:
    """The methods of one run by one metric."""
    higher = side.metric(metric).higher_is_better
    rows = [row for row in side.rows(metric, run) if side.entrant(row.method).kind == "method"]
    kinds = {row: _kind(row, higher=higher) for row in rows}
    groups = (tuple(row for row in rows if kinds[row] == kind) for kind in ("better", "worse", "alike", "undecided"))
    return Tally(metric, run, *groups)


def _kind(row: ComparedScore, *, higher: bool) -> str:
    above, below = judgement_of(row.estimate), opposite_of(row.estimate)
    if (row.reason == ONE_VALUE and row.difference == 0) or (above.is_no and below.is_no):
        return "alike"
    if not above.is_yes and not below.is_yes:
        return "undecided"
    return "better" if above.is_yes == higher else "worse"


def statuses(side: SideBySide) -> tuple[Status, ...]:
    """For each main metric and each other run: whether its maps are better than those of the first."""
    every = (tally for run in range(1, len(side.names)) for tally in tallies(side, run))
    return tuple(_status(side, each) for each in every)


def _status(side: SideBySide, found: Tally) -> Status:
    metric, name = side.metric(found.metric), side.names[found.run]
    light, word = _answer(found)
    return Status(f"{metric.label}: is {name} better than {side.names[0]}?", light, word, _sentence(side, found))


def _answer(found: Tally) -> tuple[Light, str]:
    better, worse, n = len(found.better), len(found.worse), found.n
    if better and worse:
        return Light.PARTLY, f"Better for {better}, worse for {worse} of {count(n, 'method')}"
    if better:
        return (Light.YES, "Yes") if better == n else (Light.PARTLY, f"For {better} of {n} methods")
    if worse:
        return Light.NO, "Worse" if worse == n else f"Worse for {worse} of {n} methods"
    return (Light.PARTLY, "Alike") if len(found.alike) == n else (Light.OPEN, "Not shown")


def _sentence(side: SideBySide, found: Tally) -> str:
    """The largest difference of those that decide the answer."""
    if len(found.alike) == found.n:
        same = all(row.reason == ONE_VALUE for row in found.alike)
        return "The scores are the same in every case." if same else "No method differs by a size that matters."
    rows = found.better + found.worse or found.undecided
    row = max(rows, key=lambda each: abs(each.difference))
    metric, low, high = side.metric(found.metric), row.estimate.low, row.estimate.high
    between = interval(low, high, difference_of(metric.unit), signed=True)
    numbers = f"{number(row.second, metric.unit)} instead of {number(row.first, metric.unit)}"
    change = number(row.difference, difference_of(metric.unit), signed=True)
    needed = would_decide(row.estimate) if not (found.better or found.worse) else ""
    after = f"; {needed or row.reason}" if needed or row.reason else ""
    inside = f"difference {change}, {between}" if between else f"difference {change}"
    return f"Largest for {side.entrant(row.method).label}: {numbers} ({inside}){after}."


def recommendation(side: SideBySide) -> tuple[str, ...]:
    """What to do about each of the other runs."""
    return tuple(_advice(side, run) for run in range(1, len(side.names)) if tallies(side, run))


def _advice(side: SideBySide, run: int) -> str:
    first, name, found = side.names[0], side.names[run], tallies(side, run)
    better, worse = (
        _named(side, [row for each in found for row in getattr(each, which)]) for which in ("better", "worse")
    )
    if better and worse:
        return f"Neither {first} nor {name} has the better maps throughout: choose by method and metric."
    if better:
        return f"Prefer {name} to {first} for maps by {better}: clearly better by a metric, clearly worse by none."
    if worse:
        return f"Keep {first}: in {name}, maps by {worse} are clearly worse, and none are clearly better."
    if all(len(each.alike) == each.n for each in found):
        return f"{first} and {name} can stand in for each other: no method\u2019s maps differ by a size that matters."
    return f"Do not prefer {first} or {name} for its maps: a difference that matters is neither shown nor excluded."


def _named(side: SideBySide, rows: Sequence[ComparedScore]) -> str:
    return few(list(dict.fromkeys(side.entrant(row.method).label for row in rows)))
