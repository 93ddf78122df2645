"""Would another smoothing or another threshold change it? Overlap of each method against what was tried."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.report import curves
from heatcheck.report.axes import limits_around
from heatcheck.report.curves import Curve
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.figures import Panel
from heatcheck.report.matrix import Matrix
from heatcheck.report.numbers import listed
from heatcheck.report.trigger_rules import main_preset, rule_in_words
from heatcheck.report.trigger_tables import EVERY, Place, detection_table

METRIC = "trigger_iou"


@dataclass(frozen=True, slots=True)
class Knob:
    """One number of the rule that makes a box: its name in the run, on an axis and in a sentence."""

    fact: str
    axis: str
    sign: str
    noun: str


@dataclass(frozen=True, slots=True)
class Trial:
    """Everything that was tried of one knob."""

    title: str
    sentence: str
    panels: tuple[Panel, ...]
    table: Matrix | None


KNOBS = (
    Knob("sigma", "σ (pixels)", "σ", "smoothing"),
    Knob("threshold", "threshold", "threshold", "threshold"),
)


def sensitivity(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on sensitivity shows; None where only the main rule was tried."""
    trials = [trial for knob in KNOBS if (trial := _trial(evidence, knob))]
    rule = rule_in_words(evidence, main_preset(evidence))
    return {"trials": trials, "rule": rule} if trials else None


def _trial(evidence: Evidence, knob: Knob) -> Trial | None:
    tried = {
        float(facts[knob.fact]): evidence.under(**{knob.fact: facts[knob.fact]})
        for row, facts in evidence.rows("mean")
        if set(facts) == {knob.fact} and row.metric == METRIC
    }
    if not tried:
        return None
    main = _main(evidence, knob)
    if not math.isnan(main):
        tried[main] = evidence  # the rule itself, as everywhere else on the page
    tried = dict(sorted(tried.items()))
    made = {method: _curve(method, tried, knob, main) for method in evidence.methods}
    made = {method: curve for method, curve in made.items() if any(not math.isnan(y) for _, y in curve.points)}
    up = limits_around(curves.limits(list(made.values())))
    places = [Place(seen, METRIC, EVERY, f"{knob.sign} {value:g}", _role(value, main)) for value, seen in tried.items()]
    return Trial(
        f"The {knob.noun}",
        _sentence(evidence, tried, knob),
        tuple(Panel(method.label, curves.draw(curve, up)) for method, curve in made.items()),
        detection_table(f"Overlap (IoU) by {knob.noun}, over all triggers", places),
    )


def _role(value: float, main: float) -> str:
    return "main rule" if value == main else "tried"


def _main(evidence: Evidence, knob: Knob) -> float:
    value = (evidence.run.manifest.get("detection") or {}).get(knob.fact)
    return math.nan if value is None else float(value)


def _curve(method: Entrant, tried: Mapping[float, Evidence], knob: Knob, main: float) -> Curve:
    points = tuple((x, seen.value("mean", METRIC, ALL_FINDINGS, method.name)) for x, seen in tried.items())
    return Curve(f"{method.label}: overlap by {knob.noun}", knob.axis, points, main)


def _sentence(evidence: Evidence, tried: Mapping[float, Evidence], knob: Knob) -> str:
    """Whether the method with the highest overlap stays the same."""
    leaders: dict[str, list[float]] = {}
    for value, seen in tried.items():
        scored = [(seen.value("mean", METRIC, ALL_FINDINGS, method.name), method.label) for method in evidence.methods]
        defined = [pair for pair in scored if not math.isnan(pair[0])]
        if defined:
            leaders.setdefault(max(defined)[1], []).append(value)
    if not leaders or len(evidence.methods) == 1:
        return ""
    if len(leaders) == 1:
        return f"{next(iter(leaders))} has the highest overlap at every {knob.sign} that was tried."
    told = [f"{label} at {knob.sign} {_values(values)}" for label, values in leaders.items()]
    return f"Which method overlaps most depends on the {knob.noun}: {listed(told)}."


def _values(values: Sequence[float]) -> str:
    return listed([f"{value:g}" for value in values])
