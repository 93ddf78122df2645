"""What a map costs: the plot, the table, and the settings that are not usual."""

import json
import re
from itertools import pairwise

import pandas as pd
import pytest

from heatcheck.report.cost import cost_plot, costs
from heatcheck.report.evidence import evidence_of, in_words, is_smaller
from heatcheck.report.numbers import SPACE, brief
from heatcheck.running.reporting import build_report
from heatcheck.runs.manifest import SettingEntry
from heatcheck.runs.store import read_run
from heatcheck.studies.localization.report.verdict import verdict

GRID = {"kind": "grid", "cells": 8}


def names_in(plot):
    found = re.findall(r'<text x="[\d.]+" y="([\d.]+)" class="name" text-anchor="start">([^<]+)<', str(plot))
    return [(float(y), name) for y, name in found]


def seen(folder):
    return evidence_of(read_run(folder))


def timed(folder, methods):
    rows = [(0, "map", name, 100, seconds) for name, seconds in methods.items()]
    pd.DataFrame(rows, columns=["shard", "step", "method", "maps", "seconds"]).to_parquet(folder / "timings.parquet")


@pytest.fixture
def many(made_run):
    folder = made_run(methods=20)
    names = ["grad_cam", *(f"method_{i}" for i in range(1, 20)), "random", "center_prior", "edge", "location_prior"]
    timed(folder, {name: 0.02 * 1.5**i for i, name in enumerate(names)})
    return folder


def test_every_timed_method_is_named_once_and_no_two_names_collide(many):
    names = names_in(cost_plot(seen(many), "iou"))
    assert len({name for _, name in names}) == len(names) == 24
    places = sorted(y for y, _ in names)
    assert min(b - a for a, b in pairwise(places)) >= 12


def test_method_without_a_time_or_a_score_is_left_out_of_the_plot_but_not_of_the_table(many):
    timed(many, {"grad_cam": 1.0})
    evidence = seen(many)
    assert [name for _, name in names_in(cost_plot(evidence, "iou"))] == ["Grad-CAM"]
    told = {row.entrant.name: row.seconds for row in costs(evidence, ["iou"])}
    assert (told["grad_cam"], told["method_1"], len(told)) == (f"10{SPACE}ms", "\u2013", 24)


def test_run_without_times_gets_a_report_without_a_section_on_cost(made_run):
    folder = made_run()
    (folder / "timings.parquet").unlink()
    for part in (folder / "parts").glob("*.timings.parquet"):
        timed_nothing = pd.read_parquet(part).head(0)
        timed_nothing.to_parquet(part)
    text = build_report(folder).read_text()
    assert "What does a map cost?" not in text
    assert 'href="#cost"' not in text


def test_times_are_told_with_what_they_were_measured_on(many):
    assert "(cpu, 2 threads, 16 images at a time)" in build_report(many).read_text()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0042, "4.2 ms"),
        (0.00003, "0.03 ms"),
        (0.5, "0.50 s"),
        (12.3, "12 s"),
        (0.0, "0 ms"),
        (float("nan"), "\u2013"),
    ],
)
def test_seconds_are_brief(seconds, text):
    assert brief(seconds).replace(SPACE, " ") == text


@pytest.mark.parametrize(
    ("name", "value", "usual", "told", "smaller"),
    [
        ("samples", 100, 500, ("100 samples (usual: 500)",), True),
        ("samples", 1000, 500, ("1,000 samples (usual: 500)",), False),
        ("baseline", "blur", "zero", ("baseline blur (usual: zero)",), False),
        ("window", 32, None, ("window 32 (usual: automatic)",), False),
        (
            "segments",
            {"kind": "grid", "cells": 5},
            {"kind": "grid", "cells": 8},
            ("segments: 5 cells (usual: 8)",),
            True,
        ),
        (
            "segments",
            {"kind": "slic", "count": 9},
            {"kind": "grid", "cells": 8},
            ("segments slic (usual: grid)",),
            False,
        ),
    ],
)
def test_changed_setting_is_told_with_the_usual_one(name, value, usual, told, smaller):
    changed = [SettingEntry(name=name, value=value, usual=usual)]
    assert (in_words(changed), is_smaller(changed)) == (told, smaller)


def test_report_says_which_methods_ran_with_smaller_settings(made_run):
    folder = made_run(methods=2)
    changed = [{"name": "samples", "value": 40, "usual": 500}]
    manifest = json.loads((folder / "run.json").read_text())
    manifest["methods"][0]["changed"] = changed
    (folder / "run.json").write_text(json.dumps(manifest))
    text = build_report(folder).read_text()
    assert "Grad-CAM was run with 40 samples (usual: 500)." in text
    assert "Grad-CAM was run with smaller settings than usual to save time, and it might do better with those." in text


def test_verdict_names_few_of_many_methods_that_beat_the_floors(made_run):
    found = verdict(seen(made_run(methods=12))).second
    assert "Grad-CAM, Occlusion and 7 more clearly beat every floor" in found
