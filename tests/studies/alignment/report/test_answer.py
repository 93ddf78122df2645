"""The first screen of the alignment page: right for every outcome, and no tick without a useful map."""

import math
from dataclasses import replace

import pytest
from tests.studies.alignment.report.made_estimates import all_estimates
from tests.studies.alignment.report.material import AlignmentPlan

from heatcheck.core.vocabulary import condition
from heatcheck.report.first_screen import Light
from heatcheck.studies.alignment.report.answer import answer
from heatcheck.studies.alignment.report.gallery import alignment_gallery
from heatcheck.studies.alignment.report.readings import blames

USE, SHOW, FAULT, HOLD, ENOUGH = range(5)


def screen(evidence):
    return answer(evidence, alignment_gallery(evidence, 10**7))


def read_as(before, under="undecided", **plan):
    """The estimates with every reading of the blame table replaced, and map scores halfway up to perfect ones."""

    def change(row):
        if row.statistic == "scaled":
            return replace(row, value=0.5)
        return replace(row, condition=condition(before=before, under=under)) if row.statistic == "blame" else row

    return [change(row) for row in all_estimates(AlignmentPlan(**plan))]


def status_of(evidence, which):
    status = screen(evidence).statuses[which]
    return status.light, status.word


def test_first_screen_answers_every_question_in_counts(alignment_evidence):
    shown = screen(alignment_evidence())
    assert [status.word for status in shown.statuses] == [
        "In 2 of 4 pairs of network and finding",
        "In 2 of 6",
        "The method’s in 2 and the model’s in 2 of 8",
        "No",
        "A first impression",
    ]
    sentence = shown.statuses[FAULT].sentence
    assert "the method’s for Gradient on DenseNet (random_1_channel)" in sentence
    assert "the model’s for Gradient on ViT (radimagenet)" in sentence
    assert sentence.endswith("no fault is shown in 2.")
    assert "clearly moved it in 3 of 4 pairs" in shown.statuses[HOLD].sentence
    assert "0.12 on the misaligned network and 0.80 on the aligned one (0.55 before fine-tuning)" in (
        shown.statuses[HOLD].sentence
    )


def test_advice_names_what_to_show_and_what_not_and_stays_short(alignment_evidence):
    sentences = screen(alignment_evidence()).recommendation
    assert 2 <= len(sentences) <= 4
    assert "the maps of Integrated gradients on DenseNet (random_1_channel) may be shown" in sentences[0]
    assert sentences[1].startswith("Do not show the maps of Gradient on DenseNet (random_1_channel): the network uses")
    assert "Integrated gradients" in sentences[2]
    assert "they moved while the model did not" in sentences[2]
    assert sentences[3].startswith("Next, for the engineer: examine ViT (radimagenet) before any map")


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("shows", ["Yes", "Yes", "No fault found"]),
        ("method", ["Yes", "No", "The method’s"]),
        ("model", ["No", "Nothing to show", "The model’s"]),
        ("looks_elsewhere", ["No", "No", "Maps flatter a model"]),
        ("usual", ["Not shown", "No", "Not shown"]),
        ("undecided", ["Not shown", "Not shown", "Not shown"]),
        ("against", ["Not shown", "Nothing to show", "Not shown"]),
    ],
)
def test_each_reading_gets_its_own_words_and_a_tick_only_where_maps_show(alignment_evidence, before, words):
    statuses = screen(alignment_evidence(rows=read_as(before))).statuses[: FAULT + 1]
    assert [status.word for status in statuses] == words
    ticks = [status.light is Light.YES for status in statuses[SHOW:]]
    assert ticks == [before == "shows"] * 2


def test_no_tick_stands_for_a_map_that_scores_like_a_random_one(alignment_evidence):
    rows = [replace(row, value=0.02) if row.statistic == "scaled" else row for row in read_as("shows")]
    evidence = alignment_evidence(rows=rows)
    assert {row.label.sign for row in blames(evidence)} == {"?"}
    assert status_of(evidence, SHOW) == (Light.OPEN, "Not shown")
    assert status_of(evidence, FAULT) == (Light.OPEN, "Not shown")
    assert screen(evidence).recommendation[0].startswith("Show no heat map of these networks")


def test_one_training_claims_nothing_of_a_method_and_asks_for_more(alignment_evidence):
    evidence = alignment_evidence(seeds=(1,))
    assert status_of(evidence, HOLD) == (Light.OPEN, "One training cannot tell")
    assert "On these networks, each trained once" in screen(evidence).statuses[HOLD].sentence
    assert status_of(evidence, ENOUGH) == (Light.NO, "One training each")
    assert screen(evidence).recommendation[-1].startswith("Next, for the engineer: fine-tune every network with")
    assert not any("Compare methods" in sentence for sentence in screen(evidence).recommendation)


def of_robustness(**changes):
    return [replace(row, **changes) if row.statistic == "robustness" and not row.other_method else row
            for row in all_estimates(AlignmentPlan())]  # fmt: skip


def test_score_that_does_not_move_gets_the_tick_and_one_that_may_gets_none(alignment_evidence):
    still = alignment_evidence(rows=of_robustness(value=0.03, low=0.01, high=0.05))
    assert status_of(still, HOLD) == (Light.YES, "Yes")
    unsure = alignment_evidence(rows=of_robustness(low=-0.1, n_needed=41))
    assert status_of(unsure, HOLD) == (Light.OPEN, "Not shown")
    against = alignment_evidence(rows=of_robustness(value=-0.3, low=-0.4, high=-0.2))
    assert status_of(against, HOLD) == (Light.NO, "No")


def test_undefined_distances_and_runs_without_readings_leave_questions_open(alignment_evidence):
    untested = alignment_evidence(rows=of_robustness(value=math.nan))
    assert status_of(untested, HOLD) == (Light.OPEN, "Not tested")
    unread = alignment_evidence(keep=lambda row: row.statistic != "blame")
    assert [status_of(unread, which)[1] for which in (USE, SHOW, FAULT)] == ["Not judged", "Not judged", "Not shown"]


def test_run_with_nothing_judged_or_unfinished_has_no_first_screen(alignment_evidence):
    assert screen(alignment_evidence(status="running")) is None
    assert screen(alignment_evidence(keep=lambda row: row.statistic not in {"blame", "robustness"})) is None


def without_room(before=None, place=0.75):
    """The estimates of a run with readers, whose marks score 0.70, and a usual place that scores more."""
    rows = read_as(before, human="readers") if before else all_estimates(AlignmentPlan(human="readers"))
    return [replace(row, value=place) if row.method == "location_prior" and row.metric == "mass" else row
            for row in rows]  # fmt: skip


def test_where_readers_score_below_the_usual_place_the_first_screen_says_that_nothing_can_be_decided(
    alignment_evidence,
):
    shown = screen(alignment_evidence(rows=without_room("undecided"), human="readers"))
    maps = shown.statuses[SHOW]
    assert (maps.light, maps.word) == (Light.OPEN, "Cannot be decided")
    assert ("Not even the human readers beat those maps on Atelectasis (0.70, usual place 0.75)") in maps.sentence
    assert maps.sentence.endswith(": 8 of 8 undecided.")
    assert shown.recommendation[1].startswith("Next, for the engineer: judge maps of Atelectasis and Edema by another")
    assert {row.label.words for row in blames(alignment_evidence(rows=without_room("undecided"), human="readers"))} == {
        "cannot be decided"
    }


def test_chart_draws_the_usual_place_beside_the_readers_and_says_what_its_scale_is_made_of(alignment_evidence):
    chart = screen(alignment_evidence(rows=without_room(), human="readers")).chart
    assert all(f">{name}</text>" in chart.plot for name in ("random map", "readers", "usual place"))
    assert chart.note == (
        "Map score: the share of heat inside the outline, on a scale from a random map (0: a share of 0.10) to the "
        "human readers (1: a share of 0.70); the usual place has 0.75."
    )


def test_word_of_a_fault_says_of_how_many_it_is_and_is_red_only_where_it_is_all(alignment_evidence):
    unknown = condition(before="undecided", under="undecided")
    rows = [replace(row, condition=unknown) if row.statistic == "blame" and row.model.startswith("vit") else row
            for row in read_as("method")]  # fmt: skip
    fault = screen(alignment_evidence(rows=rows)).statuses[FAULT]
    assert (fault.light, fault.word) == (Light.PARTLY, "The method’s in 4 of 8")
    assert fault.sentence == (
        "Before fine-tuning: the method’s for Gradient and Integrated gradients on DenseNet (random_1_channel) and no "
        "fault is shown in 4."
    )
    assert status_of(alignment_evidence(rows=read_as("method")), FAULT) == (Light.NO, "The method’s")


def test_another_method_is_asked_for_after_saying_that_no_map_may_be_shown(alignment_evidence):
    sentences = screen(alignment_evidence(rows=read_as("method"))).recommendation
    assert sentences[0].startswith("Show no heat map of these networks to explain Atelectasis and Edema: no method is")
    assert sentences[1].startswith("Next, for the engineer: test other methods than Gradient and Integrated gradients")
    assert not any(sentence.startswith("Do not show") for sentence in sentences)


def test_floors_are_not_counted_but_tell_what_the_model_uses(alignment_evidence):
    rows = read_as("usual")
    extra = [replace(row, method="random", condition=condition(before="method", under="unmoved"))
             for row in rows if row.statistic == "blame" and row.method == "gradient"]  # fmt: skip
    evidence = alignment_evidence(rows=rows + extra, judged=("random",))
    assert status_of(evidence, USE) == (Light.YES, "Yes")
    assert "Random" not in " ".join(screen(evidence).recommendation)
    assert screen(evidence).statuses[SHOW].sentence.startswith("Better than every map made without the network: 0 of 8")


def test_picture_and_chart_are_of_the_same_pair(alignment_evidence):
    shown = screen(alignment_evidence(gallery=2))
    assert shown.picture.title.endswith("Gradient on DenseNet (random_1_channel), four networks")
    assert shown.picture.link == "pictures"
    assert "Mass: the share of a map’s heat that lies inside the outline. Rank: of its hottest" in shown.picture.note
    assert shown.chart.heading == "Mean map score: Gradient on DenseNet (random_1_channel), Atelectasis"
    assert "aligned 0.59" in shown.chart.plot
    without = screen(alignment_evidence())
    assert without.picture is None
    assert "Integrated gradients on DenseNet" in without.chart.heading  # the pair that was pushed furthest
