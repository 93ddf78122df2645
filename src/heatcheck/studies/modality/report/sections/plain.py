"""The importances to networks from which no modality was hidden in training, beside those to the networks explained."""

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import Statistic
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.blocks.block import Block, Heading, Table, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, cell_of, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, listed, number
from heatcheck.studies.modality.report.facts import estimate, is_defined, manifest, phi, primary_game
from heatcheck.studies.modality.vocabulary import PHI_LESION, PHI_MODALITY, PLAIN_DIFFERENCE, PLAIN_SHAPLEY

HEADS = (
    Column("Networks explained", "φ", main=True),
    Column("Nothing hidden in training", "φ"),
    Column("Difference", "first less second"),
)
NAMES = {PHI_MODALITY: "Whole modalities", PHI_LESION: "Lesion only"}
ONE_EACH = "With one training of each, this is said of the two networks, not of hiding modalities."
READINGS = (
    "A network that never met an image without a modality is asked here about images unlike all it learned from; one "
    "that did may have learned to rely on others. Neither reading is wrong; maps and scores of this page are of the "
    "networks explained."
)
_WORDS = {True: "✓ clearly higher", False: "✕ clearly lower"}


def plain_networks(evidence: Evidence) -> tuple[Block, ...]:
    """Both importances side by side; nothing where the run has one only."""
    table = plain_table(evidence)
    if table is None:
        return ()
    hidden = manifest(evidence).plain
    return (
        Heading("If no modality is hidden in training"),
        *prose(plain_sentence(evidence), READINGS),
        Table(table),
        *prose(f"Nothing hidden: {hidden}." if hidden else "", small=True),
    )


def plain_table(evidence: Evidence) -> Matrix | None:
    """Importance to the networks explained and to those from which nothing was hidden; None without these."""
    notes, groups = Footnotes(), []
    for metric, label in NAMES.items():
        rows = {name: _rows(evidence, metric, name) for name in manifest(evidence).modalities}
        if any(row for each in rows.values() for row in each[1:]):
            cells = [labelled(name, [_cell(row, notes) for row in each]) for name, each in rows.items()]
            groups.append((label, tuple(cells)))
    if not groups:
        return None
    return Matrix("Importance by what was hidden in training", HEADS, tuple(groups), tuple(notes.reasons), "Modality")


def _plain(evidence: Evidence, statistic: Statistic, metric: str, modality: str) -> Estimate | None:
    return estimate(evidence, statistic, metric, {**primary_game(evidence, metric).condition, "modality": modality})


def _rows(evidence: Evidence, metric: str, modality: str) -> list[Estimate | None]:
    """Importance to the networks explained, to the plain ones, and the difference."""
    others = [_plain(evidence, statistic, metric, modality) for statistic in (PLAIN_SHAPLEY, PLAIN_DIFFERENCE)]
    return [phi(evidence, primary_game(evidence, metric), modality), *others]


def _cell(row: Estimate | None, notes: Footnotes) -> Cell:
    cell = cell_of(row, SCORE, notes)
    if row is None or row.statistic != PLAIN_DIFFERENCE or not is_defined(row):
        return cell
    return Cell(number(row.value, SCORE, signed=True), cell.interval, title=cell.title, outcome=_outcome(row))


def _outcome(row: Estimate) -> str:
    above, below = judgement_of(row), opposite_of(row)
    if above.is_yes or below.is_yes:
        return _WORDS[above.is_yes]
    return "no difference that matters" if above.is_no and below.is_no else "not shown"


def plain_sentence(evidence: Evidence) -> str:
    """Whether networks from which nothing was hidden rely on other modalities."""
    differences = {
        name: _plain(evidence, PLAIN_DIFFERENCE, PHI_MODALITY, name) for name in manifest(evidence).modalities
    }
    known = {name: row for name, row in differences.items() if row and is_defined(row)}
    several = manifest(evidence).folds > 1
    whom = "the networks" if several else "the network"
    if not known:
        reason = next((row.reason for row in differences.values() if row and row.reason), "it has no value")
        return (
            f"Whether the modalities matter as much to {whom} from which nothing was hidden cannot be said: {reason}."
        )
    parts = [
        f"{listed([_both(evidence, name) for name in names])} {verb} clearly {word} important"
        for word, names in (
            ("less", [name for name, row in known.items() if judgement_of(row).is_yes]),
            ("more", [name for name, row in known.items() if opposite_of(row).is_yes]),
        )
        if (verb := "is" if len(names) == 1 else "are") and names
    ]
    if parts:
        limit = "" if several else f" {ONE_EACH}"
        return f"To {whom} from which nothing was hidden, {listed(parts)}.{limit}"
    if all(judgement_of(row).is_no and opposite_of(row).is_no for row in known.values()):
        return f"To {whom} from which nothing was hidden, no modality is more or less important by a size that matters."
    return f"That any modality is more or less important to {whom} from which nothing was hidden is not shown."


def _both(evidence: Evidence, modality: str) -> str:
    """A modality with its importance to the plain networks, and to those explained."""
    ours, theirs, _ = _rows(evidence, PHI_MODALITY, modality)
    if ours is None or theirs is None:
        return modality
    return f"{modality} (φ {number(theirs.value)} instead of {number(ours.value)})"
