"""The importances to networks from which no modality was hidden in training, beside those to the networks explained.

A network that never saw an image without a modality is asked of images unlike all that it learned from; one that did
may rely on other modalities. Both are readings of φ, and they may differ.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import Condition
from heatcheck.studies.modality.estimating.importance import ShapleyGame
from heatcheck.studies.modality.estimating.subsets import SubsetAnswers, SubsetScores
from heatcheck.studies.modality.vocabulary import PHI, PLAIN, PLAIN_DIFFERENCE, PLAIN_SHAPLEY


def plain_rows(folder: Path, scores: SubsetScores) -> Iterator[Estimate]:
    """By the primary rules: each modality's importance to the plain networks, and how much higher the others' is."""
    if not (folder / PLAIN / "scores.parquet").exists():
        return
    plain, settings = SubsetScores.read(folder, scores.settings, PLAIN), scores.settings
    for ablated, metric in PHI.items():
        ours, theirs = (each.table(ablated, settings.fills[0]) for each in (scores, plain))
        both = ours.index.intersection(theirs.index)
        one, other = (SubsetAnswers.of_table(table.loc[both]) for table in (ours, theirs))
        for (fold, part), (_, of_plain) in zip(one.by_fold(), other.by_fold(), strict=True):
            facts: Condition = {"filled": settings.fills[0], "fold": fold, "measure": settings.measure}
            yield from _of_fold(scores, (part, of_plain), metric, facts)


def _of_fold(
    scores: SubsetScores, answers: tuple[SubsetAnswers, SubsetAnswers], metric: str, facts: Condition
) -> Iterator[Estimate]:
    settings, (ours, theirs) = scores.settings, answers
    template = Estimate(
        PLAIN_SHAPLEY, metric, ALL, model=settings.model, n_cases=len(ours.right),
        n_patients=len(np.unique(ours.patients)), reason=ours.strata(settings.measure, settings.classes).lacking,
    )  # fmt: skip
    game = ShapleyGame(settings, theirs, settings.measure, template, facts)
    yield from game.modalities("modality, plain networks")
    # what a difference amounts to is measured by what all modalities contribute to the networks explained
    explained = ShapleyGame(settings, ours, settings.measure, template, facts)
    differences = replace(ours, right=ours.right - theirs.right)
    lowest, highest = explained.ends
    game = replace(
        explained, answers=differences, template=replace(template, statistic=PLAIN_DIFFERENCE),
        contribution=explained.contributed, ends=(lowest - highest, highest - lowest),
    )  # fmt: skip
    yield from game.modalities("modality, less plain networks")
