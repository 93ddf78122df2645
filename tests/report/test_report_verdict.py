"""The two sentences, for estimate tables worked by hand."""

import math
import re
from dataclasses import replace

import pytest
from report_material import FINDINGS, FLOORS, floor_test, mean

from heatcheck.report.caveats import caveats
from heatcheck.report.evidence import ALL, HUMAN
from heatcheck.report.verdict import verdict

READERS = [mean("iou", ALL, HUMAN, 0.58), mean("hit", ALL, HUMAN, 0.9)]


def scored(method, iou, hit, n=120):
    return [mean("iou", ALL, method, iou, n), mean("hit", ALL, method, hit, n)]


def against_floors(method, lost=(), p=0.4, difference=-0.02):
    """Tests on both measures that beat every floor but those lost, given as (metric, floor)."""
    rows = []
    for metric in ("iou", "hit"):
        for floor in FLOORS:
            won = floor_test(metric, ALL, method, floor, 0.2)
            rows.append(replace(won, value=difference, p_adjusted=p) if (metric, floor) in lost else won)
    return rows


def assert_two_sentences(found):
    for sentence in (found.first, found.second):
        assert sentence.endswith(".")
        assert not re.search(r"[.!?]\s", sentence)
        assert sentence[0].isupper()


def test_one_method_that_wins_is_not_called_the_best_of_many(evidence_from):
    found = verdict(evidence_from([*READERS, *scored("grad_cam", 0.312, 0.624), *against_floors("grad_cam")]))
    assert_two_sentences(found)
    assert "best" not in found.first
    assert "overlap the truth by 0.31 against the readers\u2019 0.58" in found.first
    assert "inside the finding in 62\u00a0% of cases against the readers\u2019 90\u00a0%" in found.first
    assert found.second == "It beats every floor, even simply pointing where a finding usually is."


def test_method_that_loses_to_the_usual_place_is_told_so(evidence_from):
    lost = {("iou", "location_prior"), ("hit", "location_prior")}
    found = verdict(evidence_from([*READERS, *scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam", lost)]))
    assert_two_sentences(found)
    assert found.second == ("It beats 3 of 4 floors but does not beat simply pointing where this finding usually is.")


def test_lead_that_may_be_chance_does_not_count_as_beating(evidence_from):
    lost = {("iou", "edge"), ("hit", "edge")}
    rows = [*READERS, *scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam", lost, p=0.06, difference=0.03)]
    assert "does not clearly beat a plain edge filter" in verdict(evidence_from(rows)).second


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
    found = verdict(evidence_from(rows, methods=2))
    assert_two_sentences(found)
    assert "Grad-CAM outlines best (overlap 0.31 against" in found.first
    assert "Grad-CAM++ points best (hottest point inside the finding in 62\u00a0% of cases against" in found.first
    assert "On overlap Grad-CAM beats 3 of 4 floors but does not beat simply pointing" in found.second
    assert "on pointing Grad-CAM++ beats every floor" in found.second


def test_methods_that_look_equal_share_the_place(evidence_from):
    rows = [*READERS, *scored("grad_cam", 0.3111, 0.6201), *scored("method_1", 0.3099, 0.6199)]
    rows += against_floors("grad_cam") + against_floors("method_1")
    found = verdict(evidence_from(rows, methods=2))
    assert_two_sentences(found)
    assert found.first.startswith("Of 2 methods, Grad-CAM and Grad-CAM++ share first place: their outlines")
    assert found.second.startswith("Each of them beats every floor")


def test_floor_is_never_called_the_best_method(evidence_from):
    rows = [*scored("grad_cam", 0.2, 0.4), *scored("location_prior", 0.5, 0.8), *against_floors("grad_cam")]
    assert "Grad-CAM was the one method tested" in verdict(evidence_from(rows)).first


def test_without_readers_the_distance_is_said_to_be_unknown(evidence_from):
    found = verdict(evidence_from([*scored("grad_cam", 0.31, 0.62), *against_floors("grad_cam")]))
    assert_two_sentences(found)
    assert "against" not in found.first
    assert found.first.endswith("; no human readers were given, so how far that is from a person is not known.")


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
    found = verdict(evidence_from([mean("hit", ALL, "grad_cam", 0.62), *against_floors("grad_cam")]))
    assert_two_sentences(found)
    assert "overlap" not in found.first + found.second


def test_caveats_name_close_rivals_and_rare_findings(evidence_from):
    rows = [
        *scored("grad_cam", 0.31, 0.62),
        *scored("method_1", 0.25, 0.3),
        mean("iou", FINDINGS[0], "grad_cam", 0.2, n=7),
    ]
    told = caveats(evidence_from(rows, methods=2))
    assert "Fewer than 10 cases stand behind Airspace Opacity (7): read those rows as anecdotes." in told
    assert [sentence for sentence in told if "may be luck" in sentence] == [
        "Overlap (IoU): the interval of Grad-CAM overlaps that of Grad-CAM++, so the first place may be luck."
    ]
