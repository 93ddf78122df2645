"""Cases read in advance; one that cannot be read is recorded and does not end the run."""

import hashlib
import json
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.paths import text_without_paths
from heatcheck.core.records import Case, CaseKey, CaseRecord

One = TypeVar("One")
Other = TypeVar("Other")


def read_cases(source: Source, keys: Sequence[CaseKey], workers: int) -> Iterator[Case | CaseRecord]:
    """Each case in order, or the record of why it could not be read; `workers` cases are read in advance."""

    def loaded(key: CaseKey) -> Case | CaseRecord:
        try:
            return source.load(key)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one file must not stop the others
            return failure(key, error)

    return _ahead(loaded, keys, max(1, workers))


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


def failure(key: CaseKey, error: Exception) -> CaseRecord:
    """The record of a case that could not be used."""
    stage = error.stage if isinstance(error, CaseError) else "unexpected"
    reason = str(error) if isinstance(error, CaseError) else f"{type(error).__name__}: {error}"
    detail = text_without_paths("".join(traceback.format_exception(error)))
    return CaseRecord(key.case, key.patient, "failed", stage, reason, detail)


def success(case: Case, *, annotated: bool) -> CaseRecord:
    """The record of a case that was used; `annotated` if experts marked it, even as empty."""
    shape = "×".join(map(str, case.image.shape[1:]))
    return CaseRecord(case.key.case, case.key.patient, "ok", shape=shape, annotated=int(annotated))


def readable(read: Iterable[Case | CaseRecord], failed: list[CaseRecord]) -> Iterator[Case]:
    """The cases that could be read; the records of the others are added to `failed`."""
    for one in read:
        if isinstance(one, Case):
            yield one
        else:
            failed.append(one)


def one_by_one_if_needed(
    items: Sequence[One], work: Callable[[Sequence[One]], None], blame: Callable[[One, Exception], None]
) -> None:
    """Call `work` with all items; if it fails, call it with each item alone, and `blame` with those that fail again.

    `work` must have no effect before it succeeds: the items of a failed batch are passed to it again.
    """
    try:
        work(items)
    except InputError:
        raise  # what the user must fix concerns every case
    except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
        if len(items) == 1:
            blame(items[0], error)
            return
        for item in items:
            one_by_one_if_needed([item], work, blame)


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


def shared_patients(some: Sequence[CaseKey], others: Sequence[CaseKey]) -> list[str]:
    """The patients in both lists, or, if there are none, the cases in both."""
    cases = {key.case for key in some} & {key.case for key in others}
    return sorted({key.patient for key in some} & {key.patient for key in others}) or sorted(cases)
