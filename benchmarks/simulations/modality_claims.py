"""False claims and power of the modality study: what is said of modalities and methods whose truth is known.

Run with `python -m benchmarks.simulations.modality_claims [--repetitions N] [--seed S]`. The truth below is the share
of repetitions in which the claim was made, and the coverage that in which it was not.
"""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from benchmarks.simulations.modality import (
    LIKES,
    PAIRS,
    READS,
    answered,
    family_of,
    heat_of,
    inside_of,
)
from benchmarks.simulations.row import DRAWS, PATIENTS, Row, main, views

from heatcheck.core.records import Estimate
from heatcheck.judging.judgement import both, judge, judgement_of
from heatcheck.judging.sizes import Sizes
from heatcheck.stats.balanced import Strata
from heatcheck.stats.resampling.clusters import totals_by_code
from heatcheck.stats.resampling.studentised import Linearised
from heatcheck.stats.resampling.uncertain_weights import (
    Drawn,
    DrawnWeights,
    PartSums,
    as_deviations,
    drawn_mean,
    simultaneous_drawn,
)
from heatcheck.studies.modality.estimating.claims import gains_over_others, over_networks
from heatcheck.studies.modality.estimating.drawn import DrawnImportances, PatientDraws, signs_of_pairs
from heatcheck.studies.modality.vocabulary import FOLLOWING

EQUAL = np.array([0.15, 0.8, 0.05, 0.8])  # T1C as much as FLAIR
MOSTLY = np.array([0.1, 1.3, 0.05, 0.25])  # T1C two to three times as much as FLAIR: φ of 0.26 and 0.10
GUESSES = np.array([0.3, 0.3, 0.3, 0.3])  # reads noise
METHODS = 10  # of a family
FLOORS = (-1.0, 0.0, -0.7, -0.4)  # of the uniform head, brightness, edges and the usual place, as log odds from methods
SIZES = Sizes()


def simulate(repetitions: int, seed: int) -> list[Row]:
    """How often something false is claimed, and something true."""
    rows = list[Row]()
    settings: list[tuple[str, Callable[[int, np.random.Generator], bool]]] = [
        ("false: some modality helps a network that guesses", _some_helps),
        ("false: relies most on one of two equal modalities", lambda n, g: _relies_most(EQUAL, n, g)),
        ("true: relies most on T1C", lambda n, g: _relies_most(MOSTLY, n, g) == "T1C"),
        ("false: relies most on another than T1C", lambda n, g: _relies_most(MOSTLY, n, g) not in ("", "T1C")),
        ("false: one of 10 methods marks the lesion better than brightness", lambda n, g: _marks(0.0, n, g)),
        ("true: marks the lesion, a quarter of the room above brightness", lambda n, g: _marks(1.0, n, g)),
        ("false: follows, 5 networks of one order", lambda n, g: _follows(n, g, own=False, faithful=False)),
        ("false: follows, 5 networks of their own orders", lambda n, g: _follows(n, g, own=True, faithful=False)),
        ("true: follows, 5 networks of their own orders", lambda n, g: _follows(n, g, own=True, faithful=True)),
        ("false: one of 10 methods that prefer nothing names the modality", lambda n, g: _names(0.0, n, g)),
        ("true: names the modality", lambda n, g: _names(1.0, n, g)),
        (
            "false: one of 10 methods names it better than brightness, which does",
            lambda n, g: _names(0.4, n, g, bright=0.4),
        ),
        ("true: names it better than brightness does", lambda n, g: _names(1.5, n, g, bright=0.2)),
    ]
    for number, (what, made) in enumerate(settings):
        for patients in PATIENTS[2:] if "networks" in what else PATIENTS:
            generator = np.random.default_rng([seed, 20 + number, patients])
            share = float(np.mean([bool(made(patients, generator)) for _ in range(repetitions)]))
            error = math.sqrt(share * (1 - share) / repetitions)
            rows.append(Row(what, patients, 1.0, 1 - share, share, math.nan, error))
    return rows


def _some_helps(patients: int, generator: np.random.Generator) -> bool:
    found = answered(GUESSES, views(patients, generator), generator, informs=False)
    lin = found.linearised()
    if lin is None:
        return False
    size = _size(lin)
    intervals = family_of(lin[1], lin[2], found.patient, generator)
    return any(judge(each.value, each.low, each.high, size).is_yes for each in intervals)


def _size(lin: tuple[Linearised, np.ndarray, Strata]) -> float:
    total = np.sum(lin[0].values)
    return SIZES.of_contribution(float(total))


def _relies_most(reads: np.ndarray, patients: int, generator: np.random.Generator) -> str:
    """The modality that is clearly above each other one; empty where there is none."""
    found = answered(reads, views(patients, generator), generator)
    lin = found.linearised()
    if lin is None:
        return ""
    above = list(zip(PAIRS, _clear_signs(lin, found.patient, generator), strict=True))
    for number, name in enumerate(("T1", "T1C", "T2", "FLAIR")):
        signs = [sign if pair[0] == number else -sign for pair, sign in above if number in pair]
        if all(sign > 0 for sign in signs):
            return name
    return ""


def _clear_signs(
    lin: tuple[Linearised, np.ndarray, Strata], clusters: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """1 or −1 for each pair of modalities that clearly differs, else 0."""
    size = _size(lin)
    first, second = np.array(PAIRS).T
    family = family_of(lin[1][:, first] - lin[1][:, second], lin[2], clusters, generator)
    return np.array([
        float(judge(i.value, i.low, i.high, size).is_yes) - float(judge(-i.value, -i.high, -i.low, size).is_yes)
        for i in family
    ])  # fmt: skip


def _marks(shift: float, patients: int, generator: np.random.Generator) -> bool:
    """Whether the first of ten methods, or if none is better any of them, is said to be above every floor.

    The brightness floor marks the lesion as well as methods that are not better, the uniform head far less.
    """
    patient = views(patients, generator)
    found = answered(READS, patient, generator)
    lin = found.linearised()
    if lin is None:
        return False
    index = pd.MultiIndex.from_arrays([np.zeros(patients, int), np.arange(patients)])
    draws = PatientDraws.of(index, [0], DRAWS, generator)
    importances = DrawnImportances.of({0: (lin[0], np.arange(patients))}, (1, 4), draws)
    floors = [inside_of(patient, generator, level) for level in FLOORS]
    weights = importances.by_modality("positive", draws)
    if np.isnan(weights.weights).any():
        return False
    family = []
    for number in range(METHODS):
        inside = inside_of(patient, generator, shift if number == 0 else 0.0)
        for floor in floors:
            parts = inside - floor
            totals = totals_by_code(np.column_stack([parts @ weights.weights[0], parts]), patient, patients)
            family.append(drawn_mean(PartSums(totals.sums, totals.counts[:, 0]), as_deviations(weights)))
    sizes = [SIZES.above_floor(float((floor @ weights.weights[0]).mean()), 1.0) for floor in floors] * METHODS
    answers = _above_all(family, sizes)
    return answers[0] if shift else any(answers)


def _above_all(family: list[Drawn], sizes: list[float]) -> list[bool]:
    """Of each method, whether it is clearly above every floor; the family has all floors of a method together."""
    intervals = simultaneous_drawn(family).intervals
    judged = [judge(i.value, i.low, i.high, size) for i, size in zip(intervals, sizes, strict=True)]
    floors = len(family) // METHODS
    return [both(*judged[floors * number : floors * (number + 1)]).is_yes for number in range(METHODS)]


def _names(share: float, patients: int, generator: np.random.Generator, *, bright: float = 0.0) -> bool:
    """Whether the first of ten methods, or if none prefers anything any of them, is said to name the modality.

    The brightness floor likes the modalities by `bright` of what `LIKES` says, and all other methods as much.
    """
    patient = views(patients, generator)
    found = answered(MOSTLY, patient, generator)
    lin = found.linearised()
    signs = np.zeros(len(PAIRS)) if lin is None else _clear_signs(lin, patient, generator)
    if not signs.any():
        return False
    index = pd.MultiIndex.from_arrays([np.zeros(patients, int), np.arange(patients)])
    draws = PatientDraws.of(index, [0], DRAWS, generator)
    weights = (signs / np.sum(signs**2))[None]
    fixed = DrawnWeights(weights, np.broadcast_to(weights, (DRAWS, *weights.shape)), draws.times, draws.networks)

    def drawn(parts: np.ndarray) -> Drawn:
        totals = totals_by_code(parts, patient, patients)
        return drawn_mean(PartSums(totals.sums, totals.counts[:, 0]), fixed)

    floors = [signs_of_pairs(heat_of(level * LIKES, patient, generator)) for level in (bright, 0.0, 0.0)]
    likes = [share if number == 0 else bright for number in range(METHODS)]
    heat = [signs_of_pairs(heat_of(level * LIKES, patient, generator)) for level in likes]
    alone = simultaneous_drawn([drawn(each) for each in heat]).intervals
    size = SIZES.above_floor(0.0, 1.0)
    sizes = [SIZES.above_floor(max(drawn(floor).value, 0.0), 1.0) for floor in floors] * METHODS
    above = _above_all([drawn(each - floor) for each in heat for floor in floors], sizes)
    answers = [judge(i.value, i.low, i.high, size).is_yes and clear for i, clear in zip(alone, above, strict=True)]
    return answers[0] if share > bright else any(answers)


def _follows(patients: int, generator: np.random.Generator, *, own: bool, faithful: bool) -> bool:
    """Whether a method is said to follow its networks; it likes what they read, or the same modalities always."""
    common, fixed = generator.permutation(READS), generator.permutation(LIKES)
    heat, weights = {}, {}
    for network in range(5):
        reads = generator.permutation(READS) if own else common
        patient = views(patients // 5, generator)
        found = answered(reads, patient, generator)
        lin = found.linearised()
        signs = np.zeros(len(PAIRS)) if lin is None else _clear_signs(lin, patient, generator)
        if signs.any():
            likes = np.sort(LIKES)[np.argsort(np.argsort(reads))] if faithful else fixed
            weights[network] = signs / np.sum(signs**2)
            heat[network] = signs_of_pairs(heat_of(likes, patient, generator)).mean(0)
    template = Estimate(FOLLOWING, "mi_correlation", size=SIZES.above_floor(0.0, 1.0))
    return judgement_of(over_networks(template, gains_over_others(heat, weights), 5, 1)).is_yes


if __name__ == "__main__":
    main(simulate)
