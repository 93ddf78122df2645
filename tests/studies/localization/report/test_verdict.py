"""The two sentences, for estimate tables worked by hand."""

import math
import re
from dataclasses import replace

import pytest
from tests.studies.localization.report.material import FINDINGS, FLOORS, floor_test, mean

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate
from heatcheck.studies.localization.report.caveats import caveats
from heatcheck.studies.localization.report.verdict import verdict

READERS = [mean("iou", ALL_FINDINGS, HUMAN, 0.58), mean("hit", ALL_FINDINGS, HUMAN, 0.9)]


def scored(method, iou, hit, n=120):
    return [mean("iou", ALL_FINDINGS, method, iou, n), mean("hit", ALL_FINDINGS, method, hit, n)]


def against_floors(method, lost=(), p=0.4, difference=-0.02):
    """Tests on both measures that beat every floor but those lost, given as (metric, floor)."""
    rows = []
    for metric in ("iou", "hit"):
        for floor in FLOORS:
            won = floor_test(metric, ALL_FINDINGS, method, floor, 0.2)
            rows.append(replace(won, value=difference, p_adjusted=p) if (metric, floor) in lost else won)
    return rows


def gaps(method, iou=(-0.271, -0.31, -0.23), hit=(-0.276, -0.33, -0.22), n=120):
    """Differences from the readers as (value, low, high); None for a measure without one."""
    made = [(metric, found) for metric, found in (("iou", iou), ("hit", hit)) if found]
    return [Estimate("difference", metric, ALL_FINDINGS, method, "densenet121", *found, other_method=HUMAN, n_cases=n)
            for metric, found in made]  # fmt: skip


def assert_two_sentences(found):
    for sentence in (found.first, found.second):
        assert sentence.endswith(".")
        assert not re.search(r"[.!?]\s", sentence)
        assert sentence[0].isupper()


def test_one_method_that_wins_is_not_called_the_best_of_many(evidence_from):
    rows = [*READERS, *scored("grad_cam", 0.312, 0.624), *gaps("grad_cam"), *against_floors("grad_cam")]
    found = verdict(evidence_from(rows))
    assert_two_sentences(found)
    assert "best" not in found.first
    assert found.first == (
        "Grad-CAM was the one method tested: its outlines overlap the truth by 0.31, which is 0.27 less than the "
        "readers\u2019 (95\u00a0% interval 0.23 to 0.31), and its hottest point falls inside the finding in "
        "62\u00a0% of cases, 28 percentage points less often than the readers\u2019 (22 to 33)."
    )
    assert found.second == "It beats every floor, even simply pointing where a finding usually is."


def test_readers_are_compared_on_the_shared_cases_alone(evidence_from):
    """The readers' own mean leaves out what they missed, so it must not stand beside the method's."""
    means = [mean("iou", ALL_FINDINGS, HUMAN, 0.99), mean("hit", ALL_FINDINGS, HUMAN, 0.99)]
    found = verdict(evidence_from([*means, *scored("grad_cam", 0.31, 0.62), *gaps("grad_cam")])).first
    assert "0.27 less" in found
    assert "28 percentage points less" in found
    assert "99" not in found
    assert "0.68" not in found


NAN = (math.nan, math.nan)


@pytest.mark.parametrize(
    ("iou", "hit", "clauses"),
    [
        ((0.05, 0.01, 0.09), (0.012, 0.004, 0.024),
         ("by 0.31, which is 0.05 more than the readers\u2019 (95\u00a0% interval 0.01 to 0.09), and its",
          "cases, 1 percentage point more often than the readers\u2019 (0 to 2).")),
        ((-0.02, -0.08, 0.04), (0.02, -0.04, 0.08),
         ("0.02 less than the readers\u2019 (95\u00a0% interval 0.08 less to 0.04 more)",
          "2 percentage points more often than the readers\u2019 (4 less to 8 more).")),
        ((-0.001, -0.03, 0.02), (0.001, -0.03, 0.0),
         ("which is about as much as the readers\u2019 (95\u00a0% interval 0.03 less to 0.02 more)",
          "cases, about as often as the readers\u2019 (3 less to 0).")),
        ((-0.2, *NAN), (-0.3, -0.4, -0.2),
         ("which is 0.20 less than the readers\u2019, and its",
          "30 percentage points less often than the readers\u2019 (95\u00a0% interval 20 to 40).")),
        ((-0.2, *NAN), (0.0, *NAN),
         ("which is 0.20 less than the readers\u2019, and its", "cases, about as often as the readers\u2019.")),
        (None, (-0.3, -0.4, -0.2),
         ("overlap the truth by 0.31, and its", "less often than the readers\u2019 (95\u00a0% interval 20 to 40).")),
        ((math.nan, *NAN), None, ("overlap the truth by 0.31 and its", "in 62\u00a0% of cases.")),
    ],
)  # fmt: skip
def test_distance_from_the_readers_can_be_read_aloud(evidence_from, iou, hit, clauses):
    found = verdict(evidence_from([*READERS, *scored("grad_cam", 0.31, 0.62), *gaps("grad_cam", iou, hit)]))
    assert_two_sentences(found)
    for clause in clauses:
        assert clause in found.first
    assert "nan" not in found.first


def test_method_that_loses_to_the_usual_place_is_told_so(evidence_from):
    lost = {("iou", "location_prior"), ("hit", "location_prior")}
    found = verdict(evidence_from([*READERS, *scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam", lost)]))
    assert_two_sentences(found)
    assert found.second == ("It beats 3 of 4 floors but does not beat simply pointing where this finding usually is.")


def test_lead_that_may_be_chance_does_not_count_as_beating(evidence_from):
    lost = {("iou", "edge"), ("hit", "edge")}
    rows = [*READERS, *scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam", lost, p=0.06, difference=0.03)]
    assert "does not clearly beat a plain edge filter" in verdict(evidence_from(rows)).second


def floored(value, low, high, p=0.4):
    """A test against the edge filter on overlap, which the method lost."""
    made = floor_test("iou", ALL_FINDINGS, "grad_cam", "edge", value)
    return replace(made, low=low, high=high, p_adjusted=p)


@pytest.mark.parametrize(
    ("test", "told"),
    [
        (floored(-0.26, -0.3, -0.2), "scores clearly below a plain edge filter (0.19 against 0.45)"),
        (floored(-0.26, *NAN, p=0.01), "scores clearly below a plain edge filter (0.19 against 0.45)"),
        (floored(-0.1, -0.2, -0.05), "scores clearly below a plain edge filter (by 0.10 on the cases both have)"),
        (floored(-0.26, -0.6, 0.1), "does not beat a plain edge filter"),
    ],
)
def test_a_floor_that_is_clearly_better_is_called_so(evidence_from, test, told):
    rows = [mean("iou", ALL_FINDINGS, "grad_cam", 0.19), mean("iou", ALL_FINDINGS, "edge", 0.45), test]
    assert verdict(evidence_from(rows)).second == f"It {told}."


def test_a_gap_in_hits_is_told_in_percentage_points(evidence_from):
    rows = [mean("hit", ALL_FINDINGS, "grad_cam", 0.3), replace(floored(-0.12, -0.2, -0.1), metric="hit")]
    told = "(by 12 percentage points on the cases both have)"
    assert verdict(evidence_from(rows)).second == f"It scores clearly below a plain edge filter {told}."


def test_a_clear_loss_and_an_unsure_one_are_told_apart(evidence_from):
    rows = [*scored("grad_cam", 0.19, 0.4)[:1], mean("iou", ALL_FINDINGS, "edge", 0.45), floored(-0.26, -0.3, -0.2)]
    rows.append(replace(floored(0.01, -0.1, 0.1), other_method="random"))
    found = verdict(evidence_from(rows))
    assert_two_sentences(found)
    assert found.second == (
        "It scores clearly below a plain edge filter (0.19 against 0.45) and does not clearly beat a random picture."
    )


@pytest.mark.parametrize(
    ("methods", "told"), [(2, "Neither clearly beats a plain"), (3, "None of them clearly beats a plain")]
)
def test_what_no_leader_does_is_said_of_none(evidence_from, methods, told):
    rows = []
    for name in ("grad_cam", "method_1", "method_2")[:methods]:
        rows += [*scored(name, 0.31, 0.62), *against_floors(name, {("iou", "edge"), ("hit", "edge")}, difference=0.02)]
    rows = [row for row in rows if row.other_method in {"", "edge"}]
    assert verdict(evidence_from(rows, methods=methods)).second.startswith(told)


def test_two_named_methods_that_fail_on_one_measure_are_joined_by_nor(evidence_from):
    rows = [row for name in ("grad_cam", "method_1") for row in scored(name, 0.31, 0.62)]
    for name in ("grad_cam", "method_1"):
        rows += [row for row in against_floors(name, {("iou", "edge")}, difference=0.02) if row.other_method == "edge"]
    found = verdict(evidence_from(rows, methods=2)).second
    assert found.startswith("On overlap neither Grad-CAM nor Grad-CAM++ clearly beats a plain edge filter; on pointing")


def test_tested_p_value_is_the_corrected_one(evidence_from):
    rows = [
        *scored("grad_cam", 0.31, 0.62),
        *against_floors("grad_cam", {("iou", "edge"), ("hit", "edge")}, p=0.2, difference=0.1),
    ]
    rows = [replace(row, p_value=0.001) if row.statistic == "test" else row for row in rows]
    assert "does not clearly beat" in verdict(evidence_from(rows)).second


def test_outcomes_that_differ_by_measure_are_told_apart(evidence_from):
    lost = {("hit", "location_prior"), ("hit", "center_prior")}
    found = verdict(evidence_from([*READERS, *scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam", lost)]))
    assert_two_sentences(found)
    assert found.second.startswith("On overlap it beats every floor")
    assert (
        "on pointing it beats 2 of 4 floors but does not beat simply pointing at the centre of the image or simply "
        "pointing where this finding usually is" in found.second
    )


def test_best_of_several_is_named_once_when_it_leads_both_measures(evidence_from):
    rows = [*READERS, *scored("grad_cam", 0.31, 0.62), *scored("method_1", 0.25, 0.5), *against_floors("grad_cam")]
    found = verdict(evidence_from(rows, methods=2))
    assert_two_sentences(found)
    assert found.first.startswith("Of 2 methods, Grad-CAM is best here: its outlines")
    assert found.first.count("Grad-CAM") == 1


def test_different_leaders_are_both_named(evidence_from):
    rows = [*READERS, *scored("grad_cam", 0.31, 0.5), *scored("method_1", 0.25, 0.62)]
    rows += against_floors("grad_cam", {("iou", "location_prior")}) + against_floors("method_1")
    rows += gaps("grad_cam") + gaps("method_1", hit=(-0.28, -0.3, -0.26))
    found = verdict(evidence_from(rows, methods=2))
    assert_two_sentences(found)
    assert found.first == (
        "Of 2 methods, Grad-CAM outlines best, with an overlap of 0.31, which is 0.27 less than the readers\u2019 "
        "(95\u00a0% interval 0.23 to 0.31), and Grad-CAM++ points best, with the hottest point inside the finding in "
        "62\u00a0% of cases, 28 percentage points less often than the readers\u2019 (26 to 30)."
    )
    assert "On overlap Grad-CAM beats 3 of 4 floors but does not beat simply pointing" in found.second
    assert "on pointing Grad-CAM++ beats every floor" in found.second


def test_methods_that_look_equal_share_the_place(evidence_from):
    rows = [*READERS, *scored("grad_cam", 0.3099, 0.6199), *scored("method_1", 0.3111, 0.6201)]
    rows += gaps("grad_cam", iou=(-0.4, -0.5, -0.3)) + gaps("method_1")
    rows += against_floors("grad_cam") + against_floors("method_1")
    found = verdict(evidence_from(rows, methods=2))
    assert_two_sentences(found)
    assert found.first.startswith("Of 2 methods, Grad-CAM and Grad-CAM++ share first place: their outlines")
    assert "which is 0.27 less than" in found.first
    assert found.second.startswith("Each of them beats every floor")


def test_floor_is_never_called_the_best_method(evidence_from):
    rows = [*scored("grad_cam", 0.2, 0.4), *scored("location_prior", 0.5, 0.8), *against_floors("grad_cam")]
    assert "Grad-CAM was the one method tested" in verdict(evidence_from(rows)).first


def test_without_readers_the_distance_is_said_to_be_unknown(evidence_from):
    found = verdict(evidence_from([*scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam")]))
    assert_two_sentences(found)
    assert "the readers" not in found.first
    assert "by 0.31 and its hottest point" in found.first
    assert found.first.endswith("; no human readers were given, so the distance from human performance is unknown.")


def test_few_patients_are_mentioned(evidence_from):
    found = verdict(evidence_from([*READERS, *scored("grad_cam", 0.31, 0.62, n=17), *against_floors("grad_cam")]))
    assert_two_sentences(found)
    assert found.second.endswith("; with only 12 patients behind it, this is a first impression.")


def test_untested_floors_are_not_claimed(evidence_from):
    rows = [*READERS, *scored("grad_cam", 0.31, 0.62)]
    assert verdict(evidence_from(rows)).second == "It was not tested against a floor."
    rows = [row for row in [*rows, *against_floors("grad_cam")] if row.other_method in {"", "random", HUMAN}]
    assert "beats a random picture, the only floor it was tested against" in verdict(evidence_from(rows)).second


@pytest.mark.parametrize("status", ["complete", "running"])
def test_no_defined_score_gives_no_verdict(evidence_from, status):
    found = verdict(evidence_from(scored("grad_cam", math.nan, math.nan), status=status))
    assert_two_sentences(found)
    assert found.first.startswith("There is no verdict")


def test_one_measure_alone_is_enough(evidence_from):
    found = verdict(evidence_from([mean("hit", ALL_FINDINGS, "grad_cam", 0.62), *against_floors("grad_cam")]))
    assert_two_sentences(found)
    assert "overlap" not in found.first + found.second


def test_caveats_name_close_rivals_and_rare_findings(evidence_from):
    rows = [
        *scored("grad_cam", 0.31, 0.62),
        *scored("method_1", 0.25, 0.3),
        mean("iou", FINDINGS[0], "grad_cam", 0.2, n=7),
    ]
    told = caveats(evidence_from(rows, methods=2))
    assert "There are fewer than 10 cases of Airspace Opacity (7): read those rows as anecdotes." in told
    assert [sentence for sentence in told if "may be due to chance" in sentence] == [
        "Overlap (IoU): the interval of Grad-CAM overlaps that of Grad-CAM++, so the first place may be due to chance."
    ]


def luck(evidence):
    return [sentence for sentence in caveats(evidence) if "may be due to chance" in sentence]


def test_missing_interval_does_not_make_a_first_place_sure(evidence_from):
    values = {"grad_cam": 1.0, "method_1": 0.3, "method_2": math.nan}
    first, second, third = (mean("hit", ALL_FINDINGS, name, value) for name, value in values.items())
    without = {"low": math.nan, "high": math.nan, "reason": "one patient"}
    assert luck(evidence_from([first, second, third], methods=3)) == []
    assert luck(evidence_from([replace(first, **without), second, third], methods=3)) == [
        "Hit rate: Grad-CAM has no interval, so the first place may be due to chance."
    ]
    assert luck(evidence_from([first, replace(second, **without), third], methods=3)) == [
        "Hit rate: Grad-CAM++ has no interval, so the first place may be due to chance."
    ]
    assert luck(evidence_from([replace(first, **without)], methods=1)) == []


def test_methods_scored_on_different_cases_are_a_caveat(evidence_from):
    told = "The methods were scored on different cases"
    rows = [*scored("grad_cam", 0.31, 0.62, n=104), *scored("method_1", 0.2, 0.5, n=96)]
    assert (
        f"{told} (Grad-CAM 104, Grad-CAM++ 96), so their order also reflects the cases."
        in caveats(evidence_from(rows, methods=2))
    )  # fmt: skip


@pytest.mark.parametrize(("n", "told"), [(120, False), (96, True)])
def test_of_many_methods_only_the_fewest_and_the_most_cases_are_told(evidence_from, n, told):
    rows = [*scored("grad_cam", 0.31, 0.62), *scored("method_1", 0.2, 0.5), *scored("method_2", 0.2, 0.5)]
    rows += [*scored("method_3", 0.2, 0.5, n=n), mean("iou", ALL_FINDINGS, "method_4", math.nan, n=0)]
    found = [sentence for sentence in caveats(evidence_from(rows, methods=5)) if "different cases" in sentence]
    assert bool(found) == told
    assert not told or "(from 96, Occlusion, to 120, Grad-CAM)" in found[0]


def test_a_model_that_guesses_is_told_with_what_to_check(evidence_from):
    weak = Estimate("auroc", "auroc", FINDINGS[0], "", "densenet121", 0.52, n_cases=90)
    assert (
        f"The model is close to guessing, or worse, on {FINDINGS[0]} (0.52) (AUROC); a good score there cannot come "
        "from what the model knows: check that the probabilities belong to these maps."
    ) in caveats(evidence_from([*scored("grad_cam", 0.31, 0.62), weak]))


def test_distance_that_rests_on_few_cases_is_a_caveat(evidence_from):
    rows = [*READERS, *scored("grad_cam", 0.31, 0.62), *gaps("grad_cam", hit=None, n=12)]
    assert caveats(evidence_from([*rows, *gaps("grad_cam", iou=None, n=118)])) == (
        "Overlap (IoU): the distance from the readers rests on the 12 of 120 cases that they marked.",
    )
