"""Sections of the modality study's page: comparison, swarms, heat, ranks, ratings, needs and cost."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.report.page_reading import cell, read, section_text
from tests.studies.modality.report.block_reading import blocks_of, listed_rows, words_of
from tests.studies.modality.report.changes import changed, with_brightness
from tests.studies.modality.report.made_estimates import LEVELS, MODEL, all_estimates, case_values
from tests.studies.modality.report.material import METHODS, METRICS, ModalityPlan, metric_facts

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import CRITICAL_DIFFERENCE, FRIEDMAN, RANK_PAIR, condition, condition_of
from heatcheck.report.blocks.block import Table, Terms
from heatcheck.report.charts.rank_diagram import lanes_of
from heatcheck.report.charts.swarm import stacked
from heatcheck.report.ranking import ranking_of
from heatcheck.running.reporting import build_report
from heatcheck.studies.modality.report.claims import NOT_LESION
from heatcheck.studies.modality.report.sections.comparison import (
    comparison,
    normalised,
    number_table,
    sorted_by_msfi,
    squares,
)
from heatcheck.studies.modality.report.sections.distributions import case_scores, distributions, swarms
from heatcheck.studies.modality.report.sections.heat import heat, heat_table
from heatcheck.studies.modality.report.sections.overview import overview
from heatcheck.studies.modality.report.sections.ranking import PAPER, ranking_views
from heatcheck.studies.modality.report.sections.ratings import ratings
from heatcheck.studies.modality.report.sections.wrong_answers import sentences, warning_table, wrong_answers
from heatcheck.studies.modality.report.verdict import verdict
from heatcheck.studies.modality.vocabulary import PUBLISHED

SMALL = {"folds": 2, "cases": 20}
LABELS = {name: label for name, (label, _) in METHODS.items()}


def mean_msfi(evidence, name, plan):
    values = [case_values(name, "msfi", plan["cases"], fold) for fold in range(1, plan["folds"] + 1)]
    return float(np.mean(np.concatenate(values)))


def test_methods_stand_in_the_order_of_their_msfi(modality_evidence):
    evidence = modality_evidence(**SMALL)
    names = [method.name for method in sorted_by_msfi(evidence)]
    assert names == sorted(names, key=lambda name: -mean_msfi(evidence, name, SMALL))


def test_order_is_by_the_sum_over_both_importances(modality_evidence):
    def lift(row):
        known = row.statistic == "mean" and row.metric == "msfi" and row.method == "lime" and '"known"' in row.condition
        return replace(row, value=3.0) if known else row

    plan = SMALL | {"known": ("T1C", "FLAIR")}
    rows = [lift(row) for row in all_estimates(ModalityPlan(**plan))]
    assert sorted_by_msfi(modality_evidence(**plan, rows=rows))[0].name == "lime"


def test_square_of_the_best_is_largest_and_of_the_worst_smallest(modality_evidence):
    matrix = squares(modality_evidence(**SMALL))
    assert [row.name for row in matrix.rows][:3] == ["Modality correlation", "MSFI", "Share in the lesion"]
    assert [row.name for row in matrix.rows][-2:] == ["Reader rating", "Speed"]
    for row in matrix.rows:
        places = [square.position for square in row.squares if square.position is not None]
        assert (min(places), max(places)) == (0, 1)
    speed = dict(zip([entrant.name for entrant in matrix.columns], matrix.rows[-1].squares, strict=True))
    assert speed["gradient"].position == 1  # the quickest
    assert speed["feature_permutation"].position == 0


def test_normalised_values_ignore_what_is_undefined():
    assert normalised({"a": 0.2, "b": math.nan, "c": 0.4, "d": 0.3}) == pytest.approx({"a": 0, "c": 1, "d": 0.5})
    assert normalised({"a": 0.7}) == {"a": 1.0}
    assert normalised({"a": math.nan}) == {}


def test_one_map_for_all_has_no_square_for_the_correlation_and_says_why(modality_evidence):
    matrix = squares(modality_evidence(**SMALL))
    found = dict(zip([entrant.name for entrant in matrix.columns], matrix.rows[0].squares, strict=True))
    for name in ("grad_cam", "kernel_shap", "feature_permutation"):
        assert (found[name].position, found[name].text) == (None, "–")
        assert "counts 0 in the ranking" in found[name].title


def test_exact_numbers_and_intervals_are_in_the_page(modality_text):
    page = read(modality_text())
    where = ("comparison", "Every method and metric, mean over cases")
    assert re.fullmatch(r"0\.\d{3}\|[\d.–]+", cell(page, where, "Guided backprop", "MSFI"))
    assert cell(page, where, "Grad-CAM", "Modality correlation").startswith("–^")
    assert re.fullmatch(r"0\.1\d\d\|[\d.–]+", cell(page, where, "Uniform map", "MSFI"))


def test_methods_that_ranks_do_not_tell_apart_from_the_first_have_a_star(modality_evidence):
    def open_test(row):
        return replace(row, p_value=0.4) if row.statistic == FRIEDMAN and row.metric == "delta_aupc" else row

    rows = [open_test(row) for row in all_estimates(ModalityPlan(**SMALL))]
    matrix = squares(modality_evidence(**SMALL, rows=rows))
    by_name = {row.name: row for row in matrix.rows}
    tops = [
        entrant.name for entrant, square in zip(matrix.columns, by_name["MSFI"].squares, strict=True) if square.is_top
    ]
    assert set(tops) == {"guided_grad_cam", "guided_backprop", "deep_lift"}
    assert by_name["Faithfulness (ΔAUPC)"].aside == "ranks may be chance"
    assert not any(square.is_top for square in by_name["Faithfulness (ΔAUPC)"].squares)


def test_the_methods_that_the_paper_would_mark_stand_beside_the_diagram(modality_evidence):
    """The two best mean ranks, and all that differ from neither of them; here the first differs from all others."""

    def first_alone(row):
        of_first = row.statistic == RANK_PAIR and row.metric == "msfi" and first in {row.method, row.other_method}
        return replace(row, p_value=0.001) if of_first else row

    ranking = ranking_of(modality_evidence(**SMALL), "msfi")
    first, second = sorted(ranking.mean_ranks, key=lambda name: ranking.mean_ranks[name])[:2]
    evidence = modality_evidence(**SMALL, rows=[first_alone(row) for row in all_estimates(ModalityPlan(**SMALL))])
    says = ranking_views(evidence)[0].sentences
    assert f"every other method differs from {LABELS[first]} (*)" in says[1]
    names = f"{LABELS[first]} and {LABELS[second]}"
    assert says[2] == f"{PAPER} falls on {names}."
    (row,) = [row for row in squares(evidence).rows if row.name == "MSFI"]
    assert [square.is_top for square in row.squares].count(True) == 1


def test_the_correlation_as_published_stands_among_the_numbers_and_not_among_the_squares(modality_evidence):
    rows = all_estimates(ModalityPlan(**SMALL))
    rows += [replace(row, metric=PUBLISHED, value=0.123, low=0.1, high=0.2) for row in rows
             if row.statistic == "mean" and row.metric == "mi_correlation"]  # fmt: skip
    evidence = modality_evidence(**SMALL, rows=rows, facts={"metrics": list(map(metric_facts, (*METRICS, PUBLISHED)))})
    table = number_table(evidence)
    place = [column.name for column in table.columns].index("Modality correlation, every pair ranked (as published)")
    cells = {row.entrant.name: row.cells[place] for _, rows in table.groups for row in rows}
    assert (cells["gradient"].text, cells["gradient"].interval) == ("0.123", "0.100–0.200")
    assert "one map for all modalities" in cells["grad_cam"].title
    assert not any("as published" in row.name for row in squares(evidence).rows)


def test_a_star_that_would_mark_half_of_the_methods_is_left_out_and_their_number_is_given(modality_evidence):
    def alike(row):
        return replace(row, p_value=0.5) if row.statistic == RANK_PAIR and row.metric == "msfi" else row

    rows = [alike(row) for row in all_estimates(ModalityPlan(**SMALL))]
    evidence = modality_evidence(**SMALL, rows=rows)
    (row,) = [row for row in squares(evidence).rows if row.name == "MSFI"]
    assert not any(square.is_top for square in row.squares)
    assert row.aside == "16 may be first"
    msfi = ranking_views(evidence)[0]
    assert " *" not in msfi.diagram
    assert msfi.sentences[1] == "By Nemenyi\u2019s test (at 5 %), 16 of 16 methods may be the first in mean rank."


def test_swarm_has_a_dot_for_every_case_in_the_colour_of_its_fold(modality_evidence):
    evidence = modality_evidence(**SMALL, methods=("gradient", "grad_cam"))
    correlation, msfi = swarms(evidence)
    assert msfi.plot.count("h0") == 2 * 40
    assert correlation.plot.count("h0") == 40
    for fold in (0, 1):
        (found,) = re.findall(rf'd="([^"]+)" class="dots family{fold}"', correlation.plot)
        assert found.count("h0") == 20
    assert "one map for all modalities" in correlation.plot
    assert "uniform map 0.1" in msfi.plot


def test_swarm_takes_the_primary_weights_only(modality_evidence):
    evidence = modality_evidence(**SMALL, known=("T1C", "FLAIR"))
    scores = case_scores(evidence, "msfi", {"importance": "lesion", "weights": "positive"})
    assert len(scores["gradient"]) == 40
    names = [panel.heading for panel in swarms(evidence)]
    assert names[1:] == ["MSFI, by measured importance of the lesion", "MSFI, by known importance"]


def test_dots_that_would_hide_each_other_are_stacked_to_both_sides():
    found = stacked([(1, 50.0), (2, 50.1), (1, 50.2), (1, 90.0)], 3.0)
    assert sorted(y for _, x, y in found if x < 60) == [-3.0, 0.0, 3.0]
    assert [y for _, x, y in found if x > 60] == [0.0]
    crowd = stacked([(1, 10.0)] * 500, 3.0)
    assert max(y for _, _, y in crowd) - min(y for _, _, y in crowd) < 26


def test_heat_shares_stand_below_the_network_s_own(modality_evidence):
    (title, (own,)), (_, rows) = heat_table(modality_evidence(**SMALL)).groups
    assert title == "The network"
    assert own.cells[0].text == "0\u00a0%"
    shares = {row.entrant.name: [cell.text for cell in row.cells[:4]] for row in rows}
    assert shares["grad_cam"] == ["25\u00a0%"] * 4
    assert heat(modality_evidence(**SMALL)).summary.endswith(
        "; 25\u00a0% with the 3 methods that make one map for all."
    )
    inside = {row.entrant.name: [cell.text for cell in row.cells[4:]] for row in rows}
    assert inside["guided_grad_cam"] == ["33\u00a0%"] * 4


def test_a_first_rank_beside_a_clearly_higher_mean_is_explained(modality_evidence):
    def raised(row):
        mean = (row.statistic, row.metric, row.method) == ("mean", "msfi", "gradient")
        return replace(row, value=0.95, low=0.9, high=0.99) if mean else row

    evidence = modality_evidence(rows=[raised(row) for row in all_estimates(ModalityPlan())])
    said = " ".join(ranking_views(evidence)[0].sentences)
    assert (
        "Gradient has the highest, 0.95: a mean weighs by how much scores differ, a rank only which is higher" in said
    )


def test_ranks_name_the_test_its_tops_and_the_cases_left_out(modality_evidence):
    msfi, *others = ranking_views(modality_evidence(**SMALL))
    assert msfi.sentences[0] == "Friedman\u2019s test that all methods rank alike: χ² = 812.4, p < 0.001."
    assert msfi.sentences[1] == (
        "By Nemenyi\u2019s test (at 5 %), these do not differ from the first in mean rank (*): Guided Grad-CAM, Guided "
        "backprop and DeepLIFT."
    )
    assert msfi.sentences[2] == f"{PAPER} falls on the same methods."
    assert msfi.sentences[3] == "37 patients ranked; 3 cases without all scores left out."
    assert "Guided Grad-CAM *" in msfi.diagram
    assert len(others) == 4


def test_ranks_of_patients_with_several_cases_say_so(modality_evidence):
    rows = [
        replace(row, n_patients=12) if row.statistic == FRIEDMAN else row
        for row in all_estimates(ModalityPlan(**SMALL))
    ]
    told = ranking_views(modality_evidence(**SMALL, rows=rows))[0].sentences[-1]
    assert told == "12 patients ranked by the mean of their 37 cases; 3 cases without all scores left out."


def test_maps_that_say_nothing_are_counted_by_method(modality_evidence):
    assert "count 0: " not in words_of(comparison(modality_evidence(**SMALL)))
    rows = all_estimates(ModalityPlan(**SMALL))
    more = [
        Estimate("empty", metric, ALL_FINDINGS, name, rows[0].model, n, condition=condition(fold="all"), n_cases=40)
        for metric, name, n in (("lesion_share", "gradient", 3.0), ("mi_correlation", "gradient", 5.0),
                                ("mi_correlation", "lime", 1.0))
    ]  # fmt: skip
    evidence = modality_evidence(**SMALL, rows=[*rows, *more])
    assert "count 0: Gradient 5 of 40 and LIME 1 of 40." in words_of(comparison(evidence))
    assert "nor do empty maps" in words_of(distributions(evidence))


def test_gaps_say_that_maps_that_say_nothing_count_0_and_how_many(modality_run):
    rows = all_estimates(ModalityPlan(**SMALL))
    more = [
        Estimate("empty", metric, ALL_FINDINGS, "gradient", rows[0].model, 3.0, condition=condition(fold="all"))
        for metric in ("lesion_share", "mi_correlation")
    ]
    for further, how_many in (([], ""), (more, " (6 of these scores)")):
        text = build_report(modality_run(**SMALL, gallery=0, rows=[*rows, *further])).read_text()
        told = section_text(text, "gaps")
        assert f"count 0 in the means{how_many}; all other undefined scores are left out of them." in told
        assert "never counted as 0" not in told


def test_diagram_joins_methods_of_which_no_two_differ(modality_evidence):
    diagram = ranking_views(modality_evidence(**SMALL))[0].diagram
    first = "may be chance: Guided Grad-CAM *, Guided backprop *, DeepLIFT *"
    assert f"<title>{first}</title>" in diagram
    assert f"{first}, Integrated gradients" not in diagram


def test_bars_of_groups_that_do_not_overlap_share_a_column():
    assert lanes_of([(0, 2), (1, 3), (3, 5), (4, 6)]) == [0, 1, 0, 1]
    assert lanes_of([]) == []


def test_undefined_ranks_say_why(modality_evidence):
    def undefined(row):
        if row.statistic not in {FRIEDMAN, CRITICAL_DIFFERENCE, RANK_PAIR}:
            return row
        return replace(row, value=math.nan, p_value=math.nan, reason="fewer than two complete blocks")

    rows = [undefined(row) for row in all_estimates(ModalityPlan(**SMALL))]
    evidence = modality_evidence(**SMALL, rows=rows)
    assert ranking_views(evidence)[0].sentences == ("The test is undefined: fewer than two complete blocks.",)
    assert ranking_of(evidence, "msfi").best == frozenset()


def test_ratings_show_correlation_agreement_and_comments_without_names(modality_text):
    text = section_text(modality_text(), "ratings")
    assert "2 readers gave 64 ratings" in text
    assert "ρ 0.48 (95 % interval 0.33–0.61, p &lt; 0.001)" in text
    assert "counts every map as independent, p = 0.012 for the same ρ over 32 maps" in text
    assert "α: 0.61 (95 % interval 0.40–0.76)" in text
    assert "“Marks the skull, not the tumour.”" in text
    assert "Reader 1, 20, case BraTS20_Training_001" in text
    assert "&lt;b&gt;useless&lt;/b&gt;" in text
    assert "ρ = 0.53 (p = 0.001)" in text
    assert (
        cell(read(modality_text()), ("ratings", "Mean rating of every method"), "Guided backprop", "Reader rating")
        == "55|43–67"
    )


def test_ratings_without_their_file_or_undefined_keep_their_numbers(modality_run, modality_evidence):
    def undefined(row):
        if row.statistic not in {"alpha", "correlation"}:
            return row
        return replace(row, value=math.nan, low=math.nan, high=math.nan, reason="one reader only")

    rows = [undefined(row) for row in all_estimates(ModalityPlan(**SMALL))]
    evidence = modality_evidence(**SMALL, rows=rows)
    (evidence.run.path / "ratings.csv").unlink()
    section = ratings(evidence)
    assert blocks_of(section.blocks, Terms) == []
    assert "α) is undefined: one reader only." in words_of(section)


def test_needs_of_every_method_are_told(modality_text):
    rows = {row[0]: row[1:] for table in read(modality_text()).tables if table["caption"] == "What each method needs"
            for row in table["rows"]}  # fmt: skip
    assert rows["LIME"] == ["masks", "predictions only", "any model", "slow", "one per modality"]
    assert rows["Grad-CAM"] == ["CAM", "model internals", "neural networks", "fast", "one for all modalities"]
    assert len(rows) == 1 + len(LEVELS) - 2


def test_page_of_many_cases_stays_small(modality_run):
    folder = modality_run(cases=74, gallery=0)
    assert build_report(folder).stat().st_size < 1_500_000


def test_numbers_of_the_page_are_by_the_primary_weights(modality_evidence):
    for weights, factor in (("positive", 1.0), ("min_max", 0.8)):
        primary = {"measure": "balanced", "filled": "zero", "weights": weights, "importance": "lesion"}
        evidence = modality_evidence(**SMALL, facts={"primary": primary})
        row = next(row for row in number_table(evidence).groups[0][1] if row.entrant.name == "gradient")
        assert float(row.cells[1].text) == pytest.approx(factor * mean_msfi(evidence, "gradient", SMALL), abs=6e-4)


def warned(name, value, reach, finding=ALL_FINDINGS, method="", **more):
    return Estimate("warning", name, finding, method, MODEL, value, value - reach, value + reach, size=0.1, **more)


def answers(**counts):
    """The numbers of right and wrong answers, of all and of one class."""
    return [
        Estimate("answers", "answers", finding, "", MODEL, float(number), condition=condition_of({"call": call}))
        for finding, numbers in counts.items()
        for call, number in zip(("right", "wrong"), numbers, strict=True)
    ]


def test_wrong_answers_say_what_clearly_warns_and_what_does_not(modality_evidence):
    counts = {ALL_FINDINGS: (30, 10), "LGG": (10, 6), "HGG": (20, 4)}
    rows = [*all_estimates(ModalityPlan(**SMALL)), *answers(**counts)]
    rows += [warned("probability", 0.3, 0.1), warned("probability", 0.2, 0.15, "LGG")]
    rows += [warned("agreement", 0.2, 0.3, method="gradient"), warned("concentration", -0.02, 0.1, method="gradient")]
    rows.append(Estimate("mean", "msfi", ALL_FINDINGS, "gradient", MODEL, 0.123, 0.1, 0.15,
                         condition=condition_of({"call": "wrong"})))  # fmt: skip
    evidence = modality_evidence(**SMALL, rows=rows)
    assert sentences(evidence) == [
        "10 of 40 answers are wrong: 6 of 16 answers \u201cLGG\u201d and 4 of 24 answers \u201cHGG\u201d.",
        "Of a wrong answer clearly warns a low probability of the answer.",
    ]
    ((_, rows),) = warning_table(evidence).groups
    cells = {row.entrant.label: row.cells for row in rows}
    assert [cell.outcome for cell in cells["A low probability of the answer"][:2]] == ["clearly warns", "clearly warns"]
    assert cells["A low probability of the answer"][0].text == "0.800"
    (agreement,) = [row for label, row in cells.items() if "agreement" in label]
    (diffuse,) = [row for label, row in cells.items() if "hottest tenth" in label]
    assert (agreement[0].outcome, diffuse[0].outcome) == ("not shown", "does not warn")
    tables = [table.matrix for table in blocks_of(wrong_answers(evidence).blocks, Table)]
    assert any(cell.text == "0.123" for table in tables for _, rows in table.groups for row in rows
               for cell in row.cells)  # fmt: skip


def test_few_wrong_answers_show_nothing(modality_evidence):
    few = "fewer than 6 patients with a wrong answer, or with a right one"
    rows = [*all_estimates(ModalityPlan(**SMALL)), *answers(**{ALL_FINDINGS: (40, 0)})]
    rows.append(Estimate("warning", "probability", ALL_FINDINGS, "", MODEL, reason=few))
    section = wrong_answers(modality_evidence(**SMALL, rows=rows))
    assert section.summary.startswith("0 of 40 answers are wrong")
    assert f"Whether anything warns of a wrong answer cannot be said: {few}." in words_of(section)
    assert blocks_of(section.blocks, Table) == []
    assert wrong_answers(modality_evidence(**SMALL)) is None


# What each method shows


def test_a_method_that_clearly_fails_at_one_of_the_two_has_no_milder_sign(modality_evidence):
    def open_order_below_the_floor(row):
        if row.statistic == "difference" and row.method == "guided_backprop":
            return replace(row, value=-0.3, low=-0.4, high=-0.2)
        return replace(row, low=-0.1, high=1.0) if row.statistic == "agreement" else row

    evidence = modality_evidence(**changed(open_order_below_the_floor))
    assert listed_rows(overview(evidence))["Guided backprop"][0] == f"✕ {NOT_LESION}"
    assert "mark the lesion; that they name the modality is not shown" in verdict(evidence).second


def test_a_perfect_order_that_is_not_shown_says_which_floor_is_as_good(modality_evidence):
    def perfect(row):
        if row.statistic != "agreement" or row.method == "intensity":
            return row
        if "versus" in row.condition:
            return replace(row, value=0.1, low=-0.1, high=0.3)
        return replace(row, value=1.0, low=0.5, high=1.0)

    plan = with_brightness(0.2, 0.9)
    evidence = modality_evidence(**plan | {"rows": [perfect(row) for row in plan["rows"]]})
    shown = " ".join(str(block.text) for block in overview(evidence).blocks if block.kind == "prose")
    assert "still not shown to come from the network: Brightness, which never sees it, has 0.90" in shown
