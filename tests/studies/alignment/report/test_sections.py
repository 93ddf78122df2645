"""The sections of the alignment study's page, each by what it must say."""

import html
import math
import re
from dataclasses import replace
from typing import get_args

import pytest
from tests.report.page_reading import cell, read, section_text, table
from tests.studies.alignment.report.made_estimates import PAIRS, all_estimates
from tests.studies.alignment.report.material import AlignmentPlan, model_facts

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import condition
from heatcheck.running.reporting import build_report
from heatcheck.studies.alignment.blame.readings import Before, Under
from heatcheck.studies.alignment.report.facts import pipelines
from heatcheck.studies.alignment.report.readings import blames
from heatcheck.studies.alignment.report.scores import image_scores
from heatcheck.studies.alignment.report.sections import scatter as alignment_scatter
from heatcheck.studies.alignment.report.sections.blame_labels import BEFORE, UNDER

DENSENET, VIT = "DenseNet (random_1_channel)", "ViT (radimagenet)"
R = ("robustness", "Aligned minus misaligned (R)")
NUMBERS = ("blame", "Map scores on the common scale, and reliance")


def words(text, anchor):
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", section_text(text, anchor))))


def one_blame(text, heading):
    """The markup of the first blame row with this heading."""
    return next(part for part in text.split("<article")[1:] if f"<h4>{heading}</h4>" in part).split("</article>")[0]


def heads(page, where):
    return table(page, *where)["rows"][0]


def test_blame_row_says_both_readings_and_the_run_s_own_sentence(alignment_text):
    row = one_blame(alignment_text(), "Gradient · Atelectasis")
    assert "Before fine-tuning: the method’s fault" in row
    assert "Under fine-tuning: the map follows the model" in row
    assert "The model relies on the region, but the map does not show it: the method’s fault." in row


def test_blame_strips_tell_every_number_with_its_interval(alignment_text):
    row = one_blame(alignment_text(), "Gradient · Atelectasis")
    # (0.24 + 0.01 − 0.10) / 0.90, and so on, each ± 0.03
    score = (
        "base 0.17 (0.14–0.20); control 0.18 (0.15–0.21); aligned 0.59 (0.56–0.62); misaligned −0.04 (−0.07 to −0.01)"
    )
    reliance = "base 0.90 (0.75–1.05); control 0.91 (0.76–1.06); aligned 1.50 (1.35–1.65); misaligned 0.40 (0.25–0.55)"
    assert score in row
    assert reliance in row
    assert ("random map" in row, "the mask" in row, "full separation" in row) == (True, True, True)


def test_axis_of_a_strip_makes_room_for_scores_below_a_random_map(alignment_text):
    row = one_blame(alignment_text(), "Gradient · Atelectasis")
    start, end = (float(x) for x in re.findall(r'<line x1="([\d.]+)" [^>]*class="end-mark"', row)[:2])
    mark = float(re.search(r'<path d="M([\d.]+) [^"]*" class="point arm-misalign"', row)[1])
    assert 74 < mark < start < end


def test_blame_has_one_row_a_model_method_and_finding_and_counts_them(alignment_text):
    text = alignment_text()
    assert section_text(text, "blame").count('<article class="blame">') == 8
    page, where = read(text), ("blame", "How many findings have which reading")
    assert table(page, *where)["rows"][1][0] == "All"
    assert table(page, *where)["rows"][1][1:] == ["2", "2", "2", "2", "4", "2", "2"]
    assert cell(page, where, "Integrated gradients", "The method is foolable") == "2"
    assert cell(page, where, VIT, "The model’s fault") == "2"
    assert cell(page, where, DENSENET, "The model’s fault") == "0"


def test_pictures_made_without_the_model_are_counted_apart(alignment_run):
    rows = all_estimates(AlignmentPlan())
    own = [row for row in rows if row.statistic == "blame" and row.method == "gradient"]
    extra = [replace(row, method="random", condition=condition(before="shows", under="unmoved")) for row in own]
    page = read(build_report(alignment_run(rows=rows + extra, judged=("random",), gallery=0)).read_text())
    counts = table(page, "blame", "How many findings have which reading")["rows"]
    assert counts[1] == ["All", "2", "2", "2", "2", "0", "4", "2", "2"]  # as without them
    names = [row[0] for row in counts]
    assert names[-2:] == ["Maps made without the model: a check of the rule, not counted above", "Random"]
    assert counts[-1][1:] == ["0", "0", "0", "0", "4", "0", "0", "4"]
    assert counts[0][5] == "The check fails|before fine-tuning"
    densenet = counts[names.index(DENSENET)][1:]
    assert sum(map(int, densenet)) == 2 * 4  # four rows, each read before and under fine-tuning


def test_map_made_without_the_model_is_a_check_of_the_rule_and_no_fault_of_a_method(alignment_run):
    rows = all_estimates(AlignmentPlan())
    own = [row for row in rows if row.statistic == "blame" and row.method == "gradient"]
    extra = [replace(row, method="random", condition=condition(before="method", under="unmoved")) for row in own]
    text = build_report(alignment_run(rows=rows + extra, judged=("random",), gallery=0)).read_text()
    row = one_blame(text, "Random · Atelectasis")
    assert "</span> Before fine-tuning: the check passes</b>" in row
    assert "method’s fault</b>" not in row
    assert "nothing here is a method’s fault" in words(text, "blame")


def test_words_of_the_readings_have_their_sizes_above_the_rows(alignment_text):
    before_rows = section_text(alignment_text(), "blame").split('<article class="blame">')[0]
    assert "What matters is 25\u00a0% of the full separation (reliance), or 10\u00a0% of the room" in before_rows
    assert "changed “by less than matters”: it lies within that size on either side of 0" in before_rows


def test_blame_numbers_stand_in_their_columns(alignment_text):
    page = read(alignment_text())
    named = heads(page, NUMBERS)
    assert named == [
        "Finding", "Random map|raw, = 0", "Base|0 to 1", "Control|0 to 1", "Aligned|0 to 1", "Misaligned|0 to 1",
        "Mask|raw, = 1", "Base|reliance", "Control|reliance", "Aligned|reliance", "Misaligned|reliance",
    ]  # fmt: skip
    first = table(page, *NUMBERS)["rows"][2]
    assert first[0] == "Atelectasis"
    assert [each.split("|")[0] for each in first[1:]] == [
        "0.10", "0.17", "0.18", "0.59", "−0.04", "1.00", "0.90", "0.91", "1.50", "0.40",
    ]  # fmt: skip
    floors = table(page, "blame", "Maps made without the model")["rows"]
    assert floors[0] == ["Finding", "Random map", "Centre", "Edges", "Usual place"]
    assert [each.split("|")[0] for each in floors[1]] == ["Atelectasis", "0.10", "0.13", "0.11", "0.19"]
    controls = table(page, "blame", "Reliance of the base models, and its controls")["rows"]
    assert [each.split("|")[0] for each in controls[2]] == ["Atelectasis", "0.90", "0.05", "0.70", "0.12"]
    for name in controls[0][2:]:
        assert f"“{name}”: " in words(alignment_text(), "blame")


def test_blame_with_readers_names_them_as_the_upper_end(alignment_text):
    text = alignment_text("readers")
    assert "1 is the human readers’ masks" in words(text, "blame")
    assert table(read(text), *NUMBERS)["rows"][2][6].startswith("0.70|")
    assert "No second reader" not in text
    assert "No second reader" in alignment_text()


def test_undefined_score_is_a_dash_with_its_reason_and_is_not_drawn(alignment_run):
    rows = [replace(row, value=math.nan, low=math.nan, high=math.nan, reason="human is not above the <floor>")
            if row.statistic == "scaled" and "align" in row.condition else row
            for row in all_estimates(AlignmentPlan())]  # fmt: skip
    text = build_report(alignment_run(rows=rows, gallery=0)).read_text()
    assert table(read(text), *NUMBERS)["rows"][2][4] == "–^1"
    assert "<li>human is not above the &lt;floor&gt;</li>" in section_text(text, "blame")
    assert "aligned undefined: human is not above the &lt;floor&gt;" in one_blame(text, "Gradient · Atelectasis")


def test_row_of_an_unknown_reading_is_undecided(alignment_evidence):
    rows = [replace(row, condition='{"before":"sideways"}') if row.statistic == "blame" else row
            for row in all_estimates(AlignmentPlan())]  # fmt: skip
    assert {(row.before, row.under) for row in blames(alignment_evidence(rows=rows))} == {("undecided", "undecided")}


def test_every_reading_of_the_study_has_words():
    assert set(BEFORE) == set(get_args(Before))
    assert set(UNDER) == set(get_args(Under))


def test_the_best_floor_is_a_mark_of_the_scale_and_all_findings_are_read_together(alignment_run):
    plan = AlignmentPlan()
    pooled = replace(next(row for row in all_estimates(plan) if row.statistic == "blame"), finding=ALL_FINDINGS)
    pooled = replace(pooled, reason="Read over all findings.", condition='{"before":"usual","under":"undecided"}')
    text = build_report(alignment_run(rows=[*all_estimates(plan), pooled], gallery=0)).read_text()
    row = one_blame(text, "Gradient · Atelectasis")
    assert "random map" in row
    assert ">usual place<" in row
    assert "no better than the usual place. Read over all findings." in words(text, "blame")


def test_intervals_are_told_in_the_same_words_wherever_they_are_shown(alignment_text):
    words_of_all = (
        "The intervals of a base network allow for other patients; those under fine-tuning also allow for other "
        "trainings from the same base."
    )
    for anchor in ("blame", "robustness", "prediction", "overview"):
        assert words_of_all in words(alignment_text(), anchor)
        once = words(alignment_text("one seed"), anchor)
        assert words_of_all not in once
        assert "All intervals allow for other patients, but not for another training of the networks." in once


def test_judged_method_has_a_row_of_its_own_from_the_networks_of_another(alignment_run):
    plan = AlignmentPlan(judged=("random",))
    extra = []
    for row in all_estimates(plan):
        if row.method == "gradient" and row.statistic in {"scaled", "blame"}:
            through = ',"through":"gradient"}' if "align" in row.condition else "}"
            extra.append(replace(row, method="random", condition=row.condition.replace("}", through)))
    text = build_report(alignment_run(rows=all_estimates(plan) + extra, judged=("random",), gallery=0)).read_text()
    row = one_blame(text, "Random · Atelectasis")
    assert "aligned 0.59" in row
    assert "aligned 1.50" in row
    assert "Random" not in [cells[0] for cells in table(read(text), *R)["rows"]]
    assert "Random cannot be trained through" in words(text, "overview")


def test_robustness_tells_distance_auroc_and_what_was_published(alignment_text):
    page = read(alignment_text())
    assert cell(page, R, "Gradient", "Mass") == "0.560|0.530–0.590"
    assert cell(page, R, "Gradient", "Mass, all images") == "0.561|0.531–0.591"
    assert cell(page, R, "Integrated gradients", "Rank", nth=1) == "0.040|0.010–0.070"
    assert cell(page, R, "Gradient", "AUROC") == "0.790|0.760–0.820"
    printed = "DenseNet-201, not pretrained · Gradient"
    assert cell(page, R, printed, "Mass, all images", published=True) == "0.049"
    assert cell(page, R, printed, "Rank, all images", published=True) == "0.058"
    assert cell(page, R, printed, "Mass", published=True) == "–"
    assert cell(page, R, "ViT-base, pretrained · Integrated gradients", "Mass, all images", published=True) == "0.098"


def test_published_networks_that_lost_their_prediction_and_swin_have_footnotes(alignment_run):
    models = ("densenet201/random", "swin_tiny/radimagenet")
    text = build_report(alignment_run(models=models, gallery=0)).read_text()
    row = next(
        cells for cells in table(read(text), *R)["rows"] if cells[0].startswith("DenseNet-201, not pretrained · I")
    )
    assert row[-1] == "0.605^1"
    assert "AUROC below 0.65" in words(text, "robustness")
    assert "the weights its authors released are of Swin-tiny" in words(text, "robustness")
    assert "Rows marked “published” are copied from Baniecki et al. 2023" in words(text, "robustness")


def test_nothing_is_called_published_where_nothing_matches(alignment_text):
    text = alignment_text("one pair")
    assert "Rows marked" not in section_text(text, "robustness")
    assert "published-mark" not in section_text(text, "robustness")


def test_robustness_stands_by_finding(alignment_text):
    page, where = read(alignment_text()), ("robustness", "R by finding: Mass")
    assert heads(page, where)[1:] == ["All findings", "Atelectasis", "Edema"]
    assert cell(page, where, "Gradient", "Edema") == "0.580|0.550–0.610"
    assert cell(page, where, "Gradient", "Edema", nth=1) == "0.470|0.440–0.500"


def test_scores_of_images_are_read_by_arm_without_those_learned_from(alignment_evidence):
    evidence = alignment_evidence()
    own = image_scores(evidence).rows_of(pipelines(evidence)[0])
    assert len(own) == 48  # two findings of 24 images, seeds averaged
    assert own["mass_align"].mean() == pytest.approx(0.62, abs=0.02)
    assert own["mass_misalign"].mean() == pytest.approx(0.06, abs=0.02)
    assert own["rank_control"].mean() == pytest.approx(0.27, abs=0.02)


def test_pair_is_left_out_of_both_ends_where_one_network_failed(alignment_evidence):
    cell_of_seed_1 = ("densenet201/random", "gradient", "Edema", "misalign", 1)
    both = (cell_of_seed_1, ("densenet201/random", "gradient", "Edema", "misalign", 2))
    evidence = alignment_evidence(failed=both)
    own = image_scores(evidence).rows_of(pipelines(evidence)[0])
    edema = own[own["finding"] == "Edema"]
    assert edema["mass_align"].isna().all()
    assert edema["mass_control"].notna().all()
    assert own[own["finding"] == "Atelectasis"]["mass_align"].notna().all()


def test_densities_are_drawn_for_every_pair_and_speak_of_all_three_networks(alignment_text):
    section = section_text(alignment_text(), "images")
    assert section.count("Density of mass of ") == section.count("Density of rank of ") == 4
    assert re.search(
        r"control: median 0\.2\d\d, .*?; aligned: median 0\.6\d\d, .*?; misaligned: median 0\.0\d\d", section
    )
    assert re.search(r"What mass means", section)


def test_scatter_shows_every_image_once_and_names_the_findings(alignment_text):
    section = section_text(alignment_text(), "images")
    assert "Every point is one image and finding (192 points)." in section
    drawn = [path for path in re.findall(r'd="((?:M[-0-9.]+ [-0-9.]+h0)+)"', section) if path.count("M") > 1]
    assert sum(path.count("M") for path in drawn) == 192
    assert re.search(r"</svg>Atelectasis</li>\s*<li>", section)


def test_scatter_is_thinned_the_same_way_every_time_and_says_so(alignment_run, monkeypatch):
    monkeypatch.setattr(alignment_scatter, "MOST", 50)
    folder = alignment_run(gallery=0)
    first = section_text(build_report(folder).read_text(), "images")
    assert "50 of 192 points, drawn at random, are shown" in first
    assert sum(path.count("M") for path in re.findall(r'd="((?:M[-0-9.]+ [-0-9.]+h0)+)"', first)) == 50 + 2  # legend
    assert section_text(build_report(folder).read_text(), "images") == first


def test_more_findings_than_colours_get_another_shape(alignment_run):
    names = tuple(f"finding {i}" for i in range(8))
    section = section_text(build_report(alignment_run(findings=names, gallery=0)).read_text(), "images")
    assert 'class="dots family5"' in section
    assert 'class="dots family1 squared"' in section


@pytest.mark.parametrize(("metric", "ours", "theirs"), [("Mass", "+0.400", "+0.024"), ("Rank", "+0.400", "+0.021")])
def test_regressions_stand_beside_the_published_ones_with_both_kinds_of_errors(alignment_text, metric, ours, theirs):
    rows = table(read(alignment_text()), "factors", f"Coefficients of {metric.lower()}, aligned minus misaligned")[
        "rows"
    ]
    assert rows[0][1:] == [
        "This run|classical errors",
        "This run|tested over networks",
        "Published|Baniecki et al. 2023",
    ]
    assert rows[1][0] == "Intercept"
    assert rows[1][1] == f"{ours}|0.380–0.420; SE 0.0100|p = 0.004"
    assert rows[1][2] == f"{ours}|0.350–0.450; SE 0.0250|p = 0.004"
    assert rows[1][3].startswith(f"{theirs}|SE 0.00")
    assert [row[0] for row in rows[2:]] == ["Pretrained", "Architecture: ViT", "Method: Integrated gradients"]


def test_factor_with_one_level_is_a_dash_with_its_reason(alignment_text):
    text = alignment_text("one pair")
    row = table(read(text), "factors", "Coefficients of mass, aligned minus misaligned")["rows"][3]
    assert row[:3] == ["Architecture: ViT", "–^1", "–^1"]
    assert "every network has the same architecture" in section_text(text, "factors")


def test_correlations_stand_beside_the_published_ones(alignment_text):
    rows = table(read(alignment_text()), "factors", "Correlation between scores of the same image")["rows"]
    assert len(rows) == 1 + len(PAIRS)
    assert rows[1][0] == "mass, aligned and rank, aligned"
    assert [each.split("|")[0] for each in rows[1][1:]] == ["0.900", "0.887", "0.890", "0.920"]
    assert [each.split("|")[0] for each in rows[6][1:]] == ["0.400", "0.606", "0.390", "0.654"]


def test_prediction_of_every_network_is_told_once(alignment_text):
    page, where = read(alignment_text()), ("prediction", "Prediction before and after fine-tuning")
    assert cell(page, where, "Base", "AUROC") == "0.800|0.770–0.830"
    assert cell(page, where, "Base", "AUROC", nth=1) == "0.750|0.720–0.780"
    assert cell(page, where, "Gradient, misaligned", "AUROC") == "0.770|0.740–0.800"
    assert cell(page, where, "Gradient, aligned", "Mutual information") == "0.158|0.128–0.188"
    assert heads(page, ("prediction", "AUROC by finding"))[1:] == [
        "All findings", "Atelectasis|80 positive", "Edema|81 positive",
    ]  # fmt: skip


def test_run_with_one_finding_does_not_speak_of_all_findings(alignment_run):
    plan = {"findings": ("Edema",), "source": "phantom_chest", "gallery": 0}
    text = build_report(alignment_run(**plan)).read_text()
    for anchor in ("robustness", "prediction", "blame"):
        assert "all findings" not in words(text, anchor).lower()
    assert "AUROC of Edema: base 0.75–0.80" in words(text, "prediction")
    assert "R by finding" not in words(text, "robustness")
    assert "all images" not in words(text, "robustness")


def test_perfect_auroc_is_explained_where_there_is_one(alignment_run, alignment_text):
    rows = [replace(row, value=1.0, high=1.0) if row.statistic == "auroc" else row
            for row in all_estimates(AlignmentPlan())]  # fmt: skip
    text = build_report(alignment_run(rows=rows, gallery=0)).read_text()
    for anchor in ("robustness", "prediction"):
        assert "An AUROC of 1.000 says that on these images" in words(text, anchor)
        assert "An AUROC of 1.000" not in words(alignment_text(), anchor)


def test_initialisations_stand_beside_the_published_ones(alignment_text):
    page, where = read(alignment_text()), ("prediction", "AUROC of the base models, by initialisation")
    assert cell(page, where, "random, 1 channel", "densenet201") == "0.800|0.770–0.830"
    assert cell(page, where, "random, 1 channel", "vit_base_16") == "–"
    assert cell(page, where, "random, 1 channel", "densenet201", published=True) == "0.729"
    assert cell(page, where, "ImageNet-21k", "vit_base_16", published=True) == "0.738"


def test_models_whose_first_weights_are_unknown_are_not_compared_by_them(alignment_run):
    models = [{**model_facts(name), "initialisation": "given", "pretrained": False} for name in AlignmentPlan().models]
    folder = alignment_run(facts={"models": models}, source="phantom_chest", gallery=0)
    assert "by initialisation" not in section_text(build_report(folder).read_text(), "prediction")


def test_counts_stand_beside_the_published_ones_only_on_the_same_data(alignment_text):
    row = table(read(alignment_text()), "prediction", "Images by finding")["rows"][1]
    assert row == ["Atelectasis", "100", "50", "70", "80", "154", "178", "490", "80", "154"]
    other = table(read(alignment_text("phantom")), "prediction", "Images by finding")["rows"]
    assert other[1] == ["nodule", "100", "50", "70", "80", "154"]


def test_example_of_grad_cam_stands_beside_the_published_one(alignment_text):
    page = read(alignment_text("one pair"))
    where = ("example", "DenseNet (given) · Grad-CAM")
    assert cell(page, where, "aligned (in-mask)", "Hit rate").startswith("78.0")
    assert cell(page, where, "aligned (in-mask)", "AUROC").startswith("0.800")
    assert cell(page, where, "Atelectasis, aligned (in-mask)", "Hit rate", published=True) == "58 %"
    assert cell(page, where, "Atelectasis, misaligned (out-mask)", "Overlap (IoU)", published=True) == "0.07"
    assert cell(page, where, "Atelectasis, base", "Mutual information with the label", published=True) == "0.18"
    assert not any("Edema" in row[0] for row in table(page, *where)["rows"])  # which the example has not


def test_run_without_grad_cam_has_no_example(alignment_text):
    assert '<section id="example"' not in alignment_text()


def test_failed_network_and_undefined_scores_are_listed_with_their_reason(alignment_text):
    text = words(alignment_text("failed cell"), "gaps")
    assert "densenet201/random · gradient · misalign · seed 2 · Edema training the loss is not a number" in text
    assert re.search(r"Mass Gradient the loss is not a number after epoch 2 24 \d+", text)
    assert "of DenseNet" not in text  # the scores are those of every model
    assert (
        "Failed cases and networks 1 of 234 cases failed and are in no number above. The training of 1 network" in text
    )


def test_one_seed_is_said_once_and_no_note_is_lost(alignment_run):
    rows = [replace(row, reason="over 1 of 2 findings") if row.statistic == "robustness" else row
            for row in all_estimates(AlignmentPlan(seeds=(1,)))]  # fmt: skip
    text = build_report(alignment_run(rows=rows, seeds=(1,), gallery=0)).read_text()
    assert text.count("with one seed") == 1
    assert "<li>over 1 of 2 findings</li>" in text


def test_example_of_other_findings_is_not_called_published(alignment_run):
    folder = alignment_run(models=("densenet121",), methods=("grad_cam",), findings=("Edema", "nodule"), gallery=0)
    text = section_text(build_report(folder).read_text(), "example")
    assert "Rows marked" not in text
    assert "which this run did not study" in text


def test_published_figures_stand_only_beside_the_paper_s_own_images(alignment_run):
    plan = {"source": "phantom_chest", "gallery": 0}
    text = build_report(alignment_run(models=("densenet201/random",), **plan)).read_text()
    assert "ublished" not in words(text, "factors").replace("as published, treat", "")
    assert "published-mark" not in text.split("</style>")[1]
    for anchor in ("robustness", "prediction"):
        assert "Baniecki" not in section_text(text, anchor)
    example = build_report(alignment_run(models=("densenet121",), methods=("grad_cam",), **plan)).read_text()
    assert "which this run did not study" in words(example, "example")


def test_maps_made_without_the_model_are_folded_in_the_section_on_blame(alignment_run):
    rows = all_estimates(AlignmentPlan())
    extra = [replace(row, method="random") for row in rows if row.statistic == "blame" and row.method == "gradient"]
    section = section_text(build_report(alignment_run(rows=rows + extra, judged=("random",), gallery=0)).read_text(),
                           "blame")  # fmt: skip
    before, folded = section.split("Maps made without the model: a check of the rule", 1)
    assert before.count('<article class="blame">') == 8
    assert "<h4>Random" not in before
    assert folded.split("</details>")[0].count("<h4>Random · ") == 4
