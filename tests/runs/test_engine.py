import pytest

from heatcheck.core.records import CaseRecord, ShardTables
from heatcheck.runs.engine import run_shards
from heatcheck.runs.store import RunFolder


@pytest.fixture
def folder(tmp_path):
    with RunFolder.locked(tmp_path / "run", {"spec": 1}, {}) as folder:
        yield folder


def tables(shard):
    return ShardTables(cases=(CaseRecord(f"case {shard}", "p", "ok"),))


def test_every_shard_is_worked_off_in_order_and_reported_when_it_is_on_disk(folder):
    worked, heard = [], []

    def work(shard):
        worked.append(shard)
        return tables(shard)

    def done(shard, result):
        assert folder.has_shard(shard)
        heard.append((shard, result))

    run_shards(folder, 3, work, done)
    assert worked == [0, 1, 2]
    assert heard == [(shard, tables(shard)) for shard in range(3)]


def test_finished_shards_are_not_done_again(folder):
    folder.write_shard(1, tables(1))
    worked = []
    run_shards(folder, 3, lambda shard: worked.append(shard) or tables(shard), lambda *_: None)
    assert worked == [0, 2]
    run_shards(folder, 3, lambda _: pytest.fail("worked again"), lambda *_: pytest.fail("heard again"))


def test_interrupted_run_goes_on_with_the_shard_it_was_at(folder):
    def work(shard):
        if shard == 1:
            raise KeyboardInterrupt
        return tables(shard)

    with pytest.raises(KeyboardInterrupt):
        run_shards(folder, 3, work, lambda *_: None)
    assert [folder.has_shard(shard) for shard in range(3)] == [True, False, False]
    run_shards(folder, 3, tables, lambda *_: None)
    folder.join_shards(3)
    assert list(folder.read_table("cases")["case"]) == ["case 0", "case 1", "case 2"]


def test_run_without_shards_does_nothing(folder):
    run_shards(folder, 0, lambda _: pytest.fail("worked"), lambda *_: None)
