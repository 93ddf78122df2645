"""A bad case does not stop a run: it is recorded with its reason, and the others go on."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.paths import text_without_paths
from heatcheck.core.records import Case, CaseKey, CaseRecord

One = TypeVar("One")


def loaded_or_failed(source: Source, key: CaseKey) -> Case | CaseRecord:
    """The case, or the record of why it could not be read."""
    try:
        return source.load(key)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one file must not stop the others
        return failure(key, error)


def failure(key: CaseKey, error: Exception) -> CaseRecord:
    """The record of a case that could not be used."""
    stage = error.stage if isinstance(error, CaseError) else "unexpected"
    reason = str(error) if isinstance(error, CaseError) else f"{type(error).__name__}: {error}"
    detail = text_without_paths("".join(traceback.format_exception(error)))
    return CaseRecord(key.case, key.patient, "failed", stage, reason, detail, examination=key.examination)


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
