import fcntl
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from safetensors.numpy import load_file

from heatcheck.core.errors import RunFolderError
from heatcheck.core.records import CaseRecord, Estimate, Prediction, Score, ShardTables, Timing
from heatcheck.runs import store
from heatcheck.runs.store import SCHEMA_VERSION, SHARD_TABLES, RunFolder, read_manifest, read_run

IDENTITY = {"spec": {"methods": ["a", "b"], "size": (3, 4)}, "weights_hash": "w1", "cases_hash": "c1"}
FACTS = {"threads": 2, "title": "A run"}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def folder(out):
    with RunFolder.locked(out, IDENTITY, FACTS) as folder:
        yield folder


def begin(path, identity=IDENTITY, facts=FACTS):
    """Claim the folder and let it go again."""
    with RunFolder.locked(path, identity, facts) as folder:
        return folder


def refusal(path, identity=IDENTITY):
    """The sentence with which the folder is refused."""
    with pytest.raises(RunFolderError) as caught:
        begin(path, identity)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def tables(case, **parts):
    return ShardTables(
        scores=(Score(case, "p", "Edema", "grad_cam", "net", "iou", 0.25),),
        predictions=(Prediction(case, "p", "Edema", "net", 1.0, 0.3, 0.6),),
        cases=(CaseRecord(case, "p", "ok"),),
        timings=(Timing(0, "map", "grad_cam", 4, 0.1),),
        **parts,
    )


def files_below(path):
    return sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())


def test_new_run_is_a_folder_with_its_description(out):
    begin(out)
    manifest = read_manifest(out)
    assert manifest["schema"] == SCHEMA_VERSION
    assert manifest["status"] == "running"
    assert manifest["spec"] == {"methods": ["a", "b"], "size": [3, 4]}
    assert manifest["threads"] == 2
    assert {path.name for path in out.iterdir()} == {".lock", "run.json", "parts", "gallery", "maps"}


def test_run_under_pseudonyms_never_says_where_files_lie(out):
    hidden = {**IDENTITY, "pseudonymised": True, "spec": {"source": [{"images": Path("/ward/films")}], "masks": "a/b"}}
    folder = begin(out, hidden, {"title": "Films of /ward/Smith, read twice"})
    folder.record(notes=["/ward/table.csv", "1/2 of the cases"])
    assert "/ward" not in folder.manifest_path.read_text()
    assert read_manifest(out)["spec"] == {"source": [{"images": "(hidden)"}], "masks": "a/b"}
    assert read_manifest(out)["title"] == "Films of (hidden), read twice"
    assert read_manifest(out)["notes"] == ["(hidden)", "1/2 of the cases"]
    begin(out, hidden)
    assert "the list of cases" in refusal(out, {**hidden, "cases_hash": "c2"})


def test_folder_is_made_with_the_folders_above_it(tmp_path):
    begin(tmp_path / "a/b/run")
    assert read_manifest(tmp_path / "a/b/run")["weights_hash"] == "w1"


def test_run_taken_up_again_keeps_the_facts_it_began_with(out):
    begin(out)
    folder = begin(out, facts={"threads": 8, "title": "Another"})
    assert (folder.manifest["threads"], folder.manifest["title"]) == (2, "A run")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"weights_hash": "w2"}, "the model's weights"),
        ({"spec": {"methods": ["a"], "size": (3, 4)}, "seed": 3, "spec_hash": "s2"}, "the spec (`methods`)"),
        ({"spec": {}, "cases_hash": "c2"}, "the spec (`methods`, `size`), the list of cases or their labels"),
        ({"device": "cuda"}, "--device"),
        ({"data_hash": "d2"}, "the files of images, masks or labels (by name, size or date: a file that was only"),
        ({"versions": {"torch": "9"}}, "the installed packages (not recorded)"),
    ],
)
def test_other_work_in_the_same_folder_is_refused_and_the_difference_named(out, changes, named):
    begin(out)
    before = files_below(out), (out / "run.json").read_text()
    sentence = refusal(out, {**IDENTITY, **changes})
    assert f"holds another run, which differs in {named}" in sentence
    assert "; choose another --out" in sentence
    assert (files_below(out), (out / "run.json").read_text()) == before
    begin(out)


def test_second_writer_in_this_process_is_kept_out(out, folder):
    assert f"another process is writing {out}; wait for it, or choose another --out" in refusal(out)


def test_second_writer_in_another_process_is_kept_out_until_the_first_is_gone(out):
    code = (
        "import sys; from pathlib import Path; from heatcheck.runs.store import RunFolder\n"
        f"with RunFolder.locked(Path(sys.argv[1]), {IDENTITY!r}, {{}}): print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        assert "another process is writing" in refusal(out)
        other.kill()
    begin(out)


def test_worker_that_outlives_a_killed_run_does_not_keep_the_lock(out):
    code = (
        "import os, sys; from pathlib import Path; from heatcheck.runs.store import RunFolder\n"
        f"with RunFolder.locked(Path(sys.argv[1]), {IDENTITY!r}, {{}}):\n"
        "    if os.fork(): os.wait()\n"
        "    print('worker', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "worker\n"
        assert "another process is writing" in refusal(out)  # the worker must not take the lock from its parent
        other.kill()
        other.wait()
        begin(out)  # the worker waits for its input still


def test_lock_held_by_anybody_keeps_writers_out(out):
    begin(out)
    with (out / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert "another process is writing" in refusal(out)


def test_lock_is_released_when_the_work_fails(out):
    def fail():
        with RunFolder.locked(out, IDENTITY, FACTS):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    begin(out)


def test_folder_with_foreign_files_is_refused_and_left_alone(out):
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    (out / "thesis.txt.tmp-1").write_text("more of it")
    assert "is not empty and holds no run; choose another --out" in refusal(out)
    assert files_below(out) == ["thesis.txt", "thesis.txt.tmp-1"]


def test_empty_folder_is_used(out):
    out.mkdir()
    begin(out)


def test_file_in_the_place_of_the_folder_is_refused(out):
    out.write_text("a file")
    assert f"{out} is a file; give --out a folder" in refusal(out)
    assert f"{out / 'below'} cannot be written; choose another --out" in refusal(out / "below")


def test_folder_that_cannot_be_written_is_refused(out, monkeypatch):
    monkeypatch.setattr(store.os, "access", lambda *_: False)
    assert f"{out} cannot be written; choose another --out" in refusal(out)
    assert not out.exists()


def test_files_a_killed_run_left_unfinished_are_removed(out):
    begin(out)
    left = [out / "run.json.tmp-1", out / "parts/00000.parquet.tmp-abc", out / "maps/00000.safetensors.tmp-x"]
    for path in left:
        path.write_bytes(b"half")
    kept = out / "parts/00000.parquet"
    kept.write_bytes(b"whole")
    begin(out)
    assert not any(path.exists() for path in left)
    assert kept.exists()


@pytest.mark.parametrize("reached", [[], ["run.json.tmp-12"], ["run.json"]])
def test_run_killed_while_it_claimed_its_folder_can_begin_again(out, reached):
    """As far as a run gets before its description is whole: the lock, half a description, no folders."""
    out.mkdir()
    (out / ".lock").touch()
    for name in reached:
        (out / name).write_text(json.dumps({"schema": SCHEMA_VERSION, **IDENTITY}))
    begin(out).write_shard(0, tables("a"))
    assert read_manifest(out)["weights_hash"] == "w1"
    assert not list(out.glob("*.tmp-*"))


def test_description_is_the_first_thing_written(out, monkeypatch):
    monkeypatch.setattr(RunFolder, "_write_manifest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        begin(out)
    monkeypatch.undo()
    begin(out)


def test_recorded_facts_are_added_and_replaced(folder):
    folder.record(status="complete", n_cases=3)
    assert folder.manifest["status"] == "complete"
    assert folder.manifest["n_cases"] == 3
    assert folder.manifest["title"] == "A run"


def test_shard_without_its_scores_is_not_there(folder):
    assert not folder.has_shard(0)
    folder.write_shard(0, tables("a"))
    assert folder.has_shard(0)
    assert not folder.has_shard(1)


@pytest.mark.parametrize("failing", [*SHARD_TABLES, "maps"])
def test_shard_counts_only_when_all_of_it_is_on_disk(folder, monkeypatch, failing):
    write_table, write_maps = store.write_table, RunFolder.write_maps

    def table(path, record, rows):
        if failing in path.name or (failing == "scores" and path.name == "00002.parquet"):
            raise OSError("no space left on device")
        write_table(path, record, rows)

    def maps(self, name, values):
        if failing == "maps":
            raise OSError("no space left on device")
        write_maps(self, name, values)

    monkeypatch.setattr(store, "write_table", table)
    monkeypatch.setattr(RunFolder, "write_maps", maps)
    with pytest.raises(OSError, match="no space left"):
        folder.write_shard(2, tables("a", maps={"a/Edema/grad_cam": np.ones((2, 2), np.float32)}))
    assert not folder.has_shard(2)


def test_joined_tables_follow_the_order_of_the_shards(folder):
    for shard, case in [(1, "b"), (0, "a"), (10, "k"), (2, "c")]:
        folder.write_shard(shard, tables(case))
    for shard in range(3, 10):
        folder.write_shard(shard, tables(f"x{shard}"))
    folder.join_shards(11)
    for name in ("scores", "predictions", "cases"):
        assert list(folder.read_table(name)["case"]) == ["a", "b", "c", *(f"x{i}" for i in range(3, 10)), "k"]
    assert len(folder.read_table("timings")) == 11


def test_maps_are_kept_as_they_are_under_their_names(folder):
    values = np.linspace(-1, 1, 12, dtype=np.float16).reshape(3, 4)
    folder.write_shard(3, tables("a", maps={"a/Edema/grad_cam": values}))
    stored = load_file(folder.path / "maps/00003.safetensors")
    assert list(stored) == ["a/Edema/grad_cam"]
    assert stored["a/Edema/grad_cam"].dtype == np.float16
    np.testing.assert_array_equal(stored["a/Edema/grad_cam"], values)


def test_all_files_of_a_run_may_be_read_by_the_same_people(folder):
    folder.write_shard(0, tables("a", maps={"a/Edema/grad_cam": np.ones((2, 2), np.float32)}))
    folder.write_picture("a.png", np.zeros((2, 2), np.uint8))
    folder.write_gallery({})
    modes = {path.name: path.stat().st_mode for path in folder.path.rglob("*") if path.is_file()}
    assert len(set(modes.values())) == 1, modes


def test_shard_without_maps_writes_no_file_of_maps(folder):
    folder.write_shard(0, tables("a"))
    assert not list((folder.path / "maps").iterdir())


def test_pictures_and_the_index_of_the_gallery_lie_side_by_side(folder):
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    folder.write_picture("a.png", grey)
    folder.write_gallery({"cases": [{"picture": "a.png"}]})
    with Image.open(folder.path / "gallery/a.png") as picture:
        np.testing.assert_array_equal(np.asarray(picture), grey)
    assert read_run(folder.path).gallery == {"cases": [{"picture": "a.png"}]}


def test_finished_run_is_read_with_all_its_tables(folder):
    folder.write_shard(0, tables("a"))
    folder.join_shards(1)
    folder.write_estimates([Estimate("mean", "iou", "Edema", "grad_cam", "net", 0.25)])
    run = read_run(str(folder.path))
    assert run.path == folder.path
    assert run.manifest["title"] == "A run"
    assert list(run.scores["value"]) == [0.25]
    assert list(run.predictions["probability"]) == [0.6]
    assert list(run.cases["status"]) == ["ok"]
    assert list(run.timings["seconds"]) == [0.1]
    assert list(run.estimates["statistic"]) == ["mean"]


def test_run_that_has_just_begun_is_read_with_tables_that_have_columns_and_no_rows(folder):
    run = read_run(folder.path)
    assert run.manifest["status"] == "running"
    assert run.gallery == {}
    for frame in (run.scores, run.estimates, run.predictions, run.cases, run.timings):
        assert len(frame) == 0
    assert list(run.scores) == list(Score.__dataclass_fields__)
    assert run.scores["value"].dtype == np.float64
    assert int((run.cases["status"] == "failed").sum()) == 0


def test_unfinished_run_is_read_as_its_shards_will_be_joined(folder):
    for shard, case in [(2, "c"), (0, "a"), (100_000, "z"), (11, "k")]:
        folder.write_shard(shard, tables(case))
    (folder.path / "parts/00003.cases.parquet").write_bytes(b"a shard that was killed before its scores")
    run = read_run(folder.path)
    assert list(run.scores["case"]) == list(run.cases["case"]) == ["a", "c", "k", "z"]
    assert list(run.predictions["probability"]) == [0.6] * 4
    assert run.timings["maps"].sum() == 16
    assert len(run.estimates) == 0
    assert [len(group) for group in run.row_groups("scores", ["case"])] == [1, 1, 1, 1]


def test_table_that_was_joined_before_the_run_stopped_is_read_once(folder):
    folder.write_shard(0, tables("a"))
    folder.join_shards(1)
    (folder.path / "scores.parquet").unlink()
    run = read_run(folder.path)
    assert [len(frame) for frame in (run.scores, run.predictions, run.cases, run.timings)] == [1, 1, 1, 1]


def test_table_is_read_when_it_is_first_asked_for_and_then_kept(folder, monkeypatch):
    folder.write_shard(0, tables("a"))
    folder.join_shards(1)
    read = []
    monkeypatch.setattr(store, "_read_table", lambda _, name: read.append(name) or pd.DataFrame({"name": [name]}))
    run = read_run(folder.path)
    assert read == []
    assert run.cases is run.cases
    assert read == ["cases"]
    assert run.scores["name"][0] == "scores"
    assert read == ["cases", "scores"]


def test_large_table_is_read_one_row_group_at_a_time(folder, monkeypatch):
    monkeypatch.setattr("heatcheck.runs.tables.GROUP_ROWS", 2)
    for shard in range(5):
        folder.write_shard(shard, tables(f"case{shard}"))
    in_parts = list(read_run(folder.path).row_groups("scores", ["case", "value"]))
    folder.join_shards(5)
    joined = list(read_run(folder.path).row_groups("scores", ["case", "value"]))
    assert [group.num_rows for group in in_parts] == [1] * 5
    assert [group.num_rows for group in joined] == [2, 2, 1]
    assert in_parts[3].to_pydict() == {"case": ["case3"], "value": [0.25]}
    assert joined[1].to_pydict() == {"case": ["case2", "case3"], "value": [0.25, 0.25]}
    assert list(read_run(folder.path).row_groups("estimates", ["value"])) == []


def test_every_table_is_shown_the_way_its_reader_asks(folder):
    folder.write_shard(0, tables("a"))
    run = replace(read_run(folder.path), shown=lambda table: table.assign(seen=True))
    assert all(run.scores["seen"])
    assert all(run.cases["seen"])


@pytest.mark.parametrize("text", ["{", "", "[]", "7", "null", '{"schema": 1', "\0"])
def test_damaged_description_is_refused(out, text):
    begin(out)
    (out / "run.json").write_text(text)
    for sentence in (refusal(out), _unreadable(out)):
        assert "run.json is damaged (" in sentence
        assert "; remove the folder and run again" in sentence


def _unreadable(path):
    with pytest.raises(RunFolderError) as caught:
        read_run(path)
    return str(caught.value)


@pytest.mark.parametrize("schema", [0, SCHEMA_VERSION + 1, str(SCHEMA_VERSION), None])
def test_run_of_another_schema_is_refused(out, schema):
    begin(out)
    manifest = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**manifest, "schema": schema}))
    for sentence in (refusal(out), _unreadable(out)):
        assert f"has schema {schema!r}, this heatcheck reads {SCHEMA_VERSION}; run the study again" in sentence


def test_folder_that_is_no_run_is_met_with_the_name_of_one_nearby(tmp_path):
    begin(tmp_path / "first-run")
    assert "is not a run folder (it has no run.json); did you mean 'first-run'?" in _unreadable(tmp_path / "first-rn")
    lonely = _unreadable(Path("/no/such/place"))
    assert lonely == "/no/such/place is not a run folder (it has no run.json)"


def test_a_stage_has_tables_of_its_own(tmp_path):
    with RunFolder.locked(tmp_path / "run", IDENTITY, {}) as folder:
        assert folder.within("") is folder
        stage = folder.within("validation")
        stage.write_shard(0, ShardTables(scores=(Score("a", "p", "f", "m", "net", "iou", 0.5),)))
        stage.join_shards(1)
        stage.write_estimates([Estimate("tuned_threshold", "iou", "f", "m", "net", 0.4)])
        assert not folder.has_shard(0)
        assert folder.read_table("scores").empty
    assert len(folder.within("validation").read_table("scores")) == 1
    (row,) = folder.within("validation").read_estimates()
    assert (row.statistic, row.value) == ("tuned_threshold", 0.4)
    assert math.isnan(row.low)


def test_code_of_a_model_of_your_own_counts_beside_its_weights(out):
    spec = {"model": {"name": "python:net:build"}}
    begin(out, identity={**IDENTITY, "spec": spec})
    sentence = refusal(out, {**IDENTITY, "spec": spec, "weights_hash": "w2"})
    assert "differs in the model's code or weights; choose" in sentence


def test_refusal_for_changed_files_names_the_first_newer_one(out):
    begin(out, identity={**IDENTITY, "data_hash": "d1"}, facts={"started": "2026-01-01T00:00:00+00:00"})
    asked = []

    def changed_since(moment):
        asked.append(moment)
        return "films/b.png"

    with (
        pytest.raises(RunFolderError, match=r"; newer than the run is films/b.png; choose another --out"),
        RunFolder.locked(out, {**IDENTITY, "data_hash": "d2"}, {}, changed_since),
    ):
        pass
    assert asked == ["2026-01-01T00:00:00+00:00"]
