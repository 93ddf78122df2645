"""How sure the networks are, and how often they are right, before and after the attack, on clean and stamped images.

The answer of a network is the class it names, and its confidence the probability that it gives this class.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import DIFFERENCE, condition
from heatcheck.estimating.calibration import calibration_rows
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.score_table import pivoted
from heatcheck.stats.resampling.nested_rates import nested_rates
from heatcheck.stats.resampling.nested_studentised import separate_means
from heatcheck.studies.triggers.estimating.comparisons import KEYS, compared, design_of
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.vocabulary import (
    ATTACK,
    BASELINE,
    BASELINE_STAMPED,
    CALIBRATION_ERRORS,
    CLEAN,
    OVERCONFIDENCE,
    STAMPED,
    confidence_of,
    correct_of,
)

# a dynamic patch is made from what the baseline is most sensitive to, the others are not: a mean would be of neither
OF_BASELINE = "baseline_ece_stamped"


def calibration_estimates(scores: pd.DataFrame, settings: TriggerSettings) -> Iterator[Estimate]:
    """The calibration error of each network on clean and stamped images, by seed and over seeds, and over triggers.

    That of the baseline on stamped images is not pooled over triggers.
    """
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
                if name != BASELINE and metric != OF_BASELINE:
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


def overconfidence_estimates(scores: pd.DataFrame, settings: TriggerSettings) -> Iterator[Estimate]:
    """Mean confidence less the share of right answers of each network, and what the attack changed of it."""
    answers = {metric: answers_to(shown, scores) for metric, shown in OVERCONFIDENCE.items()}
    for metric, table in answers.items():
        for name in dict.fromkeys(table.index.get_level_values("finding")):
            rows = table[table.index.get_level_values("finding") == name]
            yield _of_network(rows, Estimate(ATTACK, metric, str(name), model=settings.model), settings)
    yield from _changes(answers, settings)


def _of_network(answers: pd.DataFrame, template: Estimate, settings: TriggerSettings) -> Estimate:
    gap = (answers["confidence"] - answers["correct"]).to_numpy(float)[:, None]
    design = design_of(answers)
    generator = settings.generator(template.statistic, template.metric, template.finding)
    (mean,) = separate_means(gap, design, settings.draws, generator)
    (rate,) = nested_rates(answers[["correct"]].to_numpy(float), design)
    row = fill(template, mean, mean.reason or mean.note)
    return _as_wide_as_accuracy(row, rate.low - rate.value, rate.high - rate.value)


def _changes(answers: Mapping[str, pd.DataFrame], settings: TriggerSettings) -> Iterator[Estimate]:
    """By how much the attack made the networks too sure, on clean and on stamped images, over all triggers."""
    by_shown = {shown: answers[metric] for metric, shown in OVERCONFIDENCE.items()}
    clean = by_shown[CLEAN]
    is_baseline = clean.index.get_level_values("finding") == BASELINE
    before = {CLEAN: _for_every_trigger(clean[is_baseline], settings), STAMPED: by_shown[BASELINE_STAMPED]}
    after = {CLEAN: clean[~is_baseline], STAMPED: by_shown[STAMPED]}
    changes = {shown: (after[shown] - before[shown]).dropna() for shown in after}
    if all(change.empty for change in changes.values()):
        return
    size = settings.sizes.between_methods("hit")  # a difference of shares of images
    rows = [
        Estimate(DIFFERENCE, metric, ALL, model=settings.model, other_method=BASELINE, size=size)
        for metric in ("overconfidence", "overconfidence_stamped")
    ]
    gaps = pd.DataFrame({shown: change["confidence"] - change["correct"] for shown, change in changes.items()})
    rights = pd.DataFrame({shown: change["correct"] for shown, change in changes.items()})
    of_gaps = compared(gaps, rows, "overconfidence after the attack against before", settings)
    of_rights = compared(rights, rows, "accuracy after the attack against before", settings)
    for row, right in zip(of_gaps, of_rights, strict=True):
        wide = _as_wide_as_accuracy(row, right.low - right.value, right.high - right.value)
        # an image is either attacked or not, so one of the columns is empty
        yield replace(wide, n_undefined=0, p_adjusted=max(row.p_adjusted, right.p_adjusted))


def _as_wide_as_accuracy(row: Estimate, below: float, above: float) -> Estimate:
    """The row with an interval that reaches at least as far as that of the accuracy in it, which is subtracted.

    Where all answers are wrong, only the confidence varies between images, which says nothing of the next answer.
    """
    if math.isnan(row.low) or math.isnan(below):
        return row
    low, high = min(row.low, row.value - above), max(row.high, row.value - below)
    return replace(row, low=max(low, -1.0), high=min(high, 1.0))


def _for_every_trigger(answers: pd.DataFrame, settings: TriggerSettings) -> pd.DataFrame:
    """The baseline's rows once for each trigger, with which they are compared."""
    rows = answers.reset_index()
    return pd.concat([rows.assign(finding=name) for name in settings.triggers], ignore_index=True).set_index(KEYS)
