"""Where the paper's rules and the recommended ones disagree on the same data, and why."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import MEAN, PERCENT_DECREASE, Statistic
from heatcheck.judging.judgement import Answer, judgement_of, opposite_of
from heatcheck.report.blocks.matrix import Matrix, by_finding
from heatcheck.report.evidence import READERS, Evidence
from heatcheck.report.numbers import Unit, difference_of, interval, number
from heatcheck.studies.localization.report.facts import every_finding, manifest
from heatcheck.studies.localization.report.literature import with_published
from heatcheck.studies.localization.report.standing import NAMES, standing_on
from heatcheck.studies.localization.vocabulary import PAPER_PRESET, PLACEMENT, TESTED

LARGEST = 15
REASONS = {
    "Empty regions": (
        "A map that marks nothing on a positive case scores 0 here. The paper\u2019s rules leave the case out, which "
        "rewards a method for failing."
    ),
    "Ties": (
        "When several pixels share the highest value, they share the hit here. The paper\u2019s rules take the first "
        "of them, which lies nearest the top left."
    ),
    "Intervals": (
        "Patients are resampled for the intervals here. The paper\u2019s rules resample images, as if two images of "
        "one patient were unrelated, so their intervals tend to be too narrow."
    ),
    "Means": (
        "The mean here is that of the data. By the paper\u2019s rules it is the mean of the resampled data, which "
        "is close to it but not equal."
    ),
    "Readers\u2019 points": (
        "Where a reader marked several points, the share of them inside the outline counts here. By the paper\u2019s "
        "rules one point inside is enough, and a missing point counts as a miss."
    ),
    "Smoothed maps": (
        "Where a fine-grained map is smoothed before a region is cut out, the paper\u2019s rules smooth the grey value "
        "of its colours instead, which is low for hot and for cold pixels alike, so that both are kept."
    ),
    "Where maps lie": (
        "Here a coarse map lies where its cells look. The paper\u2019s rules take its cells to tile the image, which "
        "moves the map to the right and down if the network\u2019s layers are strided and padded."
    ),
    "Cases compared": (
        "Method and readers are compared on the cases that both have here; by the paper\u2019s rules each has its own."
    ),
}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One mean under both presets, as text; the largest `size` comes first."""

    who: str
    finding: str
    measure: str
    ours: str
    theirs: str
    difference: str
    cases: str
    size: float


def presets(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on presets shows; None when the run used one preset and names no switches."""
    view = evidence.under(preset=PAPER_PRESET)
    run = manifest(evidence)
    switches = sorted(run.switches, key=lambda switch: (switch.used == switch.chexlocalize, switch.label))
    compared = sorted(_disagreements(evidence, view), key=lambda each: -each.size)
    if not compared and not switches:
        return None
    return {
        "asked_for_paper": run.asked_for_paper,
        "rows": [each for each in compared if each.size > 0][:LARGEST],
        "compared": len(compared),
        "equal": sum(each.size == 0 for each in compared),
        "leaders": _leaders(evidence, view) if len(evidence.methods) > 1 else [],
        "reasons": REASONS if compared else {},
        "switches": switches,
        "placement": _placement(evidence),
        "tables": _tables(view, MEAN, ""),
        "decreases": _tables(view, PERCENT_DECREASE, HUMAN),
    }


def _placement(evidence: Evidence) -> list[str]:
    """What it changes that coarse maps lie where their cells look: one sentence per method and measure."""
    view, sentences = evidence.under(placement="plain"), []
    for entrant in evidence.methods:
        changes = []
        for metric in TESTED:
            row = view.find(PLACEMENT, metric, ALL_FINDINGS, entrant.name)
            if row is None or math.isnan(row.value):
                continue
            unit = difference_of(evidence.metrics[metric].unit)
            between = interval(row.low, row.high, unit)
            known = f" ({between})" if between else ""
            changes.append(f"mean {NAMES[metric]} {number(row.value, unit, signed=True)}{known}, {_changed(row)}")
        if changes:
            sentences.append(f"{entrant.label}: {'; '.join(changes)}.")
    return sentences


def _changed(row: Estimate) -> str:
    if judgement_of(row).answer is Answer.YES:
        return "clearly higher"
    if opposite_of(row).answer is Answer.YES:
        return "clearly lower"
    both = judgement_of(row).answer, opposite_of(row).answer
    return "no difference that matters" if both == (Answer.NO, Answer.NO) else "a difference is not shown"


def _tables(view: Evidence, statistic: Statistic, other: str) -> list[Matrix]:
    """The means or the percentage decreases by the paper's rules, with what the paper printed."""
    tables = [(m, by_finding(view, statistic, m, other=other)) for m in TESTED if m in view.metrics]
    return [table for metric, ours in tables if (table := with_published(ours, view, statistic, metric))]


def _disagreements(evidence: Evidence, view: Evidence) -> list[Disagreement]:
    compared = []
    for metric in TESTED:
        for entrant in (READERS, *evidence.methods):
            for finding in every_finding(evidence):
                ours = evidence.find(MEAN, metric, finding, entrant.name)
                theirs = view.find(MEAN, metric, finding, entrant.name)
                if ours and theirs and not math.isnan(ours.value) and not math.isnan(theirs.value):
                    measure = evidence.metrics[metric]
                    compared.append(_disagreement(entrant.label, measure.label, measure.unit, ours, theirs))
    return compared


def _disagreement(who: str, measure: str, unit: Unit, ours: Estimate, theirs: Estimate) -> Disagreement:
    gap = theirs.value - ours.value
    shown = number(gap, difference_of(unit), signed=True)
    same = ours.n_cases == theirs.n_cases
    cases = f"{ours.n_cases:,}" if same else f"{ours.n_cases:,} here, {theirs.n_cases:,} there"
    size = 0.0 if float(f"{gap:.6f}") == 0 else abs(gap)
    return Disagreement(
        who, ours.finding, measure, _with_interval(ours, unit), _with_interval(theirs, unit), shown, cases, size
    )


def _with_interval(row: Estimate, unit: Unit) -> str:
    between = interval(row.low, row.high, Unit(unit.factor, unit.decimals))
    return number(row.value, unit) + (f" ({between})" if between else "")


def _leaders(evidence: Evidence, view: Evidence) -> list[str]:
    """Whether both presets put the same method first, one sentence per measure."""
    sentences = []
    for metric, name in NAMES.items():
        ours, theirs = (standing_on(each, metric) if metric in evidence.metrics else None for each in (evidence, view))
        if ours and theirs:
            first, second = ours.leader.label, theirs.leader.label
            sentences.append(
                f"{first} has the highest mean {name} by both sets of rules." if first == second
                else f"By the recommended rules {first} has the highest mean {name}, by the paper\u2019s {second}."
            )  # fmt: skip
    return sentences
