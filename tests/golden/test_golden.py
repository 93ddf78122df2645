"""What a run folder becomes is frozen: its report to the byte, its estimates, and what the plan says of the study."""

import difflib
import hashlib
import json
import math
import re
from dataclasses import asdict
from itertools import islice

import pytest
from tests.golden.make import COMMAND, SPECS, plan_of, unpack

from heatcheck.core.records import Estimate
from heatcheck.running.reporting import build_report
from heatcheck.runs.gallery import index_of, items_of, read_entry
from heatcheck.runs.spec import read_spec
from heatcheck.runs.store import RunFolder
from heatcheck.studies.alignment.vocabulary import AlignmentEntry
from heatcheck.studies.localization.vocabulary import LocalizationEntry
from heatcheck.studies.modality.vocabulary import ModalityEntry
from heatcheck.studies.triggers.vocabulary import TriggerEntry

ENTRIES = {  # the record of a gallery's entries, by study
    "alignment": AlignmentEntry,
    "localization": LocalizationEntry,
    "modality": ModalityEntry,
    "triggers": TriggerEntry,
}
SHOWN = 40  # lines of a difference
SECTIONS = {
    "alignment": "answer pictures blame robustness cases prediction images factors example overview gaps record cite",
    "localization": (
        "answer pictures overview findings floors cases thresholds architectures geometry confidence "
        "wrong_answers subgroups presets cost model counts gaps record cite"
    ),
    "modality-volumes": (
        "answer pictures overview importance comparison heat cases wrong_answers quality ranks networks cost "
        "gaps record cite"
    ),
    "modality": (
        "answer pictures overview importance comparison heat cases distributions wrong_answers quality ranks "
        "networks ratings cost gaps record cite"
    ),
    "triggers": (
        "answer pictures overview attack detection cases sensitivity differences uncovered artefacts "
        "agreement cost gaps record cite"
    ),
}
CIRCUMSTANCES = {"study", "title", "threads", "batch_size", "shard_size"}  # the spec says them
OF_THE_RUN = {"schema", "status", "versions", "machine", "started", "finished", "trusted_code", "n_cases", "n_failed",
              "paper"}  # fmt: skip
FOUND_OUT = {  # facts that a study records on its way
    "alignment": {"n_finetune", "n_selection", "n_evaluation", "positives"},
    "localization": set(),
    "modality": {"per_fold"},
    "triggers": {"n_poisoned"},
}
WHERE_GIVEN = {"ratings"}  # in some runs of a study only


@pytest.fixture(scope="module", params=SPECS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def plan(name, tmp_path_factory):
    return plan_of(name, tmp_path_factory.mktemp("planned"))


@pytest.fixture
def folder(name, tmp_path):
    return RunFolder(unpack(name, tmp_path))


def test_the_report_of_a_golden_run_is_the_same_to_the_byte(name, folder):
    stored = (folder.path / "report.html").read_bytes()
    (folder.path / "report.html").unlink()
    built = build_report(folder.path).read_bytes()
    if built != stored:  # an assertion would compare megabytes
        pytest.fail(told(name, f"report.html of {name}", pieces(stored), pieces(built)), pytrace=False)


def test_the_estimates_of_a_golden_run_are_the_same(name, plan, folder):
    stored, computed = folder.read_estimates(), plan.estimates(folder)
    if list(map(label, computed)) != list(map(label, stored)):
        lines = [list(map(label, rows)) for rows in (stored, computed)]
        pytest.fail(told(name, f"rows of estimates.parquet of {name}", *lines), pytrace=False)
    different = [pair for pair in zip(stored, computed, strict=True) if not alike(*pair)]
    if different:
        first = zip(*different[:8], strict=True)  # so that both sides are seen
        lines = [[f"{label(row)}: {numbers(row)}" for row in rows] for rows in first]
        what = f"numbers of estimates.parquet of {name} ({len(different)} of {len(stored)} rows)"
        pytest.fail(told(name, what, *lines), pytrace=False)


def test_the_plan_of_a_golden_run_says_the_same_of_the_study(name, plan, folder):
    stored = dict(folder.manifest)
    planned = json.loads(json.dumps({**plan.identity, **plan.facts}, default=str))
    envelope = read_spec(str(SPECS[name])).envelope.model_dump()
    planned |= {key: envelope[key] for key in CIRCUMSTANCES}
    assert stored.keys() - planned.keys() - WHERE_GIVEN == OF_THE_RUN | FOUND_OUT[envelope["study"]]
    if "validation" in planned:
        assert stored["validation"].pop("n_failed") == 0  # counted when they were read
    lines = [
        json.dumps({key: each.get(key) for key in planned}, indent=1, sort_keys=True).splitlines()
        for each in (stored, planned)
    ]
    if lines[0] != lines[1]:
        pytest.fail(told(name, f"identity and facts in run.json of {name}", *lines), pytrace=False)


def test_the_golden_reports_show_every_section(name, folder):
    """Made anew on another machine, an attack may fail or a network learn nothing; then less would be guarded."""
    page = (folder.path / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<section id="([^"]+)"', page) == [*SECTIONS[name].split(), "downloads"]


def test_the_gallery_of_a_golden_run_is_read_and_written_by_one_record(name, folder):
    stored = json.loads((folder.path / "gallery" / "index.json").read_text(), parse_int=float)
    record = ENTRIES[folder.manifest["study"]]
    written = json.dumps(index_of(read_entry(record, item) for item in items_of(stored)))
    lines = [
        json.dumps(each, indent=1, sort_keys=True).splitlines()
        for each in (stored, json.loads(written, parse_int=float))
    ]
    if lines[0] != lines[1]:
        pytest.fail(told(name, f"gallery/index.json of {name}", *lines), pytrace=False)


@pytest.mark.parametrize(
    ("stored", "computed", "same"),
    [
        ({}, {}, True),
        ({"value": 0.3}, {"value": 0.3 * (1 + 1e-8)}, True),
        ({"value": 0.3}, {"value": 0.3 * (1 + 1e-6)}, False),
        ({"low": math.nan}, {"low": 0.0}, False),
        ({"p_value": math.inf}, {"p_value": math.inf}, True),
    ],
)
def test_numbers_are_compared_to_the_seventh_digit(stored, computed, same):
    blank = {"statistic": "mean", "metric": "iou", "finding": "", "method": "", "model": "", "value": math.nan}
    assert alike(Estimate(**blank | stored), Estimate(**blank | computed)) is same


def test_a_difference_is_shown_where_it_is():
    stored = '<p>one</p><img src="data:image/png;base64,' + "A" * 80 + '"><p>two</p>'
    shown = told("triggers", "report.html", pieces(stored.encode()), pieces(stored.replace("two", "2").encode()))
    assert "-two</p>" in shown
    assert "+2</p>" in shown
    assert "AAAA" not in shown
    assert f"{COMMAND} triggers" in shown


def label(row):
    """What the row speaks of, and what it rests on."""
    return " · ".join(str(value) for value in asdict(row).values() if not isinstance(value, float))


def numbers(row):
    return " ".join(f"{key}={value:.12g}" for key, value in asdict(row).items() if isinstance(value, float))


def alike(stored, computed):
    """Whether all numbers are equal, as far as processors agree on the order of sums."""
    pairs = zip(asdict(stored).values(), asdict(computed).values(), strict=True)
    return all(
        (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-7, abs_tol=1e-9)
        for one, other in pairs
        if isinstance(one, float)
    )


def pieces(page):
    """A page in short lines, pictures and files in it named by their digest."""

    def named(found):
        return f"base64,[{hashlib.sha256(found[1].encode()).hexdigest()[:12]}]"

    text = re.sub(r"base64,([A-Za-z0-9+/=]{60,})", named, page.decode()).replace(">", ">\n")
    return [line[start : start + 160] for line in text.splitlines() for start in range(0, len(line) or 1, 160)]


def told(name, what, stored, made):
    """The first lines that differ, and what to do where they should."""
    begin = next((n for n, pair in enumerate(zip(stored, made, strict=False)) if pair[0] != pair[1]), 0)
    begin = max(0, begin - 3)  # equal lines before it need not be searched
    difference = difflib.unified_diff(stored[begin:][:4000], made[begin:][:4000], "golden", "now", lineterm="", n=2)
    shown = "\n".join(islice(difference, SHOWN)) or "(the same words; line ends or spaces differ)"
    return f"{what} differs:\n{shown}\nIf this is meant, make the golden run anew: {COMMAND} {name}"
