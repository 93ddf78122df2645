"""What a detected box leaves of the trigger: overlap difference as published, and a share independent of size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.block import Block, Figures, Heading, Legend, Prose, Table, fold
from heatcheck.report.blocks.matrix import Matrix
from heatcheck.report.charts import curves, legend, svg
from heatcheck.report.charts.axes import limits_around
from heatcheck.report.charts.curves import Curve
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SHARE
from heatcheck.report.page import Section
from heatcheck.studies.triggers.report.facts import (
    PAPER_SIZE,
    REFERENCE_SIDE,
    TriggerRecord,
    graded_triggers,
    span,
    triggers_of,
)
from heatcheck.studies.triggers.report.plots import RANDOM_BOXES, by_trigger, keys
from heatcheck.studies.triggers.report.tables import EVERY
from heatcheck.studies.triggers.report.tables import by_trigger as table_by_trigger
from heatcheck.studies.triggers.vocabulary import floor_of

LEFT, SHARE_LEFT = "overlap_difference", "uncovered"


_BAR = legend.key(
    "mean, with its 95 % interval", svg.tag("rect", x=2, y=3, width=30, height=10, class_="bar")
)  # the interval is drawn over the bar
_CURVES = (
    legend.key("uncovered share (%)", svg.path([(2, 12), (36, 4)], "curve")),
    legend.key(RANDOM_BOXES, svg.path([(2, 8), (36, 8)], "floor-line")),
)


@dataclass(frozen=True, slots=True)
class Family:
    """Triggers that differ in size only, with one small curve per method."""

    name: str
    drawn: tuple[Panel, ...]


def uncovered(evidence: Evidence) -> Section | None:
    """What the boxes leave of the triggers, as published and as a share; None when nothing was graded."""
    bars, table = left_by_size(evidence), share_table(evidence)
    if table is None and not bars:
        return None
    blocks = (*_bars(evidence, bars), *_shares(evidence, table, bool(bars)))
    return Section("uncovered", "What do the boxes leave of the trigger?", "Uncovered", blocks, _summary(evidence))


def left_by_size(evidence: Evidence) -> list[Panel]:
    """The overlap difference of each graded trigger of the published size, as bars."""
    small = [trigger for trigger in graded_triggers(evidence) if trigger.size == PAPER_SIZE]
    return by_trigger(evidence, LEFT, small, "bar")


def share_table(evidence: Evidence) -> Matrix | None:
    """The uncovered share with a column per trigger, the smallest first; None where nothing was estimated."""
    ordered = sorted(triggers_of(evidence), key=lambda trigger: (trigger.size is None, trigger.size or 0))
    return table_by_trigger(evidence, SHARE_LEFT, (EVERY, *ordered))


def _summary(evidence: Evidence) -> str:
    shares = [evidence.value(MEAN, SHARE_LEFT, ALL_FINDINGS, method.name) for method in evidence.methods]
    if all(math.isnan(share) for share in shares):
        return "Nothing was graded over all triggers."
    unit = SHARE.rounded(0)
    return f"Of the trigger\u2019s pixels, {span(shares, unit)} lie outside the detected box, depending on the method."


def _bars(evidence: Evidence, bars: Sequence[Panel]) -> tuple[Block, ...]:
    if not bars:
        return ()
    return (
        Heading(f"Overlap difference, triggers of size {PAPER_SIZE}"),
        Prose(
            f"{evidence.metrics[LEFT].summary} As in the paper, only triggers of {PAPER_SIZE} pixels (on an image of "
            f"{REFERENCE_SIDE}) are shown: larger ones would have longer bars whatever the method. Shorter is better. "
            "A box around the whole image would have 0, so look at the box\u2019s area too."
        ),
        Figures(tuple(bars), keys(bars, _BAR, legend.floor_tick(f"{RANDOM_BOXES}: a bar should stay short of it"))),
    )


def _shares(evidence: Evidence, table: Matrix | None, has_bars: bool) -> tuple[Block, ...]:
    if table is None:
        return ()
    families = families_of(evidence)
    curves_of = [block for family in families for block in (Heading(family.name), _small(family))]
    return (
        Heading("Uncovered share, all sizes"),
        Prose(f"{evidence.metrics[SHARE_LEFT].summary} This makes large and small triggers comparable."),
        *((Legend(_CURVES),) if families else ()),
        *curves_of,
        *fold("The numbers, smallest triggers first", (Table(table),), opened=not families and not has_bars),
    )


def _small(family: Family) -> Figures:
    return Figures(family.drawn, layout="small-multiples")


def families_of(evidence: Evidence) -> list[Family]:
    """The families of which at least two sizes were graded."""
    triggers = graded_triggers(evidence)
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
