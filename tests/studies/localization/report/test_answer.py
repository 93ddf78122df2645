"""The first screen of localization: its statuses, its advice and its chart, for estimate tables worked by hand."""

from dataclasses import replace

from tests.studies.localization.report.material import FINDINGS, FLOORS, floor_test, mean

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.report.blocks.gallery import Gallery
from heatcheck.report.first_screen import Light
from heatcheck.studies.localization.report.answer import answer

NO_PICTURES = Gallery((), 0)


def overall(method, beaten, n=120):
    """Scores over all findings and tests against every floor, clearly won by the metrics of `beaten` alone."""
    rows = [mean("iou", ALL_FINDINGS, method, 0.3, n), mean("hit", ALL_FINDINGS, method, 0.6, n)]
    for metric in ("iou", "hit"):
        rows += [floor_test(metric, ALL_FINDINGS, method, f, 0.2 if metric in beaten else -0.2) for f in FLOORS]
    return rows


def said(evidence_from, rows, methods=2):
    return answer(evidence_from(rows, methods), NO_PICTURES)


def test_advice_names_who_beats_the_best_floor_of_a_finding_and_where_nobody_does(evidence_from):
    first, second, third, fourth = FINDINGS[:4]
    rows = [*overall("grad_cam", {"hit"}), *overall("method_1", set())]
    won = [
        ("iou", first, "grad_cam"),
        ("hit", first, "grad_cam"),
        ("hit", second, "grad_cam"),
        ("iou", third, "method_1"),
    ]
    rows += [floor_test(metric, finding, name, "edge", 0.2) for metric, finding, name in won]
    rows += [floor_test("iou", fourth, name, "location_prior", -0.2) for name in ("grad_cam", "method_1")]
    *_, single = said(evidence_from, rows).recommendation
    assert single == (
        f"Single findings: Grad-CAM clearly beats the best floor on {first} (overlap and hit rate) and {second} (hit "
        f"rate); Grad-CAM++ on {third} (overlap); on {fourth} no method is shown to beat the best floor: show no map "
        "there."
    )


def test_a_use_is_advised_by_the_metric_that_stands_for_it_and_the_chart_shows_that_metric(evidence_from):
    found = said(evidence_from, [*overall("grad_cam", {"hit"}), *overall("method_1", set())])
    assert found.recommendation[:2] == (
        "To point at findings, use Grad-CAM, which clearly beats every floor on hit rate over all findings.",
        "To outline findings, use none of these maps: over all findings no method beats every floor on overlap.",
    )
    assert found.chart.heading == "Hit rate"
    none = said(evidence_from, [*overall("grad_cam", set()), *overall("method_1", set())])
    assert none.chart.heading == "Overlap (IoU)"


def test_a_chart_that_leaves_methods_out_says_so(evidence_from):
    names = ["grad_cam", *(f"method_{i}" for i in range(1, 6))]
    found = said(evidence_from, [row for name in names for row in overall(name, {"iou"})], len(names))
    assert found.chart.heading == "Overlap (IoU): the highest 4 of 6 methods"


def test_a_few_patients_of_some_findings_are_no_full_yes(evidence_from):
    def enough(thin):
        rows = overall("grad_cam", {"iou", "hit"})
        for i, finding in enumerate(FINDINGS):
            n = 12 if i < thin else 60
            rows += [replace(mean(metric, finding, "grad_cam", 0.3, n), n_patients=n) for metric in ("iou", "hit")]
        return next(each for each in said(evidence_from, rows, 1).statuses if each.question.startswith("Enough"))

    assert [(enough(thin).light, enough(thin).word) for thin in (0, 1, 6)] == [
        (Light.YES, "120 patients"), (Light.PARTLY, "For 9 of 10 findings"), (Light.PARTLY, "A first impression")
    ]  # fmt: skip
    assert "1 of 10 findings have fewer than 30 patients" in enough(1).sentence


def test_advice_warns_of_findings_on_which_an_advised_method_is_below_the_best_floor(evidence_from):
    finding = FINDINGS[0]
    rows = [*overall("grad_cam", {"iou"}), *overall("method_1", set())]
    rows += [floor_test("iou", finding, "grad_cam", "location_prior", -0.2)]
    rows += [floor_test("hit", finding, "grad_cam", "location_prior", 0.2)]
    outline = next(each for each in said(evidence_from, rows).recommendation if each.startswith("To outline"))
    assert outline.endswith(f"over all findings; not on {finding} (Grad-CAM): clearly below the best floor there.")


def test_the_highest_method_is_named_first_and_every_method_is_counted(evidence_from):
    low, high = overall("grad_cam", {"iou"}), overall("method_1", {"iou"})
    high = [replace(row, value=0.5) if (row.statistic, row.metric) == ("mean", "iou") else row for row in high]
    floors = said(evidence_from, [*low, *high, *overall("method_2", set())], 3).statuses[0]
    assert floors.sentence.startswith(
        "Clearly better than every floor: Grad-CAM++ and Grad-CAM on overlap (1 method does"
    )


def test_a_model_that_guesses_some_findings_is_no_full_yes(evidence_from):
    def recognises(low):
        rows = [Estimate("auroc", "auroc", ALL_FINDINGS, "", "densenet121", 0.8, 0.7, 0.9)]
        for finding in FINDINGS:
            least = low if finding == FINDINGS[0] else 0.7
            rows.append(Estimate("auroc", "auroc", finding, "", "densenet121", 0.8, least, 0.9))
        found = said(evidence_from, [*overall("grad_cam", {"iou"}), *rows], 1).statuses
        return next(each for each in found if each.question.startswith("Does the model")).word

    assert [recognises(low) for low in (0.7, 0.45)] == ["Yes", "9 of 10"]
