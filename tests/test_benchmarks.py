"""Benchmarks can be started, and `make protocols` knows every shipped spec and the layouts that they read."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks.protocols import trees
from benchmarks.protocols.run import PROTOCOLS, merged

from heatcheck.running.open_source import open_source
from heatcheck.runs.spec import read_spec, shipped_specs

ROOT = Path(__file__).parent.parent
MODULES = sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "benchmarks").rglob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_finds_what_it_imports(name):
    import_module(name)


def test_make_simulate_makes_every_simulation():
    listed = re.search(r"^SIMULATED := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed
    simulations = (ROOT / "benchmarks/simulations").glob("*.py")
    assert set(listed[1].split()) == {path.stem for path in simulations if "__main__" in path.read_text()}


def test_every_shipped_spec_is_run_after_those_whose_results_it_reads():
    assert set(shipped_specs()) <= set(PROTOCOLS)
    assert {protocol.of or name for name, protocol in PROTOCOLS.items()} == set(shipped_specs())
    order = list(PROTOCOLS)
    for name, protocol in PROTOCOLS.items():
        assert set(protocol.after) <= set(order[: order.index(name)]), name


def test_the_network_of_the_published_trigger_study_is_run_at_its_size():
    vgg16 = PROTOCOLS["triggers-covid-vgg16"]
    spec = merged(read_spec(vgg16.of).body, vgg16.changes)
    assert (spec["model"], spec["size"]) == ("vgg16", [224, 224])


def test_changes_reach_into_mappings_and_leave_the_rest():
    assert merged({"fit": {"epochs": 12, "clip": 2}, "seed": 3}, {"fit": {"epochs": 1}}) == {
        "fit": {"epochs": 1, "clip": 2}, "seed": 3
    }  # fmt: skip


def test_the_drawn_tree_of_chexlocalize_is_read_as_the_published_one(tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "SPLITS", {"train": (0, 3), "val": (200, 4), "test": (300, 5)})
    trees.chexlocalize(tmp_path)
    monkeypatch.chdir(tmp_path)
    spec = read_spec("localization-chexlocalize")
    scored, validation = (open_source(spec.body[part], spec.folder, spec.name) for part in ("source", "validation"))
    patients = [len({key.patient for key in source.index()}) for source in (scored, validation)]
    assert patients == [5, 4]
    cases = [scored.load(key) for key in scored.index()]
    assert any(case.truth for case in cases)
    assert all(case.readings for case in cases)
    training = read_spec("chexpert-densenet121")
    labels = [key.labels for key in open_source(training.body["training"], training.folder, training.name).index()]
    assert len(labels[0]) == 14
