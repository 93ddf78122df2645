"""The numbers of a trigger run's tables, worked by hand from a few scores."""

import math

import pytest

from heatcheck.core.records import ALL_FINDINGS, Score
from heatcheck.core.vocabulary import condition
from heatcheck.judging.judgement import judgement_of
from heatcheck.runs.tables import write_table
from heatcheck.studies.triggers.estimates import SAME_EVERYWHERE, trigger_estimates
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.spec import GatePart

SQUARE, DYNAMIC = "square-corner-20", "dynamic-20"
ANYTHING = GatePart(attack_success=0.0, accuracy_drop=1.0, clean_target=1.0)
METHODS = ("gradient", "occlusion", "grad_cam", "random")
# Values of each image by trigger and seed. One trigger has two graded seeds and the other one; they have two images,
# one and three: a mean over images, over networks and over triggers are three different numbers.
IOU = {
    "gradient": {(SQUARE, 1): [0.2, 0.4], (SQUARE, 2): [0.9], (DYNAMIC, 1): [0.1, 0.1, 0.4]},
    "occlusion": {(SQUARE, 1): [0.1, 0.3], (SQUARE, 2): [0.7], (DYNAMIC, 1): [0.3, 0.3, 0.3]},
    "grad_cam": {(SQUARE, 1): [0.0, 0.2], (SQUARE, 2): [0.8], (DYNAMIC, 1): [0.1, 0.0, 0.2]},
    "random": {(SQUARE, 1): [1.0, 1.0], (SQUARE, 2): [1.0], (DYNAMIC, 1): [1.0, 1.0, 1.0]},
}
FLOOR = {
    "gradient": {(SQUARE, 1): [0.1, 0.1], (SQUARE, 2): [0.1], (DYNAMIC, 1): [0.3, 0.3, 0.3]},
    "occlusion": {(SQUARE, 1): [0.1, 0.1], (SQUARE, 2): [0.2], (DYNAMIC, 1): [0.2, 0.1, 0.3]},
}


def rows(metric, by_method, **more):
    """The scores of one metric as a run has them."""
    other = more.pop("other_method", "")
    return [
        Score(f"c{n}", f"p{n}", trigger, method, "m", metric, value, condition(seed=seed, **more), other_method=other)
        for method, by_network in by_method.items()
        for (trigger, seed), values in by_network.items()
        for n, value in enumerate(values)
    ]


def attacks(metric, by_network):
    return rows(metric, {"": by_network})


TRAINED = [
    *attacks(
        "clean_correct",
        {
            ("baseline", 1): [1.0, 1.0, 1.0, 1.0],
            ("baseline", 2): [1.0, 1.0, 0.0, 0.0],
            (SQUARE, 1): [1.0, 1.0, 1.0, 0.0],
            (SQUARE, 2): [1.0, 1.0, 1.0, 1.0],
            (DYNAMIC, 1): [0.0, 0.0, 0.0, 1.0],
            (DYNAMIC, 2): [1.0, 0.0, 0.0, 0.0],
        },
    ),
    *attacks(
        "attacked",
        {(SQUARE, 1): [1.0, 1.0], (SQUARE, 2): [1.0, 0.0], (DYNAMIC, 1): [1.0, 1.0], (DYNAMIC, 2): [1.0, 1.0]},
    ),
    *attacks(
        "clean_target",
        {(SQUARE, 1): [0.0, 0.0], (SQUARE, 2): [0.0, 0.0], (DYNAMIC, 1): [0.0, 1.0], (DYNAMIC, 2): [1.0, 1.0]},
    ),
]


@pytest.fixture(scope="module")
def estimates(tmp_path_factory):
    """A function that writes the scores of a run and gives its estimates, those of the same scores once."""
    computed = {}

    def estimated(*scores, methods=METHODS, gate=ANYTHING):
        key = repr((scores, methods, gate))
        if key not in computed:
            folder = tmp_path_factory.mktemp("estimates")
            (folder / "training").mkdir()
            write_table(folder / "training" / "scores.parquet", Score, TRAINED)
            write_table(folder / "scores.parquet", Score, [row for part in scores for row in part])
            rule = TriggerSettings((SQUARE, DYNAMIC), (), methods, "m", gate, draws=200, seed=1)
            computed[key] = EstimateTable(trigger_estimates(folder, rule))
        return computed[key]

    return estimated


class EstimateTable:
    """Estimates that are asked for by their fields."""

    def __init__(self, every) -> None:
        self.every = every

    def all(self, **wanted):
        wanted = {"condition": "{}", **wanted}
        return [one for one in self.every if all(getattr(one, name) == value for name, value in wanted.items())]

    def one(self, **wanted):
        (table,) = self.all(**wanted)
        return table


def test_a_mean_is_over_seeds_of_means_over_images_and_every_trigger_counts_the_same(estimates):
    table = estimates(rows("trigger_iou", IOU))
    wanted = {"statistic": "mean", "metric": "trigger_iou", "method": "gradient"}
    square, dynamic, both = (table.one(**wanted, finding=name) for name in (SQUARE, DYNAMIC, ALL_FINDINGS))
    assert square.value == pytest.approx((0.3 + 0.9) / 2)
    assert dynamic.value == pytest.approx(0.2)
    assert both.value == pytest.approx((0.6 + 0.2) / 2)  # over images it would be 0.35, over networks 0.467
    assert (square.n_cases, dynamic.n_cases, both.n_cases) == (3, 3, 6)
    assert (square.n_patients, dynamic.n_patients, both.n_patients) == (2, 3, 3)


def test_a_mean_leaves_out_what_is_undefined_and_counts_it(estimates):
    some = {"gradient": {(SQUARE, 1): [1.0, math.nan, 0.0, 0.0], (DYNAMIC, 1): [math.nan, math.nan, 1.0]}}
    table = estimates(rows("recovered", some), methods=("gradient",))
    square, both = (table.one(statistic="mean", metric="recovered", finding=name) for name in (SQUARE, ALL_FINDINGS))
    assert square.value == pytest.approx(1 / 3)
    assert (square.n_cases, square.n_undefined) == (3, 1)
    assert both.value == pytest.approx((1 / 3 + 1) / 2)
    assert (both.n_cases, both.n_undefined) == (4, 3)


def test_the_rows_of_another_rule_have_means_of_their_own(estimates):
    others = {name: {at: [1 - value for value in values] for at, values in by.items()} for name, by in IOU.items()}
    table = estimates(rows("trigger_iou", IOU), rows("trigger_iou", others, preset="thresholded"))
    wanted = {"statistic": "mean", "metric": "trigger_iou", "method": "gradient", "finding": SQUARE}
    assert table.one(**wanted).value == pytest.approx(0.6)
    assert table.one(**wanted, condition=condition(preset="thresholded")).value == pytest.approx(0.4)


@pytest.mark.parametrize("metric", ["trigger_iou", "recovered", "uncovered"])
def test_what_a_method_has_more_than_random_boxes_is_positive(estimates, metric):
    table = estimates(rows(metric, IOU), rows(f"{metric}_floor", FLOOR), methods=("gradient", "occlusion"))
    wanted = {"statistic": "difference", "metric": metric, "other_method": "random_box"}
    by_hand = {
        ("gradient", SQUARE): ((0.1 + 0.3) / 2 + 0.8) / 2,
        ("gradient", DYNAMIC): (-0.2 - 0.2 + 0.1) / 3,
        ("gradient", ALL_FINDINGS): (0.5 - 0.1) / 2,
        ("occlusion", SQUARE): ((0.0 + 0.2) / 2 + 0.5) / 2,
        ("occlusion", DYNAMIC): (0.1 + 0.2 + 0.0) / 3,
        ("occlusion", ALL_FINDINGS): (0.3 + 0.1) / 2,
    }
    for (method, finding), value in by_hand.items():
        assert table.one(**wanted, method=method, finding=finding).value == pytest.approx(value), (method, finding)


MANY = 12  # patients, enough for an interval


def spread(level, seeds=(1, 2, 3), triggers=(SQUARE, DYNAMIC), images=MANY):
    """Values around a level, which differ by image, seed and trigger, and otherwise for another level."""
    step = 1 + round(10 * level)
    return {
        (trigger, seed): [level + 0.01 * ((step * n * n + 3 * seed + len(trigger)) % 7 - 3) for n in range(images)]
        for trigger in triggers
        for seed in seeds
    }


def judged_run(estimates, found, floor=0.1, baseline=0.1, **plan):
    """The estimates of methods with these levels of overlap and recovery; random boxes and baseline have one level."""
    by_method = {name: spread(level, **plan) for name, level in found.items()}
    boxes = {name: spread(floor, **plan) for name in found}
    parts = [rows(m, by_method) for m in ("trigger_iou", "recovered")]
    parts += [rows(f"{m}_floor", boxes) for m in ("trigger_iou", "recovered")]
    parts.append(rows("trigger_iou_on_baseline", {name: spread(baseline, **plan) for name in found}))
    return estimates(*parts, methods=tuple(found))


def test_every_two_methods_are_compared_by_paired_differences_and_floors_are_not(estimates):
    table = judged_run(estimates, {"gradient": 0.5, "occlusion": 0.6, "random": 0.9})
    (pair,) = [one for one in table.all(statistic="difference", metric="trigger_iou") if one.other_method in METHODS]
    assert (pair.method, pair.other_method, pair.value) == ("occlusion", "gradient", pytest.approx(0.1, abs=0.01))
    assert 0.05 < pair.low <= pair.value <= pair.high
    assert pair.p_adjusted < 0.05
    assert pair.size == 0.05
    assert not table.all(statistic="friedman")


def test_methods_are_compared_on_the_triggers_and_images_that_all_have(estimates):
    """The method that lacks the hard trigger must not win by it."""
    easy, hard = spread(0.9, triggers=(SQUARE,)), spread(0.1, triggers=(DYNAMIC,))
    found = {"gradient": easy | hard, "occlusion": spread(0.8, triggers=(SQUARE,))}
    table = estimates(rows("trigger_iou", found), methods=("gradient", "occlusion"))
    means = {one.method: one.value for one in table.all(statistic="mean", metric="trigger_iou", finding=ALL_FINDINGS)}
    assert means["occlusion"] > means["gradient"]
    pair = table.one(statistic="difference", metric="trigger_iou", method="gradient", other_method="occlusion")
    assert pair.value == pytest.approx(0.1, abs=0.01)
    assert "over 1 of 2 triggers" in pair.reason


def test_claims_against_random_boxes_carry_the_size_that_matters_and_one_correction_for_both_metrics(estimates):
    table = judged_run(estimates, {"gradient": 0.5, "occlusion": 0.2}, floor=0.1)
    claims = table.all(statistic="difference", other_method="random_box", finding=ALL_FINDINGS)
    claims = [one for one in claims if one.metric in {"trigger_iou", "recovered"}]
    assert len(claims) == 4
    assert len({one.family for one in claims}) == 1
    assert [one.size for one in claims] == pytest.approx([0.1 * 0.9] * 4, rel=0.01)
    assert all((one.low > 0) == (one.p_adjusted < 0.05) for one in claims)


def test_the_overlap_on_the_baseline_is_a_control_in_the_same_family(estimates):
    """A method that overlaps the trigger as much where the model ignores it has found nothing."""
    table = judged_run(estimates, {"gradient": 0.5, "occlusion": 0.26}, floor=0.05, baseline=0.24)
    wanted = {"statistic": "difference", "metric": "trigger_iou", "finding": ALL_FINDINGS}
    boxes, controls = (
        {one.method: one for one in table.all(**wanted, other_method=other)} for other in ("random_box", "baseline")
    )
    assert controls["gradient"].value == pytest.approx(0.26, abs=0.01)
    assert controls["occlusion"].value == pytest.approx(0.02, abs=0.01)
    assert [one.size for one in controls.values()] == pytest.approx([0.1 * 0.76] * 2, rel=0.02)
    assert {one.family for one in (*boxes.values(), *controls.values())} == {boxes["gradient"].family}
    assert all(judgement_of(row).is_yes for row in boxes.values())
    answers = {name: judgement_of(row).answer.value for name, row in controls.items()}
    assert answers == {"gradient": "yes", "occlusion": "no"}


def test_every_two_methods_are_compared_under_each_box_rule(estimates):
    levels = {"gradient": 0.6, "occlusion": 0.3}
    turned = {"gradient": spread(0.3), "occlusion": spread(0.6)}
    parts = [rows("trigger_iou", {name: spread(level) for name, level in levels.items()})]
    parts.append(rows("trigger_iou", turned, preset="thresholded"))
    parts.append(rows("trigger_iou", turned, sigma=4.0))
    table = estimates(*parts, methods=tuple(levels))
    pairs = [one for one in table.every if one.statistic == "difference" and one.other_method in levels]
    by_rule = {one.condition: (one.method, one.other_method) for one in pairs}
    assert by_rule == {
        condition(): ("gradient", "occlusion"),
        condition(preset="thresholded"): ("occlusion", "gradient"),
    }
    assert len({one.family for one in pairs}) == 2
    assert all(judgement_of(one).is_yes for one in pairs)


def test_images_called_the_target_when_clean_are_counted_and_named(estimates):
    table = estimates(rows("trigger_iou", IOU))
    wanted = {"statistic": "graded", "metric": "clean_target", "finding": DYNAMIC}
    by_seed = [table.one(**wanted, condition=condition(seed=seed)) for seed in (1, 2)]
    assert [(one.value, one.reason) for one in by_seed] == [(1.0, "c1"), (2.0, "c0, c1")]
    assert table.one(**wanted).value == 3


def test_recovery_is_compared_with_one_half_by_an_interval(estimates):
    def hits(share):
        of_seed = {seed: [float((5 * n + seed) % 12 < 12 * share) for n in range(MANY)] for seed in (1, 2, 3)}
        return {(trigger, seed): of_seed[seed] for trigger in (SQUARE, DYNAMIC) for seed in of_seed}

    found = {"gradient": hits(1.0), "occlusion": hits(0.6), "grad_cam": hits(0.0)}
    table = estimates(rows("recovered", found), methods=tuple(found))
    half = {one.method: one for one in table.all(statistic="difference", other_method="half")}
    answers = {name: judgement_of(row).answer.value for name, row in half.items()}
    assert answers == {"gradient": "yes", "occlusion": "cannot say", "grad_cam": "no"}
    assert half["occlusion"].value == pytest.approx(8 / 12 - 0.5)  # a point threshold would call it half


def test_images_that_all_agree_have_an_interval(estimates):
    ones = {"gradient": {(SQUARE, seed): [1.0] * MANY for seed in (1, 2, 3)}}
    noughts = {"gradient": {(SQUARE, seed): [0.0] * MANY for seed in (1, 2, 3)}}
    table = estimates(rows("recovered", ones), rows("recovered_floor", noughts), methods=("gradient",))
    mean = table.one(statistic="mean", metric="recovered", finding=ALL_FINDINGS)
    above = table.one(statistic="difference", metric="recovered", other_method="random_box", finding=ALL_FINDINGS)
    assert 0.5 < mean.low < mean.high == 1
    assert 0 < above.low < above.high == 1
    assert above.p_adjusted < 0.05


def test_an_area_that_is_the_same_in_every_image_has_no_interval(estimates):
    whole = {"gradient": {(trigger, seed): [1.0] * MANY for trigger in (SQUARE, DYNAMIC) for seed in (1, 2)}}
    table = estimates(rows("box_area", whole), methods=("gradient",))
    found = table.all(statistic="mean", metric="box_area", finding=ALL_FINDINGS)
    assert [(row.value, row.reason) for row in found] == [(1.0, SAME_EVERYWHERE)]
    assert math.isnan(found[0].low)
    assert math.isnan(found[0].high)
    varied = {"gradient": {(SQUARE, seed): [1.0, *[0.5] * (MANY - 1)] for seed in (1, 2)}}
    (row,) = estimates(rows("box_area", varied), methods=("gradient",)).all(finding=SQUARE, metric="box_area")
    assert row.low < 0.52 < row.high


def test_one_seed_keeps_the_interval_over_images_and_says_what_it_does_not_cover(estimates):
    table = judged_run(estimates, {"gradient": 0.5}, seeds=(1,))
    above = table.one(statistic="difference", metric="recovered", other_method="random_box", finding=ALL_FINDINGS)
    assert above.low > 0
    assert "not between trainings" in above.reason


def test_each_network_has_its_accuracy_and_success_and_so_has_each_trigger_over_its_seeds(estimates):
    table = estimates(rows("trigger_iou", IOU))
    attack = {"statistic": "attack", "method": ""}
    for (finding, metric), by_seed in {
        ("baseline", "cda"): (1.0, 0.5),
        (SQUARE, "cda"): (0.75, 1.0),
        (DYNAMIC, "cda"): (0.25, 0.25),
        (SQUARE, "asr"): (1.0, 0.5),
        (DYNAMIC, "asr"): (1.0, 1.0),
    }.items():
        wanted = {**attack, "finding": finding, "metric": metric}
        each = [table.one(**wanted, condition=condition(seed=seed)).value for seed in (1, 2)]
        assert each == pytest.approx(by_seed), (finding, metric)
        assert table.one(**wanted).value == pytest.approx(sum(by_seed) / 2)
    assert not table.all(**attack, finding="baseline", metric="asr")


def test_accuracy_that_was_lost_is_positive_and_accuracy_that_was_won_is_negative(estimates):
    table = estimates(rows("trigger_iou", IOU))
    square, dynamic = (table.one(statistic="attack", metric="cda_drop", finding=name) for name in (SQUARE, DYNAMIC))
    assert square.value == pytest.approx((0.25 - 0.5) / 2)  # lost by one seed, won by the other
    assert dynamic.value == pytest.approx((0.75 + 0.25) / 2)
    assert (square.n_cases, square.n_patients) == (8, 4)


def test_a_trigger_says_on_how_many_seeds_methods_are_graded_and_why_not_on_the_others(estimates):
    table = estimates(rows("trigger_iou", IOU), gate=GatePart(attack_success=0.9, accuracy_drop=0.3, clean_target=0.5))
    graded = {"statistic": "graded", "metric": "asr"}
    rows_by_network = {
        (name, seed): table.one(**graded, finding=name, condition=condition(seed=seed))
        for name in (SQUARE, DYNAMIC)
        for seed in (1, 2)
    }
    assert [one.value for one in rows_by_network.values()] == [1.0, 0.0, 0.0, 0.0]
    assert rows_by_network[SQUARE, 1].reason == ""
    assert "attack success 0.50 is below 0.90" in rows_by_network[SQUARE, 2].reason
    assert "fell by 0.750" in rows_by_network[DYNAMIC, 1].reason
    assert "100% of the images are called the target even without the trigger" in rows_by_network[DYNAMIC, 2].reason
    sums = [table.one(**graded, finding=name) for name in (SQUARE, DYNAMIC)]
    assert [(one.value, one.n_cases) for one in sums] == [(1.0, 2), (0.0, 2)]


@pytest.mark.parametrize("metric", ["cross_correlation", "ssim", "mutual_information"])
def test_a_method_agrees_with_the_others_as_the_mean_of_its_pairs_without_itself(estimates, metric):
    # The same three pairs on every image, and half as much on the one image of the second seed: over seeds 0.75 times.
    pairs = {("gradient", "occlusion"): 0.8, ("gradient", "grad_cam"): 0.2, ("occlusion", "grad_cam"): -0.4}
    every = [
        rows(metric, {one: {(SQUARE, 1): [value, value, value], (SQUARE, 2): [value / 2]}}, other_method=other)
        for (one, other), value in pairs.items()
    ]
    table = estimates(*every, methods=("gradient", "occlusion", "grad_cam"))
    wanted = {"statistic": "pair_mean", "metric": metric, "finding": ALL_FINDINGS}
    for (one, other), value in pairs.items():
        assert table.one(**wanted, method=one, other_method=other).value == pytest.approx(0.75 * value)
    alone = {one.method: one.value for one in table.all(**wanted, other_method="")}
    assert alone == pytest.approx({"gradient": 0.75 * 0.5, "occlusion": 0.75 * 0.2, "grad_cam": -0.75 * 0.1})


def test_floors_do_not_count_among_the_methods_that_a_map_is_compared_with(estimates):
    pairs = {("gradient", "occlusion"): 0.8, ("gradient", "edge"): 0.2, ("occlusion", "edge"): 0.4,
             ("gradient", "random"): 0.0, ("occlusion", "random"): 0.0, ("edge", "random"): 0.1}  # fmt: skip
    every = [rows("ssim", {one: {(SQUARE, 1): [value]}}, other_method=other) for (one, other), value in pairs.items()]
    table = estimates(*every, methods=("gradient", "occlusion", "edge", "random"))
    wanted = {"statistic": "pair_mean", "metric": "ssim", "finding": ALL_FINDINGS, "other_method": ""}
    alone = {one.method: one.value for one in table.all(**wanted)}
    assert alone == pytest.approx({"gradient": 0.8, "occlusion": 0.8, "edge": 0.3, "random": 0.0})
    every = [rows("ssim", {"gradient": {(SQUARE, 1): [0.2]}}, other_method="edge")]
    table = estimates(*every, methods=("gradient", "edge"))
    assert [one.method for one in table.all(**wanted)] == ["edge"]  # one method has no other


def test_agreement_counts_every_trigger_the_same(estimates):
    by_network = {(SQUARE, 1): [0.1, 0.3], (SQUARE, 2): [0.8], (DYNAMIC, 1): [0.0, 0.0, 0.3]}
    table = estimates(
        rows("ssim", {"gradient": by_network}, other_method="occlusion"), methods=("gradient", "occlusion")
    )
    pair = table.one(statistic="pair_mean", metric="ssim", method="gradient", other_method="occlusion")
    assert pair.value == pytest.approx(((0.2 + 0.8) / 2 + 0.1) / 2)
    assert pair.n_cases == 6
