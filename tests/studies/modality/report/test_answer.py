"""The first screen of the modality page: right for every outcome, and the same judgement as the verdict."""

import json
import math
from dataclasses import replace

import pytest
from tests.studies.modality.report.changes import SMALL, changed, with_brightness, with_importances

from heatcheck.report.evidence import evidence_of
from heatcheck.report.first_screen import Light
from heatcheck.runs.store import read_run
from heatcheck.studies.modality.report.answer import MOST, answer
from heatcheck.studies.modality.report.caveats import caveats
from heatcheck.studies.modality.report.claims import BOTH, UNJUDGED, every_claim
from heatcheck.studies.modality.report.facts import prepared
from heatcheck.studies.modality.report.telling_case import telling_case

FEW = {"methods": ("guided_backprop", "gradient", "grad_cam"), "ratings": False}


def screen(evidence):
    return answer(evidence, None)


def lights(evidence):
    return [status.light for status in screen(evidence).statuses]


def test_methods_that_do_both_are_recommended_and_those_that_do_neither_are_not(modality_evidence):
    evidence = modality_evidence()
    relies, names, marks, follows = screen(evidence).statuses
    assert (relies.light, relies.word) == (Light.YES, "T1C")
    assert relies.sentence.startswith("T1C adds 26 percentage points (95 % interval 23–28) to balanced accuracy")
    assert (names.light, names.word) == (Light.PARTLY, "11 of 16 methods")
    assert (marks.light, marks.word) == (Light.PARTLY, "12 of 16 methods")
    assert "0.11 without the network (\u201cUniform map\u201d, the same everywhere)" in marks.sentence
    assert (follows.light, follows.word) == (Light.OPEN, "Not shown")
    use, lesion, no, after = screen(evidence).recommendation
    assert (
        use == "Use Guided Grad-CAM, Guided backprop and 9 more to see which modality counted and where its lesion is."
    )
    assert lesion == "Use Grad-CAM to see where the lesion is, not which modality counted."
    assert no == "Do not use LIME, Kernel SHAP and 2 more: shown to do neither."
    assert after.startswith("Next: explain networks that rely on different modalities")


def test_counts_of_the_screen_are_those_of_the_claims(modality_evidence):
    evidence = modality_evidence(**with_brightness(0.2, 0.1))
    judged = [one for one in every_claim(evidence) if one.outcome != UNJUDGED]
    assert all(one.outcome == BOTH for one in judged)
    assert lights(evidence)[1:3] == [Light.YES, Light.YES]


def test_a_floor_that_does_better_takes_the_recommendation(modality_evidence):
    evidence = modality_evidence(**with_brightness(0.88, 0.9))
    _, names, marks, _ = screen(evidence).statuses
    assert (names.light, marks.light) == (Light.NO, Light.NO)
    assert "0.88 without the network (\u201cBrightness\u201d, what is bright in the image)" in marks.sentence
    assert screen(evidence).recommendation[0].startswith("Do not show maps of these 5 networks to say which modality")


def test_what_is_open_is_not_a_no_and_names_the_patients_that_would_decide(modality_evidence):
    def wide(row):
        if row.statistic != "difference" or not row.method:
            return row
        return replace(row, low=-0.1, high=0.9, n_needed=143)

    evidence = modality_evidence(**changed(wide))
    marks = screen(evidence).statuses[2]
    assert (marks.light, marks.word) == (Light.OPEN, "Not shown")
    assert screen(evidence).recommendation[-1] == (
        "Next: whether maps mark the lesion is open; about 150 patients would decide it for at least one method."
    )
    assert not any(sentence.startswith("Use ") and "where" in sentence and "not where" not in sentence
                   for sentence in screen(evidence).recommendation)  # fmt: skip


def test_a_claim_that_another_comparison_refutes_needs_no_further_patients(modality_evidence):
    """No number of patients makes a method mark the lesion better than Brightness, which is clearly better."""
    rows = [
        replace(row, low=-0.1, high=0.9, n_needed=143)
        if row.statistic == "difference" and row.method and '"versus":"uniform"' in row.condition
        else row
        for row in with_brightness(0.88, 0.9)["rows"]
    ]
    evidence = modality_evidence(**with_brightness(0.88, 0.9) | {"rows": rows})
    assert "would decide" not in " ".join(screen(evidence).recommendation)


def test_one_network_says_nothing_of_following(modality_evidence):
    evidence = modality_evidence(folds=1, cases=40)
    relies, *_, follows = screen(evidence).statuses
    assert relies.question == "Which modality (sequence) does the network rely on?"
    assert (follows.light, follows.word) == (Light.OPEN, "Not with one network")
    assert screen(evidence).recommendation[-1].startswith("Next: explain several networks")


def test_of_one_network_patients_decide_only_what_is_said_of_it(modality_evidence):
    def wide(row):
        is_open = row.statistic == "difference" and row.method
        return replace(row, low=-0.1, high=0.9, n_needed=143) if is_open else row

    last = screen(modality_evidence(**changed(wide, folds=1, cases=40))).recommendation[-1]
    assert last.startswith("Next: explain several networks (folds)")
    assert last.endswith("For this network alone, about 150 patients would decide whether maps mark the lesion.")


def test_another_fill_with_another_answer_stands_beside_the_first(modality_evidence):
    by_tissue = with_importances(filled=("tissue",), spread=0.01, T1C=0.33, T1=0.11, T2=0.06, FLAIR=0.0)
    by_zero = with_importances(filled=("zero",), spread=0.01, T1C=0.5, T1=0.0, T2=0.0, FLAIR=0.0)
    relies = screen(modality_evidence(**changed(lambda row: by_zero(by_tissue(row))))).statuses[0]
    assert "With values of healthy tissue instead of 0 in what is left out: T1C 33, T1 11 and T2 6." in relies.sentence
    same = with_importances(spread=0.01, T1C=0.5, T1=0.0, T2=0.0, FLAIR=0.0)
    assert "instead of" not in screen(modality_evidence(**changed(same))).statuses[0].sentence


def test_few_patients_are_a_first_impression(modality_evidence):
    assert "16 patients give a first impression only" in screen(modality_evidence(folds=1, cases=16)).recommendation[-1]


def test_method_that_follows_no_network_is_not_recommended_for_the_modality(modality_evidence):
    def never(row):
        return replace(row, value=0.0, low=-0.02, high=0.02) if row.statistic == "following" else row

    evidence = modality_evidence(**changed(never))
    assert screen(evidence).statuses[3].light is Light.NO
    said = " ".join(screen(evidence).recommendation)
    assert "which modality counted and where" not in said
    assert "to see where the lesion is, not which modality counted." in said


def test_following_that_is_shown_is_a_yes_for_those_methods(modality_evidence):
    def follows(row):
        known = row.statistic == "following" and row.method == "deep_lift"
        return replace(row, value=0.5, low=0.2, high=0.8) if known else row

    status = screen(modality_evidence(**changed(follows))).statuses[3]
    assert (status.light, status.word) == (Light.PARTLY, "1 of 13 methods")
    assert status.sentence.startswith("DeepLIFT.")


@pytest.mark.parametrize(("value", "reach", "light", "word", "said"), [
    (0.01, 0.005, Light.NO, "None", "no modality helps by as much as matters, so there is nothing to point at"),
    (0.01, 0.05, Light.OPEN, "Not shown", "Do not choose a method by this run"),
])  # fmt: skip
def test_network_that_may_not_need_its_images_gets_no_judgement_of_methods(
    modality_evidence, value, reach, light, word, said
):
    def guess(row):
        return replace(row, value=value, low=value - reach, high=value + reach) if row.statistic == "shapley" else row

    evidence = modality_evidence(**changed(guess))
    relies, *others = screen(evidence).statuses
    assert (relies.light, relies.word) == (light, word)
    assert {status.light for status in others} == {Light.OPEN}
    assert said in screen(evidence).recommendation[0]


def test_shared_first_place_is_partly_known(modality_evidence):
    tie = with_importances(T1C=0.3, FLAIR=0.27, T1=0.0, T2=0.0)
    relies = screen(modality_evidence(**changed(tie))).statuses[0]
    assert (relies.light, relies.word) == (Light.PARTLY, "T1C and FLAIR")


def test_weak_networks_come_first(modality_evidence):
    def weak(row):
        known = row.statistic == "mean" and row.metric == "balanced_accuracy"
        return replace(row, value=0.55, low=0.45) if known else row

    evidence = modality_evidence(**changed(weak))
    assert "not shown to be better than guessing" in screen(evidence).recommendation[0]
    assert len(screen(evidence).recommendation) <= MOST


@pytest.mark.parametrize("changes", [
    {"methods": (), "shared": ()}, {"status": "running"}, {"rows": []},
    {"keep": lambda row: row.statistic != "difference"}, {"keep": lambda row: row.statistic != "agreement"},
    {"keep": lambda row: not row.metric.startswith("phi")}, {"methods": ("gradient",)}, {"methods": ("grad_cam",)},
])  # fmt: skip
def test_run_that_lacks_something_still_has_four_answers_and_advice(modality_evidence, changes):
    made = screen(modality_evidence(**SMALL | changes))
    assert len(made.statuses) == 4
    assert 1 <= len(made.recommendation) <= MOST
    text = " ".join([*made.recommendation, *(f"{each.word} {each.sentence}" for each in made.statuses)])
    assert "nan" not in text
    assert "  " not in text.strip()


def test_run_without_floors_or_scores_recommends_nothing(modality_evidence):
    evidence = modality_evidence(**SMALL, keep=lambda row: row.statistic != "difference")
    assert [each.light for each in screen(evidence).statuses[1:]] == [Light.OPEN] * 3
    assert not any(sentence.startswith("Use ") for sentence in screen(evidence).recommendation)


def test_unfinished_run_asks_to_finish_it(modality_evidence):
    made = screen(modality_evidence(**SMALL, status="running"))
    assert made.recommendation == (
        "Finish the run before you use anything on this page; the same command continues it.",
    )
    assert {each.light for each in made.statuses} == {Light.OPEN}


def evidence_at(folder):
    return prepared(evidence_of(read_run(folder)))


def test_picture_is_one_case_with_the_most_important_modality_s_map_of_every_method(modality_run):
    strip = telling_case(evidence_at(modality_run(**FEW, gallery=2)))
    assert [film.label for film in strip.films] == ["T1C", "Guided backprop", "Gradient", "Grad-CAM"]
    assert (
        strip.case
        == "Case BraTS20_Training_001 · HGG, the network says HGG (93\u00a0%) · axial, patient\u2019s right on the left"
    )
    assert all(film.outlines for film in strip.films)
    assert (strip.films[0].heat, strip.films[0].caption) == ("", "")
    assert [film.sign for film in strip.films[1:]] == ["✓", "✓", "✓"]  # of the lesion, whose score is shown
    assert "marks the lesion better than maps made without the network: ✓ yes." in strip.note
    assert strip.films[1].caption == "MSFI 0.55"


def test_picture_prefers_right_answers_and_passes_over_damaged_ones(modality_run):
    folder = modality_run(**FEW, gallery=3)  # the second answer is wrong
    (folder / "gallery" / "000-image-T1C.png").unlink()
    assert "BraTS20_Training_003" in telling_case(evidence_at(folder)).case
    (folder / "gallery" / "002-image-T1C.png").unlink()
    assert "BraTS20_Training_002" in telling_case(evidence_at(folder)).case
    (folder / "gallery" / "001-image-T1C.png").unlink()
    assert telling_case(evidence_at(folder)) is None


def test_picture_is_the_usual_case_and_says_so(modality_run):
    folder = modality_run(**FEW, gallery=3)  # the second answer is wrong

    def extreme(items):
        for each in items[0]["maps"]:
            each["msfi"] = 0.99

    path = folder / "gallery" / "index.json"
    index = json.loads(path.read_text())
    extreme(index["items"])
    path.write_text(json.dumps(index))
    strip = telling_case(evidence_at(folder))
    assert "BraTS20_Training_003" in strip.case
    assert strip.note.startswith("Shown because it is the most usual of the cases below: mean MSFI over the methods 0.")


def test_picture_of_a_volume_is_the_slice_that_is_shown_first(modality_run):
    strip = telling_case(evidence_at(modality_run(**FEW, gallery=1, slices=7, side=24)))
    assert strip.size == (24, 24)
    xs = [float(pair.split()[0]) for pair in strip.films[0].outlines[0].path.strip("MZ").split("L")]
    assert min(xs) >= 0
    assert max(xs) <= 24


def test_chart_shows_what_every_modality_adds(modality_evidence):
    chart = screen(modality_evidence(**SMALL)).chart
    for name in ("T1", "T1C", "T2", "FLAIR", "added to balanced accuracy"):
        assert name in chart.plot
    assert "φ" not in chart.heading + chart.plot


def test_faithfulness_of_the_method_with_the_highest_msfi_is_a_caveat_where_another_is_clearly_more_faithful(
    modality_evidence,
):
    def unfaithful(row):
        if row.statistic != "mean" or row.metric != "delta_aupc":
            return row
        value = 0.05 if row.method == "guided_backprop" else 0.4
        return replace(row, value=value, low=value - 0.02, high=value + 0.02)

    methods = ("guided_backprop", "gradient")
    told = " ".join(caveats(modality_evidence(**changed(unfaithful, methods=methods))))
    assert (
        "Guided backprop, with the highest MSFI, has a faithfulness (ΔAUPC) of 0.05, Gradient the highest, 0.40."
        in told
    )

    def unknown(row):
        return replace(unfaithful(row), high=math.nan, low=math.nan) if row.metric == "delta_aupc" else row

    assert "need not be what" not in " ".join(caveats(modality_evidence(**changed(unknown, methods=methods))))
