"""The verdict: how far the score can be pushed, most and least, and whose fault low scores are."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN
from heatcheck.report.evidence import Evidence
from heatcheck.report.footnotes import lacks_interval
from heatcheck.report.numbers import MISSING, SCORE, Unit, count, few, interval, listed, number
from heatcheck.report.verdict import Verdict
from heatcheck.studies.alignment.report.facts import Pipeline, manifest, map_estimate, network_estimate, pipelines
from heatcheck.studies.alignment.report.sections.blame import Blame, blames, without_floors
from heatcheck.studies.alignment.report.sections.robustness import push

_UNIT = SCORE.rounded(2)
MOST_DECIMALS = 4
WHAT = {"mass": "the share of a map\u2019s heat that lies inside the experts\u2019 outline"}


@dataclass(frozen=True, slots=True)
class Pushed:
    """A pipeline and its robustness."""

    pipeline: Pipeline
    row: Estimate

    @property
    def clearly(self) -> bool:
        """Whether the interval lies above 0."""
        return self.row.low > 0


def pushed(evidence: Evidence) -> list[Pushed]:
    """The pipelines with a defined robustness of the blame metric, the furthest pushed first."""
    metric = manifest(evidence).blame_metric
    pairs = [(pipeline, push(evidence, pipeline, metric)) for pipeline in pipelines(evidence)]
    defined = [Pushed(pipeline, row) for pipeline, row in pairs if row and not math.isnan(row.value)]
    return sorted(defined, key=lambda each: -each.row.value)


def verdict(evidence: Evidence) -> Verdict:
    """The verdict, or why there is none."""
    ranked = pushed(evidence)
    if ranked:
        return Verdict(_distance(evidence, ranked), *_fault(without_floors(blames(evidence))))
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
    first = next((each for each in ranked if each.clearly), None)
    if first is None:
        return _unmoved(ranked, what)
    ends = [map_estimate(evidence, first.pipeline, arm, MEAN, metric, ALL_FINDINGS) for arm in ("misalign", "align")]
    unit = _distinguishing(*(row.value if row else math.nan for row in ends))
    low, high = (_value(row, unit) for row in ends)
    return (
        f"By changing the model alone, {what} can be pushed from {low} to {high} with {first.pipeline.method.label} on "
        f"{first.pipeline.base.label} (difference {_with_interval(first.row)}{_auroc(evidence, first)})"
        f"{_least(ranked, first)}."
    )


def _unmoved(ranked: Sequence[Pushed], what: str) -> str:
    """No interval lies above 0: there is no effect, or there are no intervals."""
    without = [each for each in ranked if lacks_interval(each.row)]
    why = next((f" ({each.row.reason})" for each in without if each.row.reason), "")
    several = len(ranked) > 1
    pairs = f"of {len(ranked)} pairs of model and method, " if several else ""
    moved = f"{'the furthest' if several else 'it'} moved by {_named(ranked[0])}"
    if len(without) == len(ranked):
        return (
            f"Whether changing the model alone moves {what} cannot be said, because no interval could be computed"
            f"{why}: {pairs}{moved}."
        )
    some = f", and for {len(without)} none could be computed{why}" if without else ""
    none = f"{pairs}none has an interval above 0{some}; " if several else "the interval is not above 0; "
    return f"Changing the model alone did not clearly move {what}: {none}{moved}."


def _auroc(evidence: Evidence, first: Pushed) -> str:
    """The AUROC of both networks, so that the distance is not taken for that of a broken model."""
    low, high = (
        _value(network_estimate(evidence, first.pipeline, arm, AUROC, AUROC, ALL_FINDINGS))
        for arm in ("misalign", "align")
    )
    return f"; AUROC of the two networks {low} and {high}" if MISSING not in {low, high} else ""


def _least(ranked: Sequence[Pushed], first: Pushed) -> str:
    """The pipeline that moved least, if it clearly moved less than the first."""
    last = ranked[-1]
    if last is first:
        return ""
    if math.isnan(last.row.high) or last.row.high >= first.row.low:
        others = len(ranked) - 1
        which = "pair of model and method does not" if others == 1 else f"{others} pairs of model and method do not all"
        return f"; the other {which} clearly differ from it"
    return f", but {'only' if last.clearly else 'not clearly, and only'} by {_named(last)}"


def _named(each: Pushed) -> str:
    return f"{_with_interval(each.row, brackets=True)} with {each.pipeline.method.label} on {each.pipeline.base.label}"


def _with_interval(row: Estimate, *, brackets: bool = False) -> str:
    unit = _distinguishing(row.low, row.high)
    between = interval(row.low, row.high, unit)
    words = f"95 % interval {between}" if between else "no interval"
    return f"{number(row.value, unit)} ({words})" if brackets else f"{number(row.value, unit)}, {words}"


def _distinguishing(low: float, high: float) -> Unit:
    """The fewest decimals with which the two values differ."""
    units = [_UNIT, *(_UNIT.rounded(decimals) for decimals in range(_UNIT.decimals + 1, MOST_DECIMALS + 1))]
    return next((unit for unit in units if number(low, unit) != number(high, unit)), _UNIT)


def _value(row: Estimate | None, unit: Unit = _UNIT) -> str:
    return number(row.value if row else math.nan, unit)


def _fault(rows: Sequence[Blame]) -> tuple[str, str]:
    """The counts of the readings of the base models, and of those under fine-tuning."""
    if not rows:
        return "Whose fault low scores are was not judged.", ""
    before, under = Counter(row.before for row in rows), Counter(row.under for row in rows)
    words = {
        "method": "the method fails to show what the model uses",
        "model": "the model hardly uses the region and the map shows that",
        "shows": "the map marks better than chance what the model uses",
        "looks_elsewhere": "the map marks a region that the model hardly uses",
        "undecided": "it cannot be decided",
    }
    counts = listed([f"in {before[key]} {text}" for key, text in words.items() if before[key]])
    return f"Of {count(len(rows), 'combination')} of model, method and finding, {counts}.", _under(rows, under)


def _under(rows: Sequence[Blame], under: Counter[str]) -> str:
    fooled = list(dict.fromkeys(row.pipeline.method.label for row in rows if row.under == "foolable"))
    words = {
        "follows": "the map follows the model in",
        "unmoved": "the map did not move in",
        "failed": "fine-tuning itself failed in",
        "undecided": "it cannot be decided in",
    }
    parts = [f"{text} {under[key]}" for key, text in words.items() if under[key]]
    if under["foolable"]:
        parts.insert(0, f"the map moved while the model did not in {under['foolable']} ({few(fooled)}: no evidence)")
    return f"Under fine-tuning, {listed(parts)}."
