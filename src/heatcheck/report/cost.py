"""The cost of a map against its score: seconds per map, one named point per method."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.appendix import seconds_per_map
from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis, SecondsAxis, limits_around, tick_label
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.glossary import CHANGED, SMALLER
from heatcheck.report.numbers import Unit, brief, count, interval, listed, number
from heatcheck.report.page import Section

WIDTH = 460.0
_LEFT, _RIGHT, _NAMES = 34.0, 300.0, 318.0  # the plot's sides, and where the names begin
_TOP, _STEP = 12.0, 15.5  # of a name
_COLOURS = 6
FEW = 8  # methods, of which the table needs no folding away


@dataclass(frozen=True, slots=True)
class Cost:
    """One row of the table: a method, its seconds and its scores in words."""

    entrant: Entrant
    seconds: str
    scores: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Spot:
    entrant: Entrant
    seconds: float
    score: Estimate


def section(evidence: Evidence, metrics: Sequence[str], of: str = "finding") -> Section | None:
    """What maps cost and what they score; None for a run without times or changed settings.

    `of` names what one map shows.
    """
    entrants = (*evidence.methods, *evidence.floors)
    if not seconds_by_method(evidence) and not any(entrant.changed for entrant in entrants):
        return None
    names = {metric: evidence.metrics[metric].label for metric in metrics}
    content = {
        "plots": [(name, plot) for metric, name in names.items() if (plot := cost_plot(evidence, metric))],
        "of": of,
        "machine": machine(evidence),
        "families": family_classes(evidence),
        "has_floors": bool(evidence.floors),
        "rows": costs(evidence, metrics),
        "is_open": len(entrants) <= FEW,
        "measures": list(names.values()),
        "changed": [(entrant.label, listed(entrant.changed)) for entrant in entrants if entrant.changed],
        "changed_sentence": SMALLER if any(e.saves_time for e in entrants) else CHANGED,
    }
    return Section("cost", "What does a map cost?", "Cost", "cost.html", content)


def family_classes(evidence: Evidence) -> dict[str, str]:
    """The CSS class of each family's colour, in the order of the run; floors share one."""
    families = dict.fromkeys(e.family for e in evidence.methods)
    return {family: f"family{i % _COLOURS}" for i, family in enumerate(families)}


def seconds_by_method(evidence: Evidence) -> dict[str, float]:
    """Seconds per map: one image and one finding. Nothing for a run without times."""
    table = seconds_per_map(evidence.run)
    return dict(zip(table["method"].astype(str), table["seconds_per_map"].to_numpy(float).tolist(), strict=True))


def costs(evidence: Evidence, metrics: Sequence[str]) -> list[Cost]:
    """Every method and floor, family by family, the quickest of each first."""
    seconds = seconds_by_method(evidence)
    families = list(dict.fromkeys(e.family for e in (*evidence.methods, *evidence.floors)))

    def order(entrant: Entrant) -> tuple[bool, int, float]:
        taken = seconds.get(entrant.name, math.nan)
        return entrant.kind == "floor", families.index(entrant.family), math.inf if math.isnan(taken) else taken

    entrants = sorted((*evidence.methods, *evidence.floors), key=order)
    return [
        Cost(e, brief(seconds.get(e.name, math.nan)), tuple(_score(evidence, m, e) for m in metrics)) for e in entrants
    ]


def cost_plot(evidence: Evidence, metric: str) -> Markup | None:
    """Seconds on a logarithmic axis, the score with its interval above them; names stand apart so that none collide."""
    seconds = seconds_by_method(evidence)
    spots = [
        _Spot(e, seconds[e.name], row)
        for e in (*evidence.methods, *evidence.floors)
        if seconds.get(e.name, math.nan) > 0
        and (row := evidence.find(MEAN, metric, ALL_FINDINGS, e.name))
        and not math.isnan(row.value)
    ]
    if not spots:
        return None
    human = evidence.value(MEAN, metric, ALL_FINDINGS, HUMAN)
    measure = evidence.metrics[metric]
    ends = [value for s in spots for value in (s.score.value, s.score.low, s.score.high)]
    bottom = _TOP + max(_STEP * len(spots), 180)
    across = SecondsAxis.around([s.seconds for s in spots], _LEFT + 8, _RIGHT - 8)
    up = Axis(*limits_around([*ends, human]), bottom, _TOP)
    parts = [*_grid(across, up, measure.unit), *_human_line(human, up, measure.unit)]
    classes = family_classes(evidence)
    for spot, middle in zip(_by_height(spots), _name_places(len(spots), bottom), strict=True):
        parts += _spot(spot, (across.at(spot.seconds), up), middle, classes, measure.unit)
    parts.append(svg.words((_LEFT + _RIGHT) / 2, bottom + 33, "seconds per map", "axis-title", "middle"))
    title = f"{measure.label} against seconds per map"
    sentences = " ".join(f"{_sentence(spot, measure.unit)}." for spot in _by_height(spots))
    return svg.picture((WIDTH, bottom + 42), title, sentences, parts)


def _score(evidence: Evidence, metric: str, entrant: Entrant) -> str:
    row = evidence.find(MEAN, metric, ALL_FINDINGS, entrant.name)
    return number(row.value if row else math.nan, evidence.metrics[metric].unit)


def _by_height(spots: Sequence[_Spot]) -> list[_Spot]:
    return sorted(spots, key=lambda spot: -spot.score.value)


def _name_places(names: int, bottom: float) -> list[float]:
    step = (bottom - _TOP) / names
    return [_TOP + step * (i + 0.5) for i in range(names)]


def _grid(across: SecondsAxis, up: Axis, unit: Unit) -> list[Markup]:
    parts = []
    for tick in across.ticks():
        x = across.at(tick)
        parts.append(svg.line(x, up.end, x, up.start, "grid"))
        if label := across.label(tick, unit):
            parts.append(svg.words(x, up.start + 15, label, "tick", "middle"))
    for tick in up.ticks():
        parts.append(svg.line(_LEFT, up.at(tick), _RIGHT, up.at(tick), "grid"))
        parts.append(svg.words(_LEFT - 5, up.at(tick) + 4, tick_label(tick, unit), "tick", "end"))
    return parts


def _human_line(value: float, up: Axis, unit: Unit) -> list[Markup]:
    if math.isnan(value):
        return []
    text = f"Human readers {number(value, unit)}"
    y = up.at(value)
    return [
        svg.group(text, svg.line(_LEFT, y, _RIGHT, y, "human-line")),
        svg.words(_LEFT + 4, y - 4 if y > _TOP + 12 else y + 13, text, "human-name"),
    ]


def _spot(spot: _Spot, at: tuple[float, Axis], name_y: float, classes: dict[str, str], unit: Unit) -> list[Markup]:
    x, up = at
    y = up.at(spot.score.value)
    floor = spot.entrant.kind == "floor"
    colour = "family-floor" if floor else classes[spot.entrant.family]
    parts = [svg.path([(x, y), (_RIGHT + 4, name_y), (_NAMES - 9, name_y)], "leader")]
    if not math.isnan(spot.score.low) and not math.isnan(spot.score.high):
        parts.append(svg.line(x, up.at(spot.score.low), x, up.at(spot.score.high), f"whisker {colour}"))
    parts += [_shape(x, y, colour, floor=floor), _shape(_NAMES - 6, name_y, colour, floor=floor)]
    name = svg.words(_NAMES + 2, name_y + 4, svg.shortened(spot.entrant.label, 22), "name")
    return [svg.group(_sentence(spot, unit), *parts, name)]


def _shape(x: float, y: float, colour: str, *, floor: bool) -> Markup:
    if floor:
        return svg.square(x, y, 3.6, f"point {colour}")
    return svg.circle(x, y, 4.2, f"point {colour}")


def _sentence(spot: _Spot, unit: Unit) -> str:
    between = interval(spot.score.low, spot.score.high, unit)
    text = f"{number(spot.score.value, unit)}" + (f" ({between})" if between else "")
    return f"{spot.entrant.label}: {brief(spot.seconds)} per map, {text}"


def machine(evidence: Evidence) -> str:
    """What the times were measured on, as far as the run recorded it."""
    manifest = evidence.manifest
    threads = count(manifest.threads, "thread") if manifest.threads else ""
    batch = f"{manifest.batch_size} images at a time" if manifest.batch_size else ""
    return ", ".join(filter(None, (manifest.device, threads, manifest.machine, batch)))
