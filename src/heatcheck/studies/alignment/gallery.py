"""Pictures of the same image with the maps of the base, its control, the aligned and the misaligned network.

Every network is used once and then removed, so cases are chosen before anything is trained, and each network's shard
keeps their maps.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError
from heatcheck.core.records import Case, CaseKey, Map
from heatcheck.core.vocabulary import condition
from heatcheck.maps.keep import half_precision
from heatcheck.maps.normalise import min_max
from heatcheck.running.gallery import (
    IMAGE_SIDE,
    MAP_SIDE,
    DrawnCase,
    film,
    outlines,
    smaller,
    store_gallery,
    write_grey,
)
from heatcheck.running.progress import Watcher
from heatcheck.runs.store import RunFolder
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import ARMS, MAIN_METRICS, AlignmentEntry, Arm, ArmMapEntry, network_key

Chosen = Mapping[str, Sequence[CaseKey]]  # by finding


def chosen(
    keys: Sequence[CaseKey],
    findings: Sequence[str],
    how_many: int,
    marked: Callable[[CaseKey, str], bool] = lambda key, finding: True,  # noqa: ARG005
) -> dict[str, list[CaseKey]]:
    """Positive cases to show, taken from each finding in turn in the order of the keys, no patient twice.

    `marked` says whether a case has a mask of a finding; it is called for no more cases than necessary.
    """
    waiting = {finding: iter([key for key in keys if key.labels.get(finding) == 1]) for finding in findings}
    cases: dict[str, list[CaseKey]] = {finding: [] for finding in findings}
    patients: set[str] = set()
    while len(patients) < how_many and waiting:
        for finding in list(waiting):
            if len(patients) == how_many:
                break
            key = next((key for key in waiting[finding] if key.patient not in patients and marked(key, finding)), None)
            if key is None:
                del waiting[finding]
            else:
                cases[finding].append(key)
                patients.add(key.patient)
    return cases


def map_name(model: str, finding: str, method: str, arm: Arm, case: str) -> str:
    """The name under which a network's map of a case is kept."""
    return f"{model}|{finding}|{method}|{arm}|{case}"


def for_gallery(values: Map) -> Map:
    """A map on the image's grid as it is kept: small, because there is one per network."""
    return half_precision(smaller(np.asarray(values, np.float32), MAP_SIDE))


@dataclass(frozen=True, slots=True)
class ChosenPipeline:
    """A case and finding, and the model and method whose maps are shown."""

    key: CaseKey
    finding: str
    model: str
    method: str

    def names(self) -> dict[Arm, str]:
        """The names of its maps, by arm."""
        return {arm: map_name(self.model, self.finding, self.method, arm, self.key.case) for arm in ARMS}


def choices(rule: AlignmentSettings, cases: Chosen, most: int) -> list[ChosenPipeline]:
    """The chosen cases, finding by finding in turn, with models and methods in turn so that all pairs are shown."""
    rounds = max(map(len, cases.values()), default=0)
    in_turn = [
        (key, finding) for turn in range(rounds) for finding, keys in cases.items() for key in keys[turn : turn + 1]
    ]
    models, methods = [base.key for base in rule.fine_tuned], rule.methods
    cycle = math.lcm(len(models), len(methods))  # after so many steps a pair would repeat
    return [
        ChosenPipeline(key, finding, models[turn % len(models)], methods[(turn + turn // cycle) % len(methods)])
        for turn, (key, finding) in enumerate(in_turn[:most])
    ]


def make_alignment_gallery(
    folder: RunFolder, rule: AlignmentSettings, source: Source, cases: Chosen, most: int, watcher: Watcher
) -> None:
    """Draw the chosen cases with the maps that the run has kept, and store pictures and index in its folder.

    A case is left out if its image cannot be read or no map of its model and method was kept.
    """
    planned = choices(rule, cases, most)
    store_gallery(folder, _drawn(folder, planned, source, rule.seeds[0]), len(planned), watcher)


def _drawn(
    folder: RunFolder, planned: Sequence[ChosenPipeline], source: Source, seed: int
) -> Iterator[DrawnCase | None]:
    kept = folder.read_maps({name for choice in planned for name in choice.names().values()})
    numbers = _known_numbers(folder, planned)
    number = 0  # of the case among those that are shown
    for choice in planned:
        case = _case(source, choice)
        maps = {arm: kept[name] for arm, name in choice.names().items() if name in kept}
        maps = {arm: values for arm, values in maps.items() if np.isfinite(values).all()}
        if case is None or choice.finding not in case.truth or not maps:
            yield None
            continue
        prefix = f"{number:03d}"
        entries = tuple(_map_entry(choice, arm, f"{prefix}-{arm}.png", seed, numbers) for arm in maps)
        for entry in entries:  # stretched to the full range: what counts is where a map is bright, not how bright
            write_grey(folder, entry.file, min_max(maps[entry.arm]), MAP_SIDE)
        yield DrawnCase(_entry(folder, prefix, choice, case, entries))
        number += 1


def _case(source: Source, choice: ChosenPipeline) -> Case | None:
    try:
        return source.load(choice.key)
    except CaseError:  # recorded where it was scored
        return None


def _known_numbers(folder: RunFolder, planned: Sequence[ChosenPipeline]) -> dict[tuple[str, ...], float]:
    """The networks' probabilities for the cases to be shown and their maps' scores, by the other columns."""
    cases = sorted({choice.key.case for choice in planned})
    numbers: dict[tuple[str, ...], float] = {}
    if not cases:  # a filter cannot be empty
        return numbers
    for table, columns, value, wanted in (
        ("predictions", ["model", "finding", "case"], "probability", []),
        (
            "scores",
            ["model", "finding", "case", "method", "condition", "metric"],
            "value",
            [("metric", "in", MAIN_METRICS)],
        ),
    ):
        filters = [("case", "in", cases), *wanted]
        rows = pd.read_parquet(folder.path / f"{table}.parquet", columns=[*columns, value], filters=filters)
        numbers |= {tuple(row[:-1]): float(row[-1]) for row in rows.itertuples(index=False, name=None)}
    return numbers


def _map_entry(
    choice: ChosenPipeline, arm: Arm, file: str, seed: int, numbers: Mapping[tuple[str, ...], float]
) -> ArmMapEntry:
    """The map with the network's probability and its scores; NaN where they are not known."""
    of_case = (choice.finding, choice.key.case)
    under = condition(arm=arm) if arm == "base" else condition(arm=arm, seed=seed)
    network = network_key(choice.model, arm, seed, choice.method)
    mass, rank = (numbers.get((choice.model, *of_case, choice.method, under, name), math.nan) for name in MAIN_METRICS)
    return ArmMapEntry(arm=arm, file=file, probability=numbers.get((network, *of_case), math.nan), mass=mass, rank=rank)


def _entry(
    folder: RunFolder, prefix: str, choice: ChosenPipeline, case: Case, maps: tuple[ArmMapEntry, ...]
) -> AlignmentEntry:
    file = f"{prefix}-film.png"
    write_grey(folder, file, film(case), IMAGE_SIDE)
    height, width = case.image.shape[1:]
    return AlignmentEntry(
        id=prefix,
        case=choice.key.case,
        finding=choice.finding,
        model=choice.model,
        method=choice.method,
        shape=(height, width),
        film=file,
        outlines=outlines(case.truth[choice.finding]),
        maps=maps,
    )
