"""Where the heat goes: how each method shares it between the modalities, and how much of it lies on the lesion."""

import math

from markupsafe import Markup

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.block import Block, Prose, Table, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import MISSING, SHARE, interval, number
from heatcheck.report.page import Section
from heatcheck.studies.modality.report.facts import estimate, manifest, phi, primary_game
from heatcheck.studies.modality.report.reliance import reliance_of
from heatcheck.studies.modality.report.sections.comparison import sorted_by_msfi
from heatcheck.studies.modality.vocabulary import EVERY_FOLD, PHI_MODALITY

_PERCENT = SHARE.rounded(0)
SCALE = Markup('0 % <span class="tints" role="img" aria-label="Colour scale: the deeper, the more heat"></span> 100 %.')
ASIDES = {"modality_sum": "of all heat", "inside_share": "in its lesion"}


def heat(evidence: Evidence) -> Section | None:
    """How much heat each modality gets, and how much of it lies on the lesion; None when the run has no such means."""
    table = heat_table(evidence)
    if table is None:
        return None
    row = " (first row)" if len(table.groups) > 1 else ""
    blocks: tuple[Block, ...] = (
        *prose(
            f"In a faithful map, heat is shared between the modalities as the network\u2019s reliance is{row}. With "
            "one map for all modalities, each gets the same share. The columns on the right say how much of a "
            "modality\u2019s heat lies inside its lesion. Point at a cell for its interval."
        ),
        Table(table),
        Prose(SCALE, small=True),
    )
    return Section("heat", "Where does the heat go?", "Heat", blocks, summary(evidence), printed=True)


def summary(evidence: Evidence) -> str:
    """The share of the heat that the most important modality gets, over the methods with a map for each."""
    reliance = reliance_of(evidence)
    if reliance is None:
        return ""
    methods = [method.name for method in evidence.methods if method.name not in manifest(evidence).shared]
    rows = [_mean(evidence, "modality_sum", name, reliance.top) for name in methods]
    values = [row.value for row in rows if row and not math.isnan(row.value)]
    if not values:
        return ""
    low, high = number(min(values), _PERCENT), number(max(values), _PERCENT)
    share = high if low == high else f"{low} to {high}"
    depending = "" if low == high else ", depending on the method"
    shared = len(evidence.methods) - len(methods)
    equal = number(1 / len(manifest(evidence).modalities), _PERCENT)
    one_map = "method that makes" if shared == 1 else "methods that make"
    rest = f"; {equal} with the {shared} {one_map} one map for all" if shared else depending
    return f"{reliance.top}, the most important modality, gets {share} of the heat{rest}."


def heat_table(evidence: Evidence) -> Matrix | None:
    """One row per method and one column per modality, darker with more heat; the network's own shares come first."""
    names, notes, rows = manifest(evidence).modalities, Footnotes(), []
    for method in sorted_by_msfi(evidence):
        means = [_mean(evidence, metric, method.name, name) for metric in ASIDES for name in names]
        if any(means):
            rows.append(Row(method, tuple(_cell(mean, notes) for mean in means)))
    if not rows:
        return None
    network = _network(evidence)
    groups = (*((("The network", (network,)),) if network else ()), ("Methods", tuple(rows)))
    columns = tuple(Column(name, aside) for aside in ASIDES.values() for name in names)
    return Matrix("Where each method puts its heat, mean over cases", columns, groups, tuple(notes.reasons))


def _mean(evidence: Evidence, metric: str, method: str, modality: str) -> Estimate | None:
    return estimate(evidence, MEAN, metric, {"fold": EVERY_FOLD, "modality": modality}, method)


def _cell(row: Estimate | None, notes: Footnotes) -> Cell:
    if row is None or math.isnan(row.value):
        why = (row.reason if row else "") or "not computed in this run"
        return Cell(MISSING, title=why, note=notes.mark(why))
    between = interval(row.low, row.high, _PERCENT)
    return Cell(number(row.value, _PERCENT), title=f"95 % interval {between}" if between else "", tint=row.value)


def _network(evidence: Evidence) -> Row | None:
    """Each modality's share of the importances above 0: where heat should go."""
    game, names = primary_game(evidence, PHI_MODALITY), manifest(evidence).modalities
    rows = [phi(evidence, game, name) for name in names]
    values = [max(0.0, row.value) if row and not math.isnan(row.value) else 0.0 for row in rows]
    if not sum(values):
        return None
    shares = [value / sum(values) for value in values]
    title = "the modality\u2019s importance, where it is above 0, as a share of all"
    cells = [Cell(number(share, _PERCENT), title=title, tint=share) for share in shares]
    return labelled("Importance, as shares", [*cells, *(Cell("") for _ in names)])
