"""The command as a newcomer types it: what it prints, where, and with which exit code."""

import json
import subprocess
import sys

import pytest
import yaml
from PIL import Image

from heatcheck import __version__
from heatcheck.cli.list_parts import Kind
from heatcheck.cli.main import app
from heatcheck.methods import METHODS
from heatcheck.metrics import METRIC_FACTS
from heatcheck.models import MODELS
from heatcheck.running.demo import demo_studies
from heatcheck.running.execute import cores
from heatcheck.runs.spec import read_spec, shipped_specs
from heatcheck.sources import SOURCES
from heatcheck.triggers import TRIGGERS

SPEC = {
    "study": "localization",
    "gallery": 2,
    "threads": 1,
    "bootstrap_draws": 100,
    "source": {"name": "phantom_chest", "patients": 4, "size": 64},
    "model": "phantom_chest_densenet",
    "methods": ["grad_cam", "random"],
}


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(SPEC))
    return path


def test_version(heatcheck):
    assert heatcheck("--version") == (0, f"heatcheck {__version__}\n", "")


@pytest.mark.parametrize("verb", [command.name for command in app.registered_commands])
def test_every_verb_has_help_with_examples(heatcheck, verb):
    code, out, _ = heatcheck(verb, "--help")
    assert code == 0
    assert f"Examples\n  heatcheck {verb}" in out


def test_the_help_of_the_demo_names_all_that_it_draws(heatcheck):
    drawn = {"phantom_chest": "chest films", "phantom_classes": "chest films", "phantom_brain": "brain slices"}
    text = " ".join(heatcheck("demo", "--help")[1].replace("│", " ").split())
    for name in (f"{study}-demo" for study in demo_studies()):
        body = read_spec(name).body
        (part,) = (body[key] for key in ("source", "test", "evaluation") if key in body)
        assert drawn[part["name"]] in text


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("methods", METHODS),
        ("metrics", METRIC_FACTS),
        ("sources", SOURCES),
        ("triggers", TRIGGERS),
        ("models", MODELS),
        ("specs", shipped_specs()),
    ],
)
def test_lists_are_read_from_the_registries(heatcheck, kind, known):
    names = [row["name"] for row in json.loads(heatcheck("list", kind, "--json")[1])]
    assert set(names) >= set(known)


@pytest.mark.parametrize("kind", list(Kind))
def test_every_list_prints_as_a_table(heatcheck, kind):
    code, out, _ = heatcheck("list", kind)
    assert code == 0
    rows = json.loads(heatcheck("list", kind, "--json")[1])
    assert all(row["name"] in out for row in rows)


def test_metrics_are_listed_by_study(heatcheck):
    lines = heatcheck("list", "metrics")[1].splitlines()
    at = {
        name: lines.index(next(line for line in lines if line.startswith(f"{name} ")))
        for name in ("iou", "asr", "phi_lesion")
    }
    heads = {study: lines.index(next(line for line in lines if line.startswith(f"The study {study}")))
             for study in ("localization", "triggers", "modality", "alignment")}  # fmt: skip
    assert max(number for number in heads.values() if number < at["iou"]) == heads["localization"]
    assert max(number for number in heads.values() if number < at["asr"]) == heads["triggers"]
    assert max(number for number in heads.values() if number < at["phi_lesion"]) == heads["modality"]


@pytest.mark.parametrize(("verb", "first"), [("run", "SPEC --out FOLDER [OPTIONS]"), ("preflight", "MODEL [OPTIONS]")])
def test_an_error_of_usage_shows_the_usage_of_the_help_page(heatcheck, verb, first):
    _, _, err = heatcheck(verb)
    assert err.splitlines()[0].endswith(f" {verb} {first}")
    assert f"Missing argument '{first.split()[0]}'" in err
    assert heatcheck(verb, "--help")[1].startswith(err.splitlines()[0])


def test_the_number_of_threads_that_the_environment_asks_for_is_used(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    for asked, used in (("3", 3), ("99", 8), ("2,4", 2), ("", 8), ("many", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
        assert cores() == used


def test_run_report_and_compare(heatcheck, spec, tmp_path):
    out = tmp_path / "run"
    code, printed, progress = heatcheck("run", spec, "--out", out)
    assert code == 0
    assert f"\nReport: {out / 'report.html'}\n" in printed
    assert "Highest overlap: Grad-CAM" in printed
    assert "Finished: " in printed
    assert "maps and scores" in progress
    (out / "report.html").unlink()
    assert heatcheck("report", out)[0] == 0
    assert (out / "report.html").exists()
    code, printed, _ = heatcheck("compare", out, out)
    assert "…" not in printed.replace(" … ", "")  # no name is cut
    assert code == 0
    assert "Specs are the same." in printed
    rows = json.loads(heatcheck("compare", out, out, "--json")[1])["rows"]
    assert all(row["difference"] == 0 for row in rows)


def test_quiet_says_nothing(heatcheck, spec, tmp_path):
    assert heatcheck("run", spec, "--out", tmp_path / "run", "-q", "--limit", 2) == (0, "", "")


def test_failed_cases_end_with_code_3(heatcheck, spec, tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    for name in ("a", "b"):
        (images / f"{name}.png").write_bytes(b"")
    (tmp_path / "labels.csv").write_text("image,Edema\na,1\nb,0\n")
    (tmp_path / "masks" / "Edema").mkdir(parents=True)
    (tmp_path / "masks" / "Edema" / "a.png").write_bytes(b"")
    source = {"name": "folder", "images": "images", "labels": "labels.csv", "masks": "masks"}
    spec.write_text(yaml.safe_dump({**SPEC, "source": source}))
    command = ("run", spec, "--out", tmp_path / "run", "-q")
    code, _, err = heatcheck(*command)
    assert code == 3
    assert "2 of 2 cases failed" in err
    retry = " ".join(map(str, ("heatcheck", *command, "--retry-failed")))
    assert f"run them again with:\n  {retry}\n" in err
    assert "0 bytes" in (tmp_path / "run" / "report.html").read_text()
    code, _, err = heatcheck(*command, "--retry-failed")  # nothing was repaired
    assert (code, err.count("--retry-failed")) == (3, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methds": []}, "study.yaml: unknown key 'methds'; did you mean 'methods'?"),
        ({"methods": ["grad_cm"]}, "unknown method 'grad_cm'; did you mean 'grad_cam'?"),
        ({"source": {"name": "folder", "images": "gone"}}, "gone: no such folder; correct the source in the spec"),
    ],
)
def test_bad_input_is_one_line_and_code_2(heatcheck, spec, tmp_path, change, message):
    spec.write_text(yaml.safe_dump({**SPEC, **change}))
    code, out, err = heatcheck("run", spec, "--out", tmp_path / "run")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert not (tmp_path / "run").exists()


def test_debug_shows_the_trace(heatcheck, tmp_path):
    code, _, err = heatcheck("report", tmp_path, "--debug")
    assert code == 2
    assert "Traceback" in err


@pytest.mark.parametrize(
    "words",
    [
        ("run", "localization-dmo", "--out", "x"),
        ("run", "missing.yaml", "--out", "x"),
        ("report", "nowhere"),
        ("compare", "nowhere", "nowhere"),
        ("list", "method"),
        ("run", "localization-demo"),
        ("run", "localization-demo", "--out", "x", "--device", "abacus"),
        ("train", "localization-demo", "--out", "x"),
    ],
)
def test_what_the_user_can_mend_is_code_2_without_a_trace(heatcheck, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = heatcheck(*words)
    assert code == 2
    assert "Traceback" not in err
    assert err.strip()
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_written_is_refused(heatcheck, spec, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep me")
    for name, message in (("file", "is a file"), ("full", "not empty"), ("file/below", "cannot be written")):
        code, _, err = heatcheck("run", spec, "--out", tmp_path / name)
        assert (code, err.count("\n")) == (2, 1)
        assert message in err
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep me"


def test_interrupting_names_the_command_that_continues(heatcheck, spec, tmp_path, monkeypatch):
    import heatcheck.running.execute as carrying_out

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(carrying_out, "run_shards", interrupt)
    for words in ("Nothing was finished yet; begin again with:", "Finished work is kept; continue with:"):
        code, _, err = heatcheck("run", spec, "--out", tmp_path / "my run", "-q")
        assert code == 130
        assert f"{words}\n  heatcheck run {spec} --out '{tmp_path / 'my run'}' -q" in err
        (tmp_path / "my run" / "parts" / "00000.parquet").touch()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["list", "method"], "nothing to list is called 'method'; did you mean 'methods'?"),
        (["run", "localization-demo", "--limit", "0"], "--limit must be a number of patients from 1 on, got 0"),
    ],
)
def test_word_or_number_that_cannot_be_meant_is_answered_in_one_line(heatcheck, words, message):
    code, _, err = heatcheck(*words)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err


def test_init_writes_a_spec_that_is_valid_and_never_overwrites(heatcheck, tmp_path):
    path = tmp_path / "mine.yaml"
    assert heatcheck("init", path)[0] == 0
    from heatcheck.studies.localization.plan import LocalizationBody

    body = read_spec(str(path)).checked_body(LocalizationBody)
    assert body.source["name"] == "folder"
    code, _, err = heatcheck("init", path)
    assert code == 2
    assert "exists already" in err


def test_init_fills_in_a_folder_of_images(heatcheck, tmp_path, monkeypatch):
    for place in ("images", "masks/hernia"):
        (tmp_path / place).mkdir(parents=True)
        Image.new("L", (8, 8), 255).save(tmp_path / place / "p1.png")
    monkeypatch.chdir(tmp_path)
    code, out, _ = heatcheck("init", "mine.yaml", "--images", "images")
    assert code == 0
    assert "Found 1 image; findings: hernia." in out
    assert "heatcheck run mine.yaml --out my-run" in out
    spec = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    assert spec["source"]["masks"] == "masks"
    assert spec["methods"] == "recommended"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "localization-demo", "--images", "x"], "--images would change; leave one of them out"),
        (["--masks", "x"], "--masks needs --images"),
        (["--weights", "x"], "--weights needs --model"),
        (["--images", "nowhere"], "nowhere: no such folder"),
    ],
)
def test_init_writes_nothing_where_its_options_cannot_be_used(heatcheck, tmp_path, words, message):
    code, _, err = heatcheck("init", tmp_path / "mine.yaml", *words)
    assert code == 2
    assert message in " ".join(err.split())
    assert not (tmp_path / "mine.yaml").exists()


@pytest.mark.parametrize(("name", "verb"), [("localization-demo", "run"), ("phantom-chest", "train")])
def test_init_copies_a_shipped_spec(heatcheck, tmp_path, name, verb):
    path = tmp_path / "copy.yaml"
    code, out, _ = heatcheck("init", path, "--from", name)
    assert code == 0
    assert f"heatcheck {verb} {path}" in out.replace("\n", " ")
    assert path.read_text() == shipped_specs()[name].read_text()
    code, _, err = heatcheck("init", tmp_path / "other.yaml", "--from", "localisation-demo")
    assert code == 2
    assert "did you mean 'localization-demo'?" in err


def test_help_needs_no_heavy_library():
    code = (
        "import sys; sys.argv = ['heatcheck', '--help']\n"
        "from heatcheck.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'pandas', 'cv2', 'scipy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
