"""Pictures of the same image before and after: what a method shows on the base, its control, aligned and misaligned.

Every network is met once and then forgotten, so the cases are chosen before anything is trained, and each network's
work keeps their maps.
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
from heatcheck.maps.keep import for_keeping
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
from heatcheck.studies.alignment.cells import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import ARMS, AlignmentEntry, Arm, ArmMapEntry, network_key

SHOWN = ("mass", "rank")  # the scores beside a map
Chosen = Mapping[str, Sequence[CaseKey]]  # by finding


def chosen(
    keys: Sequence[CaseKey],
    findings: Sequence[str],
    how_many: int,
    marked: Callable[[CaseKey, str], bool] = lambda key, finding: True,  # noqa: ARG005
) -> dict[str, list[CaseKey]]:
    """Positive cases to look at, taken from each finding in turn in the order of the keys, no patient twice.

    `marked` says whether a case has a mask of a finding; it is asked of no more cases than need be.
    """
    waiting = {finding: iter([key for key in keys if key.labels.get(finding) == 1]) for finding in findings}
    found: dict[str, list[CaseKey]] = {finding: [] for finding in findings}
    patients: set[str] = set()
    while len(patients) < how_many and waiting:
        for finding in list(waiting):
            if len(patients) == how_many:
                break
            key = next((key for key in waiting[finding] if key.patient not in patients and marked(key, finding)), None)
            if key is None:
                del waiting[finding]
            else:
                found[finding].append(key)
                patients.add(key.patient)
    return found


def map_name(model: str, finding: str, method: str, arm: Arm, case: str) -> str:
    """The name under which a network's map of a case is kept."""
    return f"{model}|{finding}|{method}|{arm}|{case}"


def for_gallery(values: Map) -> Map:
    """A map on the image's grid as it is kept: small, because many networks keep one."""
    return for_keeping(smaller(np.asarray(values, np.float32), MAP_SIDE))


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
    """The chosen cases, one finding after the other, each with another model and method until all pairs were shown."""
    rounds = max(map(len, cases.values()), default=0)
    in_turn = [
        (key, finding) for turn in range(rounds) for finding, keys in cases.items() for key in keys[turn : turn + 1]
    ]
    models, methods = [base.key for base in rule.fine_tuned], rule.methods
    together = math.lcm(len(models), len(methods))  # after so many steps a pair would come again
    return [
        ChosenPipeline(key, finding, models[turn % len(models)], methods[(turn + turn // together) % len(methods)])
        for turn, (key, finding) in enumerate(in_turn[:most])
    ]


def make_alignment_gallery(
    folder: RunFolder, rule: AlignmentSettings, source: Source, cases: Chosen, most: int, watcher: Watcher
) -> None:
    """Draw the chosen cases with the maps that the run has kept, and store pictures and index in its folder.

    A case whose image cannot be read, or of whose pair no map was kept, is left out.
    """
    planned = choices(rule, cases, most)
    store_gallery(folder, _drawn(folder, planned, source, rule.seeds[0]), len(planned), watcher)


def _drawn(
    folder: RunFolder, planned: Sequence[ChosenPipeline], source: Source, seed: int
) -> Iterator[DrawnCase | None]:
    kept = folder.read_maps({name for choice in planned for name in choice.names().values()})
    values = _known_values(folder, planned)
    number = 0  # of those that have something to show
    for choice in planned:
        case = _case(source, choice)
        maps = {arm: kept[name] for arm, name in choice.names().items() if name in kept}
        maps = {arm: one for arm, one in maps.items() if np.isfinite(one).all()}
        if case is None or choice.finding not in case.truth or not maps:
            yield None
            continue
        prefix = f"{number:03d}"
        entries = tuple(_map_entry(choice, arm, f"{prefix}-{arm}.png", seed, values) for arm in maps)
        for entry in entries:  # stretched over all greys: what counts is where a map is bright, not how bright
            write_grey(folder, entry.file, min_max(maps[entry.arm]), MAP_SIDE)
        yield DrawnCase(_entry(folder, prefix, choice, case, entries))
        number += 1


def _case(source: Source, choice: ChosenPipeline) -> Case | None:
    try:
        return source.load(choice.key)
    except CaseError:  # recorded where it was scored
        return None


def _known_values(folder: RunFolder, planned: Sequence[ChosenPipeline]) -> dict[tuple[str, ...], float]:
    """What the networks said of the cases to be shown, and how their maps scored, by all that tells them apart."""
    cases = sorted({choice.key.case for choice in planned})
    values: dict[tuple[str, ...], float] = {}
    if not cases:  # a filter cannot be empty
        return values
    for table, columns, value, wanted in (
        ("predictions", ["model", "finding", "case"], "probability", []),
        ("scores", ["model", "finding", "case", "method", "condition", "metric"], "value", [("metric", "in", SHOWN)]),
    ):
        filters = [("case", "in", cases), *wanted]
        rows = pd.read_parquet(folder.path / f"{table}.parquet", columns=[*columns, value], filters=filters)
        values |= {tuple(row[:-1]): float(row[-1]) for row in rows.itertuples(index=False, name=None)}
    return values


def _map_entry(
    choice: ChosenPipeline, arm: Arm, file: str, seed: int, values: Mapping[tuple[str, ...], float]
) -> ArmMapEntry:
    """The map with the network's probability and its scores; NaN where they are not known."""
    of_case = (choice.finding, choice.key.case)
    which = condition(arm=arm) if arm == "base" else condition(arm=arm, seed=seed)
    network = network_key(choice.model, arm, seed, choice.method)
    mass, rank = (values.get((choice.model, *of_case, choice.method, which, name), math.nan) for name in SHOWN)
    return ArmMapEntry(arm=arm, file=file, probability=values.get((network, *of_case), math.nan), mass=mass, rank=rank)


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
