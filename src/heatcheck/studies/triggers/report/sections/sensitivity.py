"""Would another rule change it? Overlap of each method under every preset, and against other numbers in the rule."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN, Condition, facts_of
from heatcheck.report.blocks.block import Block, Bullets, Figures, Heading, Legend, Prose, Table, fold, prose
from heatcheck.report.blocks.matrix import Matrix
from heatcheck.report.charts import curves, legend, svg
from heatcheck.report.charts.axes import limits_around
from heatcheck.report.charts.curves import Curve
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import count, listed
from heatcheck.report.page import Section
from heatcheck.studies.triggers.report.facts import TriggerRecord, manifest
from heatcheck.studies.triggers.report.tables import EVERY, SHORT, TriggerColumn, detection_table
from heatcheck.studies.triggers.vocabulary import CRITERION_METRICS, BoxPreset

MAIN = "main rule"
_CHOSEN = legend.key(
    f"the {MAIN}", svg.path([(14, 3), (24, 13)], "chosen"), svg.path([(14, 13), (24, 3)], "chosen")
)  # as on the curves


@dataclass(frozen=True, slots=True)
class RulePart:
    """What was scored under several rules, planted triggers or artefacts, with the metrics to show."""

    condition: Condition
    every: TriggerRecord  # over which means are taken
    noun: str
    metrics: Sequence[str]  # the most important one first

    def under(self, evidence: Evidence, **rule: Unpack[Condition]) -> Evidence:
        """The run's estimates of it under a rule; under the leading one where none is named."""
        facts: Condition = {**self.condition, **rule}
        return evidence.under(**facts)

    def values(self, evidence: Evidence, fact: str) -> list[Any]:
        """All values of one fact of the rule among conditions that share every other fact with the leading rule."""
        conditions = (facts_of(under) for model, under in evidence.slices if model == evidence.primary)
        every: list[dict[str, Any]] = [dict(facts) for facts in conditions]
        return sorted({facts[fact] for facts in every if facts == {**self.condition, fact: facts.get(fact)}})


TRIGGERS = RulePart({}, EVERY, "triggers", (*CRITERION_METRICS, "box_area"))


@dataclass(frozen=True, slots=True)
class Knob:
    """One number of the rule that makes a box: its name in conditions and in rules, on an axis and in a sentence."""

    fact: Literal["sigma", "threshold"]
    setting: Literal["smooth", "threshold"]
    axis: str
    sign: str
    noun: str

    def rule(self, value: float) -> Condition:
        """The condition of scores under another value of that number."""
        return {"sigma": value} if self.fact == "sigma" else {"threshold": value}


@dataclass(frozen=True, slots=True)
class SettingColumn:
    """One column: a value with the run's estimates under it; NaN where each method has its own."""

    value: float
    evidence: Evidence
    is_main: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """Everything that was tried of one knob."""

    knob: Knob
    columns: tuple[SettingColumn, ...]
    sentence: str
    panels: tuple[Panel, ...]
    table: Matrix | None

    @property
    def title(self) -> str:
        """The number's name."""
        return f"The {self.knob.noun}"


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


def section(evidence: Evidence) -> Section | None:
    """The scores of planted triggers under other rules; None where only the main one was tried."""
    under_rules = sensitivity(evidence)
    if under_rules is None:
        return None
    return Section(
        "sensitivity",
        "Would another box rule change the result?",
        "Box rule",
        shown(under_rules),
        _summary(under_rules),
    )


def _summary(under_rules: Sensitivity) -> str:
    tried = [count(len(under_rules.presets), "rule")] if under_rules.presets else []
    tried += [f"{len(trial.columns)} settings of the {trial.knob.noun}" for trial in under_rules.trials]
    return f"Overlap under {listed(tried)}."


def shown(under_rules: Sensitivity) -> tuple[Block, ...]:
    """The rules with their table, and a curve for every method and every number of the rule that was changed."""
    rules: tuple[Block, ...] = prose(f"A map becomes a box by a rule: {under_rules.rule}." if under_rules.rule else "")
    if under_rules.table:
        rules = (
            Prose(
                "The score depends on how a map becomes a box. The first rule is the main one, used everywhere else on "
                "this page."
            ),
            Bullets(tuple(_preset(preset, is_main=i == 0) for i, preset in enumerate(under_rules.presets))),
            Table(under_rules.table),
        )
    if not under_rules.trials:
        return rules
    trials = (block for trial in under_rules.trials for block in _trial_blocks(trial))
    what = "Below, one number of the main rule is changed at a time, on the same maps."
    return (*rules, Prose(what), Legend((_CHOSEN,)), *trials)


def _preset(preset: BoxPreset, *, is_main: bool) -> str:
    ending = f" (the {MAIN})" if is_main else ""
    return Markup("<b>{}</b>: {}{}.").format(preset.label, preset.summary, ending)


def _trial_blocks(trial: Trial) -> tuple[Block, ...]:
    numbers = (Table(trial.table),) if trial.table else ()
    return (
        Heading(trial.title),
        *prose(trial.sentence),
        Figures(trial.panels, layout="small-multiples"),
        *fold("The numbers, with the area of the boxes", numbers),
    )


def sensitivity(evidence: Evidence, part: RulePart = TRIGGERS) -> Sensitivity | None:
    """The scores under other rules; None where only the main one was tried."""
    trials = tuple(trial for knob in KNOBS if (trial := _trial(evidence, part, knob)))
    presets = presets_tried(evidence, part)
    table = _by_preset(evidence, part, presets) if len(presets) > 1 else None
    if not trials and table is None:
        return None
    return Sensitivity(manifest(evidence).detection.main_rule, presets if table else (), table, trials)


def presets_tried(evidence: Evidence, part: RulePart = TRIGGERS) -> tuple[BoxPreset, ...]:
    """The presets under which this part was scored, the leading one first."""
    detection = manifest(evidence).detection
    names = dict.fromkeys([detection.preset, *(str(name) for name in part.values(evidence, "preset"))])
    known = {preset.name: preset for preset in detection.presets}
    return tuple(known.get(name) or BoxPreset(name=name, summary=name) for name in names if name)


def _by_preset(evidence: Evidence, part: RulePart, presets: Sequence[BoxPreset]) -> Matrix | None:
    """The metrics over all triggers under every preset."""
    by_preset = [part.under(evidence), *(part.under(evidence, preset=preset.name) for preset in presets[1:])]
    columns = [
        TriggerColumn(each, metric, part.every, SHORT[metric][0].upper() + SHORT[metric][1:], preset.label)
        for metric in part.metrics
        if metric in evidence.metrics
        for preset, each in zip(presets, by_preset, strict=True)
    ]
    return detection_table(f"Ways to make a box, over all {part.noun}", columns)


def _trial(evidence: Evidence, part: RulePart, knob: Knob) -> Trial | None:
    main = part.under(evidence)
    main_values = {name: getattr(rule, knob.setting) for name, rule in manifest(evidence).detection.rules.items()}
    tried = {
        float(value): _completed(part.under(evidence, **knob.rule(value)), main, main_values, value)
        for value in part.values(evidence, knob.fact)
    }
    metric = next((m for m in part.metrics if any(_scores(each, m) for each in tried.values())), "")
    tried = {value: each for value, each in tried.items() if _scores(each, metric)}
    if not tried:
        return None
    columns = _columns(tried, main, main_values)
    drawn = {method: _curve(method, metric, knob, columns, main_values) for method in evidence.methods}
    drawn = {method: curve for method, curve in drawn.items() if any(not math.isnan(y) for _, y in curve.points)}
    up = limits_around(curves.limits(list(drawn.values())))
    return Trial(
        knob,
        tuple(columns),
        _sentence(metric, knob, columns),
        tuple(Panel(method.label, curves.draw(curve, up)) for method, curve in drawn.items()),
        detection_table(
            f"{evidence.metrics[metric].label} by {knob.noun}, over all {part.noun}",
            [TriggerColumn(each.evidence, metric, part.every, *_head(each, knob)) for each in columns],
        ),
    )


def _completed(evidence: Evidence, main: Evidence, main_values: Mapping[str, float], value: float) -> Evidence:
    """The run under a value, with the leading scores of the methods whose leading rule has this value."""
    leading = {key: row for key, row in main.estimates.items() if main_values.get(key[3]) == value}
    return replace(evidence, estimates={**evidence.estimates, **leading})


def _columns(tried: Mapping[float, Evidence], main: Evidence, main_values: Mapping[str, float]) -> list[SettingColumn]:
    """The values in order, with the main rule's among them, or before them where it differs between methods."""
    shared = set(main_values.values())
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
    method: Entrant, metric: str, knob: Knob, columns: Sequence[SettingColumn], main_values: Mapping[str, float]
) -> Curve:
    """The method's scores at every value, with its main rule's among them."""
    chosen = main_values.get(method.name, math.nan)
    scores = {
        chosen if math.isnan(each.value) else each.value: _score(each.evidence, metric, method) for each in columns
    }
    points = tuple((x, scores[x]) for x in sorted(x for x in scores if not math.isnan(x)))
    return Curve(f"{method.label}: overlap by {knob.noun}", knob.axis, points, chosen)


def _score(evidence: Evidence, metric: str, method: Entrant) -> float:
    return evidence.value(MEAN, metric, ALL_FINDINGS, method.name)


def _scores(evidence: Evidence, metric: str) -> dict[str, float]:
    scores = {method.label: _score(evidence, metric, method) for method in evidence.methods}
    return {label: value for label, value in scores.items() if not math.isnan(value)}


def _sentence(metric: str, knob: Knob, columns: Sequence[SettingColumn]) -> str:
    """Whether the method with the highest overlap stays the same."""
    leaders: dict[tuple[str, ...], list[SettingColumn]] = {}
    for column in columns:
        scores = _scores(column.evidence, metric)
        if scores:
            best = max(scores.values())
            leaders.setdefault(tuple(label for label, value in scores.items() if value == best), []).append(column)
    if not leaders or len(columns[0].evidence.methods) == 1:
        return ""
    if len(leaders) == 1:
        (labels,) = leaders
        has = "has" if len(labels) == 1 else "share"
        return f"{listed(labels)} {has} the highest mean overlap at every {knob.sign} that was tried."
    parts = [f"{listed(labels)} {_where(won, knob)}" for labels, won in leaders.items()]
    return f"Which method has the highest mean overlap depends on the {knob.noun}: {'; '.join(parts)}."


def _where(columns: Sequence[SettingColumn], knob: Knob) -> str:
    values = [f"{column.value:g}" for column in columns if not math.isnan(column.value)]
    main = [f"under the {MAIN}"] if len(values) < len(columns) else []
    return listed([*main, *([f"at {knob.sign} {listed(values)}"] if values else [])])
