"""The sections beyond the verdict: each shows its rows, exactly, and only when the run has them."""

import html
import json
import math
import re
from dataclasses import replace

import pytest
from tests.report.page_reading import cell, read, section_text, table
from tests.studies.localization.report.full_material import PRIMARY, full_rows, write_full_run
from tests.studies.localization.report.material import FINDINGS, Plan, mean, write_run

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.report.evidence import evidence_of
from heatcheck.running.reporting import build_report
from heatcheck.runs.store import read_run
from heatcheck.studies.localization.report.sections.confidence import confidence
from heatcheck.studies.localization.report.sections.wrong_answers import wrong_answers

HOSTILE = '<script>alert("x")</script>'


def sentences_of(section):
    return next(block.items for block in section.blocks if block.kind == "bullets")


NEW = ("thresholds", "architectures", "geometry", "confidence", "presets", "counts")


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    return write_full_run(tmp_path_factory.mktemp("full") / "run")


@pytest.fixture(scope="module")
def text(full):
    return build_report(full).read_text()


@pytest.fixture(scope="module")
def page(text):
    return read(text)


def test_every_section_is_there_in_order(page):
    assert page.sections == ["answer", "pictures", "overview", "findings", "floors", "cases", "thresholds",
                             "architectures", "geometry", "confidence", "presets", "cost", "model", "counts", "gaps",
                             "record", "cite", "downloads"]  # fmt: skip


def test_a_plain_run_has_none_of_the_new_sections(made_run):
    page = read(build_report(made_run()).read_text())
    assert not set(NEW) & set(page.sections)


def test_the_page_speaks_of_the_primary_model(full, page):
    evidence = evidence_of(read_run(full))
    assert evidence.primary == PRIMARY
    mine = evidence.value("mean", "iou", "Edema", "grad_cam")
    other = evidence.under("resnet152").value("mean", "iou", "Edema", "grad_cam")
    assert mine == pytest.approx(other + 0.05)
    assert cell(page, ("findings", "Overlap (IoU)"), "Grad-CAM", "Edema").startswith(f"{mine:.3f}")
    assert cell(page, ("findings", "Overlap (IoU)"), "Grad-CAM", "Edema", published=True) == "0.362"


def test_published_rows_stand_apart_with_the_misprints_noted(page):
    where = "findings", "Overlap (IoU)"
    assert cell(page, where, "Grad-CAM++", "Consolidation", published=True).startswith("0.297^")
    assert cell(page, where, "Human readers", "Atelectasis", published=True) == "0.124"
    assert cell(page, ("findings", "Hit rate"), "Occlusion", "Lung Lesion", published=True) == "7.2 %"
    where = "findings", "Overlap (IoU): decrease from the readers"
    assert cell(page, where, "Grad-CAM", "Consolidation", published=True) == "−56.1 %^3|−69.4 to −42.7"
    groups = [row[0] for row in table(page, *where)["rows"]]
    assert groups.count("Published (Saporta et al. 2022)") == 1


def test_pixel_shares_are_shown_with_the_doubt_about_the_published_sensitivity(page, text):
    where = "findings", "Pixel sensitivity"
    assert cell(page, where, "Grad-CAM", "Edema").startswith("60.0 %")
    assert cell(page, where, "Grad-CAM", "Edema", published=True).startswith("98.8 %^")
    assert cell(page, ("findings", "Pixel specificity"), "Human readers", "Edema", published=True).startswith("99.7 %^")
    assert "looks like a negative predictive value" in section_text(text, "findings")


def test_boxes_are_compared_as_areas_and_as_boxes(page, tmp_path):
    found = table(page, "findings", "Overlap (IoU) with the boxes, mean over all findings")
    assert found["rows"][0][1:] == ["All findings|as areas", "All findings|as boxes"]
    row = next(cells for cells in found["rows"] if cells[0] == "Grad-CAM")
    assert row[2].startswith("0.456")
    masks = read(build_report(write_full_run(tmp_path / "run", changes={"truth_kind": "masks"})).read_text())
    captions = [t["caption"] for t in masks.tables]
    assert "Overlap (IoU) with the boxes" not in captions
    assert "Box IoU" in captions


def test_thresholds_show_curves_the_choice_and_the_scores(page, text):
    section = section_text(text, "thresholds")
    assert "CheXlocalize validation set, 234 cases" in section
    assert "Airspace Opacity: score against threshold" in section
    assert "threshold 0.3: 0.400, chosen" in section
    assert section.count("chosen</title>") == 2 * 3 * len(FINDINGS)
    assert cell(page, ("thresholds", "Chosen threshold"), "Grad-CAM", "Edema") == "0.70"
    assert cell(page, ("thresholds", "Chosen cutoff"), "Occlusion", "Edema") == "0.50"
    assert cell(page, ("thresholds", "Overlap (IoU) with tuned thresholds"), "Grad-CAM", "Edema").startswith("0.400|")
    assert cell(page, ("thresholds", "IoU, all cases with tuned cutoffs"), "Grad-CAM", "Edema").startswith("0.350|")
    where = "thresholds", "Overlap (IoU), tuned: method minus readers"
    assert cell(page, where, "Grad-CAM", "All findings") == "−0.100|−0.200 to +0.050"


def test_architectures_are_compared_with_tests_and_the_selection_is_told(page, text):
    section = section_text(text, "architectures")
    assert "Overlap (IoU): Grad-CAM++ on DenseNet121, ensemble was the best pair" in section
    assert "(0.345 there)" in section
    where = "architectures", "Best model of each method on validation data"
    assert cell(page, where, "Occlusion", "Overlap (IoU)") == "ResNet152 (0.320)"
    where = "architectures", "Overlap (IoU): ResNet152 minus DenseNet121, ensemble"
    assert cell(page, where, "Grad-CAM", "Edema") == "−0.041|−0.061 to −0.021|✕ clearly lower, p = 0.010"
    where = "architectures", "Overlap (IoU), by method and model"
    assert cell(page, where, "Grad-CAM, ResNet152", "Edema", published=True) == "0.240"
    assert "AUROC by model" in section


def test_the_page_names_the_model_it_is_about(text, tmp_path):
    model = "DenseNet121, ensemble, chosen on the validation data for overlap"
    header, verdict = text.split('<header class="wide">')[1].split('<details class="verdict">')
    assert f"Model: {model} ·" in header
    assert f"Model: {model}." in verdict.split("</details>")[0]
    assert f"The rest of this page is about {model}; here" in section_text(text, "architectures")
    unchosen = write_full_run(tmp_path / "run", keep=lambda row: row.statistic != "selected")
    assert "is about DenseNet121, ensemble, the first one named; here" in build_report(unchosen).read_text()


def test_ensemble_stands_against_its_own_single_checkpoint(page):
    where = "architectures", "Hit rate: DenseNet121, ensemble minus DenseNet121, best checkpoint"
    assert cell(page, where, "Grad-CAM", "Edema") == "+4.1 pp|−0.9 to +6.1|not shown to be higher, p = 0.210"
    assert cell(page, where, "Grad-CAM", "Edema", published=True) == "−0.3 pp|74.6 % and 74.9 %"


def test_one_checkpoint_for_all_findings_is_not_what_the_paper_compared_with(tmp_path):
    run = write_full_run(tmp_path / "run")
    facts = json.loads((run / "run.json").read_text())
    for model in facts["models"]:
        model["kind"] = "single" if model["kind"] == "per_finding" else model["kind"]
    (run / "run.json").write_text(json.dumps(facts))
    where = "architectures", "Hit rate: DenseNet121, ensemble minus DenseNet121, best checkpoint"
    found = table(read(build_report(run).read_text()), *where)
    assert "published" not in found["kinds"]


def test_geometry_shows_both_fits_and_the_published_one(page, text):
    section = section_text(text, "geometry")
    for name in ("Number of instances", "Size", "Elongation", "Irrectangularity"):
        assert f'<p class="plot-title">{name}</p>' in section
    assert "Elongation by finding" in section
    found = table(page, "geometry", "Overlap (IoU): slope on size and shape")
    rows = {row[0] + kind: row for row, kind in zip(found["rows"], found["kinds"], strict=True)}
    assert rows["Grad-CAM"][1] == "−0.111|−0.311 to +0.089|not higher, p < 0.001"
    assert rows["Grad-CAM"][2] == "−0.056**|−0.311 to +0.089"
    assert rows["Grad-CAMpublished"][4] == "+0.566***|+0.526 to +0.606"
    found = table(page, "geometry", "Hit rate: slope on size and shape")
    assert found["rows"][-1][2].startswith("−0.244^1")
    assert "−0.051 (−0.346 to 0.244)" in section
    found = table(page, "geometry", "Overlap (IoU), readers minus method: slope on size and shape")
    assert found["rows"][-1][2].startswith("−0.072^")
    assert "is not shown to change with" in section


def test_confidence_shows_slopes_and_ranks_beside_the_published(page):
    where = "confidence", "Overlap (IoU) of Grad-CAM on the model’s probability"
    assert cell(page, where, "Slope, recommended", "Edema") == "+0.350|+0.100 to +0.600|✓ clearly higher, p = 0.030"
    assert cell(page, where, "Slope, paper’s rules, all images", "Edema") == "+0.750**|+0.100 to +0.600"
    assert cell(page, where, "Spearman, paper’s rules, all images", "Edema").startswith("+0.250")
    assert cell(page, where, "Slope", "Edema", published=True) == "+0.642***|+0.459 to +0.826"
    assert cell(page, where, "Spearman", "All findings", published=True).startswith("+0.285***^1")
    where = "confidence", "Hit rate of Grad-CAM on the model’s probability"
    assert cell(page, where, "Slope", "All findings", published=True) == "−0.411***"


def probability_slopes(*changes):
    """The slopes on the probability of each finding, changed in turn."""
    made = [replace(row, **change) for finding, change in zip(FINDINGS, changes, strict=False)
            for row in full_rows() if row.finding == finding and row.method == "grad_cam" and row.statistic == "slope"
            and row.metric == "hit" and row.condition == condition(feature="probability")]  # fmt: skip
    return [*made, mean("iou", ALL_FINDINGS, "grad_cam", 0.3)]


def test_a_slope_is_said_to_be_there_by_its_interval_and_its_size(evidence_from):
    changes = {}, {"low": -0.1}, {"size": 0.5}, {"low": -0.02, "high": 0.05, "value": 0.01}
    rows = [replace(row, model="densenet121") for row in probability_slopes(*changes)]
    detail = next(block for block in confidence(evidence_from(rows)).blocks if block.kind == "fold")
    matrix = next(block.matrix for block in detail.blocks if block.kind == "table")
    ((_, (fit,)),) = matrix.groups[:1]
    outcomes = [one.outcome.partition(",")[0] for one in fit.cells[1:5]]  # before p, or what is not shown
    assert outcomes == [
        "✓ clearly higher",
        "not shown to be higher",
        "higher",
        "no difference that matters",
    ]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (({}, {"low": -0.2}), "clearly rises with the model’s probability on 1 of 2 findings"),
        (({"low": -0.2},) * 2, "is not shown to change with the model’s probability on any finding"),
        (
            ({"value": -0.3, "low": -0.6, "high": -0.1},) * 2,
            "clearly falls with the model’s probability on 2 of 2 findings",
        ),
    ],
)
def test_what_confidence_does_is_said_in_words(evidence_from, changes, told):
    rows = [replace(row, model="densenet121") for row in probability_slopes(*changes)]
    assert sentences_of(confidence(evidence_from(rows))) == (f"Grad-CAM: its hit rate {told}.",)


def test_a_floor_that_rises_with_confidence_is_named(evidence_from):
    rows = [replace(row, model="densenet121") for row in probability_slopes({})]
    floor = replace(rows[0], method="random", finding=ALL_FINDINGS)
    said = sentences_of(confidence(evidence_from([*rows, floor])))
    assert said[1].startswith("Over all findings, the hit rate of Random map clearly rises too")
    assert len(sentences_of(confidence(evidence_from([*rows, replace(floor, low=-0.1)])))) == 1


@pytest.mark.parametrize(("methods", "told"), [(7, "the other method<"), (8, "the other 2 methods<")])
def test_methods_beyond_the_first_six_are_counted(made_run, methods, told):
    assert told in build_report(made_run(methods=methods, gallery=0)).read_text()


def test_presets_are_set_side_by_side_with_reasons_and_switches(full, page, text):
    section = section_text(text, "presets")
    evidence = evidence_of(read_run(full))
    ours = evidence.value("mean", "hit", ALL_FINDINGS, HUMAN)
    largest = page.tables[[t["section"] for t in page.tables].index("presets")]["rows"][1]
    assert largest[:3] == ["Human readers", "All findings", "Hit rate"]
    assert largest[3].startswith(f"{100 * ours:.1f} %")
    assert largest[4] == "37.0 % (33.0–41.0)"
    assert largest[5] == f"−{100 * (ours - 0.37):.1f} pp"
    assert "follow the preset “recommended”" in section
    assert "asked for" not in section_text(text, "presets").split("<table")[0]
    switches = [row for t in page.tables if t["section"] == "presets" for row in t["rows"] if len(row) == 4]
    assert ["resampled", "patients", "images", "Images of a patient are alike."] in switches
    assert ["Several pixels share the highest value", "they share the hit", "the first counts",
            "The first maximum favours the top left."] in switches  # fmt: skip
    assert "rewards a method for failing" in html.unescape(section)
    placed = html.unescape(section).replace("\u202f", " ").replace("\xa0", " ")
    assert "Grad-CAM: mean overlap +0.060 (0.040–0.080), clearly higher; mean hit rate −2.0 pp" in placed
    assert "3.0 pp), no difference that matters." in placed
    where = "presets", "Overlap (IoU) by the paper’s rules: decrease from the readers"
    assert cell(page, where, "Grad-CAM", "All findings").startswith("20.0 %|")


def test_counts_stand_beside_the_published_test_set(page):
    where = "counts", "What was counted"
    assert cell(page, where, "Images with an outline", "Edema") == "85"
    assert cell(page, where, "Images with the finding", "Edema", published=True) == "83"
    assert cell(page, where, "Images", "All findings", published=True) == "668"
    assert cell(page, where, "Studies (examinations)", "All findings") == "500"
    assert cell(page, where, "Studies", "All findings", published=True) == "500"


def test_calibration_is_shown_before_and_after_scaling(page, text):
    where = "model", "Calibration error before and after"
    assert cell(page, where, "ECE before", "Edema").startswith("0.060|")
    assert cell(page, where, "ECE after", "Edema") == "0.026"
    assert cell(page, where, "Temperature", "Edema") == "2.00"
    assert cell(page, where, "ECE after", "All findings") == "0.021^1"
    assert cell(page, where, "Temperature", "Pneumothorax") == "–^2"
    assert "<li>over 9 of 10 findings</li>" in section_text(text, "model")
    assert "<li>every logit is on the right side</li>" in section_text(text, "model")
    where = "model", "IoU, all cases, before and after scaling"
    assert cell(page, where, "cutoff 0.3, before", "Edema").startswith("0.316|")
    assert cell(page, where, "cutoff 0.3, after", "Edema").startswith("0.327|")
    assert cell(page, where, "cutoff 0.5, after", "Edema").startswith("0.286|")
    section = section_text(text, "model")
    assert "A cutoff of 0.5 cannot change anything either" in section
    assert "fitted on the validation data" in section
    assert section.count("point after") == 11 * 10 + 1  # the bins, and the legend
    assert section.count("point method soft") == 11 * 10 + 1


def test_gallery_draws_the_rectangle_as_a_layer_of_its_own(text):
    section = section_text(text, "pictures")
    assert section.count('<path class="rectangle"') == 6 * 6  # on every film of each case
    assert 'data-layer="rectangle"' in section
    assert "Chosen for: elongated" in section


@pytest.mark.parametrize(
    ("gone", "absent"),
    [
        (lambda row: "tuned" in row.condition + row.statistic or row.statistic.endswith("_curve"), "thresholds"),
        (lambda row: row.statistic in {"slope", "spearman"} and "probability" in row.condition, "confidence"),
        (lambda row: row.statistic == "count", "counts"),
    ],
)  # fmt: skip
def test_a_section_without_rows_is_left_out(tmp_path, gone, absent):
    page = read(build_report(write_full_run(tmp_path / "run", keep=lambda row: not gone(row))).read_text())
    assert absent not in page.sections
    assert set(NEW) - {absent} <= set(page.sections)


def test_one_model_without_readers_or_validation_still_gets_its_page(tmp_path):
    def keep(row):
        return row.model == PRIMARY and HUMAN not in {row.method, row.other_method} and row.statistic != "selected"

    changes = {"models": None, "validation": None, "switches": None, "truth_kind": None}
    text = build_report(write_full_run(tmp_path / "run", keep=keep, changes=changes)).read_text()
    page = read(text)
    assert "architectures" not in page.sections
    assert ">Model: " not in text
    assert "No human readers were given" in text
    assert "against the human readers</summary>" not in section_text(text, "thresholds")
    assert "readers minus method" not in text


def test_figures_published_of_other_data_are_not_shown(tmp_path):
    other = {"source": {"name": "folder", "description": "Our hospital"}}
    text = build_report(write_full_run(tmp_path / "run", changes=other)).read_text()
    assert "published-mark" not in text.split("</style>")[1]
    assert "Saporta" not in text.split("<section")[2]
    assert not [kind for found in read(text).tables for kind in found["kinds"] if kind == "published"]


def test_published_figures_beside_maps_from_files_may_be_of_the_same_data(tmp_path):
    files = {"source": {"name": "maps", "description": "Maps and marks on 12 images, from files"}}
    text = build_report(write_full_run(tmp_path / "run", changes=files)).read_text()
    assert "They may come from other images, patients and another model than these maps" in text
    assert "They come from other images" not in text


def test_findings_and_methods_of_our_own_get_no_published_rows(tmp_path):
    names = tuple(f"Finding {i}" for i in range(10))
    text = build_report(write_run(tmp_path / "run", Plan(findings=names))).read_text()
    assert "Saporta" not in text


def test_a_mean_over_other_findings_is_not_compared_with_the_published_mean(tmp_path):
    page = read(build_report(write_run(tmp_path / "run", Plan(findings=FINDINGS[:6]))).read_text())
    where = "findings", "Overlap (IoU)"
    assert cell(page, where, "Grad-CAM", "All findings", published=True) == "–"
    assert cell(page, where, "Grad-CAM", "Edema", published=True) == "0.362"


def test_hostile_words_in_models_and_switches_stay_text(tmp_path):
    model = {"name": PRIMARY, "label": HOSTILE, "description": HOSTILE, "kind": "ensemble", "primary": True}
    switch = {"name": HOSTILE, "used": HOSTILE, "chexlocalize": HOSTILE, "why": HOSTILE}
    changes = {"models": [model, {"name": "resnet152"}, {"name": "densenet121"}], "switches": [switch],
               "validation": {"name": HOSTILE, "n_cases": 3}}  # fmt: skip
    text = build_report(write_full_run(tmp_path / "run", changes=changes)).read_text()
    assert HOSTILE not in text
    assert html.escape(HOSTILE).replace("&quot;", "&#34;") in section_text(text, "architectures")


def test_no_number_on_the_page_is_nan(text):
    assert not re.search(r">[^<]*\bnan\b", text)


def test_page_stays_small(text):
    assert len(text) < 2_500_000


def test_a_run_without_a_table_of_shapes_is_read(full, tmp_path):
    facts = json.loads((full / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(facts))
    assert read_run(tmp_path).shapes.empty
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "00000.parquet").write_bytes((full / "scores.parquet").read_bytes())
    assert read_run(tmp_path).shapes.empty


def test_a_run_by_the_papers_rules_says_which_numbers_follow_them(tmp_path):
    text = build_report(write_full_run(tmp_path / "run", changes={"preset": "chexlocalize"})).read_text()
    assert "while the verdict follows the recommended rules" in text
    assert "This run was asked for the preset “chexlocalize”" in section_text(text, "presets")
    assert re.search(r"<details open>\s*<summary>Every mean by the paper", text)


def warning(metric, method, value, half, call="positive", statistic="warning"):
    return Estimate(statistic, metric, ALL_FINDINGS, method, "densenet121", value, value - half, value + half,
                    size=0.1, condition=condition(call=call), family="warnings")  # fmt: skip


def said_of_wrong_answers(evidence_from, *rows):
    point = Estimate("operating_point", "probability", "Edema", "", "densenet121", 0.4,
                     condition=condition(fitted_on="run"))  # fmt: skip
    return wrong_answers(evidence_from([mean("iou", ALL_FINDINGS, "grad_cam", 0.3), point, *rows]))


def test_what_warns_of_a_wrong_answer_is_said_with_the_probability_as_reference(evidence_from):
    content = said_of_wrong_answers(
        evidence_from,
        warning("probability", "", 0.25, 0.1),
        warning("agreement", "grad_cam", 0.2, 0.1),
        warning("concentration", "grad_cam", -0.2, 0.1),
        warning("agreement", "grad_cam", -0.05, 0.1, statistic="beyond_probability"),
        replace(warning("probability", "", math.nan, 0.1, "negative"), reason="too few"),
    )
    assert list(sentences_of(content)) == [
        "That a yes is wrong: the model’s own probability clearly warns (AUROC 0.75).",
        (
            "That a yes is wrong: of the maps, low agreement (Grad-CAM) clearly warns; of the maps, high concentration "
            "(Grad-CAM) clearly warns; none is shown to warn better than the probability does."
        ),
        "Whether anything warns that a no is wrong cannot be said: too few.",
    ]
    (_, rows) = next(block.matrix for block in content.blocks if block.kind == "table").groups[0]
    assert [row.cells[0].text for row in rows] == ["0.750", "0.700", "0.300"]
    assert rows[1].cells[0].outcome.startswith("✓ clearly higher")


def test_where_nothing_was_missed_the_footnote_says_so(evidence_from):
    found = replace(mean("iou", ALL_FINDINGS, "grad_cam", 0.3), condition=condition(call="true positive"))
    answers = [
        Estimate("count", "answers", "Edema", "", "densenet121", number, condition=condition(call=call))
        for call, number in (("true positive", 9.0), ("false negative", 0.0))
    ]
    content = said_of_wrong_answers(evidence_from, found, *answers)
    matrix = next(block.matrix for block in content.blocks if block.kind == "table")
    assert list(matrix.notes) == ["no finding was missed"]
    assert [cell.text for cell in matrix.groups[0][1][0].cells] == ["0.300", "–", "–"]


def test_a_feature_that_is_not_shown_to_warn_claims_nothing(evidence_from):
    content = said_of_wrong_answers(evidence_from, warning("probability", "", 0.05, 0.1), warning(
        "agreement", "grad_cam", 0.05, 0.2))  # fmt: skip
    assert list(sentences_of(content)[:2]) == [
        "That a yes is wrong: the model’s own probability is not shown to warn (AUROC 0.55).",
        "That a yes is wrong: no feature of the maps (1 tried) is shown to warn better than chance.",
    ]
