"""How often the blame table is right, wrong or open, for networks and maps of which the truth is known.

Run with `python -m benchmarks.simulations.blame [--repetitions N] [--seed S]`. Films are drawn; the study's functions
measure reliance with its nulls, floors and scores, and read them (`blame_films` has the networks). Right is what the
readings say of a whole population of patients; a cell in which a part lies between 0.5 and 1.5 times the size that
matters is marked, since it may stay open. Before fine-tuning a run knows one network, and patients vary; under
fine-tuning it has three seeds.
"""

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from benchmarks.simulations.blame_films import (
    FINDING,
    NETWORKS,
    SHARES,
    SIDE,
    UNTRAINED,
    Film,
    Readers,
    classifier_of,
    keys_of,
    patients,
    stacked,
)

from heatcheck.core.records import Case, CaseKey, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.estimating.estimates import fill
from heatcheck.explaining.priors import gather_priors
from heatcheck.judging.sizes import Sizes
from heatcheck.metrics.relevance import mass
from heatcheck.metrics.reliance import Drops, reliance, reliance_added, separation
from heatcheck.running.progress import Silent
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.joint_means import joint_means
from heatcheck.stats.resampling.nested import NestedEstimate, nested_means
from heatcheck.studies.alignment.blame.evidence import (
    Arm,
    BlameEvidence,
    EstimateWithInterval,
    Marks,
    Part,
    Use,
    reliance_part,
    score_part,
)
from heatcheck.studies.alignment.blame.readings import before_of, marked, read, used
from heatcheck.studies.alignment.blame.table import interval_of
from heatcheck.studies.alignment.reliance import Probe, RelianceSettings, drops, partners
from heatcheck.studies.alignment.stage import CELLS, RANDOM_MAPS, image_floors, on_image
from heatcheck.studies.alignment.vocabulary import DIRECTIONS, FLOORS, RANDOM

POPULATION, POOLS = 500, 5  # patients of each kind; networks with their patients
PATIENTS, TUNED = (60, 150), (25, 60)  # before and under fine-tuning
MAPS = ("truthful", "constant", "edges", "random", "another finding")
SETTINGS = RelianceSettings(at_once=4096)
SIZES = Sizes()
DRAWS, MOST = 300, 500  # of an interval; repetitions, which take about a second each


@dataclass(frozen=True)
class Pool:
    """A population of patients, with and without the finding, and networks."""

    seed: int

    @cached_property
    def generator(self) -> np.random.Generator:
        """Of everything that is drawn once."""
        return np.random.default_rng([self.seed, 1])

    @cached_property
    def kinds(self) -> tuple[list[list[Film]], list[list[Film]]]:
        """The patients with the finding, and those without."""
        return tuple(patients(POPULATION, self.generator, present=present) for present in (True, False))  # type: ignore[return-value]

    @cached_property
    def readers(self) -> Readers:
        """The networks."""
        with torch.no_grad():
            return Readers(SHARES, self.seed).scaled(stacked([each for films in self.kinds[0] for each in films]))

    @cached_property
    def maps(self) -> list[np.ndarray]:
        """By patient: the scores of each film's floors, then of its maps."""
        usual = _usual_place(self.kinds[0])
        return [np.array([self._scores(each, usual) for each in films]) for films in self.kinds[0]]

    def _scores(self, film: Film, usual: np.ndarray) -> list[float]:
        case = Case(CaseKey("film", "patient", {}), film.pixels[None], {FINDING: film.mask})
        floors = image_floors(case.image)
        noise = [on_image(self.generator.random((CELLS, CELLS), np.float32), case) for _ in range(RANDOM_MAPS + 2)]
        drawn = float(np.mean([mass(each, film.mask).value for each in noise[:RANDOM_MAPS]]))
        others = (floors["center_prior"][0], floors["edge"][0], on_image(usual, case))
        heats = [*self._truthful(film, noise[-2]), others[0] ** 2, others[1], noise[-1], self._elsewhere(film)]
        return [drawn, *(mass(each, film.mask).value for each in (*others, *heats))]

    def _truthful(self, film: Film, noise: np.ndarray) -> Iterator[np.ndarray]:
        """What each network reads, with a tenth of the heat anywhere."""
        film_alone = stacked([film])
        read_in_area = (*SHARES, 0.5, 0.0, 0.0)
        for share in read_in_area:
            heat = self.readers.heat(film_alone, share)[0]
            yield heat / max(heat.sum(), 1e-6) + 0.1 * noise / noise.sum()

    def _elsewhere(self, film: Film) -> np.ndarray:
        """A bright spot that is no part of the area."""
        free = np.argwhere(~film.mask)
        row, column = free[self.generator.integers(len(free))]
        axis = np.arange(SIDE)
        spot = np.exp(-((axis[:, None] - row) ** 2 + (axis - column) ** 2) / 8).astype(np.float32)
        return spot * ~film.mask


def _usual_place(kind: Sequence[Sequence[Film]]) -> np.ndarray:
    """Where the area lies in patients of the population, as the study finds it."""
    films = [each for one in kind[:200] for each in one]
    keys = keys_of(films, range(len(films)), "other")

    class Drawn:
        def truth(self, key: CaseKey) -> Mapping[str, np.ndarray]:
            return {FINDING: films[int(key.case.removeprefix("other"))].mask}

    prior = gather_priors(Drawn(), keys, (FINDING,), Silent()).for_patient("")[0]  # type: ignore[arg-type]
    return np.asarray(prior, np.float32)


@dataclass(frozen=True)
class Sample:
    """Films of patients drawn from a pool, and what networks make of them."""

    films: tuple[list[Film], list[Film]]  # with and without the finding
    patient: tuple[np.ndarray, np.ndarray]
    chosen: np.ndarray  # patients with the finding, in the pool

    @classmethod
    def of(cls, pool: Pool, count: int, generator: np.random.Generator) -> "Sample":
        """So many patients of each kind, with replacement."""
        places = [generator.integers(0, POPULATION, count) for _ in range(2)]
        return cls._at(pool, places)

    @classmethod
    def whole(cls, pool: Pool) -> "Sample":
        """Every patient."""
        return cls._at(pool, [np.arange(POPULATION)] * 2)

    @classmethod
    def _at(cls, pool: Pool, places: Sequence[np.ndarray]) -> "Sample":
        films, patient = [], []
        for kind, chosen in zip(pool.kinds, places, strict=True):
            films.append([each for place in chosen for each in kind[place]])
            patient.append(np.repeat(np.arange(len(chosen)), [len(kind[place]) for place in chosen]))
        return cls((films[0], films[1]), (patient[0], patient[1]), places[0])

    def drops(self, readers: Readers, outputs: int, seed: int) -> list[list[Drops]]:
        """By network and film with the finding."""
        keys = [keys_of(films, who, kind) for films, who, kind in zip(self.films, self.patient, "pn", strict=True)]
        absent = partners(keys[0], keys[1], SETTINGS.films, seed)
        images, others = (stacked(films) for films in self.films)
        probes = [
            Probe(images[n], film.mask, [others[place] for place in absent[n]], seed + n)
            for n, film in enumerate(self.films[0])
        ]
        return drops(classifier_of(readers, outputs), range(outputs), probes, SETTINGS)

    def logits(self, readers: Readers) -> tuple[np.ndarray, np.ndarray]:
        """Labels, and the logits of every network."""
        with torch.no_grad():
            each = [readers(stacked(films)).double().numpy() for films in self.films]
        return np.repeat([1.0, 0.0], [len(films) for films in self.films]), np.concatenate(each)

    def means(self, values: np.ndarray, generator: np.random.Generator) -> list[EstimateWithInterval]:
        """The mean of each column with its interval; columns are by film with the finding."""
        found = nested_means(values, Design(np.zeros(len(values)), self.patient[0]), DRAWS, generator)
        return [_interval(each) for each in found]


def _interval(mean: NestedEstimate) -> EstimateWithInterval:
    return interval_of(fill(Estimate(MEAN, "mass"), mean))


def before(
    pool: Pool, sample: Sample, generator: np.random.Generator, *, exact: bool = False
) -> list[tuple[Use, Marks]]:
    """What the readings are made from, for every network and map; with `exact`, intervals have no width."""
    count = len(NETWORKS)
    found = sample.drops(pool.readers, count + UNTRAINED, int(generator.integers(2**31)))
    labels, logits = sample.logits(pool.readers)
    spread = logits.std(0)
    apart = [separation(labels, column).value for column in logits.T]
    relied, added = (
        np.array([[metric(each, one).value for each in of] for of, one in zip(found, spread, strict=True)]).T
        for metric in (reliance, reliance_added)
    )
    untrained = (relied[:, count:] * np.sign(apart[count:])).mean(1, keepdims=True)
    scores = np.concatenate([pool.maps[place] for place in sample.chosen])
    floors, maps = scores[:, : len(FLOORS)], scores[:, len(FLOORS) :]
    gains = [maps[:, [n]] - floors for n in range(maps.shape[1])]
    columns = np.hstack([relied[:, :count], added[:, :count], relied[:, :count] - untrained, *gains])
    means = sample.means(columns, generator) if not exact else [EstimateWithInterval(*[v] * 3) for v in columns.mean(0)]
    uses = [
        Use(
            reliance_part(means[n], apart[n], SIZES),
            reliance_part(means[count + n], apart[n], SIZES),
            means[2 * count + n],
        )
        for n in range(count)
    ]
    levels = floors.mean(0)
    marks = [
        Marks(
            {
                floor: score_part(means[3 * count + n * len(FLOORS) + f], levels[f], 1.0, SIZES)
                for f, floor in enumerate(FLOORS)
            },
            FLOORS[int(levels.argmax())],
        )
        for n in range(maps.shape[1])
    ]
    return [
        (use, marks[n] if kind == "truthful" else marks[count + MAPS.index(kind) - 1])
        for n, use in enumerate(uses)
        for kind in MAPS
    ]


def near(use: Use, marks: Marks) -> bool:
    """Whether a part of the truth lies close to the size that matters."""
    parts = [use.reliance, marks.above_best, marks.above_random]
    parts += [use.added] if used(use).level in ("unused", "redundant") else []
    return any(0.5 * part.size <= part.estimate.value <= 1.5 * part.size for part in parts)


@dataclass
class Tally:
    """How often a cell was right, wrong or open."""

    right: str = ""
    is_near: bool = False
    counts: Counter[str] | None = None

    def add(self, reading: str, right: str) -> None:
        """Count one run."""
        self.counts = self.counts or Counter()
        outcome = "right" if reading == right else "open" if reading == "undecided" else "wrong"
        self.counts[outcome] += 1
        self.counts[reading] += outcome == "wrong"

    def share(self, outcome: str) -> float:
        """Of all runs."""
        counts = self.counts or Counter()
        return counts[outcome] / max(1, sum(counts[each] for each in ("right", "wrong", "open")))


def simulate_before(repetitions: int, seed: int) -> dict[tuple[int, str, str], Tally]:
    """Every network and map with every number of patients."""
    tallies: dict[tuple[int, str, str], Tally] = {}
    cells = [(network, kind) for network in NETWORKS for kind in MAPS]
    for number in range(POOLS):
        pool = Pool(seed * POOLS + number)
        generator = np.random.default_rng([seed, number])
        truths = before(pool, Sample.whole(pool), generator, exact=True)
        for count in PATIENTS:
            for _ in range(math.ceil(repetitions / POOLS)):
                found = before(pool, Sample.of(pool, count, generator), generator)
                for cell, truth, (use, marks) in zip(cells, truths, found, strict=True):
                    right = before_of(used(truth[0]), marked(truth[1]))
                    tally = tallies.setdefault((count, *cell), Tally(right))
                    tally.is_near |= near(*truth) or tally.right != right
                    tally.add(before_of(used(use), marked(marks)), right)
    return tallies


@dataclass(frozen=True, slots=True)
class Tuning:
    """What fine-tuning does: the share read in the area, and the share that maps show, of control and both arms."""

    name: str
    reads: tuple[float, float, float]
    shows: tuple[float, float, float]
    right: str


TUNINGS = (
    Tuning("model and map move", (0.5, 0.9, 0.1), (0.5, 0.9, 0.1), "follows"),
    Tuning("both move a little", (0.5, 0.7, 0.3), (0.5, 0.7, 0.3), "follows"),
    Tuning("map moves, model does not", (0.5, 0.5, 0.5), (0.5, 0.95, 0.05), "foolable"),
    Tuning("map moves, model by a hair", (0.5, 0.52, 0.48), (0.5, 0.95, 0.05), "foolable"),
    Tuning("map moves against the model", (0.5, 0.1, 0.9), (0.5, 0.9, 0.1), "foolable"),
    Tuning("model moves, map does not", (0.5, 0.95, 0.05), (0.5, 0.5, 0.5), "unmoved"),
    Tuning("nothing moves", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), "undecided"),
)
SEEDS, LUCK = 3, 0.04  # trainings, and the SD of what they read and show


def simulate_under(repetitions: int, seed: int) -> dict[tuple[int, str], Tally]:
    """Every kind of fine-tuning with every number of patients, read with three seeds."""
    tallies: dict[tuple[int, str], Tally] = {}
    pool = Pool(seed + 1000)
    for count in TUNED:
        generator = np.random.default_rng([seed, count])
        for _ in range(repetitions):
            for tuning, evidence in zip(TUNINGS, under(pool, count, generator), strict=True):
                tallies.setdefault((count, tuning.name), Tally(tuning.right)).add(read(evidence).under, tuning.right)
    return tallies


def under(pool: Pool, count: int, generator: np.random.Generator) -> list[BlameEvidence]:
    """The evidence of one run on every tuning: control, aligned and misaligned networks of every seed."""
    sample = Sample.of(pool, count, generator)
    wanted, shown = (np.array([getattr(each, name) for each in TUNINGS]) for name in ("reads", "shows"))
    luck = generator.normal(0, LUCK, (len(TUNINGS), SEEDS, 3))
    reads, shows = (np.clip(each[:, None] + luck, 0, 1) for each in (wanted, shown))
    readers = Readers(reads.ravel().tolist(), int(generator.integers(2**31)), others=False)
    readers.area_unit, readers.marker_unit = pool.readers.area_unit, pool.readers.marker_unit
    films = sample.films[0]
    labels, logits = sample.logits(readers)
    found = sample.drops(readers, reads.size, int(generator.integers(2**31)))
    relied = np.array(
        [[reliance(each, one).value for each in of] for of, one in zip(found, logits.std(0), strict=True)]
    ).reshape(*reads.shape, -1)
    heats = (readers.heat(stacked(films), share) for share in shows.ravel())
    scores = np.array(
        [[mass(heat, film.mask).value for heat, film in zip(each, films, strict=True)] for each in heats]
    ).reshape(*reads.shape, -1)
    floor = float(np.concatenate([pool.maps[place] for place in sample.chosen])[:, FLOORS.index(RANDOM)].mean())
    apart = np.array([separation(labels, column).value for column in logits.T]).reshape(reads.shape)[..., 0].mean(1)
    design = Design(np.repeat(np.arange(SEEDS), len(films)), np.tile(sample.patient[0], SEEDS))
    return [_evidence(*each, design, floor) for each in zip(scores, relied, apart.tolist(), strict=True)]


def _evidence(scores: np.ndarray, relied: np.ndarray, apart: float, design: Design, floor: float) -> BlameEvidence:
    """The changes of both arms from the control, whose intervals are those of the study."""
    moved, model = (
        [
            _interval(each.estimate)
            for each in joint_means(
                np.stack([(values[:, arm] - values[:, 0]).ravel() for arm in (1, 2)], axis=1), design, 2, together=False
            )
        ]
        for values in (scores, relied)
    )
    arms = [
        Arm(direction, score_part(moved[n], floor, 1.0, SIZES), reliance_part(model[n], apart, SIZES))
        for n, direction in enumerate(DIRECTIONS)
    ]
    return BlameEvidence(Use(Part()), Marks(), tuple(arms))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--half", choices=("before", "under", "both"), default="both")
    arguments = parser.parse_args()
    repetitions = min(arguments.repetitions, MOST)
    if arguments.half != "under":
        _print("before", simulate_before(repetitions, arguments.seed))
    if arguments.half != "before":
        _print("under", simulate_under(repetitions, arguments.seed))


def _print(half: str, tallies: Mapping[tuple, Tally]) -> None:
    counts = list(dict.fromkeys(key[0] for key in tallies))
    columns = " | ".join(f"{count}: right / wrong / open" for count in counts)
    print(f"\n| {half} | right is | {columns} | wrong says |\n|---|---|{'---|' * len(counts)}---|")
    for cell in dict.fromkeys(key[1:] for key in tallies):
        each = [tallies[count, *cell] for count in counts]
        shares = " | ".join(
            " / ".join(f"{100 * tally.share(outcome):.1f}" for outcome in ("right", "wrong", "open")) for tally in each
        )
        wrong = Counter({name: n for tally in each for name, n in (tally.counts or {}).items() if n})
        said = ", ".join(name for name, _ in wrong.most_common() if name not in ("right", "wrong", "open"))
        print(f"| {', '.join(cell)} | {each[0].right}{'*' if each[0].is_near else ''} | {shares} | {said} |")
    for count in counts:
        wrong_share = np.mean([tally.share("wrong") for key, tally in tallies.items() if key[0] == count])
        print(f"\npooled wrong with {count} patients: {wrong_share:.2%}")


if __name__ == "__main__":
    main()
