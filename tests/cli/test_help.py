"""Help pages and lists in a terminal of 80 columns."""

import json
import re

import pytest

from heatcheck.cli.list_parts import Kind
from heatcheck.cli.main import app
from heatcheck.methods import METHODS

COLUMNS = 80
VERBS = [command.name for command in app.registered_commands]


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


@pytest.mark.parametrize("words", [(), *((verb,) for verb in VERBS)], ids=" ".join)
def test_help_fits_the_terminal_and_says_what_an_option_takes_in_plain_words(heatcheck, words):
    code, out, _ = heatcheck(*words, "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= COLUMNS
    assert re.findall(r"<(?!image>|finding>)[^>]*>|\[x|list\[|\w…", out) == []
    for option in ("-h, --help", *(["-q, --quiet"] if "--quiet" in out else [])):
        assert f"\n  {option} " in out


def test_no_name_is_cut(heatcheck):
    for verb in ("explain", "preflight", "run"):
        assert "python:package.module:factory" in heatcheck(verb, "--help")[1]
    assert "(default:\n" in (out := heatcheck("explain", "--help")[1])
    assert "grad_cam,integrated_gradients,occlusion)" in out
    assert "--probability-cutoffs FILE" in heatcheck("score", "--help")[1]


@pytest.mark.parametrize("verb", VERBS)
def test_each_command_of_the_examples_has_its_own_line(heatcheck, verb):
    block = heatcheck(verb, "--help")[1].partition("Examples\n")[2]
    commands = [line for line in block.replace("\\\n", "").splitlines() if "heatcheck" in line]
    assert commands
    for line in commands:
        assert line.startswith("  heatcheck ")
        assert line.count("heatcheck") == 1


def test_a_wider_terminal_has_longer_lines(heatcheck, monkeypatch):
    narrow = heatcheck("score", "--help")[1]
    monkeypatch.setenv("COLUMNS", "100")
    assert len(heatcheck("score", "--help")[1].splitlines()) < len(narrow.splitlines())


def test_without_a_verb_the_help_is_shown(heatcheck):
    code, out, err = heatcheck()
    assert code == 2
    assert "Verbs\n" in out + err


@pytest.mark.parametrize("kind", list(Kind))
def test_lists_fit_the_terminal(heatcheck, kind):
    out = heatcheck("list", kind)[1]
    assert max(map(len, out.splitlines())) <= COLUMNS
    assert not re.search(r"\b(None|nan)\b", out)
    heading, first, *_ = out.splitlines()[kind == Kind.METRICS :]  # those begin with the name of a study
    rows = json.loads(heatcheck("list", kind, "--json")[1])
    assert heading.split()[0] == "name"
    own = [row["name"] for row in rows if kind != Kind.METRICS or row["study"] == "localization"]
    assert first.split()[0] == own[0]


def test_the_list_of_methods_names_every_setting_with_its_default(heatcheck):
    out = " ".join(heatcheck("list", "methods")[1].split())
    assert "settings: steps=20, baseline=zero, rule=middle" in out
    assert "segments={kind: grid, cells: 8, per_channel: no}" in out
    assert "window=automatic" in out
    rows = {row["name"]: row["settings"] for row in json.loads(heatcheck("list", "methods", "--json")[1])}
    assert set(rows) == set(METHODS)
    assert rows["gradient"] == ""
