"""One case scored by hand."""

import math
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from heatcheck.core.geometry import Cells, place
from heatcheck.core.records import UNCERTAIN, Case, CaseKey, Point, Reading
from heatcheck.core.vocabulary import condition
from heatcheck.explaining.batch import Explained, GridMaps
from heatcheck.explaining.priors import NO_PRIOR
from heatcheck.metrics.undefined import NO_RELEVANCE, NOTHING_MARKED
from heatcheck.regions.rule import RegionRule
from heatcheck.scoring.empty_maps import EMPTY_MAP
from heatcheck.scoring.reader_rows import NOT_OUTLINED
from heatcheck.scoring.rows import (
    AT_TUNED_CUTOFF,
    AT_TUNED_THRESHOLD,
    CALLED_NEGATIVE,
    NO_MASK,
    PLAIN,
    PLAINLY_PLACED,
    REFERENCE,
    REFERENCE_AT_CUTOFF,
    ScoringRule,
    TunedSettings,
)
from heatcheck.studies.localization.scores import score_case

RULE = ScoringRule(("iou", "iou_full", "hit", "mass", "rank"), RegionRule(0.5))
TRUTH = np.zeros((4, 4), bool)
TRUTH[1, 1:3] = True  # two pixels


def hot(*pixels):
    values = np.zeros((4, 4), np.float32)
    for row, column, value in pixels:
        values[row, column] = value
    return values


def explained(labels, truth, maps, probabilities=(0.9,), readings=(), cells=None):
    case = Case(CaseKey("c", "p", labels), np.zeros((1, 4, 4), np.float32), truth, readings)
    grids = {"grad_cam": GridMaps(torch.from_numpy(np.stack(maps)), cells)}
    return Explained(case, (0.0,) * len(labels), probabilities, grids, place((4, 4), (4, 4), "stretch"))


def values_of(rows, method="grad_cam"):
    return {row.metric: row.value for row in rows if row.method == method and row.condition == "{}"}


def test_a_positive_case_by_hand():
    values = hot((1, 1, 3.0), (0, 0, 2.0), (3, 3, 1.0))
    got = values_of(score_case(explained({"f": 1}, {"f": TRUTH}, (values,)), ["f"], "model", RULE))
    assert got["iou"] == pytest.approx(1 / 3)  # region {(1,1), (0,0)}, truth {(1,1), (1,2)}
    assert got["iou_full"] == pytest.approx(1 / 3)
    assert got["hit"] == 1
    assert got["mass"] == pytest.approx(0.5)
    assert got["rank"] == pytest.approx(0.5)
    assert (got["true_positive_pixels"], got["false_positive_pixels"]) == (1, 1)
    assert (got["false_negative_pixels"], got["true_negative_pixels"]) == (1, 13)


CONSTANT = [0.0, 0.3, -2.0, 1e-9]
EVERY = ("iou", "iou_full", "dice", "box_iou", "hit", "hit_margin", "mass", "rank")


@pytest.mark.parametrize("value", CONSTANT)
def test_a_map_with_one_value_everywhere_is_a_failure_by_every_measure(value):
    flat = np.full((4, 4), value, np.float32)
    rule = replace(RULE, metrics=EVERY, thresholds=(0.2, 0.5))
    rows = score_case(explained({"f": 1}, {"f": TRUTH}, (flat,)), ["f"], "model", rule)
    scored = [row for row in rows if row.metric in EVERY and row.condition != REFERENCE]
    assert len(scored) == len(EVERY) + 2
    assert {(row.value, row.reason) for row in scored} == {(0.0, EMPTY_MAP)}
    got = values_of(rows)
    assert (got["empty_map"], got["true_positive_pixels"], got["false_negative_pixels"]) == (1, 0, 2)


@pytest.mark.parametrize("value", CONSTANT)
@pytest.mark.parametrize("colours", [0, 3])
def test_the_benchmarks_rules_score_an_empty_map_as_before(value, colours):
    flat = np.full((4, 4), value, np.float32)
    rule = replace(RULE, region=RegionRule(colours=colours))
    rows = score_case(explained({"f": 1}, {"f": TRUTH}, (flat,)), ["f"], "model", rule)
    reference = {row.metric: row.value for row in rows if row.condition == REFERENCE}
    overlap = {"iou": 2 / 16, "iou_full": 2 / 16}  # smoothed colours mark everything
    assert reference == {"hit": 0, **(overlap if colours else {"iou_full": 0})}
    before = replace(rule, rules=replace(rule.rules, empty_map="scored"))
    old = values_of(score_case(explained({"f": 1}, {"f": TRUTH}, (flat,)), ["f"], "model", before))
    assert old["hit"] == pytest.approx(2 / 16)
    assert math.isnan(old["mass"]) == (value <= 0)


def smoothed_colours(values, kernel):
    """The benchmark's region, step by step: outer contours of what is dark, filled, without single pixels."""
    grey = ((values - values.min()) / (values.max() - values.min()) * 255).astype(np.uint8)
    shown = cv2.cvtColor(cv2.applyColorMap(grey, cv2.COLORMAP_JET), cv2.COLOR_RGB2GRAY)
    dark = 255 - cv2.boxFilter(shown, -1, (kernel, kernel))
    marked = cv2.threshold(dark, 0, 1, cv2.THRESH_BINARY + cv2.THRESH_OTSU)[1]
    contours, _ = cv2.findContours(marked, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    filled = np.zeros(marked.shape, np.uint8)
    for contour in contours:
        if len(contour) > 1:
            cv2.fillPoly(filled, [contour], 1)
    return filled.astype(bool)


@pytest.mark.parametrize(("colours", "kernel"), [({}, 4), ({"grad_cam": 9}, 9), ({"grad_cam": 0.15}, 6)])
def test_where_a_map_is_smoothed_the_benchmark_smooths_its_colours(colours, kernel):
    truth = np.zeros((40, 30), bool)
    truth[10:30, 5:20] = True
    values = np.random.default_rng(3).random((40, 30), np.float32) + truth
    case = Case(CaseKey("c", "p", {"f": 1}), np.zeros((1, 40, 30), np.float32), {"f": truth})
    grids = {"grad_cam": GridMaps(torch.from_numpy(values)[None])}
    one = Explained(case, (0.0,), (0.9,), grids, place((40, 30), (40, 30), "stretch"))
    rule = replace(RULE, region=RegionRule(), regions={"grad_cam": RegionRule(smooth=0.1)}, colours=colours)
    rows = score_case(one, ["f"], "model", rule)
    (theirs,) = (row.value for row in rows if (row.metric, row.condition) == ("iou", REFERENCE))
    region = smoothed_colours(values, kernel)
    assert theirs == pytest.approx((region & truth).sum() / (region | truth).sum())
    assert values_of(rows)["iou"] > 0.7  # the map itself, smoothed, marks the finding
    below = score_case(one, ["f"], "model", replace(rule, cutoff=0.95))
    assert ("iou", REFERENCE) not in {(row.metric, row.condition) for row in below}


def test_smoothing_that_is_tried_has_its_own_rows():
    values = np.random.default_rng(3).random((40, 30), np.float32)
    truth = np.zeros((40, 30), bool)
    truth[10:30, 5:20] = True
    rule = replace(RULE, region=RegionRule(), smooths={"grad_cam": (0.1, 0.2)})
    for labels, outlined in (({"f": 1}, {"f": truth}), ({"f": 0}, {})):
        case = Case(CaseKey("c", "p", labels), np.zeros((1, 40, 30), np.float32), outlined)
        grids = {"grad_cam": GridMaps(torch.from_numpy(values + truth)[None])}
        one = Explained(case, (0.0,), (0.9,), grids, place((40, 30), (40, 30), "stretch"))
        rows = score_case(one, ["f"], "model", rule)
        for smooth in (0.1, 0.2):
            tried = {row.metric: row.value for row in rows if row.condition == condition(smooth=smooth)}
            once = values_of(score_case(one, ["f"], "model", replace(rule, region=RegionRule(smooth=smooth))))
            assert tried == {name: once[name] for name in ("iou", "iou_full") if name in once}


def test_a_constant_map_stays_empty_when_its_resize_rounds():
    truth = np.zeros((100, 90), bool)
    truth[10:30, 20:50] = True
    case = Case(CaseKey("c", "p", {"f": 1}), np.zeros((1, 100, 90), np.float32), {"f": truth})
    flat = torch.full((1, 10, 10), 0.7)
    one = Explained(case, (0.0,), (0.9,), {"grad_cam": GridMaps(flat)}, place((100, 90), (10, 10), "stretch"))
    assert np.ptp(one.map_of("grad_cam", 0)) > 0  # rounding alone, which must not be stretched into a region
    got = values_of(score_case(one, ["f"], "model", RULE))
    assert {got[name] for name in RULE.metrics} == {0.0}
    assert got["empty_map"] == 1


def test_an_empty_map_of_an_absent_finding_marks_nothing_and_is_counted():
    rule = replace(RULE, region=RegionRule(colours=3))  # which would mark the whole image
    rows = score_case(explained({"f": 0}, {}, (np.full((4, 4), 0.3, np.float32),)), ["f"], "model", rule)
    by_metric = {row.metric: row for row in rows if row.condition == PLAIN}
    assert set(by_metric) == {"iou_full", "empty_map"}
    assert by_metric["iou_full"].reason == NOTHING_MARKED
    assert rows_under(rows, REFERENCE) == {"iou_full": 0}  # as the benchmark has it
    assert by_metric["empty_map"].value == 1


def test_an_empty_map_of_a_case_called_negative_stays_out_of_the_overlap_but_misses():
    rule = replace(RULE, cutoff=0.95)
    got = values_of(score_case(explained({"f": 1}, {"f": TRUTH}, (hot(),)), ["f"], "model", rule))
    assert math.isnan(got["iou"])
    assert (got["hit"], got["mass"], got["iou_full"]) == (0, 0, 0)


def test_a_map_without_positive_heat_has_none_inside_the_outline():
    against = hot((1, 1, -1.0)) - 1  # evidence against, strongest inside
    rows = score_case(explained({"f": 1}, {"f": TRUTH}, (against,)), ["f"], "model", RULE)
    scored = {row.metric: row for row in rows if row.condition == "{}"}
    assert {(scored[name].value, scored[name].reason) for name in ("mass", "rank")} == {(0.0, NO_RELEVANCE)}
    assert (scored["empty_map"].value, scored["hit"].reason) == (0, "")


def test_an_absent_finding_counts_in_the_full_slice_only():
    maps = (hot((0, 0, 1.0)), hot((1, 1, 1.0)))
    rows = score_case(explained({"f": 0, "g": 1}, {"g": TRUTH}, maps, (0.9, 0.9)), ["f", "g"], "model", RULE)
    got = {row.metric: row.value for row in rows if row.finding == "f"}
    assert got["iou_full"] == 0
    assert got["false_positive_pixels"] == 1
    assert "iou" not in got
    assert "hit" not in got


def test_an_image_without_any_truth_leaves_the_pixel_counts_alone():
    rows = score_case(explained({"f": 0}, {}, (hot((0, 0, 1.0)),)), ["f"], "model", RULE)
    assert {row.metric for row in rows} == {"iou_full", "empty_map"}


@pytest.mark.parametrize("label", [math.nan, UNCERTAIN])
def test_an_unknown_or_uncertain_label_without_truth_gives_no_score(label):
    rows = score_case(explained({"f": label}, {}, (hot((1, 1, 1.0)),)), ["f"], "model", RULE)
    assert [(row.metric, row.value) for row in rows] == [("empty_map", 0)]


def test_a_positive_nobody_outlined_is_undefined_with_a_reason():
    rows = score_case(explained({"f": 1}, {}, (hot(),)), ["f"], "model", RULE)
    assert {row.metric for row in rows} == {*RULE.metrics, "empty_map"}
    scores = [row for row in rows if row.metric != "empty_map"]
    assert all(math.isnan(row.value) and row.reason == NO_MASK for row in scores)


def test_a_case_called_negative_leaves_the_true_positive_slice_and_counts_as_empty_in_the_full_one():
    rule = ScoringRule(("iou", "iou_full", "hit"), RegionRule(0.5), cutoff=0.5)
    rows = score_case(explained({"f": 1}, {"f": TRUTH}, (hot((1, 1, 1.0)),), (0.4,)), ["f"], "model", rule)
    by_metric = {row.metric: row for row in rows}
    assert math.isnan(by_metric["iou"].value)
    assert by_metric["iou"].reason == CALLED_NEGATIVE
    assert by_metric["iou_full"].value == 0
    assert by_metric["true_positive_pixels"].value == 0
    assert by_metric["hit"].value == 1  # where the map points is scored on every positive case


def test_the_human_score_is_the_mean_over_readers_who_have_one():
    exact = Reading("A", {"f": TRUTH}, {"f": (Point((1.4, 1.2)),)})
    half = Reading("B", {"f": hot((1, 1, 1)).astype(bool)}, {})
    rows = score_case(explained({"f": 1}, {"f": TRUTH}, (hot(),), readings=(exact, half)), ["f"], "model", RULE)
    got = values_of(rows, "human")
    assert got["iou"] == pytest.approx((1 + 0.5) / 2)
    assert got["hit"] == 1  # the second reader gave no point
    readers = {row.condition: row.value for row in rows if row.method == "human" and row.metric == "iou"}
    assert readers['{"reader":"A"}'] == 1
    assert readers['{"reader":"B"}'] == 0.5


def test_a_reader_who_saw_the_case_but_marked_nothing_overlaps_by_nothing():
    blind = Reading("A", {}, {})
    rows = score_case(explained({"f": 1}, {"f": TRUTH}, (hot(),), readings=(blind,)), ["f"], "model", RULE)
    got = {row.metric: row for row in rows if row.method == "human" and row.condition == "{}"}
    assert got["iou"].value == 0
    assert math.isnan(got["hit"].value)
    assert got["hit"].reason


def test_a_reader_who_drew_no_outlines_is_unknown_not_wrong():
    pointing = Reading("A", {}, {"f": (Point((1.5, 1.5)),)}, outlined=False)
    rows = score_case(explained({"f": 1}, {"f": TRUTH}, (hot(),), readings=(pointing,)), ["f"], "model", RULE)
    got = {row.metric: row for row in rows if row.method == "human" and row.condition == "{}"}
    assert got["hit"].value == 1
    assert math.isnan(got["iou"].value)
    assert got["iou"].reason == NOT_OUTLINED


def test_a_reader_who_marks_a_healthy_image_pays_in_the_full_slice_as_a_method_does():
    marked = Reading("A", {"f": TRUTH}, {})
    maps = (hot((0, 0, 1.0)), hot((1, 1, 1.0)))
    both = explained({"f": 0, "g": 1}, {"g": TRUTH}, maps, (0.9, 0.9), readings=(marked,))
    rows = score_case(both, ["f", "g"], "model", RULE)
    human = {row.metric: row.value for row in rows if row.finding == "f" and row.method == "human"}
    assert human["iou_full"] == 0
    assert "iou" not in human


def test_a_finding_without_a_prior_is_undefined_for_the_location_prior():
    both = explained({"f": 1}, {"f": TRUTH}, (hot((1, 1, 1.0)),))
    prior = replace(both, grids={"location_prior": both.grids["grad_cam"]}, missing={"location_prior": {0: NO_PRIOR}})
    rows = score_case(prior, ["f"], "model", RULE)
    assert {row.metric for row in rows} == set(RULE.metrics)
    assert all(math.isnan(row.value) and row.reason == NO_PRIOR for row in rows)


def rows_under(rows, condition, method="grad_cam"):
    return {row.metric: row.value for row in rows if row.method == method and row.condition == condition}


def test_the_benchmark_leaves_an_empty_region_out_and_takes_the_first_of_equal_peaks():
    flat = score_case(explained({"f": 1}, {"f": TRUTH}, (hot(),)), ["f"], "model", RULE)
    assert rows_under(flat, REFERENCE) == {"hit": 0.0, "iou_full": 0.0}
    tied = hot((1, 2, 3.0), (3, 0, 3.0))
    rows = score_case(explained({"f": 1}, {"f": TRUTH}, (tied,)), ["f"], "model", RULE)
    assert values_of(rows)["hit"] == 0.5
    third = pytest.approx(1 / 3)
    assert rows_under(rows, REFERENCE) == {"iou": third, "iou_full": third, "hit": 1.0}


def test_under_the_benchmarks_rules_a_reader_hits_with_any_point_and_misses_without_one():
    points = (Point((1.5, 1.5)), Point((3.5, 3.5)))
    reader = Reading("one", {"f": TRUTH}, {"f": points})
    case = explained({"f": 1, "g": 1}, {"f": TRUTH, "g": TRUTH}, (hot(), hot()), (0.9, 0.9), (reader,))
    rows = score_case(case, ["f", "g"], "model", RULE)
    by_finding = {f: rows_under([r for r in rows if r.finding == f], REFERENCE, "human") for f in ("f", "g")}
    assert by_finding == {"f": {"iou": 1.0, "hit": 1.0}, "g": {"hit": 0.0}}  # g: nothing drawn, no point
    plain = {(r.finding, r.metric): r.value for r in rows if r.method == "human" and r.condition == "{}"}
    assert (plain["f", "hit"], plain["g", "iou"]) == (0.5, 0.0)
    assert math.isnan(plain["g", "hit"])


def test_tuned_thresholds_and_cutoffs_apply_to_their_method_and_finding():
    values = hot((1, 1, 1.0), (1, 2, 0.5), (0, 0, 0.3))
    tuned = TunedSettings({("grad_cam", "f"): 0.4}, {("grad_cam", "f"): 0.95, ("grad_cam", "g"): 0.5})
    case = explained({"f": 1, "g": 0}, {"f": TRUTH}, (values, values), (0.9, 0.6))
    rows = score_case(case, ["f", "g"], "model", replace(RULE, tuned=tuned))
    assert [row.value for row in rows if row.condition == AT_TUNED_THRESHOLD] == [1.0]
    full = {row.finding: row.value for row in rows if row.condition == AT_TUNED_CUTOFF}
    assert full == {"f": 0.0, "g": 0.0}  # f is emptied and missed, g is kept and wrong
    emptied = replace(tuned, cutoffs={("grad_cam", "g"): 0.7})
    rows = score_case(case, ["f", "g"], "model", replace(RULE, tuned=emptied))
    assert not [row for row in rows if row.condition == AT_TUNED_CUTOFF]  # nothing marked where nothing is: no score


def test_on_validation_data_overlap_is_taken_at_every_threshold_and_nothing_else():
    rule = ScoringRule(
        ("iou",), RegionRule(), thresholds=(0.2, 0.6), counts=False, readers=False, reference=False
    )  # fmt: skip
    values = hot((1, 1, 1.0), (1, 2, 0.5))
    reader = Reading("one", {"f": TRUTH}, {})
    rows = score_case(explained({"f": 1}, {"f": TRUTH}, (values,), readings=(reader,)), ["f"], "model", rule)
    assert {row.condition: row.value for row in rows if row.condition != "{}"} == {
        condition(threshold=0.2): 1.0,
        condition(threshold=0.6): 0.5,
    }
    assert {row.metric for row in rows} == {"iou"}


def test_a_coarse_map_is_scored_where_its_cells_look_and_under_the_benchmarks_rules_where_it_tiles_the_image():
    """Cells that look at columns 0 and 2, the second hot. The outline is column 2; tiles would peak at column 3."""
    truth = np.zeros((4, 4), bool)
    truth[:, 2] = True
    hot = np.array([[0.0, 1.0], [0.0, 1.0]], np.float32)
    hits = ScoringRule(("hit",), RegionRule(0.5))
    case = explained({"f": 1}, {"f": truth}, [hot], cells=Cells((0.5, 0.5), (2.0, 2.0)))
    rows = {(row.metric, row.condition): row.value for row in score_case(case, ["f"], "m", hits)}
    assert rows["hit", PLAIN] == 0.5  # columns 2 and 3 share the peak
    assert rows["hit", PLAINLY_PLACED] == 0.0
    assert rows["hit", REFERENCE] == 0.0
    plain = explained({"f": 1}, {"f": truth}, [hot])
    alone = {(row.metric, row.condition): row.value for row in score_case(plain, ["f"], "m", hits)}
    assert alone["hit", PLAIN] == 0.0
    assert ("hit", PLAINLY_PLACED) not in alone


def test_overlap_on_all_images_by_the_benchmarks_rules_is_that_of_its_own_regions():
    """Two cells, the right one hot, which as tiles mark column 3, and columns 1 to 3 where they look.

    f is outlined in column 3, g is absent, and both have this map.
    """
    truth = np.zeros((4, 4), bool)
    truth[:, 3] = True
    hot = np.array([[0.0, 1.0], [0.0, 1.0]], np.float32)
    key = ("grad_cam", "f"), ("grad_cam", "g")
    tuned = TunedSettings(cutoffs=dict.fromkeys(key, 0.1), reference_cutoffs=dict(zip(key, (0.95, 0.5), strict=True)))
    rule = ScoringRule(("iou_full",), RegionRule(0.8), tuned=tuned, smooths={"grad_cam": (0.5,)})
    case = explained({"f": 1, "g": 0}, {"f": truth}, [hot, hot], (0.9, 0.7), cells=Cells((0.0, 0.0), (2.0, 1.0)))
    scored = [row for row in score_case(case, ["f", "g"], "m", rule) if row.metric == "iou_full"]
    rows = {(row.finding, row.condition): row.value for row in scored}
    assert len(rows) == len(scored)
    assert rows["f", PLAIN] == 1 / 3
    assert (rows["f", REFERENCE], rows["g", REFERENCE]) == (1.0, 0.0)
    assert (rows["f", REFERENCE_AT_CUTOFF], rows["g", REFERENCE_AT_CUTOFF]) == (0.0, 0.0)  # f is emptied and missed
    assert rows["f", AT_TUNED_CUTOFF] == 1 / 3
    assert ("f", PLAINLY_PLACED) not in rows  # nobody reads it
    below = replace(rule, tuned=replace(tuned, reference_cutoffs={key[1]: 0.8}))
    under = {(row.finding, row.condition) for row in score_case(case, ["f", "g"], "m", below)}
    assert ("g", REFERENCE_AT_CUTOFF) not in under  # nothing marked where nothing is: no score


@pytest.mark.parametrize("smooths", [(), (0.2, 0.3)])
def test_overlap_on_all_images_by_the_benchmarks_rules_smooths_colours(smooths):
    truth = np.zeros((40, 30), bool)
    truth[10:30, 5:20] = True
    values = np.random.default_rng(3).random((40, 30), np.float32) + truth
    grids = {"grad_cam": GridMaps(torch.from_numpy(np.stack([values, values])))}
    case = Case(CaseKey("c", "p", {"f": 1, "g": 0}), np.zeros((1, 40, 30), np.float32), {"f": truth})
    one = Explained(case, (0.0, 0.0), (0.9, 0.9), grids, place((40, 30), (40, 30), "stretch"))
    rule = replace(
        RULE, region=RegionRule(), regions={"grad_cam": RegionRule(smooth=0.1)}, smooths={"grad_cam": smooths}
    )
    rows = score_case(one, ["f", "g"], "model", rule)
    got = {(row.finding, row.condition): row.value for row in rows if row.metric == "iou_full"}
    boxes = {REFERENCE: 4} | {condition(preset="chexlocalize", smooth=each): round(each * 40) for each in smooths}
    for under, kernel in boxes.items():
        region = smoothed_colours(values, kernel)
        assert got["f", under] == pytest.approx((region & truth).sum() / (region | truth).sum())
        assert got["g", under] == 0
    own = score_case(one, ["f"], "model", replace(rule, colours={"grad_cam": 9}))
    assert {row.condition for row in own if "preset" in row.condition} == {REFERENCE}  # nothing is left to choose


def test_a_volume_has_no_overlap_by_smoothed_colours():
    truth = np.zeros((6, 6, 6), bool)
    truth[1:3, 1:3, 1:3] = True
    case = Case(CaseKey("c", "p", {"f": 1}), np.zeros((1, 6, 6, 6), np.float32), {"f": truth})
    grids = {"grad_cam": GridMaps(torch.from_numpy(truth.astype(np.float32))[None])}
    one = Explained(case, (0.0,), (0.9,), grids, place((6, 6, 6), (6, 6, 6), "stretch"))
    assert rows_under(score_case(one, ["f"], "model", RULE), REFERENCE) == {"iou": 1, "iou_full": 1, "hit": 1}
    coloured = score_case(one, ["f"], "model", replace(RULE, region=RegionRule(), colours={"grad_cam": 2}))
    assert rows_under(coloured, REFERENCE) == {"hit": 1}
