"""Failed cases run again: what they left in each shard is replaced.

The scores of all other cases stay as they are, even where the repaired ones would have helped to make their maps.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from heatcheck.core.records import CaseKey, ShardTables
from heatcheck.running.case_stage import Part, ShardRows
from heatcheck.running.progress import Watcher
from heatcheck.running.retry.reopening import failed_cases
from heatcheck.runs.store import RunFolder


@runtime_checkable
class RetryStage(Protocol):
    """A stage that can work on some of a shard's cases."""

    @property
    def parts(self) -> Sequence[Part[Any, CaseKey]]:
        """The cases of each shard."""

    def work_on(self, shard: int, cases: Sequence[CaseKey]) -> ShardTables:
        """The tables of some cases of a shard."""


def repeat_failed(stage: RetryStage, folder: RunFolder, watcher: Watcher) -> None:
    """Replace what the failed cases left in each shard by what they give now."""
    failed = failed_cases(folder)
    again = {
        shard: keys
        for shard, part in enumerate(stage.parts)
        if folder.has_shard(shard) and (keys := [key for key in part.cases if key.case in failed])
    }
    watcher.start("failed cases again", sum(map(len, again.values())))
    for shard, keys in again.items():
        rows = ShardRows()
        rows.add(folder.read_shard(shard, without={key.case for key in keys}))
        rows.add(stage.work_on(shard, keys))
        folder.write_shard(shard, rows.sorted_tables())
        watcher.advance(len(keys))
