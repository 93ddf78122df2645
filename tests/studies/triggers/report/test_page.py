"""The trigger study's page as a whole, from made-up run folders."""

import html
import json
import re
import shutil
from dataclasses import replace

import pytest
from tests.report.page_reading import cell, outline, read, saved_tables, section_text
from tests.studies.triggers.report.made_estimates import MODEL, all_estimates
from tests.studies.triggers.report.material import VARIANTS, TriggerPlan

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import RunFolder, read_run
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.facts import grading, triggers_of

HOSTILE = '<script>alert("x")</script>'
IOU = ("detection", "Overlap with the box (IoU)")


@pytest.mark.parametrize("variant", VARIANTS)
def test_page_is_well_formed_and_loads_nothing_from_elsewhere(trigger_text, variant):
    text = trigger_text(variant)
    parsed = outline(text)
    ids = [facts["id"] for _, facts in parsed.elements if "id" in facts]
    targets = {facts["href"][1:] for tag, facts in parsed.elements if tag == "a" and facts["href"].startswith("#")}
    assert (parsed.faults, parsed.open) == ([], [])
    assert len(ids) == len(set(ids))
    assert targets <= set(ids)
    assert "://" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    for tag, facts in parsed.elements:
        for name in ("src", "href", "srcset", "action"):
            assert re.match(r"data:|#", facts.get(name) or "#"), f"{tag} {name} leaves the page"
    assert not re.search(r"\bnan\b|None", re.sub(r"base64,[A-Za-z0-9+/=]+", "", text.split("</style>")[1]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_pictures_and_plots_have_words(trigger_text, variant):
    for tag, facts in outline(trigger_text(variant)).elements:
        if tag == "img":
            assert "alt" in facts
        if tag == "svg":
            assert facts.get("role") == "img" or facts.get("aria-hidden") == "true"


def test_page_is_the_same_when_built_again_and_after_the_folder_moved(trigger_run, tmp_path):
    folder = trigger_run()
    first = build_report(folder).read_bytes()
    shutil.move(folder, tmp_path / "elsewhere")
    assert build_report(tmp_path / "elsewhere").read_bytes() == first


def test_run_with_nothing_but_its_study_still_gets_a_page(tmp_path):
    with RunFolder.locked(tmp_path / "run", {}, {"study": "triggers"}):
        pass
    assert "There is no verdict yet" in build_report(tmp_path / "run").read_text()


def test_hostile_names_are_shown_as_text(trigger_run):
    folder = trigger_run(label=HOSTILE)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["triggers"][0]["label"] = manifest["methods"][0]["label"] = HOSTILE
    (folder / "run.json").write_text(json.dumps(manifest))
    text = build_report(folder).read_text()
    assert HOSTILE not in text
    assert html.escape(HOSTILE).replace("&quot;", "&#34;") in text


def test_no_absolute_path_is_shown(trigger_run):
    folder = trigger_run()
    text = build_report(folder).read_text()
    for secret in ("/home", "jane doe", "/data/private", str(folder)):
        assert secret not in text + "".join(saved_tables(text).values())


def test_attack_table_tells_accuracy_success_and_grading(trigger_text):
    page = read(trigger_text())
    where = ("attack", "The model before and after poisoning")
    assert cell(page, where, "Square, bottom right, 20 px", "Graded") == "yes|5 of 5 seeds"
    assert cell(page, where, "Laterality letter", "Graded").startswith("no^")
    assert cell(page, where, "Burned-in text", "Graded").startswith("in part^")
    assert cell(page, where, "Baseline", "Clean accuracy (CDA)", published=True) == "94.03 %"
    assert cell(page, where, "Laterality letter", "Attack success (ASR)").startswith("64.0 %")


def test_answer_without_the_trigger_has_a_column_and_a_sentence_where_the_run_has_the_number(trigger_text, trigger_run):
    text = trigger_text()
    where = ("attack", "The model before and after poisoning")
    assert cell(read(text), where, "Laterality letter", "Target without trigger").startswith("6.0 %|5.2–6.8")
    assert cell(read(text), where, "Baseline", "Target without trigger") == ""
    assert "<dt>Target without trigger</dt>" in section_text(text, "attack")
    older = build_report(trigger_run(keep=lambda row: row.metric != "clean_target", gallery=0)).read_text()
    assert "Target without trigger" not in older
    assert cell(read(older), where, "Mean of 11 triggers", "Attack success (ASR)", published=True) == "> 95 %"


def test_attack_section_says_what_is_not_graded_and_why(trigger_text):
    text = section_text(trigger_text(), "attack")
    assert "did not work with Laterality letter" in text
    assert "worked in some seeds only with Burned-in text (4 of 5)" in text
    assert "seed 3: attack success 0.65 is below 0.90" in text
    assert "The attack worked with 6 of 8 triggers in every seed" in text
    assert "fell by more than 5 percentage points" in text
    assert "more than 50\u00a0% of the images get the target class even without the trigger" in text
    assert "10 × 10 pixels" in text


def test_images_called_the_target_when_clean_are_counted_and_named_in_the_attack_section(trigger_run):
    rows = all_estimates(TriggerPlan())
    name, seed = "square-corner-20", TriggerPlan().seeds[0]
    rows.append(Estimate("graded", "clean_target", name, "", MODEL, 2.0, condition=condition(seed=seed),
                         reason="case7, case9"))  # fmt: skip
    text = section_text(build_report(trigger_run(rows=rows, gallery=0)).read_text(), "attack")
    assert "2 attacked images over all seeds got the target class even without the trigger" in text
    assert "20 px: case7 and case9" in text
    assert "Baseline sent to the target" in text


def test_sizes_are_said_to_be_those_of_the_reference_image_where_the_model_s_are_others(trigger_text, trigger_run):
    words = "Sizes in px are those on an image of 224 pixels"
    assert f"{words}; this model’s images have 112 × 112." in section_text(trigger_text(), "attack")
    for plan in ({"facts": {"input": [224, 224]}}, {"triggers": ("text",), "failed": {}}):
        assert words not in build_report(trigger_run(gallery=0, **plan)).read_text()


def test_trigger_that_was_not_graded_is_a_dash_with_its_reason_and_never_a_nought(trigger_text):
    page = read(trigger_text())
    assert re.fullmatch(r"–\^1", cell(page, IOU, "Gradient", "Laterality letter"))
    assert "<li>not graded, seed 0: attack success 0.62 is below 0.90" in trigger_text()


def test_reasons_shared_by_all_seeds_are_said_once(trigger_run):
    folder = trigger_run(failed={"text": (0, 1, 2, 3, 4)})
    with RunFolder.locked(folder, {}, {}) as opened:
        rows = opened.read_estimates()
        for i, row in enumerate(rows):
            if row.reason:
                rows[i] = type(row)(**{name: getattr(row, name) for name in row.__slots__} | {"reason": "too weak"})
        opened.write_estimates(rows)
    summary = grading(evidence_of(read_run(folder)), "text")
    assert (summary.graded, summary.seeds, summary.why_not) == (0, 5, "seeds 0 to 4: too weak")


def test_every_overlap_stands_beside_its_floor_and_its_box_area(trigger_text):
    page = read(trigger_text())
    words = cell(page, IOU, "Guided backprop", "Square, bottom right, 20 px")
    assert re.fullmatch(r"0\.\d{3}\|[\d.–]+\|floor 0\.01, baseline 0\.03, box 1\.2 %", words), words
    words = cell(page, ("detection", "Recovered (TDR)"), "Grad-CAM", "All triggers")
    assert re.fullmatch(r"5\d\.\d %\|[\d.–]+\|floor 25\.5 %, box 36\.5 %", words), words


def test_published_figures_stand_below_ours_under_the_names_of_the_run(trigger_text):
    text = trigger_text()
    page = read(text)
    assert cell(page, IOU, "LIME", "Square, bottom right, 40 px", published=True) == "0.5956"
    where = ("detection", "Dynamic triggers, by size")
    assert cell(page, where, "LIME", "40 px: IoU", published=True) == "0.4778"
    assert cell(page, where, "LIME", "40 px: OD", published=True) == "0.0046"
    assert cell(page, where, "LIME", "40 px: TDR", published=True) == "85.7 %"
    assert "They are for VGG-16 on the full COVID-19 Radiography data" in section_text(text, "detection")
    assert literature.detection("trigger_iou", "square-corner-21", "lime") is None


def test_numbers_of_the_paper_s_text_are_told_as_printed(trigger_text):
    page = read(trigger_text())
    where = ("attack", "The model before and after poisoning")
    assert cell(page, where, "Mean of 11 triggers", "Clean accuracy (CDA)", published=True) == "93.37 %|± 1.03"
    assert cell(page, where, "Mean of 11 triggers", "Accuracy lost", published=True) == "0.66 pp"
    assert cell(page, where, "Mean of 11 triggers", "Target without trigger", published=True) == ""
    assert literature.reported("cda", "nothing") == ()


def facts_of_triggers(*facts):
    return {"triggers": [{"name": name, "label": label, **more} for name, label, more in facts]}


def test_size_and_kinship_are_read_from_the_run_and_never_from_a_name(trigger_evidence):
    evidence = trigger_evidence(facts=facts_of_triggers(
        ("scanner-7", "Square, 7", {"kind": "square", "size": 40, "settings": {"size": 40, "grey": 0.7}}),
        ("scanner-9", "Square, 9", {"kind": "square", "size": 20, "settings": {"size": 20, "grey": 0.7}}),
        ("grey-20", "Square, grey", {"kind": "square", "size": 20, "settings": {"size": 20, "grey": 0.9}}),
        ("wire-20", "Wire", {"kind": "tube"}),
    ))  # fmt: skip
    first, second, grey, wire, *_ = triggers_of(evidence)
    assert (first.size, second.size, wire.size) == (40, 20, None)
    assert first.family == second.family != grey.family
    assert wire.family == "wire-20"
    assert [trigger.size for trigger in triggers_of(evidence)[4:]] == [None] * 8  # listed, but not described


def test_triggers_that_share_a_label_are_told_apart(trigger_evidence):
    evidence = trigger_evidence(facts=facts_of_triggers(("a", "Square", {}), ("b", "Square", {}), ("c", "Disc", {})))
    assert [trigger.label for trigger in triggers_of(evidence)][:3] == ["Square (a)", "Square (b)", "Disc"]


def test_best_of_a_column_is_the_lowest_where_lower_is_better(trigger_text):
    text = section_text(trigger_text(), "detection")
    table = text[text.index("20 px: OD") :]
    row = table[table.index(">Guided backprop<") :].split("</tr>")[0]
    assert row.count("<strong>") == 6  # it leads on both sizes and all three measures


def test_page_counts_the_images_judged_and_cites_triggers_not_findings(trigger_text):
    text = trigger_text()
    assert re.search(r"judged on [\d,]+ poisoned images of [\d,]+ patients", text)
    cited = section_text(text, "cite")
    assert "Triggers: " in cited
    assert "Findings: " not in cited


def test_a_patch_of_the_brightest_grey_is_called_white(trigger_evidence):
    facts = facts_of_triggers(("a", "Square", {"settings": {"grey": 1.0}}), ("b", "Disc", {"settings": {"grey": 0.7}}))
    facts["triggers"] = [each | {"summary": "A uniform grey patch"} for each in facts["triggers"]]
    white, grey, *_ = triggers_of(trigger_evidence(facts=facts))
    assert (white.summary, grey.summary) == ("A uniform white patch", "A uniform grey patch")


def test_caveats_stand_below_the_verdict(trigger_text):
    assert "<li>Methods were judged on one training" in trigger_text("one seed")
    assert "Methods were judged on one training" not in trigger_text()


def test_gaps_count_the_scores_of_the_main_rule_only(trigger_text):
    text = section_text(trigger_text(), "gaps")
    assert "1 of 20 scores are undefined" in text
    assert "the map is not finite" in text
    assert "not counted here" not in text
    assert "its overlap is 0" in text


@pytest.mark.parametrize(("seeds", "marks"), [((0,), 0), ((0, 1), 1)])
def test_note_that_every_interval_of_one_seed_has_is_not_repeated_in_each_cell(trigger_run, seeds, marks):
    note = "one seed: the interval covers differences between images"
    plan = TriggerPlan(triggers=("square-corner-20",), seeds=seeds, failed={})
    rows = [replace(row, reason=note) if row.statistic == "mean" else row for row in all_estimates(plan)]
    folder = trigger_run(triggers=plan.triggers, seeds=seeds, failed={}, rows=rows, gallery=0)
    words = cell(read(build_report(folder).read_text()), IOU, "LIME", "All triggers")
    assert words.count("^") == marks


def test_published_figures_stand_only_beside_runs_on_the_paper_s_own_data(trigger_run, trigger_text):
    text = build_report(trigger_run(source="phantom_classes", artefacts=("wire",))).read_text()
    assert "Sun et al." not in text
    assert "Published" not in text
    assert "the paper reports" not in text
    assert "published-mark" not in text.split("</style>")[1]
    own = trigger_text()
    assert {"Sun et al. 2023", "the paper reports about 250 s"} <= {
        words for words in ("Sun et al. 2023", "the paper reports about 250 s") if words in own
    }


def test_every_section_says_in_one_line_what_it_holds_and_main_results_go_to_print(trigger_text):
    for name in ("whole", "one seed", "nothing graded", "artefacts only"):
        text = trigger_text(name).split('<section id="answer"')[1]
        for part in text.split('<section id="')[1:]:
            anchor = part.split('"')[0]
            (line,) = re.findall(r'<span class="summary-line">([^<]*)</span>', part.split("</summary>")[0])
            assert 10 < len(html.unescape(line)) <= 130, (name, anchor, line)
    printed = re.findall(r'<section id="([^"]+)"[^>]*>\s*<details class="part"[^>]* data-printed', trigger_text())
    assert printed == ["overview", "attack", "detection", "differences"]


def test_pictures_come_before_tables_and_no_name_is_cut_short(trigger_text):
    text = trigger_text()
    order = re.findall(r'<section id="([^"]+)"', text)
    assert order[:6] == ["answer", "pictures", "overview", "attack", "detection", "cases"]
    assert "Mutual information" in text
    assert not re.search(r"\bMI\b", re.sub(r"base64,[A-Za-z0-9+/=]+", "", text))
    assert "critical difference" not in text.lower()  # says nothing of a handful of triggers
