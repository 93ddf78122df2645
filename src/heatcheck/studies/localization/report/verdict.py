"""The verdict: which methods may be the best, who beats the floors, and what this many patients could not show."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN, TEST
from heatcheck.judging.judgement import Answer, both, judgement_of, opposite_of
from heatcheck.report.blocks.footnotes import lacks_interval
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.glossary import floor_phrase
from heatcheck.report.numbers import POINTS, SPACE, Unit, count, difference_of, few, listed, number
from heatcheck.report.verdict import FEW_PATIENTS, Verdict, smallest_visible, would_decide
from heatcheck.studies.localization.report.standing import NAMES, Standing, distance_from_readers, standing_on
from heatcheck.studies.localization.vocabulary import COUNT, TESTED, Counts


def verdict(evidence: Evidence) -> Verdict:
    """What the run's estimates say about its methods."""
    standings = [standing for metric in TESTED if (standing := standing_on(evidence, metric))]
    if not standings and not evidence.finished:
        return Verdict(
            "There is no verdict yet, because the run is not finished.", "Finish the run and rebuild this report."
        )
    if not standings and not evidence.methods and evidence.floors:
        return Verdict(
            "There is no verdict, because only floors were named: they are made without the model, and are what a "
            "method is compared with.",
            "Name at least one method under `methods`; `heatcheck list methods` has them.",
        )
    if not standings:
        return Verdict(
            "There is no verdict, because no method has a defined score.", "The section on gaps says what was missing."
        )
    metrics = [standing.metric for standing in standings]
    return Verdict(_who_is_best(evidence, standings), _floors_beaten(evidence, metrics), _limits(evidence, standings))


def _who_is_best(evidence: Evidence, standings: Sequence[Standing]) -> str:
    """Who may be the best by each metric, with the score of the highest and its distance from the readers."""
    scores = [_scored(evidence, standing, name_level=not i) for i, standing in enumerate(standings)]
    alone = len(evidence.methods) == 1
    if alone or (all(each.is_clear for each in standings) and len({each.leader for each in standings}) == 1):
        means = [f"{NAMES[each.metric]} {score}" for each, score in zip(standings, scores, strict=True)]
        label = standings[0].leader.label
        opening = "was the one method tested" if alone else f"is clearly the best of {len(evidence.methods)} methods"
        text = f"{label} {opening}: {' and '.join(means)}"
    else:
        clauses = [_clause(each, score) for each, score in zip(standings, scores, strict=True)]
        none = "" if any(each.is_clear for each in standings) else "none is shown to be the best: "
        text = f"Of {count(len(evidence.methods), 'method')}, {none}{', and '.join(clauses)}"
    if any(each.findings != ALL_FINDINGS for each in standings):
        text += ", on the findings that all methods have"
    elif len(evidence.findings) > 1:
        text += ", each the mean over all findings"
    if not evidence.has_readers:
        text += "; no human readers were given, so the distance from human performance is unknown"
    return text + "."


def _clause(standing: Standing, score: str) -> str:
    name, label = NAMES[standing.metric], standing.leader.label
    candidates = standing.may_be_best
    if standing.is_clear:
        return f"{label} clearly has the best {name}, {score}"
    if not standing.is_tested:
        return f"{label} has the highest {name}, {score}, though no difference between methods could be tested"
    if len(candidates) == 1:
        return f"{label} has the best {name}, {score}, though by less than matters"
    if len(candidates) == 2:
        return f"{label} or {candidates[1].label} may have the best {name}, {label} the highest at {score}"
    return f"{len(candidates)} may have the best {name}, {label} the highest at {score}"


def _scored(evidence: Evidence, standing: Standing, *, name_level: bool) -> str:
    """The leader's score with its distance from the readers in brackets."""
    unit = evidence.metrics[standing.metric].unit
    score = number(standing.value, unit.rounded(unit.decimals - 1))
    limited = standing.findings != ALL_FINDINGS  # then the distance, on all findings of the method, is another thing
    distance = None if limited else distance_from_readers(evidence, standing)
    words = _from_readers(distance, unit, _readers(evidence), name_level=name_level)
    return f"{score} ({words})" if words else score


def _readers(evidence: Evidence) -> str:
    """The readers, as those of this run: intervals do not speak of readers in general."""
    n = evidence.value(COUNT, Counts.READERS, ALL_FINDINGS)
    if math.isnan(n):
        return "these readers\u2019"
    return "this reader\u2019s" if n == 1 else f"these {n:.0f} readers\u2019"


def _from_readers(difference: Estimate | None, unit: Unit, readers: str, *, name_level: bool) -> str:
    """The difference in words, such as "0.40 below these 2 readers\u2019, 95 % interval 0.38 to 0.41"."""
    if difference is None or math.isnan(difference.value):
        return ""
    unit = difference_of(unit)
    side = _side(difference.value, unit)
    amount = _digits(difference.value, unit)
    amount = count(int(amount), "percentage point") if unit == POINTS else amount
    clause = f"{amount} {side} {readers}" if side else f"equal to {readers}"
    if lacks_interval(difference):
        return clause
    return f"{clause}, {f'95{SPACE}% interval ' if name_level else ''}{_between(difference, unit, side)}"


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
    return "below" if value < 0 else "above"


def _floors_beaten(evidence: Evidence, metrics: Sequence[str]) -> str:
    if not evidence.floors:
        return "No floor was run, so it is unknown whether a picture made without the model would do as well."
    tests = {metric: against_floors(evidence, metric) for metric in metrics}
    if not any(tests.values()):
        return "No method was tested against a floor."
    clauses = [f"on {NAMES[metric]}, {_beaten(found)}" for metric, found in tests.items() if found]
    if len(clauses) > 1 and len({clause.partition(", ")[2] for clause in clauses}) == 1:
        clauses = [f"on {' and on '.join(NAMES[m] for m in tests if tests[m])}, {clauses[0].partition(', ')[2]}"]
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}."


_Tests = Mapping[Entrant, Mapping[Entrant, Estimate | None]]  # by method and floor; None where there is no test


def against_floors(evidence: Evidence, metric: str) -> _Tests:
    """The tests of every method against every floor over all findings; methods without any test are left out."""
    tests = {
        m: {f: evidence.find(TEST, metric, ALL_FINDINGS, m.name, f.name) for f in evidence.floors}
        for m in evidence.methods
    }
    return {method: rows for method, rows in tests.items() if any(rows.values())}


def against_best_floor(evidence: Evidence, metric: str, finding: str) -> Mapping[Entrant, Estimate]:
    """The test of every method against the best floor on a finding, the one floor that is tested there."""
    tests = (
        (m, evidence.find(TEST, metric, finding, m.name, f.name)) for m in evidence.methods for f in evidence.floors
    )
    return {method: row for method, row in tests if row}


def _beaten(tests: _Tests) -> str:
    """Which methods clearly beat every floor, which do not, and of how many it is not shown."""
    if len(tests) == 1:
        ((method, rows),) = tests.items()
        return f"{method.label} {_one_method(rows)}"
    answers = {method: both(*map(judgement_of, rows.values())).answer for method, rows in tests.items()}
    groups = {answer: [m.label for m, theirs in answers.items() if theirs is answer] for answer in Answer}
    yes, no, unknown = groups[Answer.YES], groups[Answer.NO], groups[Answer.OPEN]
    if not no and not unknown:
        return f"all {len(tests)} methods clearly beat every floor"
    if not yes and not unknown:
        return f"none of the {len(tests)} methods beats every floor{_all_below(tests)}"
    parts = [f"{few(yes)} clearly {'beats' if len(yes) == 1 else 'beat'} every floor" if yes else ""]
    parts += [f"{few(no)} {'does' if len(no) == 1 else 'do'} not" + ("" if yes else " beat every floor") if no else ""]
    rest = "it" if yes or no else "that it beats every floor"
    others = unknown[0] if len(unknown) == 1 else f"{'the other' if yes or no else 'all'} {len(unknown)}"
    parts += [f"for {others} {rest} is not shown" if unknown else ""]
    return listed([part for part in parts if part])


def _all_below(tests: _Tests) -> str:
    """The floors that clearly beat every method."""
    floors = {floor: None for rows in tests.values() for floor in rows}
    better = [f for f in floors if all(opposite_of(rows.get(f)).is_yes for rows in tests.values())]
    return f": all are clearly worse than {listed([floor_phrase(f) for f in better])}" if better else ""


def _one_method(rows: Mapping[Entrant, Estimate | None]) -> str:
    """What one method does against each floor."""
    judged = {floor: judgement_of(row) for floor, row in rows.items()}
    if all(each.is_yes for each in judged.values()):
        which = "every floor" if len(rows) > 1 else floor_phrase(next(iter(rows)))
        return f"clearly beats {which}"
    worse = [floor_phrase(f) for f, row in rows.items() if opposite_of(row).is_yes]
    no = [floor_phrase(f) for f, each in judged.items() if each.is_no and floor_phrase(f) not in worse]
    unknown = [floor for floor, each in judged.items() if each.answer is Answer.OPEN]
    won = sum(each.is_yes for each in judged.values())
    parts = [f"clearly beats {won} of {count(len(rows), 'floor')}" if won else ""]
    parts += [f"is clearly worse than {listed(worse)}" if worse else ""]
    parts += [f"does not beat {listed(no, 'or')}" if no else ""]
    parts += [f"is not shown to beat {listed([_with_needed(f, rows[f]) for f in unknown], 'or')}" if unknown else ""]
    return listed([part for part in parts if part])


def _with_needed(floor: Entrant, row: Estimate | None) -> str:
    needed = would_decide(row) if row else ""
    return f"{floor_phrase(floor)} ({needed})" if needed else floor_phrase(floor)


@dataclass(frozen=True, slots=True)
class Limits:
    """What this many patients could not have shown."""

    patients: int
    missed: tuple[str, ...]  # by metric: the smallest difference that half of such runs would show, in words
    thin: int  # findings with few patients
    findings: int

    @property
    def is_thin(self) -> bool:
        """Whether most findings have few patients."""
        return 2 * self.thin > self.findings

    @property
    def in_short(self) -> str:
        """The smallest visible differences, and how many findings have few patients."""
        parts = [f"leads over a floor of less than {' or '.join(self.missed)} may be missed"] if self.missed else []
        few_ = "the finding has" if self.findings == 1 else f"{self.thin} of {self.findings} findings have"
        parts += [f"{few_} fewer than {FEW_PATIENTS} patients"] if self.thin else []
        return "; ".join(parts)


def limits(evidence: Evidence, standings: Sequence[Standing]) -> Limits:
    """Which differences the patients of this run could not have shown, and how many findings have few patients."""
    missed, patients = [], 0
    for metric in (standing.metric for standing in standings):
        rows = [row for tests in against_floors(evidence, metric).values() for row in tests.values() if row]
        patients = max([patients, *(row.n_patients for row in rows)])
        smallest, unit = smallest_visible(rows), difference_of(evidence.metrics[metric].unit)
        if not math.isnan(smallest):
            amount = f"{_digits(smallest, unit)}{' percentage points' if unit == POINTS else ''}"
            missed.append(f"{amount} ({NAMES[metric]})")
    thin = sum(_is_thin(evidence, standings, finding) for finding in evidence.findings)
    return Limits(patients, tuple(missed), thin, len(evidence.findings))


def _limits(evidence: Evidence, standings: Sequence[Standing]) -> str:
    """The limits in words."""
    found, parts = limits(evidence, standings), []
    if found.missed:
        parts.append(
            f"with {count(found.patients, 'patient')}, a method truly better than a floor by less than "
            f"{' or '.join(found.missed)} would go unnoticed in more than half of such runs"
        )
    if found.is_thin:
        which = "the finding has" if found.findings == 1 else f"{found.thin} of {found.findings} findings have"
        parts.append(f"{which} fewer than {FEW_PATIENTS} patients, so this is a first impression")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _is_thin(evidence: Evidence, standings: Sequence[Standing], finding: str) -> bool:
    numbers = [row.n_patients or row.n_cases for row in _means(evidence, standings, finding)]
    return bool(numbers) and max(numbers) < FEW_PATIENTS


def _means(evidence: Evidence, standings: Sequence[Standing], finding: str) -> list[Estimate]:
    rows = [evidence.find(MEAN, each.metric, finding, each.leader.name) for each in standings]
    return [row for row in rows if row]
