"""Whether networks still predict after fine-tuning: AUROC, mutual information with the label, and separation."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import ONE_VALUE, Estimate
from heatcheck.core.vocabulary import AUROC, DIFFERENCE, Statistic, condition
from heatcheck.estimating.estimates import coverage, fill, joined
from heatcheck.fitting.stage import TRAINING
from heatcheck.judging.patients import judged
from heatcheck.metrics.label_information import information_terms
from heatcheck.metrics.reliance import separation
from heatcheck.stats.auroc import clustered_auroc
from heatcheck.stats.resampling.bca import Interval
from heatcheck.stats.resampling.bootstrap import LEVEL
from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.over_seeds import SeedFigure, figure_interval, macro_interval
from heatcheck.stats.resampling.studentised import (
    Linearised,
    contrast,
    linearised_ratios,
    studentised_intervals,
    t_intervals,
)
from heatcheck.studies.alignment.estimating.answers import (
    NO_PREDICTIONS,
    TOO_FEW,
    NetworkKind,
    failed_networks,
    read_answers,
)
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import (
    ARMS,
    DIRECTIONS,
    GUESS,
    GUESSING,
    INFORMATION,
    MUTUAL_INFORMATION,
    ONE_TRAINING,
    RELIANCE,
    SEPARATION,
    VALIDATION,
    Arm,
    network_key,
)


def prediction_rows(folder: Path, settings: AlignmentSettings) -> Iterator[Estimate]:
    """AUROC and mutual information of every kind of network, for each finding and over those that count.

    Then by how much bases predict better than guessing, and tuned networks worse than their control.
    """
    failed = failed_networks(folder)
    losses: list[_Loss] = []
    for base in settings.bases:
        networks = {
            (arm, method): [
                network_key(base.key, arm, seed, method) for seed in ((0,) if arm == "base" else settings.seeds)
            ]
            for arm in (ARMS if base.fine_tuned else ARMS[:1])
            for method in (("",) if arm in {"base", "control"} else settings.methods)
        }
        keys = [key for each in networks.values() for key in each]
        answers = read_answers(folder / "predictions.parquet", keys, settings.findings)
        kinds = []
        for (arm, method), keys in networks.items():
            template = Estimate(AUROC, AUROC, method=method, model=base.key, condition=condition(arm=arm))
            every = tuple(answers.of_networks(finding, keys, failed) for finding in settings.findings)
            kinds.append(NetworkKind(arm, template, every, answers.patients))
        aurocs = [_aurocs(kind) for kind in kinds]
        informations = [_informations(kind, settings) for kind in kinds]
        for kind, auroc, information in zip(kinds, aurocs, informations, strict=True):
            yield from _rows(kind, AUROC, AUROC, _intervals(kind, auroc, aurocs[1:], (0.0, 1.0)))
            intervals = _intervals(kind, information, informations[1:], (0.0, math.inf))
            yield from _rows(kind, MUTUAL_INFORMATION, INFORMATION, intervals)
        yield from _above_guessing(kinds[0], aurocs[0], settings)
        losses += _losses(kinds, aurocs)
    yield from _loss_rows(losses, settings)


def validation_rows(folder: Path, settings: AlignmentSettings) -> Iterator[Estimate]:
    """The AUROC of each base that was trained here on its validation images: of every output, and their mean."""
    table = folder / TRAINING / "predictions.parquet"
    for base in settings.bases if table.is_file() else ():
        answers = read_answers(table, [base.key])
        template = Estimate(AUROC, AUROC, model=base.key, condition=condition(arm="base", split=VALIDATION))
        every = tuple(answers.of_networks(finding, [base.key], {}) for finding in answers.labels)
        kind = NetworkKind("base", template, every, answers.patients)
        if every:
            yield from _rows(kind, AUROC, AUROC, _intervals(kind, _aurocs(kind), [], (0.0, 1.0)))


Figures = Mapping[str, SeedFigure]  # of the usable findings of one kind of network


def _aurocs(kind: NetworkKind) -> Figures:
    """The AUROC of each usable finding."""
    figures = {}
    for answers in kind.usable:
        each = [clustered_auroc(answers.labels, rated, kind.patients) for rated in answers.probabilities]
        values = np.array([one.interval.value for one in each])
        influences = np.mean([one.influences for one in each], axis=0)[:, None]
        errors, freedom = np.sqrt(np.sum(influences**2, axis=0)), np.array([min(one.freedom for one in each)])
        mean = Linearised(values.mean(keepdims=True), influences, each[0].takes_part[:, None], errors, freedom)
        # the mean of the seeds' intervals is wider than need be: a part of chance is each seed's own
        low, high = np.mean([[one.interval.low, one.interval.high] for one in each], axis=0).tolist()
        interval = Interval(float(values.mean()), low, high, each[0].interval.reason)
        figures[answers.finding] = SeedFigure(values, mean, interval)
    return figures


def _informations(kind: NetworkKind, settings: AlignmentSettings) -> Figures:
    """The mutual information of each usable finding: a mean of terms, each with its patient.

    Drawing cases and estimating again would put a case beside its copy, which a neighbour estimator takes for
    information. Neighbours have similar terms, so these intervals are somewhat narrow; no claim rests on them.
    """
    generator = settings.generator(*kind.purpose(INFORMATION))
    figures = {}
    for answers in kind.usable:
        terms = [information_terms(answers.labels, rated, generator) for rated in answers.probabilities]
        totals = cluster_totals(np.stack([*terms, np.mean(terms, axis=0)], axis=1), kind.patients)
        every = linearised_ratios(totals.sums, totals.counts)
        by_seed, mean = np.maximum(every.values[:-1], 0), every.only(np.arange(len(terms) + 1) == len(terms))  # noqa: PD011 - no table
        (interval,) = studentised_intervals(mean, settings.draws, generator)
        figures[answers.finding] = SeedFigure(by_seed, mean, replace(interval, value=float(by_seed.mean())))
    return figures


def _intervals(
    kind: NetworkKind, figures: Figures, tuned: Sequence[Figures], within: tuple[float, float]
) -> dict[str, Interval]:
    """The intervals of each finding, and of the mean over those that count; seeds vary as in all `tuned` networks."""
    alike = {finding: [each[finding] for each in tuned if finding in each] for finding in figures}
    found = {finding: figure_interval(figure, alike[finding], within) for finding, figure in figures.items()}
    if counting := [finding for finding in kind.counting if finding in figures]:
        found[ALL] = macro_interval([figures[f] for f in counting], [alike[f] for f in counting], within)
    return found


def _above_guessing(kind: NetworkKind, figures: Figures, settings: AlignmentSettings) -> Iterator[Estimate]:
    """By how much a base predicts each finding better than guessing; a tenth of the way to perfect matters."""
    for finding, figure in figures.items():
        interval = figure.interval
        template = replace(
            kind.template, statistic=DIFFERENCE, finding=finding, condition=condition(arm="base", versus=GUESSING)
        )
        shifted = Interval(interval.value - GUESS, interval.low - GUESS, interval.high - GUESS, interval.reason)
        size = settings.sizes.above_floor(GUESS, 1.0)
        yield judged(
            fill(template, shifted), size, _of_patients(figure.mean), settings.generator(*kind.purpose(finding))
        )


def _of_patients(mean: Linearised) -> Float[np.ndarray, " patients"]:
    return np.asarray(mean.influences[mean.takes_part[:, 0], 0])


@dataclass(frozen=True, slots=True)
class _Loss:
    """By how much the AUROC of tuned networks lies below that of their control, on one finding."""

    template: Estimate
    figure: SeedFigure


def _losses(kinds: Sequence[NetworkKind], aurocs: Sequence[Figures]) -> Iterator[_Loss]:
    """Every direction and method of one base, seed by seed where both have all seeds."""
    control = next((each for kind, each in zip(kinds, aurocs, strict=True) if kind.arm == "control"), {})
    for kind, figures in zip(kinds, aurocs, strict=True):
        if kind.arm not in DIRECTIONS:
            continue
        for finding in figures.keys() & control.keys():
            before, after = control[finding], figures[finding]
            paired = min(before.n_seeds, after.n_seeds)
            by_seed = before.by_seed[:paired] - after.by_seed[:paired]
            mean, value = contrast(after.mean, before.mean), before.interval.value - after.interval.value
            mean = replace(mean, freedom=np.minimum(after.mean.freedom, before.mean.freedom))
            template = replace(
                kind.template,
                statistic=DIFFERENCE,
                finding=finding,
                condition=condition(arm=kind.arm, versus="control"),
                n_patients=int(mean.n_patients[0]),
            )
            yield _Loss(template, SeedFigure(by_seed, mean, Interval(value)))


def _loss_rows(losses: Sequence[_Loss], settings: AlignmentSettings) -> Iterator[Estimate]:
    """The losses with intervals that hold together (Bonferroni); those of one training support no claim."""
    if not losses:
        return
    level = 1 - (1 - LEVEL) / len(losses)
    for loss in sorted(losses, key=lambda each: settings.findings.index(each.template.finding)):
        alike = [each.figure for each in losses if each.template.finding == loss.template.finding]
        (interval,) = t_intervals(loss.figure.mean, level)
        if interval.reason == ONE_VALUE:  # no image is rated otherwise: the interval has no width
            interval = Interval(interval.value, interval.value, interval.value)
        interval = figure_interval(replace(loss.figure, interval=interval), alike, (-1.0, 1.0), level)
        row = fill(replace(loss.template, family="loss of AUROC"), interval)
        if loss.figure.n_seeds < 2:
            yield replace(row, reason=joined(row.reason, ONE_TRAINING))
        else:
            yield replace(row, size=settings.sizes.above_floor(GUESS, 1.0))


def _rows(
    kind: NetworkKind, statistic: Statistic, metric: str, intervals: Mapping[str, Interval]
) -> Iterator[Estimate]:
    """One row per finding, and one for the mean over findings."""
    template = replace(kind.template, statistic=statistic, metric=metric)
    usable, counting = kind.usable, kind.counting
    for answers in kind.every:
        interval = intervals.get(answers.finding, Interval(math.nan, reason=answers.why_not))
        seeds = len(answers.probabilities) + answers.lacking
        note = coverage(seeds - answers.lacking, seeds, "seeds")
        yield _filled(replace(template, finding=answers.finding), interval, note, answers.known, kind)
    none = Interval(math.nan, reason=TOO_FEW if usable else kind.every[0].why_not)
    note = coverage(len(counting), len(kind.every))
    counted = [answers.known for answers in usable if answers.counts]
    known = np.any([np.zeros(len(kind.patients), bool), *counted], axis=0)
    yield _filled(replace(template, finding=ALL), intervals.get(ALL, none), note, known, kind)


def _filled(
    template: Estimate, interval: Interval, note: str, known: Bool[np.ndarray, " cases"], kind: NetworkKind
) -> Estimate:
    n_cases = int(np.count_nonzero(known))
    n_patients = len(set(kind.patients[known].tolist()))
    counted = replace(template, n_cases=n_cases, n_patients=n_patients, n_undefined=len(known) - n_cases)
    return fill(counted, interval, interval.reason or note)


def separation_rows(folder: Path, settings: AlignmentSettings) -> list[Estimate]:
    """The separation of each base, and that of its controls on average, for each finding and their mean."""
    networks: dict[tuple[str, Arm], list[str]] = {}
    for base in settings.fine_tuned:
        networks[base.key, "base"] = [network_key(base.key, "base")]
        networks[base.key, "control"] = [network_key(base.key, "control", seed) for seed in settings.seeds]
    wanted = [("model", "in", sorted({key for keys in networks.values() for key in keys}))]
    columns = ["case", "finding", "model", "label", "logit"]
    table = pd.read_parquet(folder / "predictions.parquet", columns=columns, filters=wanted)
    rows = []
    for (base_key, arm), keys in networks.items():
        template = Estimate(SEPARATION, RELIANCE, model=base_key, condition=condition(arm=arm))
        found = []
        for finding in settings.findings:
            logits = table[(table["finding"] == finding) & table["model"].isin(keys)]
            found.append(_separated(logits, replace(template, finding=finding)))
        every = float(np.mean([row.value for row in found]))  # NaN where a finding has none
        why = next((row.reason for row in found if row.reason), "")
        n_cases = max(row.n_cases for row in found)
        rows += [*found, replace(template, finding=ALL, value=every, n_cases=n_cases, reason=why)]
    return rows


def _separated(table: pd.DataFrame, template: Estimate) -> Estimate:
    """The mean over networks."""
    each = [
        separation(rows["label"].to_numpy(float), rows["logit"].to_numpy(float)) for _, rows in table.groupby("model")
    ]
    values = [one.value for one in each if not math.isnan(one.value)]
    if not values:
        return replace(template, reason=each[0].reason if each else NO_PREDICTIONS)
    return replace(template, value=float(np.mean(values)), n_cases=int(table["case"].nunique()))
