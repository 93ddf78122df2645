"""A fifth study, from one folder outside the package, gets everything that the four have."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "outside_study"
MOST_LINES = 175
SCRIPT = """
import json, sys
from heatcheck.cli.main import main
from heatcheck.runs.store import RunFolder, read_run
import contextlib, io

def call(*words):
    sys.argv = ["heatcheck", *words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as exit_:
            code = exit_.code or 0
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}

answers = {}
answers["list"] = call("list", "studies", "--json")
answers["specs"] = call("list", "specs", "--json")
answers["init"] = call("init", "mine.yaml", "--from", "bright-small")
write = RunFolder.write_shard
def stopped(self, shard, tables):
    if shard == 1:
        raise KeyboardInterrupt
    write(self, shard, tables)
RunFolder.write_shard = stopped
answers["stopped"] = call("run", "mine.yaml", "--out", "first")
RunFolder.write_shard = write
worked = []
import bright_pixels.plan as plan
work = plan.BrightStage.work
def watched(self, shard):
    worked.append(shard)
    return work(self, shard)
plan.BrightStage.work = watched
answers["resumed"] = call("run", "mine.yaml", "--out", "first")
answers["worked"] = list(worked)
text = open("mine.yaml").read()
open("other.yaml", "w").write(text.replace("threshold: 0.5", "threshold: 0.4"))
answers["changed"] = call("run", "other.yaml", "--out", "first")
answers["misspelt"] = call("run", "bright-smal", "--out", "nowhere")
answers["second"] = call("run", "other.yaml", "--out", "second", "--limit", "3")
answers["hidden"] = call("run", "mine.yaml", "--out", "hidden", "--pseudonymise")
answers["names"] = sorted(read_run("hidden").cases["case"])
import dataclasses, heatcheck.running.registry as registry
studies = registry.STUDIES._parts
bright = studies["bright"]
studies["bright"] = dataclasses.replace(bright, page="bright_pixels.page:nothing_there")
answers["pageless"] = call("run", "mine.yaml", "--out", "pageless")
studies["bright"] = dataclasses.replace(bright, plan="__main__:plan_without_pseudonyms")
def plan_without_pseudonyms(spec, options, out):
    return plan.plan_bright(spec, dataclasses.replace(options, pseudonymise=False), out)
answers["no pseudonyms"] = call("run", "mine.yaml", "--out", "shown", "--pseudonymise")
del studies["bright"]
answers["uninstalled"] = call("report", "first")
studies["bright"] = bright
answers["report"] = call("report", "first")
answers["compare"] = call("compare", "first", "second", "--json")
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The answers of the command with the folder on the path, and the working folder."""
    here = tmp_path_factory.mktemp("outside")
    path = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) | {"here": here}


def test_it_is_one_small_folder():
    files = [path for path in FOLDER.rglob("*") if path.suffix in {".py", ".html", ".yaml", ".txt"}]
    assert sum(len(path.read_text().splitlines()) for path in files) <= MOST_LINES


def test_it_is_listed_with_its_question(answers):
    listed = {row["name"]: row for row in json.loads(answers["list"]["out"])}
    assert listed["bright"]["question"] == "How much of the image is bright?"
    assert {"localization", "triggers", "alignment", "modality"} < set(listed)
    assert "bright-small" in {row["name"] for row in json.loads(answers["specs"]["out"])}


def test_its_spec_is_copied(answers):
    assert answers["init"]["code"] == 0
    assert (answers["here"] / "mine.yaml").read_text().startswith("# How much of some drawn chest films")


def test_an_interrupted_run_continues_where_it_stopped(answers):
    assert answers["stopped"]["code"] == 130
    assert answers["resumed"]["code"] == 0, answers["resumed"]["err"]
    assert answers["worked"][0] == 1  # the first shard is not worked on again


def test_another_spec_in_the_same_folder_is_refused(answers):
    assert answers["changed"]["code"] == 2


def test_a_misspelt_spec_is_suggested(answers):
    assert "did you mean 'bright-small'?" in answers["misspelt"]["err"]


def test_its_cases_can_have_pseudonyms(answers):
    assert answers["hidden"]["code"] == 0, answers["hidden"]["err"]
    assert len(answers["names"]) == 4
    assert not any("phantom" in name for name in answers["names"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pageless", "bright_pixels.page:nothing_there, a part of the study, cannot be loaded"),
        ("no pseudonyms", "the study bright has no pseudonyms; leave out --pseudonymise"),
        ("uninstalled", "first was made by the study 'bright', which is not installed; install its package"),
    ],
)
def test_what_cannot_work_is_one_line_before_anything_is_written(answers, call, message):
    assert answers[call]["code"] == 2
    assert message in answers[call]["err"]
    assert answers[call]["err"].count("\n") == 1
    assert not (answers["here"] / call).exists()


def test_its_report_has_its_own_section_and_those_of_all_studies(answers):
    assert answers["report"]["code"] == 0
    page = (answers["here"] / "first" / "report.html").read_text()
    for text in ("of an image is bright", "Share of bright pixels", 'id="bright"', 'id="gaps"', 'id="record"'):
        assert text in page


def test_two_runs_are_compared(answers):
    assert answers["compare"]["code"] == 0, answers["compare"]["err"]
    compared = json.loads(answers["compare"]["out"])
    (row,) = compared["rows"]
    assert (row["metric"], row["n_cases"]) == ("bright_share", 3)
    assert row["difference"] > 0  # more pixels are brighter than a lower threshold
