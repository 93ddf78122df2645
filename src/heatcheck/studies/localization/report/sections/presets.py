"""Where the paper's rules and the recommended ones disagree on the same data, and why."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import MEAN, PERCENT_DECREASE, Statistic
from heatcheck.judging.judgement import Answer, judgement_of, opposite_of
from heatcheck.report.blocks.block import (
    Block,
    Fold,
    Heading,
    ListColumn,
    Listing,
    Prose,
    Terms,
    bullets,
    fold,
    prose,
    tables,
)
from heatcheck.report.blocks.matrix import Matrix, by_finding
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import Unit, difference_of, interval, number
from heatcheck.report.page import Section
from heatcheck.studies.localization.report.facts import every_finding, manifest
from heatcheck.studies.localization.report.literature import caveat_of, with_published
from heatcheck.studies.localization.report.standing import NAMES, standing_on
from heatcheck.studies.localization.vocabulary import PAPER_PRESET, PLACEMENT, TESTED, SwitchEntry

LARGEST = 15
Blocks = tuple[Block, ...]
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


BOTH_RULES = (
    "The same maps were scored by two sets of rules: the recommended ones, and those of the scripts that came with the "
    "CheXlocalize paper. The verdict, the plots and the tables of every other section follow the preset "
    "\u201crecommended\u201d."
)


def presets(evidence: Evidence) -> Section | None:
    """The section on presets; None when the run used one preset and names no switches."""
    view = evidence.under(preset=PAPER_PRESET)
    run = manifest(evidence)
    switches = sorted(run.switches, key=lambda switch: (switch.used == switch.chexlocalize, switch.label))
    compared = sorted(_disagreements(evidence, view), key=lambda each: -each.size)
    if not compared and not switches:
        return None
    leaders = _leaders(evidence, view) if len(evidence.methods) > 1 else []
    placement = _placement(evidence)
    moved = "Each mean where the cells look, less that of the same maps as plain resizing places them:"
    blocks = (
        *_compared_blocks(compared, leaders, asked_for_paper=run.asked_for_paper),
        *((Heading("Why they disagree"), Terms(tuple(REASONS.items()))) if compared else ()),
        *((Heading("What the place of a coarse map changes"), Prose(moved)) if placement else ()),
        *bullets(placement),
        *_paper_means(evidence, view, opened=run.asked_for_paper),
        *fold("Every switch, as it was set", (_switch_table(switches),) if switches else ()),
    )
    summary = leaders[0] if leaders else "The recommended rules, and those of the paper\u2019s scripts."
    return Section("presets", "Where the two presets disagree", "Presets", blocks, summary)


def _compared_blocks(compared: Sequence[Disagreement], leaders: Sequence[str], *, asked_for_paper: bool) -> Blocks:
    """Which rules the page follows, and the largest disagreements of both."""
    if not compared:
        return prose("The numbers of this page follow the preset \u201crecommended\u201d.")
    asked = "This run was asked for the preset \u201cchexlocalize\u201d: its numbers are given below."
    return (
        *prose(BOTH_RULES, asked if asked_for_paper else ""),
        *bullets(leaders),
        *(_disagreement_table(compared) or prose("Both sets of rules give the same means here.")),
    )


def _disagreement_table(compared: Sequence[Disagreement]) -> tuple[Listing, ...]:
    """The largest disagreements; nothing where all means are equal."""
    rows = tuple(
        (each.who, each.finding, each.measure, each.ours, each.theirs, each.difference, each.cases)
        for each in [each for each in compared if each.size > 0][:LARGEST]
    )
    equal = sum(each.size == 0 for each in compared)
    caption = f"Largest disagreements, of {len(compared)} means compared{f' ({equal} are equal)' if equal else ''}"
    words = tuple(ListColumn(name) for name in ("Who", "Finding", "Measure"))
    numbers = ("Recommended", "Paper\u2019s rules", "Difference", "Cases")
    columns = (*words, *(ListColumn(name, numeric=True) for name in numbers))
    return (Listing(caption, columns, rows),) if rows else ()


def _paper_means(evidence: Evidence, view: Evidence, *, opened: bool) -> tuple[Fold, ...]:
    """Every mean and percentage decrease by the paper's rules."""
    means, decreases = _tables(view, MEAN, ""), _tables(view, PERCENT_DECREASE, HUMAN)
    blocks = (
        *tables(means, " by the paper\u2019s rules"),
        *tables(decreases, " by the paper\u2019s rules: decrease from the readers"),
    )
    note = prose(caveat_of(evidence, [*means, *decreases]), small=True)
    return fold("Every mean by the paper\u2019s rules", (*blocks, *note) if blocks else (), opened=opened)


def _switch_table(switches: Sequence[SwitchEntry]) -> Listing:
    names = "Switch", "As asked for", "Paper\u2019s rules"
    columns = (*(ListColumn(name) for name in names), ListColumn("Why it matters", wide=True))
    rows = tuple((each.label, each.used, each.chexlocalize, each.why) for each in switches)
    return Listing("Switches of the rules", columns, rows)


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
        for entrant in (evidence.readers, *evidence.methods):
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
