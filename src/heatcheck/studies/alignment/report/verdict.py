"""The verdict: how far the score can be pushed, most and least, and whose fault low scores are."""

import math
from collections import Counter
from collections.abc import Sequence

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN
from heatcheck.judging.judgement import Answer, judgement_of, opposite_of
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import MISSING, SCORE, Unit, count, few, interval, listed, number
from heatcheck.report.verdict import Verdict, would_decide
from heatcheck.studies.alignment.report.facts import manifest, map_estimate, network_estimate, trained_once
from heatcheck.studies.alignment.report.readings import Blame, blames, without_floors
from heatcheck.studies.alignment.report.scale import scale_of
from heatcheck.studies.alignment.report.sections.robustness import Pushed, further, pushed

_UNIT = SCORE.rounded(2)
MOST_DECIMALS = 4
WHAT = {"mass": "the share of a map\u2019s heat that lies inside the experts\u2019 outline"}


def verdict(evidence: Evidence) -> Verdict:
    """The verdict, or why there is none."""
    ranked = pushed(evidence)
    if ranked:
        faults = _fault(evidence, without_floors(blames(evidence)), once=trained_once(evidence))
        return Verdict(_distance(evidence, ranked), *faults)
    if not evidence.finished:
        return Verdict(
            "There is no verdict yet, because the run is not finished.", "Finish the run and rebuild this report."
        )
    return Verdict(
        "There is no verdict, because no score of aligned and misaligned networks could be compared.",
        "The section on gaps says what was missing.",
    )


def _distance(evidence: Evidence, ranked: Sequence[Pushed]) -> str:
    metric = manifest(evidence).blame_metric
    what = WHAT.get(metric, f"the score ({metric})")
    if trained_once(evidence):
        return _of_these_networks(evidence, ranked, what)
    first = next((each for each in ranked if judgement_of(each.row).is_yes), None)
    if first is None:
        return _unmoved(ranked, what)
    return (
        f"By changing the model alone, {what} can be pushed {pushed_to(evidence, first)} with {names_of(first)} "
        f"(difference {_with_interval(first.row)}{_auroc(evidence, first)}){_others(evidence, ranked, first)}."
    )


def pushed_to(evidence: Evidence, each: Pushed) -> str:
    """The scores between which tuning moved the map, by the network that has them."""
    misaligned, aligned, untuned = _three(evidence, each)
    return f"from {misaligned} (misaligned network) to {aligned} (aligned network; {untuned} before fine-tuning)"


def lay_at(evidence: Evidence, each: Pushed) -> str:
    """The scores of the two tuned networks, and of the one that both were tuned from."""
    misaligned, aligned, untuned = _three(evidence, each)
    return f"{misaligned} on the misaligned network and {aligned} on the aligned one ({untuned} before fine-tuning)"


def _three(evidence: Evidence, each: Pushed) -> list[str]:
    """The scores of the misaligned, the aligned and the untuned network."""
    metric, arms = manifest(evidence).blame_metric, ("misalign", "align", "base")
    rows = [map_estimate(evidence, each.pipeline, arm, MEAN, metric, ALL_FINDINGS) for arm in arms]
    unit = _distinguishing(*(row.value if row else math.nan for row in rows[:2]))
    return [_value(row, unit) for row in rows]


def _of_these_networks(evidence: Evidence, ranked: Sequence[Pushed], what: str) -> str:
    """What was seen where every network was trained once; nothing is claimed."""
    most = ranked[0]
    pairs = f", the most of {len(ranked)} pairs of model and method" if len(ranked) > 1 else ""
    difference = f"difference {_with_interval(most.row)} over images alone{_auroc(evidence, most)}"
    return (
        "Each network was trained once, so nothing is claimed of how a method behaves under fine-tuning. On these "
        f"networks, {what} was {lay_at(evidence, most)} with {names_of(most)}{pairs} ({difference})."
    )


def _unmoved(ranked: Sequence[Pushed], what: str) -> str:
    """No pair was clearly pushed: the effect is too small to matter, or it is not shown."""
    several = len(ranked) > 1
    pairs = f"of {len(ranked)} pairs of model and method, " if several else ""
    furthest = f"{'the furthest' if several else 'it'} moved by {_named(ranked[0])}"
    against = [each for each in ranked if opposite_of(each.row).is_yes]
    if against:
        return (
            f"Changing the model alone clearly moved {what} against its aim: {pairs}"
            f"{'the furthest' if several else 'it'} moved by {_named(against[-1])}."
        )
    if all(judgement_of(each.row).is_no for each in ranked):
        size = number(ranked[0].row.size, _UNIT)
        return f"Changing the model alone does not move {what} by a size that matters ({size}): {pairs}{furthest}."
    reasons = [judgement_of(each.row).reason for each in ranked]
    why = f" ({reasons[0]})" if all(reasons) else ""
    decided = would_decide(ranked[0].row)
    return (
        f"That changing the model alone moves {what} is not shown{why}: {pairs}{furthest}"
        f"{f', and {decided}' if decided else ''}."
    )


def _auroc(evidence: Evidence, first: Pushed) -> str:
    """The AUROC of both networks, so that the distance is not taken for that of a broken model."""
    low, high = (
        _value(network_estimate(evidence, first.pipeline, arm, AUROC, AUROC, ALL_FINDINGS))
        for arm in ("misalign", "align")
    )
    return f"; AUROC {low} misaligned, {high} aligned" if MISSING not in {low, high} else ""


def _others(evidence: Evidence, ranked: Sequence[Pushed], first: Pushed) -> str:
    """What is known of the other pipelines, and which of them was clearly pushed less far."""
    others = [each for each in ranked if each is not first]
    if not others:
        return ""
    words = {Answer.YES: "it can be pushed too", Answer.NO: "it cannot", Answer.OPEN: "whether it can is not shown"}
    counted = Counter(judgement_of(each.row).answer for each in others)
    parts = [f"in {counted[key]} {text}" for key, text in words.items() if counted[key]]
    which = "the other pair" if len(others) == 1 else f"the other {len(others)} pairs"
    return f"; of {which} of model and method, {listed(parts)}{_less(evidence, others, first)}"


def _less(evidence: Evidence, others: Sequence[Pushed], first: Pushed) -> str:
    """Which of the others was pushed least, if clearly less far than the first; else whether any differs."""
    compared = [(each, further(evidence, first.pipeline, each.pipeline)) for each in others]
    clearly = [(each, row) for each, row in compared if row and judgement_of(row).is_yes]
    if clearly:
        each, row = clearly[-1]
        return f"; clearly less far with {names_of(each)} (by {_with_interval(row)})"
    if all(judgement_of(row).is_no for _, row in compared):
        return "; none of them is behind by a size that matters"
    return "; that any of them can be pushed less far is not shown"


def names_of(each: Pushed) -> str:
    """The method and its model."""
    return f"{each.pipeline.method.label} on {each.pipeline.base.label}"


def _named(each: Pushed) -> str:
    return f"{_with_interval(each.row, brackets=True)} with {names_of(each)}"


def _with_interval(row: Estimate, *, brackets: bool = False) -> str:
    unit = _distinguishing(row.low, row.high)
    between = interval(row.low, row.high, unit)
    words = f"95 % interval {between}" if between else "no interval"
    value = number(row.value, unit)
    return f"{value} ({words})" if brackets else f"{value}, {words}"


def _distinguishing(low: float, high: float) -> Unit:
    """The fewest decimals with which the two values differ."""
    units = [_UNIT, *(_UNIT.rounded(decimals) for decimals in range(_UNIT.decimals + 1, MOST_DECIMALS + 1))]
    return next((unit for unit in units if number(low, unit) != number(high, unit)), _UNIT)


def _value(row: Estimate | None, unit: Unit = _UNIT) -> str:
    return number(row.value if row else math.nan, unit)


def _fault(evidence: Evidence, rows: Sequence[Blame], *, once: bool) -> tuple[str, str]:
    """The counts of the readings of the base models, and of those under fine-tuning."""
    if not rows:
        return "Whose fault low scores are was not judged.", ""
    before, under = Counter(row.before for row in rows if not row.has_no_room), Counter(row.under for row in rows)
    words = {
        "method": "the map hardly marks what the network uses",
        "model": "the network hardly uses the region, and the map shows that",
        "shows": "the map marks what the network uses, better than maps made without it",
        "looks_elsewhere": "the map marks a region that the network hardly uses",
        "usual": "the map is no better than one made without the network, such as the usual place",
        "redundant": "the network may use several places",
        "against": "the network counts the region against the finding",
        "undecided": "no answer is shown",
    }
    counted = [f"in {before[key]} {text}" for key, text in words.items() if before[key]]
    if no_room := _no_room(evidence, rows):
        counted.append(no_room)
    bases = len({row.pipeline.base.name for row in rows})
    whose = "this one base network" if bases == 1 else f"these {bases} base networks"
    first = (
        f"Of {whose}, before fine-tuning, in {count(len(rows), 'combination')} of network, method and finding: "
        f"{listed(counted)}."
    )
    return first, "" if once else _under(rows, under)


def _no_room(evidence: Evidence, rows: Sequence[Blame]) -> str:
    """In how many combinations nothing can be decided because the best floor scores as high as the human marks."""
    found = [row for row in rows if row.has_no_room]
    why = dict.fromkeys(f", for {row.finding}, {scale_of(evidence, row.finding).no_room}" for row in found)
    return f"in {len(found)} nothing can be decided, because{few(list(why))}" if found else ""


def _under(rows: Sequence[Blame], under: Counter[str]) -> str:
    fooled = list(dict.fromkeys(row.pipeline.method.label for row in rows if row.under == "foolable"))
    words = {
        "follows": "the map followed the model in",
        "unmoved": "the map did not move in",
        "failed": "fine-tuning itself failed in",
        "undecided": "no answer is shown in",
    }
    parts = [f"{text} {under[key]}" for key, text in words.items() if under[key]]
    if under["foolable"]:
        parts.insert(0, f"the map moved while the model did not in {under['foolable']} ({few(fooled)}: no evidence)")
    return f"Under fine-tuning, {listed(parts)}."
