"""What a localization study costs, counted by hand."""

import io

import pytest

from heatcheck import run_study
from heatcheck.core.records import ShardTables
from heatcheck.explaining import cost as passes
from heatcheck.explaining.cost import PassSeconds
from heatcheck.running.cost import Work
from heatcheck.running.progress import Lines, Silent
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.runs.store import RunFolder
from heatcheck.studies.localization import cost
from heatcheck.studies.localization.plan import plan_localization

PHANTOM = {"name": "phantom_chest", "size": 80, "second_view": 0}
CHANGES = {
    "source": {**PHANTOM, "patients": 9, "first": 400},
    "findings": ["Edema", "Cardiomegaly"],
    "methods": ["grad_cam", "gradient", "random"],
}


@pytest.fixture
def measured(monkeypatch):
    """A machine on which a forward pass takes a second, a backward pass ten, and a case's scores a half."""
    monkeypatch.setattr(passes, "pass_seconds", lambda *_, **__: PassSeconds(1.0, 10.0))
    monkeypatch.setattr(cost, "read_one", lambda *_: None)


def cost_of(spec, folder, options=RunOptions(), finished=()):
    plan = plan_localization(read_spec(str(spec)), options, folder)
    with RunFolder.locked(folder, {}, {}) as run:
        for name, shard in finished:
            run.within(name).write_shard(shard, ShardTables())
        return plan.cost(run)


def test_images_methods_findings_and_models_are_counted(write_spec, tmp_path, measured):
    (work,) = cost_of(write_spec(**CHANGES), tmp_path / "run").works
    # the answer, Grad-CAM, and a gradient with a backward pass per finding
    assert work == Work(9, "image", "to explain by 3 methods for 2 findings with 1 model", 3 * 1.0 + 2 * 10.0)


def test_a_limit_and_validation_data_are_counted(write_spec, tmp_path, measured):
    tuned = write_spec(**CHANGES, validation={**PHANTOM, "patients": 5, "first": 900})
    validation, scored = cost_of(tuned, tmp_path / "run", RunOptions(limit=3)).works
    assert (validation.count, validation.noun) == (3, "validation image")
    assert (scored.count, scored.noun) == (3, "image")


def test_a_continued_run_counts_what_is_left(write_spec, tmp_path, measured):
    (work,) = cost_of(write_spec(**CHANGES), tmp_path / "run", finished=[("", 0), ("", 2)]).works
    assert work.count == 4  # of 9 in shards of 4, 4 and 1


def test_maps_that_are_kept_need_space_on_disk(write_spec, tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "pass_seconds", lambda *_, **__: PassSeconds(1.0, 10.0))
    (work,) = cost_of(write_spec(**CHANGES, keep_maps="all"), tmp_path / "run").works
    assert work.disk == 9 * 3 * 2 * (80 * 78) * 2  # images, methods, findings, pixels, bytes
    assert work.each > 23.0  # reading and scoring come on top of the passes


def test_the_run_says_it_before_it_starts(write_spec, tmp_path):
    stream = io.StringIO()
    run_study(write_spec(**CHANGES, gallery=0), tmp_path / "run", RunOptions(limit=4), Lines(stream))
    given, first, second, *_ = stream.getvalue().splitlines()
    assert given == f"What the network is given: {tmp_path / 'run' / 'preview.png'}"
    assert first.startswith("Less than a minute on this machine, within a factor of two or so: 4 images to explain by ")
    assert second.startswith("maps and scores")


class StopsAfterOneShard(Silent):
    """Stops the work after its first shard."""

    def advance(self, parts: int = 1, note: str = "") -> None:  # noqa: ARG002 - a watcher's
        if parts == 4:
            raise KeyboardInterrupt


def test_a_run_that_was_stopped_says_what_is_left(write_spec, tmp_path):
    spec, stream = write_spec(**CHANGES, gallery=0), io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        run_study(spec, tmp_path / "run", RunOptions(limit=6), StopsAfterOneShard())
    run_study(spec, tmp_path / "run", RunOptions(limit=6), Lines(stream))
    first, *_ = stream.getvalue().splitlines()
    assert "2 images to explain by 3 methods for 2 findings with 1 model" in first
