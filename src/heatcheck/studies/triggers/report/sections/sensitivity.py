"""Would another rule change it? Overlap of each method under every preset, and against other numbers in the rule."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN, Condition
from heatcheck.report.charts import curves
from heatcheck.report.charts.axes import limits_around
from heatcheck.report.charts.curves import Curve
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.matrix import Matrix
from heatcheck.report.numbers import listed
from heatcheck.studies.triggers.report.facts import manifest
from heatcheck.studies.triggers.report.rules import (
    TRIGGERS,
    RulePart,
    by_preset,
    presets_tried,
)
from heatcheck.studies.triggers.report.tables import TriggerColumn, detection_table
from heatcheck.studies.triggers.vocabulary import BoxPreset

MAIN = "main rule"


@dataclass(frozen=True, slots=True)
class Knob:
    """One number of the rule that makes a box: its name in conditions and in rules, on an axis and in a sentence."""

    fact: Literal["sigma", "threshold"]
    setting: str
    axis: str
    sign: str
    noun: str

    def rule(self, value: float) -> Condition:
        """The condition of scores under another value of that number."""
        return {"sigma": value} if self.fact == "sigma" else {"threshold": value}


@dataclass(frozen=True, slots=True)
class SettingColumn:
    """One column: a value with the run as it is under it; no value where each method has its own."""

    value: float
    seen: Evidence
    is_main: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """Everything that was tried of one knob."""

    title: str
    sentence: str
    panels: tuple[Panel, ...]
    table: Matrix | None


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The presets with their table, where several were tried, and the trial of every knob that was turned."""

    rule: str
    presets: tuple[BoxPreset, ...]
    table: Matrix | None
    trials: tuple[Trial, ...]


KNOBS = (
    Knob("sigma", "smooth", "σ (pixels)", "σ", "smoothing"),
    Knob("threshold", "threshold", "threshold", "threshold", "threshold"),
)


def sensitivity(evidence: Evidence, part: RulePart = TRIGGERS) -> Sensitivity | None:
    """What there is to show of other rules; None where only the main one was tried."""
    trials = tuple(trial for knob in KNOBS if (trial := _trial(evidence, part, knob)))
    table = by_preset(evidence, part)
    if not trials and table is None:
        return None
    presets = tuple(presets_tried(evidence, part)) if table else ()
    return Sensitivity(manifest(evidence).detection.main_rule, presets, table, trials)


def _trial(evidence: Evidence, part: RulePart, knob: Knob) -> Trial | None:
    main = part.of(evidence)
    own = {name: getattr(rule, knob.setting) for name, rule in manifest(evidence).detection.rules.items()}
    tried = {
        float(value): _with_own(part.of(evidence, **knob.rule(value)), main, own, value)
        for value in part.values(evidence, knob.fact)
    }
    metric = next((m for m in part.metrics if any(_scores(seen, m) for seen in tried.values())), "")
    tried = {value: seen for value, seen in tried.items() if _scores(seen, metric)}
    if not tried:
        return None
    columns = _columns(tried, main, own)
    made = {method: _curve(method, metric, knob, columns, own) for method in evidence.methods}
    made = {method: curve for method, curve in made.items() if any(not math.isnan(y) for _, y in curve.points)}
    up = limits_around(curves.limits(list(made.values())))
    places = [TriggerColumn(each.seen, metric, part.every, *_head(each, knob)) for each in columns]
    return Trial(
        f"The {knob.noun}",
        _sentence(metric, knob, columns),
        tuple(Panel(method.label, curves.draw(curve, up)) for method, curve in made.items()),
        detection_table(f"{evidence.measures[metric].label} by {knob.noun}, over all {part.noun}", places),
    )


def _with_own(seen: Evidence, main: Evidence, own: Mapping[str, float], value: float) -> Evidence:
    """The run under a value, with the leading scores of the methods that have this value anyway."""
    lent = {key: row for key, row in main.estimates.items() if own.get(key[3]) == value}
    return replace(seen, estimates={**seen.estimates, **lent})


def _columns(tried: Mapping[float, Evidence], main: Evidence, own: Mapping[str, float]) -> list[SettingColumn]:
    """The values in their order, the main rule's among them, or before them where it differs from method to method."""
    shared = set(own.values())
    if len(shared) == 1:
        (value,) = shared
        every = {**tried, value: main}  # the rule itself, as everywhere else on the page
        return [SettingColumn(each, every[each], is_main=each == value) for each in sorted(every)]
    first = [SettingColumn(math.nan, main, is_main=True)] if shared else []
    return [*first, *(SettingColumn(value, tried[value]) for value in sorted(tried))]


def _head(column: SettingColumn, knob: Knob) -> tuple[str, str]:
    if math.isnan(column.value):
        return f"own {knob.noun}", MAIN
    return f"{knob.sign} {column.value:g}", MAIN if column.is_main else "tried"


def _curve(
    method: Entrant, metric: str, knob: Knob, columns: Sequence[SettingColumn], own: Mapping[str, float]
) -> Curve:
    """The method's scores at every value, its own among them."""
    chosen = own.get(method.name, math.nan)
    points = {chosen if math.isnan(each.value) else each.value: _score(each.seen, metric, method) for each in columns}
    told = tuple((x, points[x]) for x in sorted(x for x in points if not math.isnan(x)))
    return Curve(f"{method.label}: overlap by {knob.noun}", knob.axis, told, chosen)


def _score(seen: Evidence, metric: str, method: Entrant) -> float:
    return seen.value(MEAN, metric, ALL_FINDINGS, method.name)


def _scores(seen: Evidence, metric: str) -> dict[str, float]:
    found = {method.label: _score(seen, metric, method) for method in seen.methods}
    return {label: value for label, value in found.items() if not math.isnan(value)}


def _sentence(metric: str, knob: Knob, columns: Sequence[SettingColumn]) -> str:
    """Whether the method with the highest overlap stays the same."""
    leaders: dict[tuple[str, ...], list[SettingColumn]] = {}
    for column in columns:
        scores = _scores(column.seen, metric)
        if scores:
            best = max(scores.values())
            leaders.setdefault(tuple(label for label, value in scores.items() if value == best), []).append(column)
    if not leaders or len(columns[0].seen.methods) == 1:
        return ""
    if len(leaders) == 1:
        (labels,) = leaders
        has = "has" if len(labels) == 1 else "share"
        return f"{listed(labels)} {has} the highest overlap at every {knob.sign} that was tried."
    told = [f"{listed(labels)} {_where(won, knob)}" for labels, won in leaders.items()]
    return f"Which method overlaps most depends on the {knob.noun}: {'; '.join(told)}."


def _where(columns: Sequence[SettingColumn], knob: Knob) -> str:
    values = [f"{column.value:g}" for column in columns if not math.isnan(column.value)]
    places = [f"under the {MAIN}"] if len(values) < len(columns) else []
    return listed([*places, *([f"at {knob.sign} {listed(values)}"] if values else [])])
