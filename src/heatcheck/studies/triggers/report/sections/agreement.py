"""Do the methods agree with each other? Method against method, each cell tinted by how alike their maps are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.report.blocks.block import Block, Prose, Table, fold, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, grouped
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, listed, number
from heatcheck.report.page import Section
from heatcheck.studies.triggers.report.sections.consensus import consensus
from heatcheck.studies.triggers.vocabulary import ARTEFACT, PAIR_MEAN

MAIN = ("mutual_information", "cross_correlation", "ssim")
UNIT = SCORE.rounded(2)
_FAINT = 0.1  # of the deepest colour: values less far below 0 are drawn as 0
_SELF = Cell("", title="the same method")
PROOF = "Agreement is not proof: methods can share an error, and two that disagree may both show a part of the truth."


@dataclass(frozen=True, slots=True)
class Likeness:
    """A metric of how alike two maps are: its name, its meaning, and the value of two equal maps where it is fixed."""

    name: str
    sentence: str
    top: float = math.nan


@dataclass(frozen=True, slots=True)
class Agreement:
    """A table with its colour scale's ends in words."""

    table: Matrix
    sentence: str
    lowest: str
    highest: str
    has_opposites: bool  # some maps are negatives of each other


MEASURES = {
    "mutual_information": Likeness(
        "Mutual information",
        "How much information two maps share, in nats, minus what shuffled maps share by chance: 0 means none.",
    ),
    "cross_correlation": Likeness(
        "Cross-correlation", "1: the same map up to brightness and contrast; 0: unrelated; −1: the opposite.", 1.0
    ),
    "ssim": Likeness(
        "Structural similarity (SSIM)", "Likeness of small neighbourhoods (7 × 7 pixels): 1 is the same map.", 1.0
    ),
    "normalised_mutual_information": Likeness(
        "Normalised mutual information", "Mutual information divided by what the maps hold: from 0 to 1.", 1.0
    ),
    "ssim_global": Likeness(
        "SSIM over the whole map", "The one-window form that the paper prints: it ignores neighbourhoods.", 1.0
    ),
    "mutual_information_paper": Likeness(
        "Mutual information as in the paper",
        "256 steps of grey and no correction: two maps of pure noise seem to share more than a nat.",
    ),
}


def agreement(evidence: Evidence) -> Section | None:
    """How alike the methods' maps are, and whether that tells which is right; None when no two were compared."""
    compared, made = agreements(evidence)
    if not made:
        return None
    main = [metric for metric in MAIN if metric in made]
    closest = _closest(compared, main[0] if main else "")
    blocks = (
        Prose(
            "How alike are the maps that two methods make of the same image? The last column is the mean over the "
            "methods without itself; floors, which are made without the model, do not count in it. Point at a cell for "
            "its interval."
        ),
        *prose(closest, PROOF if closest else ""),
        *(block for metric in main for block in _heat(made[metric])),
        *consensus(compared),
        *fold(
            "Other measures of agreement",
            [block for metric, each in made.items() if metric not in MAIN for block in _heat(each)],
        ),
    )
    summary = closest or "How alike the maps of every two methods are."
    return Section("agreement", "Do the methods agree with each other?", "Agreement", blocks, summary)


def agreements(evidence: Evidence) -> tuple[Evidence, dict[str, Agreement]]:
    """The table of each measure, with the estimates that it is made of.

    Without planted triggers the maps are those of the artefacts.
    """
    if not any(key[0] == PAIR_MEAN for key in evidence.estimates):
        evidence = evidence.under(**ARTEFACT)
    metrics = dict.fromkeys(key[1] for key in evidence.estimates if key[0] == PAIR_MEAN)
    return evidence, {metric: table for metric in metrics if (table := _agreement(evidence, metric))}


def _heat(agreement: Agreement) -> tuple[Block, ...]:
    """The table with the scale of its colours below."""
    opposites = "; orange below 0, blue above" if agreement.has_opposites else ""
    scale = Markup(
        '{} <span class="tints{}" role="img" aria-label="Colour scale: the deeper, the further from 0{}"></span> {}. {}'
    ).format(
        agreement.lowest, " both" if agreement.has_opposites else "", opposites, agreement.highest, agreement.sentence
    )
    return Table(agreement.table), Prose(scale, small=True)


def _pair(evidence: Evidence, metric: str, one: Entrant, other: Entrant) -> Estimate | None:
    """The estimate of two methods, in whichever order the run has them."""
    row = evidence.find(PAIR_MEAN, metric, ALL_FINDINGS, one.name, other.name)
    return row or evidence.find(PAIR_MEAN, metric, ALL_FINDINGS, other.name, one.name)


def _compared(evidence: Evidence, metric: str) -> list[Entrant]:
    entrants = (*evidence.methods, *evidence.floors)
    return [e for e in entrants if any(_pair(evidence, metric, e, other) for other in entrants if other != e)]


def _agreement(evidence: Evidence, metric: str) -> Agreement | None:
    entrants = _compared(evidence, metric)
    if not entrants:
        return None
    likeness = MEASURES.get(metric) or Likeness(evidence.metrics[metric].label, evidence.metrics[metric].summary)
    pairs = {(a, b): _pair(evidence, metric, a, b) for a in entrants for b in entrants if a != b}
    values = [row.value for row in pairs.values() if row and not math.isnan(row.value)]
    reach = max([abs(value) for value in values], default=0.0)
    reach = max(reach, 0.0 if math.isnan(likeness.top) else likeness.top) or 1.0
    opposite = min(values, default=0.0) < -_FAINT * reach
    shade = _Shade(reach, opposite=opposite)
    notes = Footnotes()
    rows = []
    for one in entrants:
        cells = [_SELF if one == other else shade.cell(pairs[one, other], notes) for other in entrants]
        mean = evidence.find(PAIR_MEAN, metric, ALL_FINDINGS, one.name)
        rows.append(Row(one, (*cells, shade.cell(mean, notes))))
    columns = (*(Column(entrant.label) for entrant in entrants), Column("Mean of the methods", main=True))
    table = Matrix(likeness.name, columns, grouped(rows), tuple(notes.reasons))
    lowest = number(-reach if opposite else 0.0, UNIT)
    return Agreement(table, likeness.sentence, lowest, number(reach, UNIT), opposite)


@dataclass(frozen=True, slots=True)
class _Shade:
    """Which value has the deepest colour, and whether values below 0 have a colour of their own."""

    reach: float
    opposite: bool

    def cell(self, estimate: Estimate | None, notes: Footnotes) -> Cell:
        """The estimate with its colour; its interval is in the tooltip, so that the colours stand out."""
        cell = cell_of(estimate, UNIT, notes)
        between = f"95 % interval {cell.interval}" if cell.interval else ""
        cell = replace(cell, interval="", title="; ".join(filter(None, (between, cell.title))))
        if estimate is None or math.isnan(estimate.value):
            return cell
        tint = estimate.value / self.reach
        return replace(cell, tint=tint if self.opposite else max(tint, 0.0))


def _closest(evidence: Evidence, metric: str) -> str:
    """The methods whose maps are most alike, all pairs of the same printed value, and the one that agrees least."""
    methods = [entrant for entrant in _compared(evidence, metric) if entrant.kind == "method"] if metric else []
    pairs = [(row.value, a.label, b.label) for i, a in enumerate(methods) for b in methods[i + 1 :]
             if (row := _pair(evidence, metric, a, b)) and not math.isnan(row.value)]  # fmt: skip
    if len(methods) < 3 or not pairs:
        return ""
    most = number(max(pairs)[0], UNIT)
    alike = [f"{one} and {other}" for value, one, other in pairs if number(value, UNIT) == most]  # as printed
    means = _means(pairs, [method.label for method in methods])
    name = (MEASURES[metric].name[0].lower() + MEASURES[metric].name[1:]) if metric in MEASURES else metric
    lonely = min(means, key=lambda label: means[label])
    return f"By {name}, the maps of {listed(alike, 'and of')} were most alike ({most}); {lonely} agreed least."


def _means(pairs: Sequence[tuple[float, str, str]], labels: Sequence[str]) -> dict[str, float]:
    by_label = {label: [value for value, a, b in pairs if label in {a, b}] for label in labels}
    return {label: sum(values) / len(values) for label, values in by_label.items() if values}
