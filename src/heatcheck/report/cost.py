"""The cost of a map beside its score: a row per method, seconds on the left and the score on the right."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.appendix import seconds_per_map
from heatcheck.report.blocks.block import Block, Figures, Heading, ListColumn, Listing, Prose, bullets, fold, prose
from heatcheck.report.charts import legend, svg
from heatcheck.report.charts.axes import Axis, SecondsAxis, limits_around, tick_label
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.glossary import CHANGED, SMALLER
from heatcheck.report.numbers import Unit, brief, count, interval, listed, number
from heatcheck.report.page import Section

WIDTH = 460.0
_NAMES, _SECONDS, _SCORES = 6.0, (168.0, 290.0), (312.0, 452.0)  # where names begin, and the sides of both axes
_TOP, _STEP = 8.0, 18.0  # of a row
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
    blocks = (*plots(evidence, metrics, of), *changed_settings(evidence), *seconds_table(evidence, metrics))
    return Section("cost", "What does a map cost?", "Cost", blocks, summary(evidence))


def summary(evidence: Evidence) -> str:
    """The quickest and the slowest method with their times."""
    seconds = seconds_by_method(evidence)
    timed = sorted((m for m in evidence.methods if seconds.get(m.name, math.nan) > 0), key=lambda m: seconds[m.name])
    if len(timed) < 2:
        return ""
    quickest, slowest = (f"{brief(seconds[each.name])} ({each.label})" for each in (timed[0], timed[-1]))
    return f"From {quickest} to {slowest} per map."


def plots(evidence: Evidence, metrics: Sequence[str], of: str) -> tuple[Block, ...]:
    """Seconds and score of every method, a plot for each metric."""
    drawn = [Panel(evidence.metrics[metric].label, plot) for metric in metrics if (plot := cost_plot(evidence, metric))]
    if not drawn:
        return prose("This run recorded no times, or no scores to set against them.")
    on = machine(evidence)
    measured = f" ({on})" if on else ""
    keys = [legend.coloured_dot(name or "method", colour) for name, colour in family_classes(evidence).items()]
    if evidence.floors:
        keys.append(legend.coloured_square("floor, a picture made without the model", "family-floor"))
    if any(not math.isnan(evidence.value(MEAN, metric, ALL_FINDINGS, HUMAN)) for metric in metrics):
        keys.append(legend.readers_line(evidence.readers.label.lower()))
    return (
        Prose(
            f"The quickest method is on top. A map is one image\u2019s map of one {of}. Times were measured on this "
            f"run\u2019s machine{measured}, and other work on it at that time slows them."
        ),
        Figures(tuple(drawn), tuple(keys), "pair cost"),
    )


def changed_settings(evidence: Evidence) -> tuple[Block, ...]:
    """The settings that are not the methods' usual ones."""
    entrants = [each for each in (*evidence.methods, *evidence.floors) if each.changed]
    if not entrants:
        return ()
    why = SMALLER if any(each.saves_time for each in entrants) else CHANGED
    settings = [f"{each.label} was run with {listed(each.changed)}." for each in entrants]
    return (Heading("Settings other than usual"), Prose(why), *bullets(settings))


def seconds_table(evidence: Evidence, metrics: Sequence[str], *, opened: bool | None = None) -> tuple[Block, ...]:
    """Seconds and scores as a table, which is folded where it is long."""
    names = [evidence.metrics[metric].label for metric in metrics]
    rows = tuple(
        (each.entrant.label, each.entrant.family or each.entrant.kind, each.seconds, *each.scores)
        for each in costs(evidence, metrics)
    )
    numbers = (ListColumn("Time per map", numeric=True), *(ListColumn(name, numeric=True) for name in names))
    listing = Listing("Seconds per map and scores", (ListColumn("Method"), ListColumn("Family"), *numbers), rows)
    is_short = len(rows) <= FEW if opened is None else opened
    return fold("Seconds per map, method by method", (listing,) if rows else (), opened=is_short)


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
    """A row per method, the quickest on top: its seconds on a logarithmic axis, and its score with the interval."""
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
    spots.sort(key=lambda spot: spot.seconds)
    human = evidence.value(MEAN, metric, ALL_FINDINGS, HUMAN)
    measure = evidence.metrics[metric]
    ends = [value for s in spots for value in (s.score.value, s.score.low, s.score.high)]
    bottom = _TOP + _STEP * len(spots)
    times = SecondsAxis.around([s.seconds for s in spots], *_SECONDS)
    scores = Axis(*limits_around([*ends, human]), *_SCORES)
    parts = [
        *_grid(times, scores, bottom, measure.unit),
        *_human_line(human, scores, bottom, (evidence.readers.label, measure.unit)),
    ]
    classes = family_classes(evidence)
    for i, spot in enumerate(spots):
        parts += _spot(spot, (times, scores), _TOP + _STEP * (i + 0.5), classes, measure.unit)
    parts.append(svg.words(sum(_SECONDS) / 2, bottom + 33, "seconds per map", "axis-title", "middle"))
    parts.append(svg.words(sum(_SCORES) / 2, bottom + 33, measure.axis_title, "axis-title", "middle"))
    title = f"{measure.label} and seconds per map"
    sentences = " ".join(f"{_sentence(spot, measure.unit)}." for spot in spots)
    return svg.picture((WIDTH, bottom + 42), title, sentences, parts)


def _score(evidence: Evidence, metric: str, entrant: Entrant) -> str:
    row = evidence.find(MEAN, metric, ALL_FINDINGS, entrant.name)
    return number(row.value if row else math.nan, evidence.metrics[metric].unit)


def _grid(times: SecondsAxis, scores: Axis, bottom: float, unit: Unit) -> list[Markup]:
    parts = []
    for tick in times.ticks():
        parts.append(svg.line(times.at(tick), _TOP, times.at(tick), bottom, "grid"))
        if label := times.label(tick, unit):
            parts.append(svg.words(times.at(tick), bottom + 15, label, "tick", "middle"))
    for tick in scores.ticks(4):
        parts.append(svg.line(scores.at(tick), _TOP, scores.at(tick), bottom, "grid"))
        parts.append(svg.words(scores.at(tick), bottom + 15, tick_label(tick, unit), "tick", "middle"))
    return parts


def _human_line(value: float, scores: Axis, bottom: float, named: tuple[str, Unit]) -> list[Markup]:
    if math.isnan(value):
        return []
    text = f"{named[0]} {number(value, named[1])}"
    return [svg.group(text, svg.line(scores.at(value), _TOP, scores.at(value), bottom, "human-line"))]


def _spot(spot: _Spot, axes: tuple[SecondsAxis, Axis], y: float, classes: dict[str, str], unit: Unit) -> list[Markup]:
    times, scores = axes
    floor = spot.entrant.kind == "floor"
    colour = "family-floor" if floor else classes[spot.entrant.family]
    parts = [_shape(times.at(spot.seconds), y, colour, floor=floor)]
    if not math.isnan(spot.score.low) and not math.isnan(spot.score.high):
        parts.append(svg.line(scores.at(spot.score.low), y, scores.at(spot.score.high), y, f"whisker {colour}"))
    parts.append(_shape(scores.at(spot.score.value), y, colour, floor=floor))
    name = svg.words(_NAMES, y + 4, svg.shortened(spot.entrant.label, 24), "name")
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
