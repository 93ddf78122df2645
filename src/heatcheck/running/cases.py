"""Lists of cases, and cases read in advance."""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from heatcheck.core.contracts import Source
from heatcheck.core.records import Case, CaseKey, CaseRecord
from heatcheck.running.failed_cases import loaded_or_failed

One = TypeVar("One")
Other = TypeVar("Other")


def read_cases(source: Source, keys: Sequence[CaseKey], workers: int) -> Iterator[Case | CaseRecord]:
    """Each case in order, or the record of why it could not be read; `workers` cases are read in advance."""
    return _ahead(lambda key: loaded_or_failed(source, key), keys, max(1, workers))


def results_in_order(work: Callable[[One], Other], items: Sequence[One], workers: int) -> Iterator[Other]:
    """The results of `work` in the order of the items, computed for `workers` items at a time."""
    return _ahead(work, items, workers) if workers > 1 else map(work, items)


def _ahead(work: Callable[[One], Other], items: Sequence[One], workers: int) -> Iterator[Other]:
    with ThreadPoolExecutor(workers) as pool:
        to_come = iter(items)
        waiting = deque(pool.submit(work, item) for item in islice(to_come, workers))
        while waiting:
            first = waiting.popleft()
            waiting.extend(pool.submit(work, item) for item in islice(to_come, 1))
            yield first.result()


def success(case: Case, *, annotated: bool) -> CaseRecord:
    """The record of a case that was used; `annotated` if experts marked it, even as empty."""
    shape = "×".join(map(str, case.image.shape[1:]))
    key = case.key
    return CaseRecord(key.case, key.patient, "ok", shape=shape, annotated=int(annotated), examination=key.examination)


def batches(cases: Iterable[One], size: int) -> Iterator[list[One]]:
    """The cases in groups of `size`; the last may be smaller."""
    iterator = iter(cases)
    while batch := list(islice(iterator, size)):
        yield batch


def digest_of(keys: Sequence[CaseKey]) -> str:
    """A hash of the list of cases with their labels."""
    digest = hashlib.sha256()
    for key in keys:
        digest.update(json.dumps([key.case, key.patient, sorted(key.labels.items())]).encode())
    return digest.hexdigest()


def limited(keys: Sequence[CaseKey], findings: Sequence[str], limit: int | None) -> list[CaseKey]:
    """The cases of at most `limit` patients, in their order, spread over the findings.

    One patient after the other is taken from whom has the finding that fewest of those taken have, patients without
    any finding being one more kind; of equals, from the rarest. Each kind is taken in the order of the cases.
    """
    if limit is None:
        return list(keys)
    kinds_of: dict[str, set[str]] = {}
    for key in keys:
        kinds_of.setdefault(key.patient, set()).update(name for name in findings if key.labels.get(name) == 1)
    waiting: dict[str, list[str]] = {kind: [] for kind in (*findings, "")}  # the next patient comes last
    for patient in reversed(kinds_of):
        for kind in kinds_of[patient] or {""}:
            waiting[kind].append(patient)
    rarest = sorted(waiting, key=lambda kind: len(waiting[kind]))
    taken: set[str] = set()
    counts = dict.fromkeys(rarest, 0)
    while len(taken) < min(limit, len(kinds_of)):
        for patients in waiting.values():
            while patients and patients[-1] in taken:
                patients.pop()
        kind = min((kind for kind in rarest if waiting[kind]), key=counts.__getitem__)
        patient = waiting[kind].pop()
        taken.add(patient)
        for each in kinds_of[patient] or {""}:
            counts[each] += 1
    return [key for key in keys if key.patient in taken]


def first_patients(keys: Iterable[CaseKey], limit: int | None) -> set[str]:
    """The first patients of these cases, `limit` at most."""
    return set(list(dict.fromkeys(key.patient for key in keys))[:limit])


def shared_patients(some: Sequence[CaseKey], others: Sequence[CaseKey]) -> list[str]:
    """The patients in both lists, or, if there are none, the cases in both."""
    cases = {key.case for key in some} & {key.case for key in others}
    return sorted({key.patient for key in some} & {key.patient for key in others}) or sorted(cases)
