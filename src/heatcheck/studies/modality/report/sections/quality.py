"""Where maps are better and worse: with the answer, the network's uncertainty and the size of the lesion."""

import math
from collections.abc import Sequence

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import SLOPE
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.blocks.block import Block, bullets, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Column, Matrix, Row, cell_of, grouped
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, count, few, number
from heatcheck.report.page import Section
from heatcheck.studies.modality.report.facts import FLOOR_ENTRANTS, estimate, manifest
from heatcheck.studies.modality.vocabulary import CORRECT, LESION_SIZE, QUALITY, UNCERTAINTY, UNIFORM

COLUMNS = {
    CORRECT: Column("Right answers", "less wrong ones", main=True),
    UNCERTAINTY: Column("Uncertainty", "lowest to highest"),
    LESION_SIZE: Column("Lesion", "smallest to largest"),
}
HIGHER = {
    CORRECT: "clearly higher where the answer is right",
    UNCERTAINTY: "clearly higher where the network is uncertain",
    LESION_SIZE: "clearly higher in large lesions",
}
LOWER = {
    CORRECT: "clearly lower where the answer is right",
    UNCERTAINTY: "clearly lower where the network is uncertain",
    LESION_SIZE: "clearly lower in large lesions",
}
ABOUT = {
    CORRECT: "between right and wrong answers",
    UNCERTAINTY: "with the network\u2019s uncertainty",
    LESION_SIZE: "with the size of the lesion",
}


HOW = (
    "Change of the score from one end of a feature to the other, by least squares with a level of its own for every "
    "network. Intervals allow for several cases of one patient and hold for all methods, scores and features "
    "together; a change matters if it is that between two methods over most of the feature (10th to 90th percentile). "
    "That a score goes with a feature does not say why."
)


def quality(evidence: Evidence) -> Section | None:
    """What scores of single cases go with; None where the run has no such slopes."""
    matrices = [matrix for metric in QUALITY if (matrix := slope_table(evidence, metric))]
    if not matrices:
        return None
    said = sentences(evidence)
    first, *others = tables(matrices)
    blocks: tuple[Block, ...] = (
        *prose(
            "Scores of single cases vary. This asks what they go with: whether the answer is right, how uncertain the "
            "network is (the entropy of its probabilities), and how much of the head the lesion fills."
        ),
        *bullets(said),
        first,
        *prose(HOW, small=True),
        *fold("The same for other scores", others),
    )
    return Section("quality", "Where are maps better?", "Quality", blocks, summary(said))


def summary(said: Sequence[str]) -> str:
    """The first sentence that says something clear, or the first."""
    return next((sentence for sentence in said if sentence.startswith("MSFI is ")), said[0])


def sentences(evidence: Evidence) -> list[str]:
    """What MSFI goes with, feature by feature, and how a uniform map changes with the lesion's size."""
    return [*(_sentence(evidence, feature) for feature in COLUMNS), *_of_uniform(evidence)]


def _slope(evidence: Evidence, metric: str, method: str, feature: str) -> Estimate | None:
    return estimate(evidence, SLOPE, metric, {"feature": feature}, method)


def slope_table(evidence: Evidence, metric: str) -> Matrix | None:
    """Methods, and the uniform head below them, against features."""
    notes = Footnotes()
    uniform = [entrant for entrant in FLOOR_ENTRANTS if entrant.name == UNIFORM]
    slopes = {
        entrant: [_slope(evidence, metric, entrant.name, feature) for feature in COLUMNS]
        for entrant in (*evidence.methods, *uniform)
    }
    rows = [Row(entrant, tuple(cell_of(x, SCORE, notes) for x in row)) for entrant, row in slopes.items() if any(row)]
    label = evidence.metrics[metric].label if metric in evidence.metrics else metric
    return Matrix(label, tuple(COLUMNS.values()), grouped(rows), tuple(notes.reasons)) if rows else None


def _sentence(evidence: Evidence, feature: str) -> str:
    """Of which methods MSFI clearly changes with a feature, and that it is not shown, or cannot be said, of others."""
    slopes = {method: _slope(evidence, QUALITY[0], method.name, feature) for method in evidence.methods}
    known = {method: row for method, row in slopes.items() if row and not math.isnan(row.low)}
    if not known:
        reason = next((row.reason for row in slopes.values() if row and row.reason), "it has no value")
        return f"Whether MSFI differs {ABOUT[feature]} cannot be said: {reason}."
    parts = [
        f"{words} with {few(_labels(methods))}"
        for words, methods in (
            (HIGHER[feature], [method for method, row in known.items() if judgement_of(row).is_yes]),
            (LOWER[feature], [method for method, row in known.items() if opposite_of(row).is_yes]),
        )
        if methods
    ]
    where = " in this network" if manifest(evidence).folds == 1 else ""
    if parts:
        return f"MSFI is {'; it is '.join(parts)}{where}."
    if all(judgement_of(row).is_no and opposite_of(row).is_no for row in known.values()):
        return f"With no method does MSFI differ {ABOUT[feature]} by a size that matters{where}."
    return f"That MSFI differs {ABOUT[feature]} is not shown of any of {count(len(known), 'method')}{where}."


def _labels(methods: Sequence[Entrant]) -> list[str]:
    return [method.label for method in methods]


def _of_uniform(evidence: Evidence) -> list[str]:
    """How a map without information changes with the lesion's size."""
    row = _slope(evidence, QUALITY[0], UNIFORM, LESION_SIZE)
    if row is None or math.isnan(row.value):
        return []
    change = number(row.value, SCORE, signed=True)
    return [f"From the smallest to the largest lesion the MSFI of a uniform map changes by {change}."]
