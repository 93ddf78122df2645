"""What a detected box leaves of the trigger: overlap difference as published, and a share independent of size."""

from collections.abc import Mapping
from dataclasses import dataclass

from heatcheck.core.vocabulary import MEAN
from heatcheck.report.charts import curves
from heatcheck.report.charts.axes import limits_around
from heatcheck.report.charts.curves import Curve
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.studies.triggers.report.facts import PAPER_SIZE, TriggerRecord, graded_triggers, triggers_of
from heatcheck.studies.triggers.report.plots import by_trigger
from heatcheck.studies.triggers.report.tables import EVERY
from heatcheck.studies.triggers.report.tables import by_trigger as table_by_trigger
from heatcheck.studies.triggers.vocabulary import floor_of

LEFT, SHARE_LEFT = "overlap_difference", "uncovered"


@dataclass(frozen=True, slots=True)
class Family:
    """Triggers that differ in size only, with one small curve per method."""

    name: str
    drawn: tuple[Panel, ...]


def uncovered(evidence: Evidence) -> Mapping[str, object] | None:
    """The content of the section on the remainder; None when nothing was graded."""
    graded = graded_triggers(evidence)
    small = [trigger for trigger in graded if trigger.size == PAPER_SIZE]
    ordered = sorted(triggers_of(evidence), key=lambda trigger: (trigger.size is None, trigger.size or 0))
    table = table_by_trigger(evidence, SHARE_LEFT, (EVERY, *ordered))
    bars = by_trigger(evidence, LEFT, small, "bar")
    if table is None and not bars:
        return None
    return {
        "bars": bars,
        "size": PAPER_SIZE,
        "published_marks": any("published-mark" in panel.plot for panel in bars),
        "bar_sentence": evidence.metrics[LEFT].summary if bars else "",
        "families": _families(evidence, graded),
        "table": table,
        "sentence": evidence.metrics[SHARE_LEFT].summary if table else "",
    }


def _families(evidence: Evidence, triggers: tuple[TriggerRecord, ...]) -> list[Family]:
    """The families of which at least two sizes were graded."""
    names = dict.fromkeys(trigger.family for trigger in triggers if trigger.size)
    families = [[t for t in triggers if t.size and t.family == name] for name in names]
    ordered = [sorted(members, key=lambda t: t.size or 0) for members in families if len(members) > 1]
    return [Family(_name(members[0]), _drawn(evidence, members)) for members in ordered]


def _name(trigger: TriggerRecord) -> str:
    """The label without the size."""
    return trigger.label.replace(f", {trigger.size} px", "").replace(f" {trigger.size} px", "")


def _drawn(evidence: Evidence, members: list[TriggerRecord]) -> tuple[Panel, ...]:
    by_method = {method.label: _curve(evidence, method, members) for method in evidence.methods}
    up = limits_around(curves.limits(list(by_method.values())))
    return tuple(Panel(label, curves.draw(curve, up)) for label, curve in by_method.items())


def _curve(evidence: Evidence, method: Entrant, members: list[TriggerRecord]) -> Curve:
    points, floor = (
        tuple((float(t.size or 0), evidence.value(MEAN, metric, t.name, method.name)) for t in members)
        for metric in (SHARE_LEFT, floor_of(SHARE_LEFT))
    )
    unit = evidence.metrics[SHARE_LEFT].unit
    return Curve(
        f"{method.label}: uncovered share by trigger size", "trigger size (px)", points, floor=floor, unit=unit
    )
