"""Carries out a run's shards on this machine; what was finished earlier is not done again."""

from collections.abc import Callable

from heatcheck.core.records import ShardTables
from heatcheck.runs.store import RunFolder


def run_shards(
    folder: RunFolder, shards: int, work: Callable[[int], ShardTables], done: Callable[[int, ShardTables], None]
) -> None:
    """Work off every shard the folder does not hold yet; `done` hears of each when it is on disk."""
    for shard in range(shards):
        if folder.has_shard(shard):
            continue
        tables = work(shard)
        folder.write_shard(shard, tables)
        done(shard, tables)
