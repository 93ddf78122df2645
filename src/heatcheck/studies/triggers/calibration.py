"""How sure the networks are, and how often they are right, before and after the attack, on clean and stamped images.

The answer of a network is the class it names, and its confidence the probability that it gives this class.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, condition
from heatcheck.estimating.calibration import calibration_rows
from heatcheck.estimating.score_table import pivoted
from heatcheck.studies.triggers.comparisons import KEYS, compared
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.vocabulary import (
    BASELINE,
    BASELINE_STAMPED,
    CALIBRATION_ERRORS,
    CLEAN,
    OVERCONFIDENCE,
    STAMPED,
    confidence_of,
    correct_of,
)


def calibration_estimates(scores: pd.DataFrame, settings: TriggerSettings) -> Iterator[Estimate]:
    """The calibration error of each network on clean and stamped images, by seed and over seeds, and over triggers."""
    means: dict[str, list[tuple[Estimate, ...]]] = {}
    for name in (BASELINE, *settings.triggers):
        for metric, shown in CALIBRATION_ERRORS.items():
            answers = answers_to(shown, scores[scores["finding"] == name])
            by_seed = [_of_seed(rows, metric) for _, rows in answers.groupby("seed", sort=True)]
            for seed, pair in zip(sorted(set(answers.index.get_level_values("seed"))), by_seed, strict=True):
                yield from (
                    replace(row, finding=name, model=settings.model, condition=condition(seed=int(seed)))
                    for row in pair
                )
            if by_seed:
                over_seeds = tuple(replace(row, finding=name, model=settings.model) for row in _averaged(by_seed))
                yield from over_seeds
                if name != BASELINE:
                    means.setdefault(metric, []).append(over_seeds)
    for pairs in means.values():
        yield from (replace(row, finding=ALL) for row in _averaged(pairs))


def answers_to(shown: str, scores: pd.DataFrame) -> pd.DataFrame:
    """Each image with a column for whether the answer was right and one for the confidence in it."""
    columns = {correct_of(shown): "correct", confidence_of(shown): "confidence"}
    chosen = scores[scores["metric"].isin(columns)]
    return pivoted(chosen, KEYS, "metric").reindex(columns=list(columns)).rename(columns=columns).dropna()


def _of_seed(answers: pd.DataFrame, metric: str) -> tuple[Estimate, Estimate]:
    patients = answers.index.get_level_values("patient").to_numpy()
    correct, confidence = (answers[column].to_numpy(float) for column in ("correct", "confidence"))
    return calibration_rows(correct, confidence, patients, metric)


def _averaged(pairs: Sequence[tuple[Estimate, ...]]) -> tuple[Estimate, ...]:
    """The means over seeds or triggers, all with the same images.

    The mean of their limits is what a mean of perfect networks exceeds at most as often as each of them, however much
    they have in common.
    """
    return tuple(
        replace(
            rows[0],
            value=float(np.mean([row.value for row in rows])),
            high=float(np.mean([row.high for row in rows])),
            n_cases=sum(row.n_cases for row in rows),
        )
        for rows in zip(*pairs, strict=True)
    )


def overconfidence(scores: pd.DataFrame) -> pd.DataFrame:
    """Confidence less 1 where the answer was right, as scores of every image."""
    tables = []
    for metric, shown in OVERCONFIDENCE.items():
        answers = answers_to(shown, scores)
        gap = (answers["confidence"] - answers["correct"]).rename("value").reset_index()
        tables.append(gap.assign(metric=metric))
    return pd.concat(tables, ignore_index=True)


def overconfidence_changes(gaps: pd.DataFrame, settings: TriggerSettings) -> Iterator[Estimate]:
    """By how much the attack made the networks too sure, on clean and on stamped images, over all triggers."""
    by_metric = {shown: gaps[gaps["metric"] == metric] for metric, shown in OVERCONFIDENCE.items()}
    of_baseline = by_metric[CLEAN][by_metric[CLEAN]["finding"] == BASELINE]
    before = {CLEAN: _for_every_trigger(of_baseline, settings), STAMPED: by_metric[BASELINE_STAMPED]}
    columns = {}
    for shown, earlier in before.items():
        later = by_metric[shown][by_metric[shown]["finding"] != BASELINE]
        columns[shown] = later.set_index(KEYS)["value"] - earlier.set_index(KEYS)["value"]
    changes = pd.DataFrame(columns)
    if changes.dropna(how="all").empty:
        return
    size = settings.sizes.between_methods("hit")  # a difference of shares of images
    rows = [
        Estimate(DIFFERENCE, metric, ALL, model=settings.model, other_method=BASELINE, size=size)
        for metric in ("overconfidence", "overconfidence_stamped")
    ]
    for row in compared(changes, rows, "overconfidence after the attack against before", settings):
        yield replace(row, n_undefined=0)  # an image is either attacked or not, so one of the columns is empty


def _for_every_trigger(rows: pd.DataFrame, settings: TriggerSettings) -> pd.DataFrame:
    """The baseline's rows once for each trigger, with which they are compared."""
    return pd.concat([rows.assign(finding=name) for name in settings.triggers], ignore_index=True)
