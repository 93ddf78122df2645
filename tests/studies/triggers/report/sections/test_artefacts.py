"""Artefacts that came with the images: graded by their outlines, apart from triggers, and with a caution."""

import math
import re
from dataclasses import replace

import pytest
from tests.report.page_reading import cell, read, section_text, table
from tests.studies.triggers.report.conftest import flat
from tests.studies.triggers.report.made_estimates import all_estimates
from tests.studies.triggers.report.material import ARTEFACTS_ONLY, TriggerPlan

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.studies.triggers.report.facts import noted_once
from heatcheck.studies.triggers.report.sections.agreement import agreements
from heatcheck.studies.triggers.report.sections.artefacts import PART, artefact_verdict, artefacts, graded_artefacts
from heatcheck.studies.triggers.report.sections.cost import section as cost_section
from heatcheck.studies.triggers.report.sections.sensitivity import sensitivity

OUTLINE = "Overlap with the artefact (mask IoU)"
ONE_SEED = "one seed: the interval covers differences between images, not between trainings"


def test_artefacts_are_graded_by_their_outlines_with_a_caution(trigger_text):
    text = trigger_text()
    page, section = read(text), section_text(text, "artefacts")
    cell_text = cell(page, ("artefacts", OUTLINE), "LIME", "pacemaker")
    assert re.search(r"\|floor 0\.01\d?, box ", cell_text)
    assert cell(page, ("artefacts", OUTLINE), "LIME", "All artefacts")
    assert "It is not known whether the model uses such an artefact" in section
    assert "LIME 0.87 on severe static electricity and guided Grad-CAM 0.85 on mild static electricity" in section
    heads = table(page, "detection", "Overlap with the box (IoU)")["rows"][0]
    assert not [head for head in heads if "pacemaker" in head]


def test_overlap_with_the_box_around_an_artefact_is_folded_away(trigger_text):
    section = section_text(trigger_text(), "artefacts")
    title = "Overlap with the box around the artefact (IoU)"
    assert f"<summary>More: {title}</summary>" in section
    assert (
        section.index(f"<span>{OUTLINE}</span>") < section.index("<details>") < section.index(f"<span>{title}</span>")
    )


def test_one_artefact_has_no_mean_over_all(trigger_evidence):
    main, *_ = graded_artefacts(trigger_evidence(artefacts=("wire",)))
    assert [column.name for column in main.table.columns] == ["wire"]
    assert artefacts(trigger_evidence()) is None


def test_other_rules_are_those_of_the_artefacts(trigger_evidence):
    evidence = trigger_evidence(**ARTEFACTS_ONLY)
    result = sensitivity(evidence, PART)
    heads = [(column.name, column.aside) for column in result.table.columns]
    assert heads[:2] == [("Mask IoU", "one rule for all"), ("Mask IoU", "own threshold")]
    assert "TDR" not in {name for name, _ in heads}
    smoothing, _ = result.trials
    # the outline was not varied
    assert smoothing.table.caption == "Overlap with the box (IoU) by smoothing, over all artefacts"
    mean = evidence.under(kind="artefact").value("mean", "trigger_iou", ALL_FINDINGS, "lime")
    assert f"2: {mean:.3f}; 4: " in next(str(panel.plot) for panel in smoothing.panels if panel.heading == "LIME")


def test_sensitivity_of_artefacts_does_not_leak_into_that_of_triggers(trigger_text):
    page = read(trigger_text())
    captions = [shown["caption"] for shown in page.tables if shown["section"] == "sensitivity"]
    assert captions
    assert not [caption for caption in captions if "artefacts" in caption]


def test_maps_of_artefacts_are_compared_with_each_other_where_nothing_was_planted(trigger_evidence):
    evidence = trigger_evidence(**ARTEFACTS_ONLY)
    _, made = agreements(evidence)
    assert [result.table.caption for result in made.values()][:3] == [
        "Mutual information", "Cross-correlation", "Structural similarity (SSIM)",
    ]  # fmt: skip
    mean = evidence.under(kind="artefact").value("pair_mean", "ssim", ALL_FINDINGS, "gradient", "lime")
    row = made["ssim"].table.groups[0][1][0]
    assert row.cells[6].text == f"{mean:.2f}"
    both = trigger_evidence(artefacts=("wire",))
    mean = both.value("pair_mean", "ssim", ALL_FINDINGS, "gradient", "lime")
    assert agreements(both)[1]["ssim"].table.groups[0][1][0].cells[6].text == f"{mean:.2f}"


def test_cost_is_set_against_the_overlap_with_the_outline(trigger_evidence):
    evidence = trigger_evidence(**ARTEFACTS_ONLY | {"changed": ("lime",)})
    (seconds,) = [b for b in flat(cost_section(evidence).blocks) if b.kind == "listing" and "scores" in b.caption]
    assert [column.name for column in seconds.columns[3:]] == ["Overlap with the pixels (mask IoU)"]


def test_page_of_artefacts_alone_claims_no_planted_patch(trigger_text):
    text = trigger_text("artefacts only")
    assert "do the heat maps mark them?" in text
    assert "planted patch" not in text
    assert "has nothing to return to" not in text
    sections = read(text).sections
    assert not {"attack", "detection", "cases", "sensitivity"} & set(sections)
    assert {"artefacts", "agreement", "cost"} <= set(sections)


@pytest.mark.parametrize(("method", "value", "highest"), [("lime", 0.9, "0.90"), ("guided_backprop", math.nan, "0.41")])
def test_verdict_names_no_best_method_of_one_network_and_skips_what_is_undefined(
    trigger_evidence, method, value, highest
):
    rows = [replace(row, value=value) if (row.metric, row.method) == ("trigger_mask_iou", method) else row
            for row in all_estimates(TriggerPlan(**ARTEFACTS_ONLY))]  # fmt: skip
    sentence = artefact_verdict(trigger_evidence(rows=rows, **ARTEFACTS_ONLY)).second
    assert f"in this network, their outlines were overlapped by 0.08 to {highest} (mean IoU" in sentence
    assert "LIME" not in sentence


def test_artefacts_that_were_not_scored_have_no_table(trigger_evidence):
    evidence = trigger_evidence(rows=[], **ARTEFACTS_ONLY)
    assert graded_artefacts(evidence)[0] is None
    assert "No artefact has been scored." in str(artefacts(evidence).blocks)
    assert artefact_verdict(evidence).second.endswith("in the original images.")


def test_intervals_of_artefacts_do_not_speak_of_seeds(trigger_evidence):
    rows = [replace(row, reason=ONE_SEED) if row.statistic == "mean" else row
            for row in all_estimates(TriggerPlan(artefacts=("wire",)))]  # fmt: skip
    evidence = noted_once(trigger_evidence(rows=rows, artefacts=("wire",)))
    assert graded_artefacts(evidence)[0].table.notes == ()
    assert evidence.find("mean", "trigger_iou", ALL_FINDINGS, "lime").reason == ONE_SEED  # of five seeds
