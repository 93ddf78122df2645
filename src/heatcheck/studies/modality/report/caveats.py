"""Caveats to the verdict of a modality study, one plain sentence each."""

import math
from collections.abc import Sequence
from dataclasses import replace

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.judging.guessing import is_below
from heatcheck.judging.judgement import judge, judgement_of
from heatcheck.judging.sizes import Sizes
from heatcheck.report.caveats import failed, skipped, smaller_settings
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import POINTS, SCORE, SHARE, Unit, count, few, listed, number
from heatcheck.report.verdict import smallest_visible
from heatcheck.studies.modality.report.claims import LESION, claims_of
from heatcheck.studies.modality.report.facts import (
    FILLS,
    MEASURES,
    estimate,
    first_of,
    importances_of,
    is_defined,
    manifest,
    pairs_of,
    phi,
    primary_game,
    ranked,
    tied_pairs,
)
from heatcheck.studies.modality.vocabulary import CHANCE, CHANCE_ALL, PHI_MODALITY, RATING

MOST_PAIRS = 4  # that a sentence names
_POINTS = Unit(POINTS.factor, 0)


def caveats(evidence: Evidence) -> tuple[str, ...]:
    """The sentences that apply to this run."""
    sentences = [
        failed(evidence),
        skipped(evidence),
        _these_networks(evidence),
        weak_networks(evidence),
        _other_folds(evidence),
        _other_rules(evidence),
        _nothing_by_one_fill(evidence),
        _chance(evidence),
        _rules(evidence),
        _unclear_order(evidence),
        _out_of_sight(evidence),
        _one_map(evidence),
        _faithfulness(evidence),
        _floors(evidence),
        _few_readers(evidence),
        smaller_settings(evidence),
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _these_networks(evidence: Evidence) -> str:
    """What the intervals leave out: other trainings."""
    if manifest(evidence).folds > 1:
        return (
            "The intervals cover other patients, not other trainings: importances, modality correlation and MSFI are "
            f"those of the networks of this run. The order of the modalities is one order per network, "
            f"{manifest(evidence).folds} in all, however many patients."
        )
    return (
        "One network was studied: everything here is about this network, and another training may well rely on other "
        "modalities. The modality correlation rests on this one order, however many patients."
    )


def _out_of_sight(evidence: Evidence) -> str:
    """Which differences the run's patients could not have shown."""
    pairs = pairs_of(evidence, primary_game(evidence, PHI_MODALITY)).values()
    maps = [row for m in evidence.methods if (row := evidence.find(DIFFERENCE, "msfi", ALL_FINDINGS, m.name))]
    between, above = smallest_visible(pairs), smallest_visible(maps)
    parts = []
    if not math.isnan(between):
        parts.append(f"a difference of two modalities below {number(between, _POINTS)} percentage points")
    if not math.isnan(above):
        parts.append(f"an MSFI that is above the best floor\u2019s by less than {number(above, SCORE.rounded(2))}")
    if not parts:
        return ""
    patients = max(row.n_patients for row in (*pairs, *maps))
    return f"With {count(patients, 'patient')}, {listed(parts)} would go unnoticed in more than half of such runs."


def weak_networks(evidence: Evidence) -> str:
    """Networks that are not shown to be better than chance: their maps may explain guesses."""
    run = manifest(evidence)
    chance = 1 / max(2, len(run.classes))
    size = Sizes(**run.sizes).of_contribution(1 - chance)
    rows = {fold: estimate(evidence, MEAN, "balanced_accuracy", {"fold": fold}) for fold in run.fold_numbers}
    weak = [
        fold
        for fold, row in rows.items()
        if row
        and not judge(row.value - chance, row.low - chance, row.high - chance, size).is_yes
        and not is_below(row, chance)
    ]
    if not weak:
        return ""
    several = len(weak) > 1
    which = f"The network{'s' if several else ''}"
    if len(weak) < len(rows):
        which += f" of fold{'s' if several else ''} {listed([str(fold) for fold in weak])}"
    are, their = ("are", "their") if several else ("is", "its")
    return (
        f"{which} {are} not shown to be better than guessing (balanced accuracy {number(chance, SHARE.rounded(0))}), "
        f"so {their} importances may be noise and {their} maps may explain guesses."
    )


def _other_folds(evidence: Evidence) -> str:
    """Folds in which another modality comes first than over all folds."""
    game, folds = primary_game(evidence, PHI_MODALITY), manifest(evidence).fold_numbers
    first = first_of(evidence, game)
    if len(folds) < 2 or len(first) != 1:
        return ""
    orders = {fold: ranked(evidence, game.of_fold(fold)) for fold in folds}
    other = [fold for fold, order in orders.items() if order and first_of(evidence, game.of_fold(fold)) != first]
    if not other:
        return ""
    examples = "; ".join(f"fold {fold}: {orders[fold]}" for fold in other[:2]) + ("; \u2026" if len(other) > 2 else "")
    return f"Not every network has {first[0]} alone in the first place ({examples}), so read scores fold by fold, too."


def _other_rules(evidence: Evidence) -> str:
    """Other measures or fills that put another modality first."""
    primary = primary_game(evidence, PHI_MODALITY)
    first, others = first_of(evidence, primary), []
    for filled in manifest(evidence).fills:
        for measure in MEASURES:
            game = replace(primary, measure=measure, filled=filled)
            order = ranked(evidence, game)
            if order and len(first) == 1 and first_of(evidence, game) != first:
                others.append(f"by {game.words}: {order}")
    return f"The first place depends on how importance is measured ({'; '.join(others)})." if others else ""


def _nothing_by_one_fill(evidence: Evidence) -> str:
    """Modalities that add nothing that matters by the primary fill, and are not known to by another."""
    primary = primary_game(evidence, PHI_MODALITY)
    nothing = [name for name, row in importances_of(evidence).items() if judgement_of(row).is_no]
    words = []
    for filled in manifest(evidence).fills:
        rows = {name: phi(evidence, replace(primary, filled=filled), name) for name in nothing}
        other = {name: row for name, row in rows.items() if row and not judgement_of(row).is_no}
        parts = [
            f"{name} clearly adds {number(row.value, _POINTS)} percentage points"
            if judgement_of(row).is_yes
            else f"that {name} adds nothing is not shown"
            for name, row in other.items()
        ]
        words += [f"by {FILLS[filled]}, {listed(parts)}"] if parts else []
    if not words:
        return ""
    return (
        "That a modality adds nothing that matters was judged with what is left out filled by "
        f"{FILLS[primary.filled]}. Filled {'; '.join(words)}."
    )


def _chance(evidence: Evidence) -> str:
    """What a fixed liking for modalities would get."""
    folds = manifest(evidence).fold_numbers
    shares = []
    for statistic in (CHANCE, CHANCE_ALL):
        rows = [estimate(evidence, statistic, "mi_correlation", {"fold": fold}) for fold in folds]
        shares.append([row.value for row in rows if row and is_defined(row)])
    if not all(shares):
        return ""
    above, every = (spread_of(values) for values in shares)
    return (
        "By chance alone, a method that always likes the same modalities, whatever the network uses, has a modality "
        f"correlation above 0 with {above} of the orders that are possible, and with {every} it has every clear pair "
        "right, in all patients alike."
    )


def spread_of(values: Sequence[float]) -> str:
    """The lowest and the highest share, or one where they are written alike."""
    low, high = (number(value, SHARE) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _rules(evidence: Evidence) -> str:
    """Primary settings that raise scores, or make importances depend on chance."""
    primary, parts = manifest(evidence).primary, []
    if primary.measure == "accuracy":
        parts.append("importances rest on plain accuracy and so depend on the class that an empty image falls into")
    if primary.weights == "min_max":
        parts.append("MSFI never counts the least important modality, whatever its importance")
    if primary.boxes:
        parts.append("the lesion is a bounding box, which also holds healthy tissue")
    if primary.dilate:
        parts.append(f"lesions were widened by {primary.dilate} pixels, which raises MSFI and its floor")
    return f"By the settings of this run, {listed(parts)}." if parts else ""


def _unclear_order(evidence: Evidence) -> str:
    """Where the modality correlation ranks modalities whose order is not clear."""
    game, folds = primary_game(evidence, PHI_MODALITY), manifest(evidence).fold_numbers
    pairs = dict.fromkeys(pair for fold in folds for pair in tied_pairs(evidence, game.of_fold(fold)))
    if not pairs:
        return ""
    names = [f"{one} and {other}" for one, other in pairs]
    if len(names) > MOST_PAIRS:
        names[MOST_PAIRS - 1 :] = [f"{len(names) - MOST_PAIRS + 1} more pairs"]
    where = "" if len(folds) == 1 else " in at least one network"
    return (
        f"Which modality matters more is not clear{where} for {'; '.join(names)}: the modality correlation leaves them "
        "tied. The published form, which ranks them all the same, is among the downloads."
    )


def _one_map(evidence: Evidence) -> str:
    """Methods that score well although they cannot distinguish modalities."""
    with_one_map = manifest(evidence).shared
    shared = [m for m in evidence.methods if m.name in with_one_map and claims_of(evidence, m).outcome == LESION]
    if not shared:
        return ""
    return (
        f"MSFI ignores how heat is shared between modalities, so {few([m.label for m in shared])} can score well "
        "on it with one map for all: read it together with the modality correlation."
    )


def _faithfulness(evidence: Evidence) -> str:
    """That the method with the highest MSFI is not the most faithful one, where their intervals lie apart."""
    means = {
        metric: {
            method.label: row
            for method in evidence.methods
            if (row := evidence.find(MEAN, metric, ALL_FINDINGS, method.name)) and not math.isnan(row.value)
        }
        for metric in ("msfi", "delta_aupc")
    }
    if not all(means.values()):
        return ""
    first, most = (max(rows.items(), key=lambda item: item[1].value)[0] for rows in means.values())
    faithful = means["delta_aupc"]
    if first not in faithful or not faithful[first].high < faithful[most].low:
        return ""
    own, highest = (number(faithful[label].value, SCORE.rounded(2)) for label in (first, most))
    name = evidence.label_of("delta_aupc")
    return (
        f"What lies on the lesion need not be what the network used: {first}, with the highest MSFI, has a "
        f"{name[0].lower()}{name[1:]} of {own}, {most} the highest, {highest}."
    )


def _floors(evidence: Evidence) -> str:
    """Floors of the spec that clearly mark the lesion better than the study's: then beating those proves little."""
    names = [floor.label for floor in evidence.floors if claims_of(evidence, floor).marks.is_yes]
    if not names:
        return ""
    return (
        f"{listed(names)}, made without the model, also clearly {'beats' if len(names) == 1 else 'beat'} every floor "
        "of the study, so marking lesions here proves little about the model."
    )


def _few_readers(evidence: Evidence) -> str:
    ratings = manifest(evidence).ratings
    rated = any(
        (row := evidence.find(MEAN, RATING, ALL_FINDINGS, m.name)) and not math.isnan(row.value)
        for m in evidence.methods
    )
    return "The ratings are those of one reader." if rated and ratings and ratings.readers == 1 else ""
