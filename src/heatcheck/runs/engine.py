"""Runs the shards of a run on this machine; finished ones are not repeated."""

from collections.abc import Callable

from heatcheck.core.records import ShardTables
from heatcheck.runs.store import RunFolder


def run_shards(
    folder: RunFolder, shards: int, work: Callable[[int], ShardTables], done: Callable[[int, ShardTables], None]
) -> None:
    """Run every shard that the folder does not hold yet; `done` is called for each when it is on disk."""
    for shard in range(shards):
        if folder.has_shard(shard):
            continue
        tables = work(shard)
        folder.write_shard(shard, tables)
        done(shard, tables)
