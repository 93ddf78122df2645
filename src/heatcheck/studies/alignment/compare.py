"""Runs of the alignment study: by how much their scores differ on each kind of network."""

from collections.abc import Sequence

from heatcheck.core.vocabulary import condition
from heatcheck.estimating.compared_scores import Compared, compared_by_case
from heatcheck.runs.store import Run
from heatcheck.studies.alignment.vocabulary import ARMS, AlignmentManifest


def compare_alignment(runs: Sequence[Run], draws: int) -> Compared:
    """The scores of methods, paired case by case, on the bases and on the control, aligned and misaligned networks."""
    seeds = runs[0].manifest_as(AlignmentManifest).seeds
    fine_tuned = {condition(arm=arm, seed=seed): f" · {arm}" for arm in ARMS if arm != "base" for seed in seeds}
    return compared_by_case(runs, {condition(arm="base"): " · base", **fine_tuned}, draws)
