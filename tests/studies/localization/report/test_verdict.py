"""The sentences of the verdict, for estimate tables worked by hand."""

import math
import re
from dataclasses import replace
from itertools import combinations

import pytest
from tests.studies.localization.report.material import FINDINGS, FLOORS, floor_test, mean

from heatcheck.core.records import ALL_FINDINGS, COMMON_FINDINGS, HUMAN, Estimate
from heatcheck.core.vocabulary import AUROC
from heatcheck.report.caveats import of_every_study
from heatcheck.report.evidence import Entrant
from heatcheck.studies.localization.report.caveats import caveats
from heatcheck.studies.localization.report.verdict import verdict

READERS = [mean("iou", ALL_FINDINGS, HUMAN, 0.58), mean("hit", ALL_FINDINGS, HUMAN, 0.9),
           Estimate("count", "readers", ALL_FINDINGS, "", "densenet121", 2.0)]  # fmt: skip
NAN = (math.nan, math.nan)


def scored(method, iou, hit, n=120, finding=ALL_FINDINGS):
    return [mean("iou", finding, method, iou, n), mean("hit", finding, method, hit, n)]


def against_floors(method, other=(), outcome=(math.nan,) * 3):
    """Tests on both metrics that clearly beat every floor but some, whose (value, low, high) is `outcome`.

    `other` names those as (metric, floor).
    """
    rows = []
    for metric in ("iou", "hit"):
        for floor in FLOORS:
            won = floor_test(metric, ALL_FINDINGS, method, floor, 0.2)
            changed = dict(zip(("value", "low", "high"), outcome, strict=True))
            rows.append(replace(won, **changed) if (metric, floor) in other else won)
    return rows


TOO_SMALL = (0.01, -0.01, 0.02)  # below the size that matters, 0.03
UNKNOWN = (0.05, -0.05, 0.15)
WORSE = (-0.2, -0.25, -0.15)


def gaps(method, iou=(-0.271, -0.31, -0.23), hit=(-0.276, -0.33, -0.22), n=120):
    """Differences from the readers as (value, low, high); None for a metric without one."""
    made = [(metric, found) for metric, found in (("iou", iou), ("hit", hit)) if found]
    return [Estimate("difference", metric, ALL_FINDINGS, method, "densenet121", *found, other_method=HUMAN, n_cases=n,
                     size=0.05) for metric, found in made]  # fmt: skip


def pairs(scores, reach, metric="iou", size=0.05, finding=ALL_FINDINGS):
    """Each method against each other, by scores in the order of the names, with intervals of one width."""
    return [Estimate("method_pair", metric, finding, one, "densenet121", value, value - reach, value + reach,
                     other_method=other, size=size)
            for one, other in combinations(scores, 2) for value in [scores[one] - scores[other]]]  # fmt: skip


def assert_sentences(found):
    for sentence in filter(None, (found.first, found.second, found.third)):
        assert sentence.endswith(".")
        assert not re.search(r"[.!?]\s", sentence)
        assert sentence[0].isupper()
        assert "nan" not in sentence


def test_model_worse_than_guessing_is_said_first_and_only_once(evidence_from):
    rows = [
        Estimate(AUROC, "auroc", finding, value=0.1, low=0.02, high=0.3, model="densenet121")
        for finding in FINDINGS[:5]
    ]
    evidence = evidence_from(rows)
    (sentence,) = of_every_study(evidence)
    first = "Airspace Opacity: AUROC 0.10, 95 % interval 0.02 to 0.30, by guessing 0.50; "
    assert sentence.startswith(f"The model answers clearly worse than by guessing ({first}")
    assert "; 2 more): its outputs may be in another order" in sentence
    assert not any("guessing" in caveat for caveat in caveats(evidence))


def test_one_method_that_wins_is_not_called_the_best_of_many(evidence_from):
    rows = [*READERS, *scored("grad_cam", 0.312, 0.624), *gaps("grad_cam"), *against_floors("grad_cam")]
    found = verdict(evidence_from(rows))
    assert_sentences(found)
    assert found.first == (
        "Grad-CAM was the one method tested: overlap 0.31 (0.27 below these 2 readers\u2019, 95\u00a0% interval "
        "0.23 to 0.31) and hit rate 62\u00a0% (28 percentage points below these 2 readers\u2019, 22 to 33), each the "
        "mean over all findings."
    )
    assert found.second == "On overlap and on hit rate, Grad-CAM clearly beats every floor."


def test_readers_are_compared_on_the_shared_cases_alone(evidence_from):
    """The readers' own mean leaves out what they missed, so it must not stand beside the method's."""
    means = [mean("iou", ALL_FINDINGS, HUMAN, 0.99), mean("hit", ALL_FINDINGS, HUMAN, 0.99)]
    found = verdict(evidence_from([*means, *scored("grad_cam", 0.31, 0.62), *gaps("grad_cam")])).first
    assert "0.27 below these readers" in found
    assert "28 percentage points below" in found
    assert "99" not in found
    assert "0.68" not in found


@pytest.mark.parametrize(
    ("iou", "hit", "clauses"),
    [
        ((0.05, 0.01, 0.09), (0.012, 0.004, 0.024),
         ("0.31 (0.05 above these 2 readers\u2019, 95\u00a0% interval 0.01 to 0.09)",
          "(1 percentage point above these 2 readers\u2019, 0 to 2)")),
        ((-0.02, -0.08, 0.04), (0.02, -0.04, 0.08),
         ("(0.02 below these 2 readers\u2019, 95\u00a0% interval 0.08 below to 0.04 above)",
          "(2 percentage points above these 2 readers\u2019, 4 below to 8 above)")),
        ((-0.001, -0.03, 0.02), (0.001, -0.03, 0.0),
         ("(equal to these 2 readers\u2019, 95\u00a0% interval 0.03 below to 0.02 above)",
          "(equal to these 2 readers\u2019, 3 below to 0)")),
        ((-0.2, *NAN), (-0.3, -0.4, -0.2), ("0.31 (0.20 below these 2 readers\u2019)",)),
        (None, (-0.3, -0.4, -0.2), ("overlap 0.31 and hit rate 62\u00a0% (30",)),
        ((math.nan, *NAN), None, ("overlap 0.31 and hit rate 62\u00a0%, each",)),
    ],
)  # fmt: skip
def test_distance_from_the_readers_can_be_read_aloud(evidence_from, iou, hit, clauses):
    found = verdict(evidence_from([*READERS, *scored("grad_cam", 0.31, 0.62), *gaps("grad_cam", iou, hit)]))
    assert_sentences(found)
    for clause in clauses:
        assert clause in found.first


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (TOO_SMALL, "clearly beats 3 of 4 floors and does not beat a plain edge filter"),
        (UNKNOWN, "clearly beats 3 of 4 floors and is not shown to beat a plain edge filter"),
        (WORSE, "clearly beats 3 of 4 floors and is clearly worse than a plain edge filter"),
        ((0.02, 0.01, 0.05), "clearly beats 3 of 4 floors and is not shown to beat a plain edge filter"),  # too small?
    ],
)
def test_a_floor_is_beaten_clearly_or_not_or_it_is_not_shown(evidence_from, outcome, told):
    rows = [*scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam", {("iou", "edge")}, outcome)]
    found = verdict(evidence_from(rows))
    assert_sentences(found)
    assert found.second == f"On overlap, Grad-CAM {told}; on hit rate, Grad-CAM clearly beats every floor."


def test_the_verdict_and_the_table_read_one_judgement(evidence_from):
    """A p-value, an uncorrected interval or the sign of the value decide nothing."""
    rows = [*scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam", {("iou", "edge")}, UNKNOWN)]
    rows = [replace(row, p_value=0.0001, p_adjusted=0.0001) if row.statistic == "test" else row for row in rows]
    assert "not shown to beat a plain edge filter" in verdict(evidence_from(rows)).second


def test_patients_that_would_decide_are_named(evidence_from):
    tests = against_floors("grad_cam", {("iou", "edge")}, UNKNOWN)
    tests = [replace(row, n_needed=151) if row.low < 0 else row for row in tests]
    found = verdict(evidence_from([*scored("grad_cam", 0.31, 0.62), *tests])).second
    assert "a plain edge filter (about 160 patients would decide it)" in found


def test_of_several_methods_those_that_beat_every_floor_are_named_and_the_others_counted(evidence_from):
    rows = [row for i in range(4) for row in scored("grad_cam" if not i else f"method_{i}", 0.3 - 0.01 * i, 0.6)]
    rows += [*against_floors("grad_cam"), *against_floors("method_1", {("iou", "edge")}, TOO_SMALL)]
    for name in ("method_2", "method_3"):
        rows += against_floors(name, {("iou", "edge"), ("hit", "edge")}, UNKNOWN)
    found = verdict(evidence_from(rows, methods=4))
    assert_sentences(found)
    assert found.second == (
        "On overlap, Grad-CAM clearly beats every floor, Grad-CAM++ does not and for the other 2 it is not shown; on "
        "hit rate, Grad-CAM and Grad-CAM++ clearly beat every floor and for the other 2 it is not shown."
    )


def test_a_floor_that_beats_every_method_is_named(evidence_from):
    rows = [*scored("grad_cam", 0.31, 0.62), *scored("method_1", 0.3, 0.6)]
    lost = {("iou", "location_prior"), ("hit", "location_prior")}
    rows += against_floors("grad_cam", lost, WORSE) + against_floors("method_1", lost, WORSE)
    assert verdict(evidence_from(rows, methods=2)).second == (
        "On overlap and on hit rate, none of the 2 methods beats every floor: all are clearly worse than simply "
        "pointing where this finding usually is."
    )


BOTH = {"grad_cam": 0.31, "method_1": 0.2}


def test_a_method_is_best_only_if_it_is_clearly_better_than_every_other(evidence_from):
    rows = [*scored("grad_cam", 0.31, 0.62), *scored("method_1", 0.2, 0.4), *gaps("grad_cam")]
    rows += pairs(BOTH, 0.05) + pairs({"grad_cam": 0.62, "method_1": 0.4}, 0.1, "hit", 0.1)
    found = verdict(evidence_from([*READERS, *rows], methods=2))
    assert_sentences(found)
    assert found.first.startswith("Grad-CAM is clearly the best of 2 methods: overlap 0.31 (0.27 below")
    assert found.first.count("Grad-CAM") == 1


def test_methods_that_may_be_best_are_not_ranked_by_luck(evidence_from):
    rows = [*scored("grad_cam", 0.31, 0.62), *scored("method_1", 0.3, 0.66), *scored("method_2", 0.1, 0.1)]
    rows += pairs({"grad_cam": 0.31, "method_1": 0.3, "method_2": 0.1}, 0.05)
    rows += pairs({"grad_cam": 0.62, "method_1": 0.66, "method_2": 0.1}, 0.9, "hit")
    found = verdict(evidence_from(rows, methods=3))
    assert_sentences(found)
    assert found.first.startswith(
        "Of 3 methods, none is shown to be the best: Grad-CAM or Grad-CAM++ may have the best overlap, Grad-CAM the "
        "highest at 0.31, and 3 may have the best hit rate, Grad-CAM++ the highest at 66\u00a0%, each the mean over "
        "all findings"
    )


def test_a_lead_beyond_chance_that_does_not_matter_is_said_to_be_small(evidence_from):
    rows = [mean("iou", ALL_FINDINGS, "grad_cam", 0.31), mean("iou", ALL_FINDINGS, "method_1", 0.29)]
    found = verdict(evidence_from([*rows, *pairs({"grad_cam": 0.31, "method_1": 0.29}, 0.01)], methods=2)).first
    assert "Grad-CAM has the best overlap, 0.31, though by less than matters" in found


def test_methods_that_could_not_be_tested_are_not_called_equal(evidence_from):
    rows = [*scored("grad_cam", 0.31, 0.62), *scored("method_1", 0.2, 0.5)]
    told = "Grad-CAM has the highest overlap, 0.31, though no difference between methods could be tested"
    found = verdict(evidence_from(rows, methods=2)).first
    assert found.startswith(f"Of 2 methods, none is shown to be the best: {told}")


def test_a_method_that_lacks_the_hardest_finding_does_not_win(evidence_from):
    """By its mean over its own findings the first would lead; on the findings of both the second is higher."""
    rows = [mean("iou", ALL_FINDINGS, "grad_cam", 0.33), mean("iou", ALL_FINDINGS, "method_1", 0.25),
            mean("iou", COMMON_FINDINGS, "grad_cam", 0.33), mean("iou", COMMON_FINDINGS, "method_1", 0.40)]  # fmt: skip
    rows += pairs({"grad_cam": 0.33, "method_1": 0.40}, 0.02, finding=COMMON_FINDINGS)
    found = verdict(evidence_from(rows, methods=2)).first
    assert found.startswith("Grad-CAM++ is clearly the best")
    assert "0.40" in found
    assert "on the findings that all methods have" in found


def test_a_method_that_is_ruled_out_is_not_named_for_its_higher_mean(evidence_from):
    """grad_cam has only easy cases; on the cases that both have, method_1 is above it beyond chance."""
    rows = [mean("iou", ALL_FINDINGS, "grad_cam", 0.8), mean("iou", ALL_FINDINGS, "method_1", 0.6)]
    found = verdict(evidence_from([*rows, *pairs({"grad_cam": 0.5, "method_1": 0.53}, 0.01)], methods=2)).first
    assert "Grad-CAM++ has the best overlap, 0.60" in found
    assert "0.80" not in found


def test_one_scored_method_of_several_is_not_called_best(evidence_from):
    found = verdict(evidence_from([mean("iou", ALL_FINDINGS, "grad_cam", 0.8)], methods=2)).first
    assert "though no difference between methods could be tested" in found


def test_floor_is_never_called_the_best_method(evidence_from):
    rows = [*scored("grad_cam", 0.2, 0.4), *scored("location_prior", 0.5, 0.8), *against_floors("grad_cam")]
    assert "Grad-CAM was the one method tested" in verdict(evidence_from(rows)).first


def test_without_readers_the_distance_is_said_to_be_unknown(evidence_from):
    found = verdict(evidence_from([*scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam")]))
    assert_sentences(found)
    assert "these readers" not in found.first
    assert found.first.endswith("; no human readers were given, so the distance from human performance is unknown.")


def test_what_this_many_patients_could_not_show_is_said(evidence_from):
    found = verdict(evidence_from([*scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam")])).third
    assert found == (
        "With 120 patients, a method truly better than a floor by less than 0.05 (overlap) or 5 percentage points (hit "
        "rate) would go unnoticed in more than half of such runs."
    )


def test_a_first_impression_counts_the_patients_of_each_finding(evidence_from):
    """Many patients in all are few on each of ten findings."""
    rows = [*scored("grad_cam", 0.31, 0.62, n=300), *against_floors("grad_cam")]
    many = [row for finding in FINDINGS for row in scored("grad_cam", 0.3, 0.6, 60, finding)]
    few = [row for finding in FINDINGS[:6] for row in scored("grad_cam", 0.3, 0.6, 20, finding)]
    assert "first impression" not in verdict(evidence_from([*rows, *many])).third
    found = verdict(evidence_from([*rows, *few, *many[12:]]))
    assert_sentences(found)
    assert found.third.endswith("; 6 of 10 findings have fewer than 30 patients, so this is a first impression.")


def test_untested_floors_are_not_claimed(evidence_from):
    rows = [*READERS, *scored("grad_cam", 0.31, 0.62)]
    assert verdict(evidence_from(rows)).second == "No method was tested against a floor."
    rows = [row for row in [*rows, *against_floors("grad_cam")] if row.other_method in {"", "random", HUMAN}]
    assert "clearly beats 1 of 4 floors and is not shown to beat" in verdict(evidence_from(rows)).second


@pytest.mark.parametrize("status", ["complete", "running"])
def test_no_defined_score_gives_no_verdict(evidence_from, status):
    found = verdict(evidence_from(scored("grad_cam", math.nan, math.nan), status=status))
    assert_sentences(found)
    assert found.first.startswith("There is no verdict")


def test_one_metric_alone_is_enough(evidence_from):
    found = verdict(evidence_from([mean("hit", ALL_FINDINGS, "grad_cam", 0.62), *against_floors("grad_cam")]))
    assert_sentences(found)
    assert "overlap" not in found.text


def test_caveats_name_rare_findings(evidence_from):
    rows = [*scored("grad_cam", 0.31, 0.62), mean("iou", FINDINGS[0], "grad_cam", 0.2, n=7)]
    told = caveats(evidence_from(rows))
    assert "There are fewer than 10 cases of Airspace Opacity (7): read those rows as anecdotes." in told


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


@pytest.mark.parametrize(
    ("auroc", "told"),
    [((0.52, 0.4, 0.64), True), ((0.8, 0.45, 0.95), True), ((0.55, 0.52, 0.58), True), ((0.8, 0.7, 0.9), False)],
)
def test_a_model_that_is_not_shown_to_know_a_finding_is_told_with_what_to_check(evidence_from, auroc, told):
    weak = Estimate("auroc", "auroc", FINDINGS[0], "", "densenet121", *auroc, n_cases=90)
    sentence = (
        f"The model is not shown to do better than guessing on {FINDINGS[0]} ({auroc[0]:.2f}) (AUROC); a good score "
        "there may not come from what the model knows: check that the probabilities belong to these maps."
    )
    assert (sentence in caveats(evidence_from([*scored("grad_cam", 0.31, 0.62), weak]))) == told


def test_distance_that_rests_on_few_cases_is_a_caveat(evidence_from):
    rows = [*READERS, *scored("grad_cam", 0.31, 0.62), *gaps("grad_cam", hit=None, n=12)]
    assert caveats(evidence_from([*rows, *gaps("grad_cam", iou=None, n=118)])) == (
        "Overlap (IoU): the distance from the readers rests on the 12 of 120 cases that they marked.",
    )


def test_findings_on_which_even_readers_do_not_beat_a_floor_are_named(evidence_from):
    first, second = FINDINGS[:2]
    rows = [*READERS, *scored("grad_cam", 0.3, 0.6), *against_floors("grad_cam")]
    rows += [mean("iou", first, HUMAN, 0.67), mean("iou", first, "location_prior", 0.75)]
    rows += [mean("iou", second, HUMAN, 0.6), mean("iou", second, "location_prior", 0.3)]
    (found,) = [each for each in caveats(evidence_from(rows)) if "even the" in each]
    assert found.startswith(f"On {first} (overlap) even the human readers score no higher than the best floor")


def test_a_run_of_floors_alone_says_that_no_method_was_named(evidence_from):
    found = verdict(replace(evidence_from([]), methods=(), floors=(Entrant("random", "Random", "floor"),)))
    assert found.first.startswith("There is no verdict, because only floors were named")
    assert found.second.startswith("Name at least one method")
