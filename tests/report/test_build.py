"""The whole page, built from made-up run folders."""

import base64
import hashlib
import html
import io
import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
from tests.report.page_reading import outline, saved_tables
from tests.studies.localization.report.material import FINDINGS

from heatcheck.core.errors import RunFolderError
from heatcheck.core.records import ALL_FINDINGS, HUMAN, Prediction, Score, ShardTables
from heatcheck.core.vocabulary import condition
from heatcheck.report.appendix import gaps, undefined_scores
from heatcheck.report.build import render
from heatcheck.report.evidence import estimates_in, evidence_of
from heatcheck.report.privacy import run_without_paths
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import Run, RunFolder, read_run
from heatcheck.studies.localization.report.page import localization_page
from heatcheck.studies.localization.report.sections.modelcard import positive_cases

HOSTILE = '<script>alert("x")</script>'


def test_report_is_written_into_the_run_folder_and_is_the_same_when_built_again(made_run):
    folder = made_run()
    path = build_report(folder)
    first = path.read_bytes()
    assert path == folder / "report.html"
    assert build_report(folder).read_bytes() == first
    assert not list(folder.glob("*.tmp-*"))


@pytest.mark.parametrize(("first", "status"), [("pass", 0), ("import types; sys.modules['torch'] = types", 1)])
def test_report_loads_without_torch_and_would_be_caught_otherwise(first, status):
    code = f"import sys; {first}; import heatcheck.report.build; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == status


@pytest.mark.parametrize("plan", [{}, {"methods": 3}, {"methods": 25, "gallery": 1}])
def test_page_loads_nothing_from_elsewhere(made_run, plan):
    text = build_report(made_run(**plan)).read_text()
    assert "://" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    for tag, facts in outline(text).elements:
        assert tag not in {"link", "iframe", "object", "embed"}
        for name in ("src", "href", "srcset", "action"):
            assert re.match(r"data:|#", facts.get(name) or "#"), f"{tag} {name} leaves the page"


@pytest.mark.parametrize("plan", [{}, {"methods": 3}, {"status": "running", "gallery": 0}])
def test_tags_match_and_anchors_lead_somewhere(made_run, plan):
    parsed = outline(build_report(made_run(**plan)).read_text())
    ids = [facts["id"] for _, facts in parsed.elements if "id" in facts]
    targets = {facts["href"][1:] for tag, facts in parsed.elements if tag == "a" and facts["href"].startswith("#")}
    assert parsed.faults == []
    assert parsed.open == []
    assert len(ids) == len(set(ids))
    assert targets <= set(ids)


@pytest.mark.parametrize("cautions", [[], ["Model net draws its weights anew: nothing here says anything."]])
def test_what_puts_the_run_in_doubt_is_never_folded_away(made_run, cautions):
    folder = made_run()
    manifest = json.loads((folder / "run.json").read_text())
    manifest["cautions"] = cautions
    (folder / "run.json").write_text(json.dumps(manifest))
    evidence = evidence_of(read_run(folder))
    text = render(evidence, replace(localization_page(evidence), caveats=("a", "b", "c", "d")))
    assert ('<details class="cautions" open>' in text) is bool(cautions)


def test_only_our_own_script_may_run(made_run):
    text = build_report(made_run()).read_text()
    parsed = outline(text)
    policy = next(facts["content"] for _, facts in parsed.elements if facts.get("http-equiv"))
    script = text[text.index("<script>") + len("<script>") : text.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert sum(tag == "script" for tag, _ in parsed.elements) == 1
    assert not [name for _, facts in parsed.elements for name in facts if name.startswith("on")]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
def test_script_runs_in_a_browser(made_run, tmp_path):
    page = build_report(made_run(gallery=8))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", "--dump-dom"]  # fmt: skip
    command = ["chromium", *flags, f"{page.as_uri()}?theme=dark"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert '<html lang="en" class="js" data-theme="dark">' in shown
    assert "3 of 8 cases shown." in shown
    assert "Show all 8" in shown


def test_hostile_names_are_shown_as_text(made_run):
    text = build_report(made_run(findings=(HOSTILE, *FINDINGS[1:]), case=HOSTILE)).read_text()
    assert HOSTILE not in text
    assert text.count(html.escape(HOSTILE).replace("&quot;", "&#34;")) > 3


def test_no_absolute_path_is_told(made_run):
    folder = made_run()
    text = build_report(folder).read_text()
    tables = "".join(saved_tables(text).values())
    for secret in ("/home", "jane doe", "/data/private", "secret", str(folder)):
        assert secret not in text
        assert secret not in tables
    assert "…/chexlocalize" in text
    assert "cannot read …/a.png: cut short" in text


def test_pictures_plots_and_tables_have_words(made_run):
    parsed = outline(build_report(made_run(methods=3)).read_text())
    for tag, facts in parsed.elements:
        if tag == "img":
            assert facts.get("alt") or facts.get("class") == "heat"
        if tag == "svg":
            assert facts.get("role") == "img" or facts.get("aria-hidden") == "true"
    pictures = [facts for tag, facts in parsed.elements if tag == "svg" and facts.get("role") == "img"]
    assert all(facts.get("aria-label") for facts in pictures if facts["class"] == "film")
    plots = sum(facts["class"] == "plot" for facts in pictures)
    assert plots >= 8
    assert sum(tag == "desc" for tag, _ in parsed.elements) == plots
    controls = {facts.get("type", tag) for tag, facts in parsed.elements if tag in {"input", "select", "button"}}
    assert {"range", "checkbox", "select", "button"} <= controls


def test_saved_estimates_equal_the_runs_estimates(made_run):
    folder = made_run(methods=2)
    saved = pd.read_csv(
        io.StringIO(saved_tables(build_report(folder).read_text())["estimates.csv"]), keep_default_na=True
    )
    expected = read_run(folder).estimates
    assert list(saved.columns) == list(expected.columns)
    for name in expected.columns:
        blank = "" if expected[name].dtype.kind not in "fi" else float("nan")
        pd.testing.assert_series_equal(saved[name].fillna(blank), expected[name], check_dtype=False)


def test_gaps_list_failed_cases_and_count_undefined_scores_by_reason(made_run):
    text = build_report(made_run()).read_text()
    tables = saved_tables(text)
    assert "2 of 202 cases failed" in text
    assert tables["failed_cases.csv"].splitlines()[1] == "bad_a,a,load,cannot read …/a.png: cut short"
    assert tables["undefined.csv"].splitlines()[1] == "iou,grad_cam,empty truth,4,20"
    assert "4 of 20 scores are undefined. They are left out of the means, never counted as 0." in text
    assert "0.075" in text  # seconds per map


def test_unfinished_run_shows_what_is_there_so_far(made_run):
    text = build_report(made_run(status="running", gallery=0)).read_text()
    assert "There is no verdict yet" in text
    assert "2 of 202 cases failed" in text
    assert "4 of 20 scores are undefined" in text
    assert {"undefined.csv", "failed_cases.csv", "seconds_per_map.csv", "cases.csv"} == set(saved_tables(text))


@pytest.mark.parametrize("status", ["complete", "running"])
def test_report_holds_neither_scores_nor_predictions(made_run, monkeypatch, status):
    for name in ("scores", "predictions"):
        monkeypatch.setattr(Run, name, property(lambda _: pytest.fail("a large table was loaded")))
    assert "4 of 20 scores are undefined" in build_report(made_run(status=status)).read_text()


def test_readers_own_scores_do_not_inflate_the_counts(tmp_path):
    score = Score("a", "p", "Edema", HUMAN, "net", "hit", math.nan, reason="no point marked in /data/a.json")
    other = replace(score, case="b", reason="no point marked in /home/x/a.json")
    by_reader = [replace(score, condition=condition(reader=name)) for name in ("1", "2")]
    defined = [replace(score, case=case, value=1.0, reason="") for case in "cde"]
    with RunFolder.locked(tmp_path / "run", {}, {"study": "localization"}) as folder:
        for shard, rows in enumerate(([score, *by_reader], [other, *defined])):
            folder.write_shard(shard, ShardTables(scores=tuple(rows)))
        for _ in ("parts", "joined"):
            found = undefined_scores(run_without_paths(read_run(folder.path)))
            assert found.n_scores == 5
            assert found.table.to_dict("records") == [
                {"metric": "hit", "method": HUMAN, "reason": "no point marked in …/a.json", "undefined": 2, "of": 5}
            ]
            folder.join_shards(2)


def test_gaps_speak_of_one_model_and_leave_counts_of_pixels_out(tmp_path):
    score = Score("a", "p", "Edema", "grad_cam", "net", "hit", math.nan, reason="no truth")
    rows = [score, replace(score, model="other"), replace(score, model="", method=HUMAN)]
    rows += [replace(score, metric="false_negative_pixels"), replace(score, case="b", value=1.0, reason="")]
    with RunFolder.locked(tmp_path / "run", {}, {"study": "localization", "metrics": [{"name": "hit"}]}) as folder:
        folder.write_shard(0, ShardTables(scores=tuple(rows)))
    found = undefined_scores(read_run(folder.path), "net")
    assert found.n_scores == 3
    assert found.table[["method", "undefined", "of"]].to_numpy().tolist() == [["grad_cam", 1, 2], [HUMAN, 1, 1]]


def test_gaps_that_methods_share_are_one_row(tmp_path):
    score = Score("a", "p", "Edema", "grad_cam", "net", "hit", math.nan, reason="no truth")
    rows = [replace(score, method=name) for name in ("grad_cam", "lime", "random")]
    rows += [replace(score, metric="iou", method=name) for name in ("grad_cam", "lime")]
    rows += [replace(score, metric="iou", method="random", reason="empty"), replace(score, metric="iou", method=HUMAN)]
    methods = [{"name": name, "label": name.upper(), "kind": "floor" if name == "random" else "method"}
               for name in ("grad_cam", "lime", "random")]  # fmt: skip
    with RunFolder.locked(tmp_path / "run", {}, {"study": "localization", "methods": methods}) as folder:
        folder.write_shard(0, ShardTables(scores=tuple(rows)))
    evidence = evidence_of(read_run(folder.path))
    section = gaps(evidence, undefined_scores(evidence.run), "")
    (listing,) = (block for block in section.blocks if block.kind == "listing")
    assert [row[:3] for row in listing.rows] == [
        ("hit", "every method", "no truth"), ("iou", "GRAD_CAM, Human readers and LIME", "no truth"),
        ("iou", "RANDOM", "empty"),
    ]  # fmt: skip
    assert section.summary == "0 failed cases and 7 undefined scores."


def test_cases_with_a_finding_are_counted_once_however_many_models_answered(tmp_path):
    labels = {"a": 1.0, "b": 1.0, "c": 0.0, "d": math.nan}
    rows = [Prediction(case, case, "Edema", model, label, 0.0, 0.5)
            for model in ("net", "other") for case, label in labels.items()]  # fmt: skip
    with RunFolder.locked(tmp_path / "run", {}, {"study": "localization"}) as folder:
        folder.write_shard(0, ShardTables(predictions=tuple(rows[:5])))
        folder.write_shard(1, ShardTables(predictions=(*rows[5:], replace(rows[2], finding="Lung Lesion"))))
    assert positive_cases(read_run(folder.path)) == {"Edema": 2, "Lung Lesion": 0}


def test_floor_tested_over_all_findings_only_has_no_table_by_finding(made_run):
    text = build_report(made_run()).read_text()
    assert "The same, finding by finding" in text
    folder = made_run()
    with RunFolder.locked(folder, {}, {}) as opened:
        rows = estimates_in(opened.read_table("estimates"))
        opened.write_estimates([row for row in rows if row.statistic != "test" or row.finding == ALL_FINDINGS])
    assert "The same, finding by finding" not in build_report(folder).read_text()


def test_undefined_number_is_a_dash_with_its_reason(made_run):
    text = build_report(made_run()).read_text()
    assert re.search(r'<td title="no case with this finding has a map">–<sup>1</sup>', text)
    assert "<li>no case with this finding has a map</li>" in text


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ({"readers": False}, "No human readers were given"),
        ({"gallery": 0}, "there is no gallery"),
        ({"calibration": False}, "AUROC and calibration were not computed"),
        ({"status": "running", "gallery": 0}, "This run is not finished"),
    ],
)
def test_missing_piece_becomes_a_sentence(made_run, plan, sentence):
    assert sentence in build_report(made_run(**plan)).read_text()


def test_run_with_nothing_but_its_study_still_gets_a_page(tmp_path):
    with RunFolder.locked(tmp_path / "run", {}, {"study": "localization"}):
        pass
    text = build_report(tmp_path / "run").read_text()
    assert "There is no verdict yet" in text
    assert "There is no table to download yet" in text


def test_what_was_seen_before_the_work_comes_first_among_the_caveats(made_run):
    folder = made_run()
    before = build_report(folder).read_text()
    with RunFolder.locked(folder, {}, {}) as run:
        run.record(cautions=["The answers of the model look like probabilities <b>."])
    text = build_report(folder).read_text()
    assert '<ul class="caveats">\n        <li>The answers of the model look like probabilities &lt;b&gt;.</li>' in text
    assert text.count("<li>") == before.count("<li>") + 1


def test_unknown_study_is_refused_by_name(tmp_path):
    with RunFolder.locked(tmp_path / "run", {}, {"study": "localisation"}):
        pass
    with pytest.raises(RunFolderError, match="made by the study 'localisation', which is not installed; install its"):
        build_report(tmp_path / "run")
    assert not (tmp_path / "run" / "report.html").exists()
