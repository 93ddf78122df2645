"""Triggers: coverage over seeds and images, false claims where no method finds anything or none is better, and power.

Run with `python -m benchmarks.simulations.triggers [--repetitions N] [--seed S]`. Methods have luck with single images
that all seeds and triggers share, and the network of another seed suits other methods. Of the lines on claims,
"coverage" and "truth below" are what `Claims` says; a claim is what a report reads from `judging`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np
from benchmarks.simulations.row import DRAWS, PATIENTS, Row, main, row, views

from heatcheck.judging.judgement import Judgement, both, judge
from heatcheck.judging.sizes import Sizes
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.nested_rates import nested_rates, rates_against
from heatcheck.stats.resampling.nested_studentised import ComparedMean, separate_means, simultaneous_means

SIZES = Sizes()
OVERLAP, RECOVERY = -2.2, -1.0  # logits of the scores of random boxes
TRUTH = 4000  # drawn studies from which a true mean is computed


@dataclass(frozen=True)
class Setting:
    """A study whose methods differ by luck only, but for the first."""

    seeds: int
    triggers: int
    patients: int
    methods: int
    of_training: float = 0.25  # standard deviation between trainings, of each method
    of_luck: float = 0.5  # of each method with each image
    above: float = 0.0  # logits by which the first method exceeds the others

    @property
    def name(self) -> str:
        """The setting in words."""
        numbers = (self.seeds, "seed"), (self.triggers, "trigger"), (self.methods, "method")
        return ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in numbers)


def latent(setting: Setting, generator: np.random.Generator) -> tuple[np.ndarray, Design]:
    """How easy each image of each network (rows) is for each method, in logits around 0, and their design."""
    patient = views(setting.patients, generator)
    shape = setting.seeds, setting.triggers, len(patient), setting.methods
    draw = generator.standard_normal
    image = 0.6 * draw(setting.patients)[patient][:, None] + 0.5 * draw((len(patient), 1))
    luck = setting.of_luck * draw((len(patient), setting.methods))
    training = 0.8 * draw((shape[0], 1, 1, shape[3])) + 0.6 * draw((*shape[:2], 1, shape[3]))
    network = 0.8 * setting.of_training * draw((*shape[:2], 1, 1))
    logits = image + luck + setting.of_training * training + network + 0.8 * draw(shape)
    logits += setting.above * (np.arange(setting.methods) == 0)
    seed, trigger, position = (index.ravel() for index in np.indices(shape[:3]))
    return logits.reshape(-1, setting.methods), Design(seed, patient[position], trigger)


def overlaps(logits: np.ndarray) -> np.ndarray:
    """Skewed scores, many of them 0."""
    scores = 1 / (1 + np.exp(-logits))
    return np.where(scores < 0.06, 0.0, scores)


def recoveries(logits: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Zeros and ones."""
    return (generator.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)


@cache
def truths(setting: Setting, level: float) -> tuple[float, float]:
    """The true mean overlap and recovery of a method without an advantage."""
    one = replace(setting, seeds=1, triggers=1, patients=200, methods=1, above=0.0)
    generator = np.random.default_rng(1)
    drawn = [latent(one, generator)[0] + level for _ in range(TRUTH)]
    return (
        float(np.mean([overlaps(each).mean() for each in drawn])),
        float(np.mean([(1 / (1 + np.exp(-each))).mean() for each in drawn])),
    )


def coverage(setting: Setting, repetitions: int, seed: list[int]) -> list[Row]:
    """A mean of skewed scores and a rate near 1, each over seeds and images."""
    found = []
    for name, level, is_rate in (("mean overlap", -1.0, False), ("recovery near 1", 3.2, True)):
        generator, truth, estimates = np.random.default_rng([*seed, is_rate]), truths(setting, level)[is_rate], []
        for _ in range(repetitions):
            logits, design = latent(setting, generator)
            if is_rate:
                (given,) = nested_rates(recoveries(logits + level, generator), design)
            else:
                (given,) = separate_means(overlaps(logits + level), design, DRAWS, generator, (0.0, 1.0))
            estimates.append((given.value, given.low, given.high))
        steady = "" if setting.of_training else ", trainings alike"
        words = f"{name}, {setting.seeds} {'seed' if setting.seeds == 1 else 'seeds'}{steady}"
        found.append(row(words, setting.patients, truth, estimates))
    return found


@dataclass(frozen=True)
class Claims:
    """What a line on claims counts, per run: two shares."""

    name: str
    counts: Callable[[Setting, np.random.Generator], tuple[bool, bool]]
    settings: tuple[Setting, ...]


def _judged(compared: ComparedMean, size: float) -> Judgement:
    return judge(compared.mean.value, compared.mean.low, compared.mean.high, size)


def _boxes(
    setting: Setting, generator: np.random.Generator, lift: float = 0.0
) -> tuple[list[Judgement], list[ComparedMean]]:
    """The judgements of every method's overlap, then recovery, against random boxes, then overlap against the baseline.

    Without an advantage all means are equal. All scores exceed those of random boxes by the `lift`, in logits; overlaps
    do so on the baseline too, as of a map that marks what lies there, whatever the model uses.
    """
    logits, design = latent(setting, generator)
    parts, sizes = [], []
    overlap = overlaps(logits + OVERLAP + lift)
    for level, position in ((OVERLAP, 0), (RECOVERY, 1)):
        floor = truths(setting, level)[position]
        values = recoveries(logits + level + lift, generator) if position else overlap
        parts.append(values - floor - 0.03 * generator.standard_normal(values.shape))
        sizes += [SIZES.above_floor(floor, 1.0)] * setting.methods
    ahead = setting.above * (np.arange(setting.methods) == 0)
    noise = 0.5 * generator.standard_normal((2, *logits.shape))  # each network has its own
    control = overlaps(logits - ahead + OVERLAP + lift + noise[0])
    parts.append(overlaps(logits + OVERLAP + lift + noise[1]) - control)
    sizes += [SIZES.above_floor(level, 1.0) for level in control.mean(0).tolist()]
    compared = simultaneous_means(np.hstack(parts), design, DRAWS, generator)
    return [_judged(each, size) for each, size in zip(compared, sizes, strict=True)], list(compared)


def _false_boxes(setting: Setting, generator: np.random.Generator) -> tuple[bool, bool]:
    """Whether no interval excludes 0, and whether some comparison of overlap or recovery is called clear."""
    judgements, compared = _boxes(setting, generator)
    return not any(map(_excludes, compared)), any(each.is_yes for each in judgements)


def _false_control(setting: Setting, generator: np.random.Generator) -> tuple[bool, bool]:
    """Every method is far above random boxes, and as far on the baseline: no such interval excludes 0, or one finds."""
    judgements, compared = _boxes(setting, generator, lift=2.0)
    claims = [both(*judgements[method :: setting.methods]) for method in range(setting.methods)]
    return not any(map(_excludes, compared[2 * setting.methods :])), any(claim.is_yes for claim in claims)


def _finds(setting: Setting, generator: np.random.Generator) -> tuple[bool, bool]:
    """Whether the first method is said to find triggers, and whether it is said not to."""
    judgements, _ = _boxes(setting, generator)
    claim = both(*judgements[:: setting.methods])
    return claim.is_yes, claim.is_no


def _pairs(setting: Setting, generator: np.random.Generator) -> tuple[list[tuple[int, int]], list[ComparedMean]]:
    logits, design = latent(setting, generator)
    return _compared_pairs(overlaps(logits - 1.0), design, generator)


def _compared_pairs(
    scores: np.ndarray, design: Design, generator: np.random.Generator
) -> tuple[list[tuple[int, int]], list[ComparedMean]]:
    pairs = list(combinations(range(scores.shape[1]), 2))
    differences = np.stack([scores[:, one] - scores[:, other] for one, other in pairs], axis=1)
    return pairs, list(simultaneous_means(differences, design, DRAWS, generator))


def _swaps(setting: Setting, generator: np.random.Generator, turned: float) -> bool:
    """Whether two methods are said to change places under another box rule, where the first is ahead by `turned` more.

    The other rule has the same maps, and luck of its own.
    """
    logits, design = latent(setting, generator)
    other = logits + turned * (np.arange(setting.methods) == 0) + 0.5 * generator.standard_normal(logits.shape)
    both_rules = [_compared_pairs(overlaps(each - 1.0), design, generator)[1] for each in (logits, other)]
    size = SIZES.between_methods("iou")
    return any(
        (_judged(one, size).is_yes and _mirrored(two, size).is_yes)
        or (_mirrored(one, size).is_yes and _judged(two, size).is_yes)
        for one, two in zip(*both_rules, strict=True)
    )


def _false_swaps(setting: Setting, generator: np.random.Generator) -> tuple[bool, bool]:
    """Whether no change of places is claimed, and whether one is: the order is the same under both rules."""
    called = _swaps(setting, generator, 0.0)
    return not called, called


def _true_swaps(setting: Setting, generator: np.random.Generator) -> tuple[bool, bool]:
    """Whether a change of places is claimed where the first method falls as far below the others as it was above."""
    return _swaps(setting, generator, -2 * setting.above), False


def _false_pairs(setting: Setting, generator: np.random.Generator) -> tuple[bool, bool]:
    """Whether no interval excludes 0, and whether some method is called clearly better than another."""
    _, compared = _pairs(setting, generator)
    size = SIZES.between_methods("iou")
    called = (_judged(each, size).is_yes or _mirrored(each, size).is_yes for each in compared)
    return not any(map(_excludes, compared)), any(called)


def _best(setting: Setting, generator: np.random.Generator) -> tuple[bool, bool]:
    """Whether the first method alone is called best, and whether it is left out of those that may be."""
    pairs, compared = _pairs(setting, generator)
    size = SIZES.between_methods("iou")
    first = [each for (one, _), each in zip(pairs, compared, strict=True) if one == 0]
    return all(_judged(each, size).is_yes for each in first), any(_mirrored(each, size).is_yes for each in first)


def _mirrored(compared: ComparedMean, size: float) -> Judgement:
    return judge(-compared.mean.value, -compared.mean.high, -compared.mean.low, size)


def _excludes(compared: ComparedMean) -> bool:
    return compared.mean.low > 0 or compared.mean.high < 0


def _false_half(setting: Setting, generator: np.random.Generator) -> tuple[bool, bool]:
    """Whether no interval excludes one half, and whether some recovery is called above it."""
    logits, design = latent(setting, generator)
    compared = rates_against(recoveries(logits, generator), design, 0.5)
    return not any(map(_excludes, compared)), any(_judged(each, 0.0).is_yes for each in compared)


CLAIMS = (
    Claims("no method beats random boxes or the baseline", _false_boxes, (
        Setting(1, 3, 28, 7, of_training=0.0), Setting(2, 3, 28, 7), Setting(3, 3, 28, 7), Setting(3, 1, 12, 19),
        Setting(5, 11, 28, 15), Setting(3, 3, 28, 7, of_training=0.6),
    )),
    Claims("no method is better than another", _false_pairs, (
        Setting(1, 3, 28, 7, of_training=0.0), Setting(2, 3, 28, 7), Setting(3, 3, 28, 7), Setting(3, 3, 12, 7),
        Setting(5, 11, 28, 15), Setting(5, 11, 28, 15, of_luck=0.0), Setting(3, 3, 28, 7, of_training=0.6),
    )),
    Claims("every method recovers half of the images", _false_half, (
        Setting(2, 3, 28, 7), Setting(3, 3, 28, 7), Setting(5, 11, 28, 15),
    )),
    Claims("every method overlaps as much on the baseline", _false_control, (
        Setting(2, 3, 28, 7), Setting(3, 3, 28, 7), Setting(5, 11, 28, 15), Setting(3, 3, 28, 7, of_training=0.6),
    )),
    Claims("no methods change places under another box rule", _false_swaps, (
        Setting(3, 3, 28, 7), Setting(5, 11, 28, 15), Setting(3, 3, 28, 7, above=1.2),
    )),
    Claims("one method changes places under another box rule", _true_swaps, (
        Setting(3, 3, 28, 7, above=1.2), Setting(5, 3, 28, 7, above=1.2),
    )),
    Claims("one method finds triggers", _finds, (
        Setting(2, 3, 28, 7, above=2.0), Setting(3, 3, 28, 7, above=2.0), Setting(5, 3, 28, 7, above=2.0),
        Setting(5, 3, 28, 7, above=1.2), Setting(5, 11, 28, 15, above=1.2),
    )),
    Claims("one method is best", _best, (
        Setting(3, 3, 28, 7, above=1.2), Setting(5, 3, 28, 7, above=1.2), Setting(5, 11, 28, 15, above=1.2),
    )),
)  # fmt: skip


def simulate(repetitions: int, seed: int) -> list[Row]:
    """Coverage of single means, then claims of whole runs."""
    rows = []
    for seeds in (1, 2, 3, 5):
        for patients in PATIENTS:
            rows += coverage(Setting(seeds, 1, patients, 1, of_luck=0.0), repetitions, [seed, seeds, patients])
    for patients in PATIENTS:
        rows += coverage(Setting(1, 1, patients, 1, 0.0, 0.0), repetitions, [seed, 9, patients])
    for claims in CLAIMS:
        for number, setting in enumerate(claims.settings):
            rows.append(claimed(claims, setting, repetitions, [seed, number]))
    return rows


def claimed(claims: Claims, setting: Setting, repetitions: int, seed: list[int]) -> Row:
    """The shares that a line on claims counts."""
    generator = np.random.default_rng(seed)
    first, second = np.mean([claims.counts(setting, generator) for _ in range(repetitions)], axis=0).tolist()
    spread = f", trainings vary by {setting.of_training:g}, luck by {setting.of_luck:g}"
    ahead = f", ahead by {setting.above:g}" if setting.above else ""
    error = math.sqrt(max(first * (1 - first), 0) / repetitions)
    return Row(f"{claims.name}: {setting.name}{spread}{ahead}", setting.patients, 1.0, first, second, math.nan, error)


if __name__ == "__main__":
    main(simulate)
