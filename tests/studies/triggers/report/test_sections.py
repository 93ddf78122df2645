"""The trigger page's sections: what each shows, and what it leaves out."""

import math
import re
from dataclasses import replace

import pytest
from tests.report.page_reading import cell, read, section_text, table
from tests.studies.triggers.report.conftest import flat
from tests.studies.triggers.report.made_estimates import MODEL, SIGMAS, all_estimates, mean
from tests.studies.triggers.report.material import ONE_SEED, TriggerPlan

from heatcheck.core.records import ALL_FINDINGS, Estimate, Timing
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import RunFolder
from heatcheck.studies.triggers.report.facts import TriggerRecord, manifest
from heatcheck.studies.triggers.report.plots import by_trigger, overall
from heatcheck.studies.triggers.report.sections.agreement import agreements
from heatcheck.studies.triggers.report.sections.cost import section as cost_section
from heatcheck.studies.triggers.report.sections.differences import compared, differences
from heatcheck.studies.triggers.report.sections.sensitivity import presets_tried, sensitivity
from heatcheck.studies.triggers.report.sections.uncovered import families_of, left_by_size, share_table


def built(folder):
    return read(build_report(folder).read_text())


def labels_in(plot):
    return re.findall(r'class="row-label[^"]*"[^>]*>([^<]*)<', str(plot))


# At a glance and detection


def test_plot_sets_every_method_beside_random_boxes_of_its_own_size(trigger_evidence):
    evidence = trigger_evidence()
    plot = str(overall(evidence, "trigger_iou").plot)
    assert labels_in(plot)[0] == "Guided backprop"
    assert labels_in(plot)[-1] == "Random (floor)"
    assert plot.count("floor-tick") == 8
    assert "Grad-CAM: random boxes of the same size 0.020; Grad-CAM 0.1" in plot
    assert "box 36.5\u00a0%" in plot


def test_judgement_table_shows_every_comparison(trigger_text):
    page = read(trigger_text())
    (shown,) = [t for t in page.tables if t["section"] == "overview"]
    rows = {row[0]: row[1:] for row in shown["rows"]}
    boxes, baseline, recovery = "yes: 0.59 against 0.01", "yes: 0.59 against 0.03", "yes: 92 % against 1 %"
    assert rows["Guided backprop"][:5] == ["✓ finds it", boxes, baseline, recovery, "yes"]
    assert rows["Feature ablation"][0] == "✕ does not"
    assert rows["Feature ablation"][3].startswith("no: 3 % against 4 %")
    assert rows["Grad-CAM"][:2] == ["? not shown", "not shown: 0.10 against 0.02"]
    assert rows["Guided Grad-CAM"][4] == "not shown"


def test_table_of_one_training_ticks_nothing(trigger_text):
    page = read(trigger_text("one seed"))
    (shown,) = [t for t in page.tables if t["section"] == "overview"]
    assert {row[1] for row in shown["rows"][1:]} == {"? not with one training"}
    assert all(
        row[2].startswith("not with one training: 0.") and row[5] == "not with one training"
        for row in shown["rows"][1:]
    )
    assert "says nothing about the methods in general" in section_text(trigger_text("one seed"), "overview")


def test_mask_overlap_and_the_printed_formula_are_folded_out(trigger_text):
    page = read(trigger_text())
    assert cell(page, ("detection", "Overlap with the pixels (mask IoU)"), "LIME", "All triggers")
    assert cell(page, ("detection", "Recovered, by the baseline (TDR as printed)"), "LIME", "All triggers")


def test_dynamic_triggers_of_one_size_keep_their_names(trigger_run):
    facts = [{"name": name, "label": name, "kind": "dynamic"} for name in ("dynamic-20", "dynamic-20-strength-0.5")]
    rows = [mean(m, f["name"], "lime", 0.3) for f in facts for m in ("trigger_iou", "recovered")]
    names = tuple(f["name"] for f in facts)
    page = built(trigger_run(rows=rows, facts={"triggers": facts, "findings": list(names)}, gallery=0))
    heads = [head.split("|")[0] for head in table(page, "detection", "Dynamic triggers, by size")["rows"][0]]
    assert "dynamic-20: IoU" in heads
    assert "dynamic-20-strength-0.5: IoU" in heads


# Remainder


def test_overlap_difference_is_drawn_for_the_published_size_only(trigger_evidence):
    bars = left_by_size(trigger_evidence())
    assert [panel.heading for panel in bars] == [
        "Square, bottom right, 20 px", "Circle, random place, 20 px", "Dynamic, random place, 20 px",
    ]  # fmt: skip
    assert str(bars[0].plot).count('class="bar"') == 8
    assert "published by Sun et al. 2023 0.0004" in str(bars[2].plot)
    assert "published" not in str(bars[0].plot)


def test_uncovered_share_is_drawn_by_size_where_sizes_differ_and_only_what_was_graded(trigger_evidence):
    evidence = trigger_evidence(failed={"square-corner-60": (0, 1, 2, 3, 4)})
    families = families_of(evidence)
    assert [family.name for family in families] == ["Square, bottom right", "Dynamic, random place"]
    plot = str(families[0].drawn[0].plot)
    assert "trigger size (px) and score: 20: " in plot
    assert "; 60: " not in plot
    assert "floor-line" in plot
    columns = [column.name for column in share_table(evidence).columns]
    assert columns[:2] == ["All triggers", "Square, bottom right, 20 px"]
    assert columns[-1] == "Laterality letter"  # no size, so last


def test_triggers_of_other_sizes_alone_have_no_bars(trigger_evidence):
    evidence = trigger_evidence(triggers=("square-corner-40",), failed={})
    assert left_by_size(evidence) == []
    assert families_of(evidence) == []


# Sensitivity


def test_presets_stand_side_by_side_under_their_labels_with_the_leading_one_first(trigger_text):
    text = trigger_text()
    shown = table(read(text), "sensitivity", "Ways to make a box, over all triggers")
    assert shown["rows"][0][1:] == [
        "IoU|one rule for all", "IoU|own threshold", "TDR|one rule for all", "TDR|own threshold",
        "Box area|one rule for all", "Box area|own threshold",
    ]  # fmt: skip
    row = next(row for row in shown["rows"] if row[0].startswith("Guided backprop"))
    first, second = (float(sentence.split("|")[0]) for sentence in row[1:3])
    assert second == pytest.approx(0.8 * first, abs=0.001)
    assert "<b>one rule for all</b>: the map is smoothed (σ 2 pixels) and cut (the main rule)." in text


def test_area_of_a_box_is_never_called_best(trigger_text):
    text = section_text(trigger_text(), "sensitivity")
    rows = text[text.index("Ways to make a box, over") :].split("</table>")[0].split("<tr")
    assert all("<strong>" not in "".join(row.split("<td")[5:]) for row in rows)
    assert any("<strong>" in row for row in rows)


def test_run_with_one_preset_has_no_table_of_several(trigger_evidence):
    result = sensitivity(trigger_evidence(keep=lambda row: "preset" not in row.condition))
    assert (result.table, result.presets, len(result.trials)) == (None, (), 2)
    assert result.rule == "the map is smoothed (σ 2 pixels) and cut"


def test_preset_that_the_run_does_not_explain_is_called_by_its_name(trigger_evidence):
    evidence = trigger_evidence(facts={"detection": {"preset": "own_rule"}})
    assert [preset.label for preset in presets_tried(evidence)] == ["own_rule", "thresholded"]
    assert manifest(evidence).detection.main_rule == ""


def test_main_rule_is_marked_on_every_curve_and_has_the_page_s_own_value(trigger_evidence):
    evidence = trigger_evidence()
    smoothing, threshold = sensitivity(evidence).trials
    assert len(smoothing.panels) == 7
    for panel in (*smoothing.panels, *threshold.panels):
        assert str(panel.plot).count('class="chosen"') == 2  # the strokes of one cross
    mean = evidence.value("mean", "trigger_iou", ALL_FINDINGS, "lime")
    lime = next(panel for panel in smoothing.panels if panel.heading == "LIME")
    assert f"2: {mean:.3f}; 4: " in str(lime.plot)
    assert "Chosen: 2." in str(lime.plot)
    heads = [(column.name, column.aside) for column in smoothing.table.columns]
    assert heads == [(f"σ {sigma:g}", "main rule" if sigma == 2 else "tried") for sigma in SIGMAS]


def test_each_method_is_marked_at_its_own_number_where_the_rule_has_no_common_one(trigger_evidence):
    evidence = trigger_evidence(preset="thresholded")
    smoothing, threshold = sensitivity(evidence).trials
    chosen = {panel.heading: re.search(r"Chosen: ([\d.]+)\.", str(panel.plot))[1] for panel in threshold.panels}
    assert (chosen["Gradient"], chosen["Guided backprop"], chosen["LIME"]) == ("0.5", "0.8", "0.9")
    assert all("Chosen: 0." in str(panel.plot) for panel in smoothing.panels)
    assert [(c.name, c.aside) for c in smoothing.table.columns][:2] == [("σ 0", "main rule"), ("σ 1", "tried")]
    heads = [(column.name, column.aside) for column in threshold.table.columns]
    assert heads[:2] == [("own threshold", "main rule"), ("threshold 0.05", "tried")]
    assert "main rule" not in dict(heads[1:]).values()


def test_method_s_own_number_among_those_tried_shows_its_leading_score(trigger_evidence):
    evidence = trigger_evidence(preset="thresholded")
    result = sensitivity(evidence).trials[1].table
    position = [column.name for column in result.columns].index("threshold 0.5")
    (cells,) = [row.cells for _, rows in result.groups for row in rows if row.entrant.name == "gradient"]
    assert (
        cells[position].text
        == cells[0].text
        == f"{evidence.value('mean', 'trigger_iou', ALL_FINDINGS, 'gradient'):.3f}"
    )
    assert not [note for note in result.notes if "computed" in note]


def test_run_that_does_not_tell_its_rules_has_no_main_rule_marked(trigger_evidence):
    result = sensitivity(trigger_evidence(facts={"detection": {"preset": "gradcam15", "sigma": 2.0}})).trials[0]
    assert "chosen" not in "".join(str(panel.plot) for panel in result.panels).lower()
    assert {column.aside for column in result.table.columns} == {"tried"}


def test_sentence_tells_when_the_order_depends_on_the_rule(trigger_evidence):
    result = sensitivity(trigger_evidence()).trials[0]
    assert result.sentence == "Guided backprop has the highest mean overlap at every σ that was tried."

    def leads_at(sigma, **plan):
        rows = [replace(row, value=0.99) if row.condition == f'{{"sigma":{sigma}}}' and row.method == "lime" else row
                for row in all_estimates(TriggerPlan(**plan))]  # fmt: skip
        return sensitivity(trigger_evidence(rows=rows, **plan)).trials[0].sentence

    assert leads_at(8.0) == (
        "Which method has the highest mean overlap depends on the smoothing: Guided backprop at σ 0, 1, 2 and 4; LIME "
        "at σ 8."
    )


def test_sentence_names_the_main_rule_where_it_has_no_common_number(trigger_evidence):
    rows = [replace(row, value=0.99) if row.condition == '{"threshold":0.3}' and row.method == "lime" else row
            for row in all_estimates(TriggerPlan(preset="thresholded"))]  # fmt: skip
    sentence = sensitivity(trigger_evidence(rows=rows, preset="thresholded")).trials[1].sentence
    assert (
        "Guided backprop under the main rule and at threshold 0.05, 0.1, 0.15 and 0.5; LIME at threshold 0.3"
        in sentence
    )


def test_sentence_names_every_method_of_a_tie(trigger_evidence):
    rows = [replace(row, value=0.99) if row.condition == '{"sigma":8.0}' and row.method in {"lime", "grad_cam"} else row
            for row in all_estimates(TriggerPlan())]  # fmt: skip
    assert "; Grad-CAM and LIME at σ 8." in sensitivity(trigger_evidence(rows=rows)).trials[0].sentence


def test_run_that_tried_one_rule_has_no_section_on_sensitivity(trigger_evidence):
    assert sensitivity(trigger_evidence(keep=lambda row: "sigma" not in row.condition != "threshold" in row.condition))
    assert sensitivity(trigger_evidence(keep=lambda row: row.condition == "{}")) is None


# Differences


def pair(one, other, value, low, high, size=0.05, **more):
    return Estimate("difference", "trigger_iou", ALL_FINDINGS, one, MODEL, value, low, high, other_method=other,
                    size=size, **more)  # fmt: skip


THREE = ("gradient", "lime", "occlusion")


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        (((0.01, 0.4), (0.1, 0.5), (0.1, 0.3)), "Gradient is best: it is clearly better than every other method."),
        (
            ((-0.1, 0.4), (0.1, 0.5), (0.1, 0.3)),
            "Gradient and LIME may be best: no other method is above any of them beyond chance.",
        ),
        (
            ((-0.1, 0.4), (-0.1, 0.5), (-0.1, 0.3)),
            "No method is shown to be better than another: each of the 3 may be best.",
        ),
        (((-0.1, 0.4), (0.1, 0.5), (-0.1, 0.3)), "Gradient and LIME may be best"),
        (((math.nan,) * 2,) * 3, "No two methods can be compared: there is no interval."),
    ],
)
def test_a_method_is_best_only_if_it_is_clearly_better_than_every_other(trigger_evidence, intervals, said):
    names = (("gradient", "lime"), ("gradient", "occlusion"), ("lime", "occlusion"))
    rows = [pair(*two, 0.2, low, high) for two, (low, high) in zip(names, intervals, strict=True)]
    (overlap,) = compared(trigger_evidence(rows=rows, methods=THREE))
    assert overlap.sentences[0].startswith(said)


def test_a_difference_beyond_chance_that_is_too_small_to_matter_makes_nobody_the_best(trigger_evidence):
    rows = [pair("gradient", "lime", 0.03, 0.01, 0.04, p_adjusted=0.001)]
    evidence = trigger_evidence(rows=rows, methods=("gradient", "lime"))
    (overlap,) = compared(evidence)
    assert overlap.sentences[0] == (
        "Gradient is ahead of every other method beyond chance, but not of all by a size that matters."
    )
    ((_, (row,)),) = overlap.table.groups
    assert row.cells[0].outcome == "no difference that matters, p = 0.001"


def test_pairs_stand_in_a_table_with_their_intervals_and_what_would_decide_them(trigger_evidence):
    rows = [pair("lime", "gradient", 0.2, 0.1, 0.3, p_adjusted=0.01, n_cases=60, n_patients=20)]
    rows += [pair("lime", "occlusion", 0.25, -0.1, 0.3, p_adjusted=0.2, n_needed=61)]
    rows += [pair("gradient", "occlusion", 0.05, -0.1, 0.3, p_adjusted=0.9)]
    (overlap,) = compared(trigger_evidence(rows=rows, methods=THREE))
    assert [column.name for column in overlap.table.columns] == ["less Gradient", "less Occlusion"]
    first, second = overlap.table.groups[0][1]
    assert (first.entrant.name, first.cells[0].text, first.cells[0].interval) == ("lime", "+0.200", "+0.100 to +0.300")
    assert first.cells[0].outcome == "clearly better, p = 0.010"
    assert first.cells[1].outcome == "not shown, p = 0.200, about 61 patients would decide it"
    assert second.cells[0].text == ""
    assert "the same 60 poisoned images of 20 patients" in " ".join(overlap.sentences)
    assert "A difference below 0.15 would go unnoticed in more than half of such runs." in overlap.sentences


def test_one_training_compares_no_methods_in_general(trigger_evidence):
    overlap = compared(trigger_evidence(**ONE_SEED))[0]
    assert "say nothing about the methods in general" in overlap.sentences[0]
    words = [cell.outcome for _, rows in overlap.table.groups for row in rows for cell in row.cells]
    assert not [each for each in words if "better" in each or "not shown" in each]


def test_one_method_alone_has_no_section_on_differences(trigger_evidence):
    assert differences(trigger_evidence(methods=("gradient",))) is None


# Agreement


def test_three_matrices_are_symmetric_with_the_mean_of_the_methods_last(trigger_evidence):
    evidence = trigger_evidence()
    _, made = agreements(evidence)
    assert [result.table.caption for result in made.values()][:3] == [
        "Mutual information", "Cross-correlation", "Structural similarity (SSIM)",
    ]  # fmt: skip
    assert len(made) == 5
    result = made["mutual_information"].table
    rows = [row.cells for row in result.groups[0][1]]
    assert result.columns[-1].name == "Mean of the methods"
    assert [name for name, _ in result.groups] == ["Methods", "Floors"]
    for i in range(len(rows)):
        assert rows[i][i].text == ""
        assert [row[i].text for row in rows] == [rows[i][k].text for k in range(len(rows))]
    mean = evidence.value("pair_mean", "mutual_information", ALL_FINDINGS, "gradient")
    assert rows[0][-1].text == f"{mean:.2f}"


def test_deeper_colour_is_more_alike_and_only_opposites_have_the_other_colour(trigger_evidence):
    def pairs(*values):
        names = (("gradient", "lime"), ("gradient", "random"), ("lime", "random"))
        return [Estimate("pair_mean", "cross_correlation", ALL_FINDINGS, a, MODEL, value, other_method=b)
                for (a, b), value in zip(names, values, strict=True)]  # fmt: skip

    plan = {"methods": ("gradient", "lime", "random")}
    result = agreements(trigger_evidence(rows=pairs(0.5, -0.02, 1.0), **plan))[1]["cross_correlation"]
    tints = [cell.tint for cell in result.table.groups[0][1][0].cells]
    assert tints[:3] == [None, 0.5, 0.0]
    assert (result.lowest, result.highest, result.has_opposites) == ("0.00", "1.00", False)
    result = agreements(trigger_evidence(rows=pairs(0.5, -0.4, math.nan), **plan))[1]["cross_correlation"]
    assert [cell.tint for cell in result.table.groups[0][1][0].cells][:3] == [None, 0.5, -0.4]
    assert (result.lowest, result.has_opposites) == ("\u22121.00", True)
    assert result.table.groups[0][1][1].cells[2].text == "–"


def test_tints_are_written_as_shares_that_leave_the_numbers_readable(trigger_text):
    text = section_text(trigger_text(), "agreement")
    shares = [int(share) for share in re.findall(r"--tint: (\d+)%", text)]
    assert len(shares) > 100
    assert max(shares) == 50  # a deeper colour would swallow the number


# Cost


def test_box_plot_has_one_row_per_method_on_a_logarithmic_axis(trigger_evidence):
    shown = flat(cost_section(trigger_evidence()).blocks)
    plot = str(next(block for block in shown if block.kind == "figures").panels[0].plot)
    assert labels_in(plot)[0] == "Random"
    assert labels_in(plot)[-1] == "LIME"
    assert "10\u00a0ms" in plot
    assert "LIME: 5 % " in plot
    (sentence,) = [block.text for block in shown if block.kind == "prose" and "mutual information" in block.text]
    assert sentence.startswith("The mutual information of two maps of 112 × 112 pixels takes 0.60\u00a0ms here")
    assert "about 250 s for two maps of 128 × 128 pixels" in sentence
    listings = {block.caption: block.rows for block in shown if block.kind == "listing"}
    assert [(row[0], row[-1]) for row in listings["Time per image by step"]] == [
        ("Boxes and all their metrics, under every rule", "20\u00a0ms"),
        ("Mutual information, all pairs of methods", "17\u00a0ms"),
    ]
    trainings = listings["Time each by model"]
    assert [row[0] for row in trainings][:2] == ["Baseline", "Poisoned model: Square, bottom right, 20 px"]
    assert trainings[0][1:] == ("5", "1 min 0 s")


def test_batches_without_maps_or_time_do_not_break_the_axis(trigger_run):
    folder = trigger_run(gallery=0)
    with RunFolder.locked(folder, {}, {}) as opened:
        shard = opened.read_table("timings")
        assert len(shard)
    rows = [Timing(0, "map", "lime", 0, 0.5), Timing(0, "map", "lime", 4, 0.0), Timing(0, "map", "lime", 4, 2.0)]
    shard.iloc[:3] = [[getattr(row, name) for name in shard.columns] for row in rows]
    shard.to_parquet(folder / "timings.parquet")
    assert "n 13" in section_text(build_report(folder).read_text(), "cost")


def test_plots_of_one_measure_share_one_scale(trigger_evidence):
    triggers = [
        TriggerRecord("square-corner-20", "a"),
        TriggerRecord("dynamic-20", "b"),
        TriggerRecord("letter", "never graded"),
    ]
    rows = [mean("trigger_iou", "square-corner-20", "lime", 0.1), mean("trigger_iou", "dynamic-20", "lime", 0.9)]
    panels = by_trigger(trigger_evidence(rows=rows), "trigger_iou", triggers)
    assert [panel.heading for panel in panels] == ["a", "b"]
    ticks = [re.findall(r'class="tick"[^>]*>([^<]*)<', str(panel.plot)) for panel in panels]
    assert ticks[0] == ticks[1]
    assert ticks[0][-1] == "1"
