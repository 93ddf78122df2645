"""How long maps, metrics and trainings take in a trigger study."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report import cost
from heatcheck.report.blocks.block import Figures, ListColumn, Listing, fold, prose
from heatcheck.report.charts.distributions import draw_seconds, spread_of
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import brief, duration
from heatcheck.report.page import Section
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.facts import manifest, triggers_of
from heatcheck.studies.triggers.report.sections.agreement import MEASURES
from heatcheck.studies.triggers.report.sections.artefacts import MAIN as OF_ARTEFACTS
from heatcheck.studies.triggers.report.sections.artefacts import PART as ARTEFACTS
from heatcheck.studies.triggers.vocabulary import BASELINE, CRITERION_METRICS

BATCHES = (
    "One row per method, the fastest first: the bar holds the middle half of the batches, the mark in it is the "
    "median, the line reaches from the 5th to the 95th percentile; n is the number of batches. The axis is logarithmic."
)
_STEPS = {
    "trigger_iou": "Boxes and all their metrics, under every rule",
    "recovered": "Recovery: predictions after pasting into detected and into random boxes",
}


@dataclass(frozen=True, slots=True)
class Timed:
    """A row of a table of times."""

    label: str
    times: str
    each: str


def section(evidence: Evidence) -> Section | None:
    """Seconds per map as box plots and against the scores, and the times of measures and trainings."""
    planted = bool(triggers_of(evidence))
    scored = evidence if planted else ARTEFACTS.under(evidence)
    shown = [
        m
        for m in (CRITERION_METRICS if planted else (OF_ARTEFACTS,))
        if any(scored.find(MEAN, m, ALL_FINDINGS, method.name) for method in scored.methods)
    ]
    if cost.section(scored, shown) is None:
        return None
    metrics, trainings = _metrics(evidence), _trainings(evidence)
    blocks = (
        *_boxes(evidence),
        *cost.plots(scored, shown, "class"),
        *cost.changed_settings(scored),
        *cost.seconds_table(scored, shown, opened=False),  # the plots above suffice
        *prose(_metric_sentence(evidence)),
        *fold("What the metrics cost", (_times("Step", "Images", "Time per image", metrics),) if metrics else ()),
        *fold("What the trainings cost", (_times("Model", "Trainings", "Time each", trainings),) if trainings else ()),
    )
    summary = cost.summary(scored) or "Seconds per map, and settings other than usual."
    return Section("cost", "What does a map cost?", "Cost", blocks, summary)


def _times(what: str, times: str, each: str, rows: Sequence[Timed]) -> Listing:
    columns = ListColumn(what), ListColumn(times, numeric=True), ListColumn(each, numeric=True)
    return Listing(f"{each} by {what.lower()}", columns, tuple((row.label, row.times, row.each) for row in rows))


def _steps(evidence: Evidence, step: str) -> pd.DataFrame:
    timings = evidence.run.timings
    return timings[(timings["step"] == step) & (timings["maps"] > 0) & (timings["seconds"] > 0)]


def _boxes(evidence: Evidence) -> tuple[Figures, ...]:
    """Seconds per map of every batch, one row per method, the quickest first."""
    steps = _steps(evidence, "map")
    each = steps["seconds"] / steps["maps"]
    entrants = (*evidence.methods, *evidence.floors)
    every = [spread_of(e.label, each[steps["method"] == e.name].tolist()) for e in entrants]
    spreads = sorted((spread for spread in every if spread), key=lambda spread: spread.quantiles[2])
    if not spreads:
        return ()
    return (Figures((Panel("Seconds per map", draw_seconds("seconds per map", spreads, "method"), BATCHES),)),)


def _metrics(evidence: Evidence) -> list[Timed]:
    """Seconds per image of each step of scoring."""
    sums = _steps(evidence, "metric").groupby("method", sort=False)[["maps", "seconds"]].sum()
    return [
        Timed(_measure(evidence, str(name)), f"{int(row['maps']):,}", brief(float(row["seconds"]) / float(row["maps"])))
        for name, row in sums.iterrows()
    ]


def _measure(evidence: Evidence, name: str) -> str:
    if name in _STEPS:
        return _STEPS[name]
    if name in MEASURES:
        return f"{MEASURES[name].name}, all pairs of methods"
    return evidence.metrics[name].label if name in evidence.metrics else name.replace("_", " ")


def _metric_sentence(evidence: Evidence) -> str:
    """How long the mutual information of two maps takes here, and took in the paper."""
    steps = _steps(evidence, "metric")
    computed = steps[steps["method"] == "mutual_information"]
    methods = len(evidence.methods) + len(evidence.floors)
    if computed.empty or methods < 2:
        return ""
    pairs = methods * (methods - 1) / 2
    each = brief(float(computed["seconds"].sum()) / float(computed["maps"].sum()) / pairs)
    size = manifest(evidence).input_size
    here = f" of {size} pixels" if size else ""
    (printed,) = literature.reported("mutual_information_seconds")
    paper = f"; the paper reports about {printed.value:g} s for {printed.subject}"
    published = paper if literature.is_own_data(evidence) else ""
    return f"The mutual information of two maps{here} takes {each} here, normalised as well{published}."


def _trainings(evidence: Evidence) -> list[Timed]:
    """How long the baseline and each poisoned model took to train, on average."""
    timings = replace(evidence.run, path=evidence.run.path / "training").timings  # a stage with tables of its own
    steps = timings[timings["step"] == "training"]
    poisoned = {trigger.name: f"Poisoned model: {trigger.label}" for trigger in triggers_of(evidence)}
    labels = {BASELINE: "Baseline", **poisoned}
    rows = []
    for name, label in labels.items():
        seconds = steps[steps["method"] == name]["seconds"]
        if len(seconds):
            rows.append(Timed(label, f"{len(seconds):,}", duration(float(seconds.mean()))))
    return rows
