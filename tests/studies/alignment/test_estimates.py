"""The numbers of an alignment run's tables, worked by hand from a few scores."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.studies.alignment.made_tables import CNN, estimated, rule_of, scored

from heatcheck.core.records import ALL_FINDINGS, ONE_VALUE
from heatcheck.core.vocabulary import condition
from heatcheck.judging.judgement import judgement_of
from heatcheck.stats.resampling.cells import Design
from heatcheck.stats.resampling.joint_means import joint_means
from heatcheck.stats.resampling.nested import ONE_SEED
from heatcheck.studies.alignment.vocabulary import ONE_TRAINING

NAN = math.nan
# Nodule has two seeds of three images and one seed lacks one; Effusion has one image of each seed
ALIGN = [
    *scored([0.6, 0.8, 0.4], "align", 1), *scored([0.9, NAN, 0.5], "align", 2),
    *scored([0.7], "align", 1, finding="Effusion"), *scored([0.5], "align", 2, finding="Effusion"),
]  # fmt: skip
MISALIGN = [
    *scored([0.1, 0.3, NAN], "misalign", 1), *scored([0.2, 0.4, 0.1], "misalign", 2),
    *scored([0.1], "misalign", 1, finding="Effusion"), *scored([0.3], "misalign", 2, finding="Effusion"),
]  # fmt: skip
ONE_PAIR = {"bases": (CNN,), "methods": ("gradient",)}


def test_a_mean_is_over_seeds_of_means_over_images_and_every_finding_counts_the_same(tmp_path):
    found = estimated(tmp_path, rule_of(**ONE_PAIR), ALIGN)
    wanted = {"statistic": "mean", "metric": "mass", "method": "gradient", "model": "cnn"}
    nodule, both = (found.one(**wanted, condition=condition(arm="align"), finding=f) for f in ("Nodule", ALL_FINDINGS))
    assert nodule.value == pytest.approx((0.6 + 0.7) / 2)
    assert (nodule.n_cases, nodule.n_patients, nodule.n_undefined, nodule.reason) == (5, 3, 1, "")
    assert both.value == pytest.approx((0.65 + 0.6) / 2)
    assert nodule.low < nodule.value < nodule.high


def test_one_finding_and_all_findings_have_one_interval_where_they_rest_on_the_same_scores(tmp_path):
    found = estimated(tmp_path, rule_of(**ONE_PAIR), ALIGN[:6])
    wanted = {"statistic": "mean", "metric": "mass", "method": "gradient", "model": "cnn"}
    nodule, both = (found.one(**wanted, condition=condition(arm="align"), finding=f) for f in ("Nodule", ALL_FINDINGS))
    assert (nodule.low, nodule.high) == (both.low, both.high)
    assert nodule.low < nodule.high


def test_robustness_pairs_images_and_seeds_and_drops_a_pair_of_which_one_is_undefined(tmp_path):
    found = estimated(tmp_path, rule_of(**ONE_PAIR), ALIGN, MISALIGN)
    wanted = {"statistic": "robustness", "metric": "mass", "method": "gradient", "model": "cnn"}
    nodule = found.one(**wanted, finding="Nodule")
    first, second = (0.5 + 0.5) / 2, (0.7 + 0.4) / 2  # seed by seed
    assert nodule.value == pytest.approx((first + second) / 2)
    assert (nodule.n_cases, nodule.n_undefined) == (4, 2)
    both = found.one(**wanted, finding=ALL_FINDINGS)
    assert both.value == pytest.approx(((first + second) / 2 + (0.6 + 0.2) / 2) / 2)
    pooled = found.one(**wanted, finding=ALL_FINDINGS, condition=condition(pooled="images"))
    assert pooled.value == pytest.approx(((0.5 + 0.5 + 0.6) / 3 + (0.7 + 0.4 + 0.2) / 3) / 2)
    assert (pooled.n_cases, pooled.n_undefined) == (6, 2)


def two_seeds(differences, **where):
    """Scores whose two ends lie so far apart, by seed and image."""
    rows = []
    for seed, apart in enumerate(differences, 1):
        rows += [*scored(0.3 + apart, "align", seed, **where), *scored([0.3] * len(apart), "misalign", seed, **where)]
    return rows


def test_the_intervals_of_robustness_hold_together_over_models_and_methods(tmp_path):
    generator = np.random.default_rng(1)
    apart = generator.normal(0.1, 0.05, (2, 2, 12))
    rows = [row for k, name in enumerate(("gradient", "lrp")) for row in two_seeds(apart[:, k], method=name)]
    rule = rule_of(**ONE_PAIR | {"methods": ("gradient", "lrp")})
    found = estimated(tmp_path, rule, rows)
    design = Design(np.repeat([1, 2], 12), np.tile([f"p{n}" for n in range(12)], 2))
    judge = joint_means(apart.transpose(0, 2, 1).reshape(-1, 2), design, 2)
    for name, joint in zip(rule.methods, judge, strict=True):
        one = found.one(statistic="robustness", metric="mass", finding="Nodule", method=name, other_method="")
        assert (one.value, one.low, one.high) == pytest.approx(
            (joint.estimate.value, joint.estimate.low, joint.estimate.high)
        )
        # one finding and all findings rest on the same scores
        over_all = found.one(statistic="robustness", metric="mass", finding=ALL_FINDINGS, method=name, other_method="")
        assert (over_all.low, over_all.high) == (one.low, one.high)


def test_robustness_matters_from_a_tenth_of_the_room_and_two_pairs_are_compared_on_the_same_images(tmp_path):
    generator = np.random.default_rng(2)
    noise = generator.normal(0, 0.01, (2, 2, 12))
    rows = [*two_seeds(0.4 + noise[:, 0]), *two_seeds(0.1 + noise[:, 1], method="lrp")]
    ends = [
        *scored([0.1] * 12, "floor", model="", method="random"),
        *scored([0.9] * 12, "human", model="", method="human"),
    ]
    rule = rule_of(**ONE_PAIR | {"methods": ("gradient", "lrp"), "findings": ("Nodule",)})
    found = estimated(tmp_path, rule, rows, ends)
    pushed = {"statistic": "robustness", "metric": "mass", "finding": ALL_FINDINGS, "method": "gradient"}
    assert found.one(**pushed, other_method="").size == pytest.approx(0.08)
    compared = found.one(**pushed, other_method="lrp", condition=condition(other_model="cnn"))
    assert compared.value == pytest.approx(0.3 + (noise[:, 0] - noise[:, 1]).mean())
    assert judgement_of(compared).is_yes
    assert compared.size == pytest.approx(0.08)


def test_one_training_keeps_its_interval_over_images_and_supports_no_claim(tmp_path):
    generator = np.random.default_rng(3)
    rows = two_seeds(0.4 + generator.normal(0, 0.01, (1, 12)))
    ends = scored([0.1] * 12, "floor", model="", method="random")
    found = estimated(tmp_path, rule_of(**ONE_PAIR | {"seeds": (1,), "human": "truth"}), rows, ends)
    one = found.one(statistic="robustness", metric="mass", finding="Nodule")
    assert one.low > 0.3
    judgement = judgement_of(one)
    assert (judgement.answer, judgement.reason) == ("cannot say", ONE_TRAINING)


def turned(rows):
    """The same scores, each of the other end."""
    other = {"align": "misalign", "misalign": "align"}
    swapped = {condition(arm=arm, seed=seed): condition(arm=other[arm], seed=seed) for arm in other for seed in (1, 2)}
    return [replace(row, condition=swapped[row.condition]) for row in rows]


def test_swapping_align_and_misalign_turns_robustness_around(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one = estimated(tmp_path / "one", rule_of(**ONE_PAIR), ALIGN, MISALIGN)
    other = estimated(tmp_path / "other", rule_of(**ONE_PAIR), turned(ALIGN), turned(MISALIGN))
    pairs = list(zip(*(each.all(statistic="robustness", metric="mass") for each in (one, other)), strict=True))
    assert len(pairs) == 4  # two findings, and both in two ways
    for left, right in pairs:
        assert right.value == pytest.approx(-left.value)
        assert (right.n_cases, right.n_undefined) == (left.n_cases, left.n_undefined)
        assert (right.finding, right.condition) == (left.finding, left.condition)


def test_differences_from_the_control_are_paired_by_image_and_seed(tmp_path):
    control = [*scored([0.5, 0.5, 0.5], "control", 1), *scored([0.3, 0.3, 0.3], "control", 2)]
    learned = [
        *scored([0.9, 0.7, 0.5, 0.6, 0.8, 0.6], "align", 1, split="finetune"),
        *scored([0.4, 0.1, 0.5, 0.4, 0.5, 0.5], "control", 1, split="finetune"),
    ]
    found = estimated(tmp_path, rule_of(**ONE_PAIR), ALIGN, MISALIGN, control, learned)
    wanted = {"statistic": "difference", "metric": "mass", "finding": "Nodule"}
    align = found.one(**wanted, condition=condition(arm="align", versus="control"))
    assert align.value == pytest.approx(((0.1 + 0.3 - 0.1) / 3 + (0.6 + 0.2) / 2) / 2)
    assert (align.n_cases, align.n_undefined, align.reason) == (5, 1, "fewer than 6 patients")
    misalign = found.one(**wanted, condition=condition(arm="misalign", versus="control"))
    assert misalign.value == pytest.approx(((-0.4 - 0.2) / 2 + (-0.1 + 0.1 - 0.2) / 3) / 2)
    again = found.one(**wanted, condition=condition(arm="align", versus="control", split="finetune"))
    assert again.value == pytest.approx((0.5 + 0.6 + 0.0 + 0.2 + 0.3 + 0.1) / 6)
    assert ONE_SEED in again.reason
    assert again.reason.endswith("over 1 of 2 seeds")


def test_both_directions_share_what_is_known_of_the_seeds(tmp_path):
    """Two seeds hardly know how much trainings differ: beside a steady direction, an unsteady one is narrower."""
    generator = np.random.default_rng(0)
    values = {(arm, seed): 0.3 + generator.normal(0, 0.02, 12) for arm in ("align", "control") for seed in (1, 2)}
    rows = [scored((each + 0.1 * (key == ("align", 1))).tolist(), *key) for key, each in values.items()]
    steady = [scored((values["control", seed] - 0.1).tolist(), "misalign", seed) for seed in (1, 2)]
    at = {"statistic": "difference", "metric": "mass", "finding": "Nodule"}
    widths = []
    for part, more in (("alone", []), ("both", steady)):
        (tmp_path / part).mkdir()
        row = estimated(tmp_path / part, rule_of(**ONE_PAIR), *rows, *more).one(
            **at, condition=condition(arm="align", versus="control")
        )
        widths.append(row.high - row.low)
    assert widths[1] < 0.5 * widths[0]


def test_the_base_is_held_against_every_floor_of_the_same_image_and_judged(tmp_path):
    base = scored([0.6, 0.2, 0.5, 0.4, 0.6, 0.7], "base")
    floors = [
        scored([0.1, 0.2, 0.9, 0.1, 0.2, 0.1], "floor", model="", method="random"),
        scored([0.5] * 6, "floor", model="", method="location_prior"),
    ]
    found = estimated(tmp_path, rule_of(**ONE_PAIR, human="truth"), base, *floors)
    wanted = {"statistic": "difference", "metric": "mass", "finding": "Nodule"}
    one = found.one(**wanted, condition=condition(arm="base", versus="random"))
    assert one.value == pytest.approx((0.5 + 0.0 - 0.4 + 0.3 + 0.4 + 0.6) / 6)
    assert one.size == pytest.approx(0.1 * (1 - 1.6 / 6))
    assert one.n_needed > 6  # it is open
    usual = found.one(**wanted, condition=condition(arm="base", versus="location_prior"))
    assert usual.value == pytest.approx(0.0)
    assert usual.size == pytest.approx(0.05)
    assert math.isnan(found.one(**wanted, condition=condition(arm="base", versus="edge")).value)
    mean = found.one(
        statistic="mean", metric="mass", finding="Nodule", condition=condition(arm="floor"), method="random"
    )
    assert mean.value == pytest.approx(1.6 / 6)


def test_a_judged_method_is_scored_on_the_networks_of_another(tmp_path):
    rule = rule_of(**ONE_PAIR, judged=("random",))
    through = scored([0.5, 0.7], "align", 1, method="random", through="gradient")
    control, base = scored([0.4, 0.4], "control", 1, method="random"), scored([0.2, 0.2], "base", method="random")
    floor = scored([0.2, 0.1], "floor", model="", method="random")
    human = scored([0.8, 0.9], "human", model="", method="human")
    found = estimated(tmp_path, rule, through, control, base, floor, human)
    wanted = {"metric": "mass", "finding": "Nodule", "method": "random", "model": "cnn"}
    at = condition(arm="align", through="gradient")
    assert found.one(**wanted, statistic="mean", condition=at).value == pytest.approx(0.6)
    versus = condition(arm="align", versus="control", through="gradient")
    assert found.one(**wanted, statistic="difference", condition=versus).value == pytest.approx((0.1 + 0.3) / 2)
    against = condition(arm="base", versus="random")
    assert found.one(**wanted, statistic="difference", condition=against).value == pytest.approx(0.05)
    assert found.one(**wanted, statistic="scaled", condition=at).value == pytest.approx((0.3 + 0.6) / (0.6 + 0.8))
    assert not found.all(statistic="robustness", method="random")


def test_reliance_belongs_to_networks_and_is_not_kept_between_0_and_1(tmp_path):
    def reliance(values, arm, seed=None, method=""):
        return scored(values, arm, seed, method=method, metric="reliance")

    rows = [
        *reliance([2.0, 4.0], "base"),
        *reliance([1.0, -2.0], "control", 1),
        *reliance([3.0, 1.0], "align", 1, "gradient"),
    ]
    found = estimated(tmp_path, rule_of(**ONE_PAIR), rows)
    wanted = {"metric": "reliance", "finding": "Nodule"}
    assert found.one(**wanted, statistic="mean", method="", condition=condition(arm="base")).value == pytest.approx(3)
    versus = condition(arm="align", versus="control")
    risen = found.one(**wanted, statistic="difference", method="gradient", condition=versus)
    assert risen.value == pytest.approx((2 + 3) / 2)
    assert not found.all(statistic="difference", metric="reliance_placebo")
    assert not found.all(metric="reliance", condition=condition(arm="base", versus="floor"))


def test_a_run_of_one_seed_does_not_note_it_with_every_estimate(tmp_path):
    rows = scored([0.9, 0.5, 0.2], "align", 1)
    found = estimated(tmp_path, rule_of(**ONE_PAIR, seeds=(1,)), rows)
    mean = found.one(statistic="mean", metric="mass", finding="Nodule", condition=condition(arm="align"))
    assert not math.isnan(mean.low)
    assert mean.reason == ""


def test_a_network_that_failed_has_rows_that_say_why(tmp_path):
    why = "the loss turned NaN in epoch 3"
    failed = [row for seed in (1, 2) for row in scored([NAN, NAN], "align", seed, reason=why)]
    half = [*scored([0.5, 0.7], "align", 1, finding="Effusion"), *scored([NAN] * 2, "align", 2, finding="Effusion")]
    found = estimated(tmp_path, rule_of(**ONE_PAIR), failed, half, MISALIGN)
    mean = {"statistic": "mean", "metric": "mass", "condition": condition(arm="align")}
    gone, left, both = (found.one(**mean, finding=f) for f in ("Nodule", "Effusion", ALL_FINDINGS))
    assert (gone.reason, gone.n_cases, gone.n_undefined) == (why, 0, 4)
    assert math.isnan(gone.value)
    assert left.value == pytest.approx(0.6)
    assert left.reason == f"{ONE_SEED}; over 1 of 2 seeds"
    assert both.value == pytest.approx(0.6)
    assert both.reason.endswith("over 1 of 2 findings")
    apart = found.one(statistic="robustness", metric="mass", finding="Nodule")
    assert (apart.reason, apart.n_undefined) == (why, 6)
    assert math.isnan(apart.value)


def test_what_was_never_scored_has_rows_that_say_so_and_nothing_breaks(tmp_path):
    found = estimated(tmp_path, rule_of(judged=("random",)))
    assert found.every
    assert all(math.isnan(one.value) for one in found.every)
    assert all(one.reason for one in found.every)
    means = found.all(statistic="mean", metric="mass", condition=condition(arm="align"), finding="Nodule")
    assert {(one.model, one.method) for one in means} == {(b, m) for b in ("cnn", "vit") for m in ("gradient", "lrp")}
    assert {one.reason for one in means} == {"no scores"}


def test_two_scores_for_one_place_are_refused(tmp_path):
    with pytest.raises(ValueError, match="duplicate"):
        estimated(tmp_path, rule_of(**ONE_PAIR), ALIGN, ALIGN)


def test_scores_that_all_agree_have_that_reason_alone(tmp_path):
    rows = [*scored([0.5] * 6, "align", 1), *scored([0.5] * 6, "control", 1)]
    against_control = condition(arm="align", versus="control")
    one = estimated(tmp_path, rule_of(**ONE_PAIR), rows).one(
        statistic="difference", metric="mass", finding="Nodule", condition=against_control
    )
    assert (one.value, one.reason) == (0.0, ONE_VALUE)


FLOOR = scored([0.1, 0.3, 0.2], "floor", model="", method="random")
HUMAN = scored([0.9, 0.5, 0.7], "human", model="", method="human")


def scaled(found, arm="base"):
    return found.one(statistic="scaled", metric="mass", finding="Nodule", condition=condition(arm=arm))


def test_the_common_scale_is_a_ratio_of_means_over_the_images_that_have_all(tmp_path):
    rows = [*scored([0.5, 0.4, 0.2], "align", 1), *scored([0.3, NAN, 0.2], "align", 2)]
    one = scaled(estimated(tmp_path, rule_of(**ONE_PAIR), rows, FLOOR, HUMAN), "align")
    above, room = ((0.4 + 0.1 + 0.0) / 3 + (0.2 + 0.0) / 2) / 2, ((0.8 + 0.2 + 0.5) / 3 + (0.8 + 0.5) / 2) / 2
    assert one.value == pytest.approx(above / room)
    assert (one.n_cases, one.n_undefined) == (5, 1)


def test_the_floor_is_0_and_the_readers_are_1_on_the_common_scale(tmp_path):
    for name, values, wanted in (("a", [0.1, 0.3, 0.2], 0.0), ("b", [0.9, 0.5, 0.7], 1.0)):
        (tmp_path / name).mkdir()
        one = scaled(estimated(tmp_path / name, rule_of(**ONE_PAIR), scored(values, "base"), FLOOR, HUMAN))
        assert (one.value, one.reason) == (pytest.approx(wanted, abs=1e-12), ONE_VALUE)


def test_without_readers_the_mask_itself_is_1(tmp_path):
    one = scaled(estimated(tmp_path, rule_of(**ONE_PAIR, human="truth"), scored([0.4, 0.3, 0.2], "base"), FLOOR))
    assert one.value == pytest.approx(0.3 / (0.9 + 0.7 + 0.8))


def test_readers_who_do_not_beat_the_floor_leave_no_scale(tmp_path):
    low = scored([0.1, 0.2, 0.1], "human", model="", method="human")
    one = scaled(estimated(tmp_path, rule_of(**ONE_PAIR), scored([0.4, 0.3, 0.2], "base"), FLOOR, low))
    assert math.isnan(one.value)
    assert one.reason == "what readers score above the floor is not above 0"


def test_readers_who_beat_the_floor_in_some_draws_only_leave_no_interval(tmp_path):
    near = scored([0.9, 0.0, 0.0], "human", model="", method="human")
    one = scaled(estimated(tmp_path, rule_of(**ONE_PAIR), scored([0.4, 0.3, 0.2], "base"), FLOOR, near))
    assert one.value == pytest.approx(0.3 / 0.3)
    assert math.isnan(one.low)
    assert one.reason.startswith("what readers score above the floor is not above 0 in ")
    assert one.reason.endswith(" of 100 draws")


@pytest.mark.parametrize(("given", "reason"), [(FLOOR, "no scores of readers"), (HUMAN, "no scores of random maps")])
def test_a_scale_without_an_end_says_which(tmp_path, given, reason):
    assert scaled(estimated(tmp_path, rule_of(**ONE_PAIR), scored([0.4, 0.3, 0.2], "base"), given)).reason == reason
