"""What is claimed of methods and modalities: sizes, corrections, and claims over networks."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.studies.modality.made_tables import MODALITIES, estimated, msfi_of, rule_of, scored, subsets

from heatcheck.judging.judgement import judgement_of
from heatcheck.studies.modality.estimating.claims import ONE_NETWORK, SAME_ORDER

AT = {"filled": "zero", "measure": "balanced"}
FIXED = (0.1, 0.4, 0.2, 0.3)  # shares of heat of a method that always prefers T1C


def answers(rule, order, *, fold=1, cases=40, seed=0):
    """A network that is right where the modalities it relies on are shown, in this order of importance."""
    gain = dict(zip(order, (0.3, 0.15, 0.05, 0.0), strict=True))
    chance = 0.5 + rule.coalitions.members @ np.array([gain[name] for name in rule.modalities])
    luck = np.random.default_rng([seed, fold]).random((cases, 1))
    right = luck < chance
    return [
        row
        for ablated in ("modality", "lesion")
        for row in subsets(right, rule, ablated=ablated, fold=fold, first=1000 * fold)
    ]


def heat(shares, method, *, fold=1, cases=40):
    """A method whose heat is shared alike in every case: its scores and shares."""
    rows = scored(np.full(cases, 0.5), "mi_correlation", method, fold=fold, first=1000 * fold)
    rows += scored(np.full(cases, 0.5), "mi_correlation_published", method, fold=fold, first=1000 * fold)
    for name, share in zip(MODALITIES, shares, strict=True):
        rows += scored(np.full(cases, share), "modality_sum", method, fold=fold, first=1000 * fold, modality=name)
    return rows


def by_importance(order):
    """Shares of heat in the order of importance."""
    return [dict(zip(order, (0.4, 0.3, 0.2, 0.1), strict=True))[name] for name in MODALITIES]


def of_networks(tmp_path, orders, cases=40):
    """The estimates of a network per order, with a method that follows them and one that always prefers T1C."""
    folds = tuple(range(1, len(orders) + 1))
    rule = rule_of(modalities=MODALITIES, folds=folds, methods=("gradient", "lime"))
    worth, scores = [], []
    for fold, order in zip(folds, orders, strict=True):
        worth.append(answers(rule, order, fold=fold, cases=cases))
        scores += [heat(by_importance(order), "gradient", fold=fold, cases=cases),
                   heat(FIXED, "lime", fold=fold, cases=cases)]  # fmt: skip
    return estimated(tmp_path, rule, *scores, worth=worth)


ORDERS = [("T1C", "FLAIR", "T1", "T2"), ("FLAIR", "T2", "T1C", "T1"), ("T2", "T1", "FLAIR", "T1C"),
          ("T1", "T1C", "T2", "FLAIR"), ("T2", "FLAIR", "T1", "T1C")]  # fmt: skip


def test_one_network_shows_which_heat_agrees_with_it_and_nothing_of_methods(tmp_path):
    found = of_networks(tmp_path, ORDERS[:1])
    for method in ("gradient", "lime"):
        agreement = found.one("agreement", "mi_correlation", method, fold="all")
        assert agreement.value == 1
        assert 0 < agreement.low < agreement.high <= 1  # 40 equal cases of one order, not 40 proofs
        following = found.one("following", "mi_correlation", method, fold="all")
        assert (math.isnan(following.value), following.reason) == (True, ONE_NETWORK)


def test_networks_of_one_order_cannot_tell_a_fixed_preference_from_following(tmp_path):
    found = of_networks(tmp_path, ORDERS[:1] * 4)
    for method in ("gradient", "lime"):
        row = found.one("following", "mi_correlation", method, fold="all")
        assert not judgement_of(row).is_yes
        assert abs(row.value) < 0.2
    assert found.one("following", "mi_correlation", "lime", fold="all").reason in ("", SAME_ORDER)


def test_a_method_that_follows_networks_of_different_orders_is_told_from_one_that_does_not(tmp_path):
    found = of_networks(tmp_path, ORDERS)
    assert judgement_of(found.one("following", "mi_correlation", "gradient", fold="all")).is_yes
    fixed = found.one("following", "mi_correlation", "lime", fold="all")
    assert fixed.low < 0 < fixed.high
    assert abs(fixed.value) < 0.2


def test_pairs_whose_order_is_not_clear_do_not_count(tmp_path):
    """T1 and T2 add nothing: a method that puts T2 before T1 agrees as much as one that does not."""
    rule = rule_of(modalities=MODALITIES, methods=("gradient", "lime"))
    right = np.random.default_rng(1).random((60, 1)) < 0.4 + 0.4 * rule.coalitions.members[:, 1]
    worth = [subsets(right, rule, ablated=a, first=1000) for a in ("modality", "lesion")]
    scores = [heat((0.2, 0.4, 0.1, 0.3), "gradient", cases=60), heat((0.1, 0.4, 0.3, 0.2), "lime", cases=60)]
    found = estimated(tmp_path, rule, *scores, worth=worth)
    rows = [found.one("agreement", "mi_correlation", method, fold="all") for method in ("gradient", "lime")]
    assert [row.value for row in rows] == [1, 1]
    pair = found.one("difference", "phi_modality", fold=1, modality="T1", versus="T2", **AT)
    assert not judgement_of(pair).is_yes


def test_without_a_clear_pair_no_order_is_claimed(tmp_path):
    rule = rule_of(modalities=MODALITIES, methods=("gradient", "lime"))
    right = np.random.default_rng(2).random((40, 16)) < 0.5
    worth = [subsets(right, rule, ablated=a, first=1000) for a in ("modality", "lesion")]
    found = estimated(tmp_path, rule, heat(FIXED, "gradient"), heat(FIXED, "lime"), worth=worth)
    row = found.one("agreement", "mi_correlation", "gradient", fold="all")
    assert (math.isnan(row.value), row.reason) == (True, "no two modalities clearly differ in importance")


def test_network_that_guesses_seldom_seems_to_need_a_modality(tmp_path):
    """Eight networks whose answers change by chance: without a correction, four of them seemed to need a modality."""
    helped = 0
    for seed in range(8):
        rule, chance = rule_of(modalities=MODALITIES, methods=()), np.random.default_rng([3, seed])
        right = (chance.random((24, 1)) < 0.5) ^ (chance.random((24, 16)) < 0.1)
        found = estimated(tmp_path / str(seed), rule, worth=[subsets(right, rule)])
        helped += any(found.one("shapley", "phi_modality", fold=1, modality=m, **AT).low > 0 for m in MODALITIES)
    assert helped <= 1


def test_paired_differences_name_the_modality_that_overlapping_intervals_did_not(tmp_path):
    """FLAIR helps in most cases in which T1C does, so their intervals overlap though T1C is above in every draw."""
    rule = rule_of(draws=500)
    hard = np.random.default_rng(5).random(60)
    none, t1c, flair, both = (hard < share for share in (0.2, 0.75, 0.55, 0.8))
    right = np.stack([none, t1c, flair, both], 1)
    found = estimated(tmp_path, rule, worth=[subsets(right, rule)])
    one, other = (found.one("shapley", "phi_modality", fold=1, modality=name, **AT) for name in rule.modalities)
    assert one.low < other.high
    assert judgement_of(found.one("difference", "phi_modality", fold=1, modality="T1C", versus="FLAIR", **AT)).is_yes


def test_a_method_must_beat_the_best_floor_by_a_share_of_its_room(tmp_path):
    """A map of brightness has 0.88, where the uniform map has 0.1 and the best method 0.46."""
    luck = np.random.default_rng(9).normal(0, 0.01, 30)
    floors = {"uniform": 0.1, "intensity": 0.88, "edges": 0.12, "usual_place": 0.2}
    rows = [msfi_of(level + luck * (name != "uniform"), name) for name, level in floors.items()]
    rows.append(msfi_of(0.46 + luck[::-1], "gradient"))
    found = estimated(tmp_path, rule_of(methods=("gradient",)), *rows)
    differences = {floor: found.one("difference", "msfi", "gradient", versus=floor) for floor in floors}
    assert {f: judgement_of(row).answer.value for f, row in differences.items()} == {
        "uniform": "yes", "intensity": "no", "edges": "yes", "usual_place": "yes"
    }  # fmt: skip
    assert differences["intensity"].size == pytest.approx(0.012, abs=0.001)
    assert len({row.family for row in differences.values()}) == 1


def test_heat_must_have_the_order_more_often_than_a_floor_has_it(tmp_path):
    rule = rule_of(modalities=MODALITIES, methods=("gradient", "lime"))
    worth = [answers(rule, ORDERS[0], cases=60)]
    scores = [heat(by_importance(ORDERS[0]), name, cases=60) for name in ("gradient", "intensity")]
    scores += [heat(by_importance(ORDERS[0][::-1]), name, cases=60) for name in ("lime", "edges")]
    found = estimated(tmp_path, rule, *scores, worth=worth)
    agreement = {m: found.one("agreement", "mi_correlation", m, fold="all").value
                 for m in ("gradient", "intensity", "edges")}  # fmt: skip
    assert agreement == {"gradient": 1, "intensity": 1, "edges": -1}
    above = found.one("agreement", "mi_correlation", "gradient", fold="all", versus="intensity")
    assert above.value == 0
    assert not judgement_of(above).is_yes
    below = found.one("agreement", "mi_correlation", "lime", fold="all", versus="intensity")
    assert (below.value, judgement_of(below).is_no) == (-2, True)
    # a floor with the order upside down is worse than none, which the method's own agreement is compared with
    assert not [row for row in found.all(statistic="agreement") if '"versus":"edges"' in row.condition]


def test_chance_of_a_fixed_liking_is_that_of_the_pairs_that_are_clear(tmp_path):
    rule = rule_of(modalities=MODALITIES, methods=("gradient",))
    right = np.random.default_rng(1).random((60, 1)) < 0.4 + 0.4 * rule.coalitions.members[:, 1]
    worth = [subsets(right, rule, ablated=a, first=1000) for a in ("modality", "lesion")]
    found = estimated(tmp_path, rule, heat(FIXED, "gradient", cases=60), worth=worth)
    # T1C above three that are tied: two of three pairs or more in half of the orders, all of them in a quarter
    chances = [found.one(statistic, "mi_correlation", fold=1).value for statistic in ("chance", "chance_all")]
    assert chances == [0.5, 0.25]


@pytest.mark.parametrize(("gain", "answer"), [(0.2, "yes"), (0.01, "no")])
def test_msfi_must_be_above_the_uniform_map_by_a_share_of_the_room(tmp_path, gain, answer):
    """0.11 against 0.10 in every case is beyond chance, and too small to matter."""
    luck = np.random.default_rng(6).normal(0, 0.002, 30)
    rows = [msfi_of(np.full(30, 0.1), "uniform"), msfi_of(0.1 + gain + luck, "gradient")]
    found = estimated(tmp_path, rule_of(methods=("gradient",)), *rows)
    row = found.one("difference", "msfi", "gradient", versus="uniform")
    assert row.low > 0
    assert row.p_adjusted < 0.05
    assert row.size == pytest.approx(0.09)
    assert judgement_of(row).answer == answer


def test_intervals_of_correlation_and_msfi_hold_the_error_of_the_importances(tmp_path):
    """The same scores in every case: only the importances that they rest on are uncertain."""
    rule = rule_of(modalities=MODALITIES, methods=("gradient",))
    luck = np.random.default_rng(7).random((30, 16))
    right = luck < 0.4 + rule.coalitions.members @ np.array([0.1, 0.2, 0.08, 0.15])
    worth = [subsets(right, rule, ablated=a, first=1000) for a in ("modality", "lesion")]
    inside = [scored(np.full(30, share), "inside_share", "gradient", first=1000, modality=name)
              for name, share in zip(MODALITIES, (0.1, 0.7, 0.2, 0.3), strict=True)]  # fmt: skip
    scores = [heat(FIXED, "gradient", cases=30), msfi_of(np.full(30, 0.4), "gradient", first=1000), *inside]
    found = estimated(tmp_path, rule, *scores, worth=worth)
    published = found.one("mean", "mi_correlation_published", "gradient", fold="all")
    assert published.value == 0.5
    assert published.high - published.low > 0.3
    tied = found.one("mean", "mi_correlation", "gradient", fold="all")  # which rests on clear pairs alone
    assert (tied.value, tied.high - tied.low < published.high - published.low) == (0.5, True)
    msfi = found.one("mean", "msfi", "gradient", fold="all", importance="lesion", weights="positive")
    assert msfi.value == pytest.approx(0.4)
    assert msfi.high - msfi.low > 0.05


def test_an_open_claim_says_how_many_patients_would_decide_it(tmp_path):
    luck = np.random.default_rng(8).normal(0, 0.2, 20)
    rows = [msfi_of(np.full(20, 0.2), "uniform"), msfi_of(0.25 + luck, "gradient")]
    found = estimated(tmp_path, rule_of(methods=("gradient",)), *rows)
    row = found.one("difference", "msfi", "gradient", versus="uniform")
    assert judgement_of(replace(row)).answer == "cannot say"
    assert row.n_needed > 20
