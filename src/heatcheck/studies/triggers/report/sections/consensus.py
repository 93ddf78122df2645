"""The methods in the order of their agreement, beside the order by the known truth."""

import math

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.judging.judgement import judgement_of
from heatcheck.report.blocks.block import Block, Heading, Table, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import MISSING, SCORE, SHARE, interval, number
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.facts import these_networks
from heatcheck.studies.triggers.vocabulary import AGREEMENT_MEASURES, CONSENSUS, TAU_THAT_MATTERS

TAU = SCORE.rounded(2)
PLACE = (
    "Place 1 agrees most with the other methods. On each image a method gets the share of the other methods that agree "
    "less with the rest than it does, averaged over mutual information, cross-correlation and SSIM; places follow from "
    "the mean of that share. Below a place stands the range that it may lie in: a pair of methods that is not clearly "
    "apart may stand in either order, over images, seeds and all pairs together."
)
NO_PROOF = (
    "Agreement is no evidence of correctness: methods that share a principle, or an error, agree too. Without a known "
    "truth, do not choose a method because it agrees with others."
)


def consensus(evidence: Evidence) -> tuple[Block, ...]:
    """The part on the consensus of the section on agreement; nothing where the run has none."""
    methods = [method for method in evidence.methods if _place(evidence, "consensus_rank", method)]
    if not methods:
        return ()
    notes = Footnotes()
    ordered = sorted(methods, key=lambda method: evidence.value(CONSENSUS, "consensus_rank", ALL_FINDINGS, method.name))
    rows = tuple(_row(evidence, method, notes) for method in ordered)
    columns = (
        Column("Place by agreement", "range"),
        Column("Agrees more than", "share of the others"),
        Column("Place by overlap with the trigger", "range"),
    )
    table = Matrix("Consensus of the methods", columns, (("Methods", rows),), tuple(notes.reasons))
    return (
        Heading("Would agreement have found the right method?"),
        *prose(by_truth(evidence)),
        *prose(_by_measure(evidence)),
        *prose(_published() if literature.is_own_data(evidence) else ""),
        Table(table, note=PLACE),
    )


def _place(evidence: Evidence, metric: str, method: Entrant) -> Estimate | None:
    return evidence.find(CONSENSUS, metric, ALL_FINDINGS, method.name)


def _row(evidence: Evidence, method: Entrant, notes: Footnotes) -> Row:
    by_consensus, by_truth = (_place(evidence, metric, method) for metric in ("consensus_rank", "truth_rank"))
    share = cell_of(evidence.find(CONSENSUS, "consensus", ALL_FINDINGS, method.name), SHARE.rounded(0), notes)
    return Row(method, (_place_cell(by_consensus), share, _place_cell(by_truth)))


def _place_cell(row: Estimate | None) -> Cell:
    if row is None or math.isnan(row.value):
        return Cell(MISSING)
    low, high = int(row.low), int(row.high)
    return Cell(f"{row.value:g}", f"{low}" if low == high else f"{low}\u2013{high}")


def by_truth(evidence: Evidence) -> str:
    """Whether the order by agreement is that by truth, by the one judgement."""
    tau = evidence.find(CONSENSUS, "rank_agreement", ALL_FINDINGS)
    if tau is None or math.isnan(tau.value):
        return NO_PROOF
    words = f"Kendall\u2019s \u03c4 {number(tau.value, TAU)}, 95 % interval {interval(tau.low, tau.high, TAU)}"
    if math.isnan(tau.size):
        return (
            f"In {these_networks(evidence)}, the order by agreement and the order by overlap with the trigger had "
            f"{words}. {NO_PROOF}"
        )
    if judgement_of(tau).is_yes:
        return (
            f"Here the methods that agree more with the others clearly are those that overlap the trigger more "
            f"({words}): with these triggers, this architecture and these methods. It is known because the truth is. "
            "Elsewhere agreement alone is no evidence of correctness: methods that share an error agree too."
        )
    if judgement_of(tau).is_no:
        return (
            f"The order by agreement does not follow the order by overlap with the trigger ({words}; "
            f"{TAU_THAT_MATTERS:g} would matter). {NO_PROOF}"
        )
    return (
        f"That the methods that agree more with the others are those that overlap the trigger more is not shown "
        f"({words}). {NO_PROOF}"
    )


def _by_measure(evidence: Evidence) -> str:
    parts = []
    for measure in AGREEMENT_MEASURES:
        row = evidence.under(measure=measure).find(CONSENSUS, "rank_agreement", ALL_FINDINGS)
        if row is not None and not math.isnan(row.value):
            name = evidence.metrics[measure].label if measure in evidence.metrics else measure
            parts.append(f"{name} {number(row.value, TAU)} ({interval(row.low, row.high, TAU)})")
    return f"By each measure alone, \u03c4 with the order by overlap: {'; '.join(parts)}." if parts else ""


def _published() -> str:
    """What the paper says of agreement beside what its tables say of overlap."""
    most, least = literature.AGREES_MOST, literature.AGREES_LEAST
    overlaps = literature.mean_overlaps()
    best = max(overlaps, key=lambda method: overlaps[method])
    first, last = (" and ".join(literature.WORDS[name] for name in names) for names in (most, least))
    figures = ", ".join(f"{literature.WORDS[name]} {number(overlaps[name], TAU)}" for name in (*most, *least))
    return (
        f"Published ({literature.SOURCE}): agreement is printed as pictures without numbers. The text names {first} as "
        f"agreeing most and {last} as agreeing least, while the mean IoU of its tables is {figures}: "
        f"{literature.WORDS[best]} overlaps most."
    )
