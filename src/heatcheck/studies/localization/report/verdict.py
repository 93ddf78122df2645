"""The verdict: exactly two sentences on the best method, its distance from the readers, and the floors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, TEST
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.footnotes import lacks_interval
from heatcheck.report.glossary import floor_phrase
from heatcheck.report.numbers import POINTS, SPACE, Unit, count, difference_of, few, listed, number
from heatcheck.report.verdict import FEW_PATIENTS, LEVEL, Verdict
from heatcheck.studies.localization.vocabulary import TESTED

SAME_GAP = 0.005  # two means differ by what was tested, but for rounding
_NONE_DOES = {
    "does not clearly beat": "clearly beats",
    "does not beat": "beats",
    "was not tested": "was tested",
}
_ON = {"iou": "on overlap", "hit": "on pointing"}
_PRAISE = {
    "iou": ("outlines best", "tie for the best outlines"),
    "hit": ("points best", "tie for the best pointing"),
}


@dataclass(frozen=True, slots=True)
class _Words:
    less: str
    more: str
    same: str


_WORDS = {
    "iou": _Words("which is {} less than", "which is {} more than", "which is about as much as"),
    "hit": _Words("{} less often than", "{} more often than", "about as often as"),
}


@dataclass(frozen=True, slots=True)
class Leader:
    """Who scores highest on one measure, ties included."""

    metric: str
    entrants: tuple[Entrant, ...]
    value: float


def verdict(evidence: Evidence) -> Verdict:
    """What the run's estimates say about its methods."""
    leaders = [leader for metric in TESTED if (leader := leader_on(evidence, metric))]
    if not leaders and not evidence.finished:
        return Verdict(
            "There is no verdict yet, because the run is not finished.", "Finish the run and rebuild this report."
        )
    if not leaders:
        return Verdict(
            "There is no verdict, because no method has a defined score.", "The section on gaps says what was missing."
        )
    return Verdict(_standing(evidence, leaders), _against_floors(evidence, leaders))


def leader_on(evidence: Evidence, metric: str) -> Leader | None:
    """The method with the highest mean over all findings; those that look equal when rounded share first place."""
    scored = [(evidence.value(MEAN, metric, ALL_FINDINGS, m.name), m) for m in evidence.methods]
    defined = [(value, method) for value, method in scored if not math.isnan(value)]
    if not defined:
        return None
    best = max(value for value, _ in defined)
    tied = tuple(
        method for value, method in defined if _brief(evidence, metric, value) == _brief(evidence, metric, best)
    )
    return Leader(metric, tied, best)


def _brief(evidence: Evidence, metric: str, value: float) -> str:
    unit = evidence.metrics[metric].unit
    return number(value, unit.rounded(unit.decimals - 1))


def _standing(evidence: Evidence, leaders: Sequence[Leader]) -> str:
    same = len({leader.entrants for leader in leaders}) == 1
    owner = ("its" if len(leaders[0].entrants) == 1 else "their") if same else ""
    phrases = _performances(evidence, leaders, owner)
    joined = (", and " if any("," in phrase for phrase in phrases) else " and ").join(phrases)
    if same and len(leaders[0].entrants) == 1:
        text = f"{_opening(evidence, leaders)}: {joined}"
    elif same and len(leaders) > 1:
        names = few([entrant.label for entrant in leaders[0].entrants])
        text = f"Of {count(len(evidence.methods), 'method')}, {names} share first place: {joined}"
    else:
        named = [f"{_crowned(leader)}, with {phrase}" for leader, phrase in zip(leaders, phrases, strict=True)]
        text = f"Of {count(len(evidence.methods), 'method')}, {', and '.join(named)}"
    if not evidence.has_readers:
        text += "; no human readers were given, so the distance from human performance is unknown"
    return text + "."


def _opening(evidence: Evidence, leaders: Sequence[Leader]) -> str:
    name = leaders[0].entrants[0].label
    if len(evidence.methods) == 1:
        return f"{name} was the one method tested"
    return f"Of {count(len(evidence.methods), 'method')}, {name} is best here"


def _crowned(leader: Leader) -> str:
    names = few([entrant.label for entrant in leader.entrants])
    alone, tied = _PRAISE[leader.metric]
    return f"{names} {alone if len(leader.entrants) == 1 else tied}"


def _performances(evidence: Evidence, leaders: Sequence[Leader], possessive: str) -> list[str]:
    """What each leader scores and how far that is from the readers; the interval's level is named once."""
    phrases: list[str] = []
    for leader in leaders:
        level_named = any("interval" in phrase for phrase in phrases)
        unit = evidence.metrics[leader.metric].unit
        distance = _from_readers(difference_from_readers(evidence, leader), unit, name_level=not level_named)
        phrases.append(_scored(evidence, leader, possessive) + (f", {distance}" if distance else ""))
    return phrases


def difference_from_readers(evidence: Evidence, leader: Leader) -> Estimate | None:
    """Leader less readers on the cases both have; the highest mean speaks for those that look equal."""
    means = {e: evidence.value(MEAN, leader.metric, ALL_FINDINGS, e.name) for e in leader.entrants}
    name = max(means, key=lambda entrant: means[entrant]).name
    return evidence.find(DIFFERENCE, leader.metric, ALL_FINDINGS, name, HUMAN)


def _scored(evidence: Evidence, leader: Leader, possessive: str) -> str:
    value = _brief(evidence, leader.metric, leader.value)
    if leader.metric == "iou":
        return f"{possessive} outlines overlap the truth by {value}" if possessive else f"an overlap of {value}"
    subject = f"{possessive} hottest point falls" if possessive else "the hottest point"
    return f"{subject} inside the finding in {value} of cases"


def _against_floors(evidence: Evidence, leaders: Sequence[Leader]) -> str:
    if not evidence.floors:
        text = "No floor was run, so it is unknown whether a picture made without the model would do as well"
    else:
        text = "; ".join(_claims(evidence, leaders))
        text = text[0].upper() + text[1:]
    few = _patients(evidence, leaders)
    if few < FEW_PATIENTS:
        text += f"; with only {count(few, 'patient')} behind it, this is a first impression"
    return text + "."


def _claims(evidence: Evidence, leaders: Sequence[Leader]) -> list[str]:
    """What each named method does against the floors on the measure it leads; one clause where it holds for all."""
    named = {entrant: None for leader in leaders for entrant in leader.entrants}
    outcomes = {leader.metric: {e: _outcome(evidence, e, leader.metric) for e in leader.entrants} for leader in leaders}
    different = {outcome for by_entrant in outcomes.values() for outcome in by_entrant.values()}
    if len(different) == 1:
        return [_claim(["it"] if len(named) == 1 else [e.label for e in named], different.pop(), by_name=False)]
    claims = []
    for metric, by_entrant in outcomes.items():
        for outcome in dict.fromkeys(by_entrant.values()):
            sharers = [entrant.label for entrant, theirs in by_entrant.items() if theirs == outcome]
            claims.append(f"{_ON[metric]} {_claim(['it'] if len(named) == 1 else sharers, outcome)}")
    return claims


def _claim(subjects: Sequence[str], outcome: str, *, by_name: bool = True) -> str:
    """The outcome as a clause about all subjects, negated once where it denies something of each."""
    if len(subjects) == 1:
        return f"{subjects[0]} {outcome}"
    for denied, affirmed in _NONE_DOES.items():
        if outcome.startswith(denied):
            rest = affirmed + outcome.removeprefix(denied)
            if len(subjects) == 2:
                return f"neither {' nor '.join(subjects)} {rest}" if by_name else f"neither {rest}"
            return f"none of {few(subjects) if by_name else 'them'} {rest}"
    return f"each of {few(subjects) if by_name else 'them'} {outcome}"


def _outcome(evidence: Evidence, entrant: Entrant, metric: str) -> str:
    tests = {f: evidence.find(TEST, metric, ALL_FINDINGS, entrant.name, f.name) for f in evidence.floors}
    tested = {floor: test for floor, test in tests.items() if test and not math.isnan(test.p_adjusted)}
    if not tested:
        return "was not tested against a floor"
    lost = [floor for floor, test in tested.items() if not (test.value > 0 and test.p_adjusted < LEVEL)]
    if lost:
        won = len(tested) - len(lost)
        below = {floor: tested[floor] for floor in lost if _is_clearly_below(tested[floor])}
        unsure = {floor: tested[floor] for floor in lost if floor not in below}
        worse = [_gap(evidence, entrant, floor, test) for floor, test in below.items()]
        parts = [f"scores clearly below {listed(worse)}"] if worse else []
        parts += [_not_beaten(unsure)] if unsure else []
        return f"beats {won} of {len(tested)} floors but {listed(parts)}" if won else listed(parts)
    if len(tested) < len(tests):
        beaten = listed([floor_phrase(floor) for floor in tested])
        return f"beats {beaten}, the only {'floor' if len(tested) == 1 else 'floors'} it was tested against"
    if any(floor.name == "location_prior" for floor in tested):
        return "beats every floor, even simply pointing where a finding usually is"
    return "beats every floor"


def _is_clearly_below(test: Estimate) -> bool:
    return test.value < 0 and (test.p_adjusted < LEVEL or test.high < 0)


def _not_beaten(tests: Mapping[Entrant, Estimate]) -> str:
    verb = "does not beat" if all(test.value <= 0 for test in tests.values()) else "does not clearly beat"
    return f"{verb} {listed([floor_phrase(floor) for floor in tests], 'or')}"


def _gap(evidence: Evidence, entrant: Entrant, floor: Entrant, test: Estimate) -> str:
    """The floor with both means; with the tested difference where the means do not rest on the same cases."""
    means = [evidence.value(MEAN, test.metric, ALL_FINDINGS, one.name) for one in (entrant, floor)]
    unit = evidence.metrics[test.metric].unit
    if abs(means[0] - means[1] - test.value) < SAME_GAP:
        method_mean, floor_mean = (_brief(evidence, test.metric, value) for value in means)
        return f"{floor_phrase(floor)} ({method_mean} against {floor_mean})"
    apart = difference_of(unit)
    gap = number(-test.value, Unit(apart.factor, apart.decimals - 1))
    gap = f"{gap} percentage points" if apart == POINTS else gap
    return f"{floor_phrase(floor)} (by {gap} on the cases both have)"


def _patients(evidence: Evidence, leaders: Sequence[Leader]) -> int:
    means = [evidence.find(MEAN, leader.metric, ALL_FINDINGS, leader.entrants[0].name) for leader in leaders]
    return min(row.n_patients or row.n_cases for row in means if row)


def _from_readers(difference: Estimate | None, unit: Unit, *, name_level: bool) -> str:
    """The difference as a clause, such as "which is 0.40 less than the readers\u2019 (95 % interval 0.38 to 0.41)".

    `unit` is that of the two scores. Without an interval there are no brackets, without a difference no clause.
    """
    if difference is None or math.isnan(difference.value):
        return ""
    unit = difference_of(unit)
    digits, side = _digits(difference.value, unit), _side(difference.value, unit)
    words = _WORDS[difference.metric]
    amount = count(int(digits), "percentage point") if unit == POINTS else digits
    clause = {"less": words.less, "more": words.more, "": words.same}[side].format(amount) + " the readers\u2019"
    if lacks_interval(difference):
        return clause
    level = f"95{SPACE}% interval " if name_level else ""
    return f"{clause} ({level}{_between(difference, unit, side)})"


def _between(difference: Estimate, unit: Unit, side: str) -> str:
    """Both ends: amounts alone, smaller first, where they have the value's sign; otherwise each with its side."""
    ends = (difference.low, difference.high)
    sides = [_side(end, unit) for end in ends]
    if side and set(sides) <= {side, ""}:
        return " to ".join(_digits(end, unit) for end in sorted(ends, key=abs))
    return " to ".join(f"{_digits(end, unit)} {where}".rstrip() for end, where in zip(ends, sides, strict=True))


def _digits(value: float, unit: Unit) -> str:
    """The amount with one decimal less than in the tables."""
    return number(abs(value), Unit(unit.factor, unit.decimals - 1))


def _side(value: float, unit: Unit) -> str:
    if float(_digits(value, unit)) == 0:
        return ""
    return "less" if value < 0 else "more"
