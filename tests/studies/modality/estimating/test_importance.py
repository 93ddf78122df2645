import json
import math
import time

import numpy as np
import pytest
from tests.studies.modality.made_tables import MODALITIES, class_of, estimated, known, rule_of, subsets

from heatcheck.core.vocabulary import condition
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.stats.shapley import coalitions, shapley
from heatcheck.studies.modality.estimating.importance import importances


def test_worth_of_subsets_and_modalities_worked_by_hand(tmp_path):
    """Accuracy with nothing, T1C, FLAIR and both: 1/3, 2/3, 1/3, 1; so T1C is worth ½ and FLAIR 1/6."""
    rule = rule_of()
    right = [[0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1]]
    found = estimated(tmp_path, rule, worth=[subsets(right, rule), subsets(right, rule, ablated="lesion")])
    at = {"ablated": "modality", "filled": "zero", "fold": 1}
    shown = ["", "T1C", "FLAIR", "T1C+FLAIR"]
    seen = [found.one("value", "accuracy", shown=name, **at).value for name in shown]
    np.testing.assert_allclose(seen, [1 / 3, 2 / 3, 1 / 3, 1])
    at = {"filled": "zero", "fold": 1, "measure": "accuracy"}
    for metric in ("phi_modality", "phi_lesion"):
        assert found.one("shapley", metric, modality="T1C", **at).value == pytest.approx(1 / 2)
        assert found.one("shapley", metric, modality="FLAIR", **at).value == pytest.approx(1 / 6)


def test_balanced_worth_counts_classes_alike(tmp_path):
    """Of the one LGG nothing is right but with both, of the two HGG the half without T1C: ¼, ½, ¼, 1."""
    rule = rule_of()
    right = [[0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1]]
    found = estimated(tmp_path, rule, worth=[subsets(right, rule), subsets(right, rule, ablated="lesion")])
    at = {"ablated": "lesion", "filled": "zero", "fold": 1}
    seen = [found.one("value", "balanced_accuracy", shown=n, **at).value for n in ("", "T1C", "FLAIR", "T1C+FLAIR")]
    np.testing.assert_allclose(seen, [0.25, 0.5, 0.25, 1])
    at = {"filled": "zero", "fold": 1, "measure": "balanced"}
    assert found.one("shapley", "phi_lesion", modality="T1C", **at).value == pytest.approx((0.25 + 0.75) / 2)
    assert found.one("mean", "balanced_accuracy", fold=1).value == 1
    assert found.one("mean", "accuracy", fold="all").value == 1


def test_class_without_a_test_case_leaves_balanced_worth_undefined(tmp_path):
    """Two HGG and no LGG: a mean over classes would be the accuracy of one of them."""
    rule = rule_of()
    right = [[0, 1, 0, 1], [0, 0, 0, 1]]
    worth = [subsets(right, rule, ablated=a, first=1) for a in ("modality", "lesion")]
    found = estimated(tmp_path, rule, worth=worth)
    at = {"filled": "zero", "fold": 1}
    undefined = [
        found.one("shapley", "phi_modality", measure="balanced", modality="T1C", **at),
        found.one("value", "balanced_accuracy", ablated="lesion", shown="T1C", **at),
        found.one("mean", "balanced_accuracy", fold="all"),
    ]
    for one in undefined:
        assert math.isnan(one.value)
        assert "no test case of LGG" in one.reason
    assert found.one("shapley", "phi_modality", measure="accuracy", modality="T1C", **at).value == 0.75
    weights = importances(tmp_path, 1, rule)
    assert np.isnan(weights.modality).all()
    assert np.isnan(weights.lesion).all()
    assert np.isfinite(importances(tmp_path, 1, rule_of(measure="accuracy")).lesion).all()


def drawn(rule, cases, seed, chance):
    """Right with a chance that depends on the subset."""
    generator = np.random.default_rng(seed)
    return generator.random((cases, len(rule.coalitions.members))) < chance(rule.coalitions.members)


def test_over_folds_the_worth_is_the_mean_of_the_folds_however_many_cases_they_have(tmp_path):
    rule = rule_of(modalities=MODALITIES, folds=(1, 2))
    one = drawn(rule, 40, 1, lambda m: 0.3 + 0.5 * m[:, 1])
    two = drawn(rule, 20, 2, lambda m: 0.5 + 0.4 * m[:, 3])
    worth = [subsets(one, rule, ablated=a) + subsets(two, rule, ablated=a, fold=2, first=100)
             for a in ("modality", "lesion")]  # fmt: skip
    found = estimated(tmp_path, rule, worth=worth)
    for measure in ("accuracy", "balanced"):
        at = {"filled": "zero", "measure": measure, "modality": "T1C"}
        folds = [found.one("shapley", "phi_modality", fold=fold, **at) for fold in (1, 2)]
        whole = found.one("shapley", "phi_modality", fold="all", **at)
        assert whole.value == pytest.approx(np.mean([each.value for each in folds]))
        assert (whole.n_cases, whole.n_patients) == (60, 60)
        assert whole.low < whole.value < whole.high
    values = one.mean(0) / 2 + two.mean(0) / 2
    expected = shapley(values, rule.coalitions).values
    at = {"filled": "zero", "measure": "accuracy", "fold": "all"}
    seen = [found.one("shapley", "phi_modality", modality=name, **at).value for name in MODALITIES]
    np.testing.assert_allclose(seen, expected)
    whole, none = (found.one("value", "accuracy", ablated="modality", filled="zero", fold="all", shown=shown).value
                   for shown in ("T1+T1C+T2+FLAIR", ""))  # fmt: skip
    assert sum(seen) == pytest.approx(whole - none)


def test_every_fill_and_both_kinds_of_ablation_are_told_apart(tmp_path):
    rule = rule_of(fills=("zero", "tissue"))
    level = {("modality", "zero"): 0, ("modality", "tissue"): 1, ("lesion", "zero"): 2, ("lesion", "tissue"): 3}
    worth = []
    for (ablated, filled), subset in level.items():
        right = np.zeros((6, 4))
        right[:, subset] = 1
        worth.append(subsets(right, rule, ablated=ablated, filled=filled))
    found = estimated(tmp_path, rule, worth=worth)
    for (ablated, filled), subset in level.items():
        names = ["", "T1C", "FLAIR", "T1C+FLAIR"]
        seen = [found.one("value", "accuracy", ablated=ablated, filled=filled, fold=1, shown=n).value for n in names]
        assert seen == [float(n == subset) for n in range(4)]


def test_modality_that_does_not_matter_has_an_interval_around_0_and_ties_with_its_like(tmp_path):
    rule = rule_of(modalities=MODALITIES)
    right = drawn(rule, 200, 3, lambda m: 0.15 + 0.6 * m[:, 1] + 0.25 * m[:, 3])
    found = estimated(tmp_path, rule, worth=[subsets(right, rule), subsets(right, rule, ablated="lesion")])
    at = {"filled": "zero", "fold": 1, "measure": "balanced"}
    for name in ("T1", "T2"):
        one = found.one("shapley", "phi_modality", modality=name, **at)
        assert one.low < 0 < one.high
    assert found.one("shapley", "phi_modality", modality="FLAIR", **at).low > 0
    pairs = {
        (json.loads(row.condition)["modality"], json.loads(row.condition)["versus"]): row
        for row in found.all(statistic="difference", metric="phi_modality")
        if at.items() <= json.loads(row.condition).items()
    }
    assert len(pairs) == 6
    clear = {pair for pair, row in pairs.items() if judgement_of(row).is_yes or opposite_of(row).is_yes}
    assert clear == set(pairs) - {("T1", "T2")}


def test_case_that_was_not_shown_with_every_subset_is_left_out(tmp_path):
    rule = rule_of()
    rows = subsets(np.ones((6, 4)), rule)[:-1]  # the last case failed on the way
    found = estimated(tmp_path, rule, worth=[rows, subsets(np.ones((6, 4)), rule, ablated="lesion")])
    assert found.one("shapley", "phi_modality", filled="zero", fold=1, measure="accuracy", modality="T1C").n_cases == 5
    assert found.one("shapley", "phi_lesion", filled="zero", fold=1, measure="accuracy", modality="T1C").n_cases == 6


def test_known_importance_is_the_accuracy_on_its_set(tmp_path):
    rule = rule_of(known=("T1C", "FLAIR"), folds=(1, 2))
    both = [subsets(np.ones((4, 4)), rule, ablated=a) for a in ("modality", "lesion")]
    sets = [known([1, 1, 1, 0], "T1C"), known([0, 0, 0, 0], "FLAIR"), known([1, 1, 0, 0], "T1C", fold=2)]
    found = estimated(tmp_path, rule, worth=[*both, *sets])
    assert found.one("known", "known_importance", fold=1, modality="T1C").value == 0.75
    assert found.one("known", "known_importance", fold="all", modality="T1C").value == pytest.approx(0.625)
    assert found.one("known", "known_importance", fold="all", modality="T1C").n_patients == 4
    nothing = found.one("known", "known_importance", fold=1, modality="FLAIR")
    assert nothing.value == 0
    assert nothing.reason == "fewer than 6 patients"


def test_above_ten_modalities_the_interval_holds_the_error_of_sampling(tmp_path):
    names = tuple(f"m{n}" for n in range(11))
    rule = rule_of(modalities=names, coalitions=coalitions(11, permutations=10, seed=1))
    right = drawn(rule, 60, 4, lambda m: 0.1 + 0.8 * (m @ np.arange(1, 12) > 33))
    found = estimated(tmp_path, rule, worth=[subsets(right, rule), subsets(right, rule, ablated="lesion")])
    at = {"filled": "zero", "fold": 1, "measure": "accuracy"}
    phi = [found.one("shapley", "phi_modality", modality=name, **at) for name in names]
    errors = shapley(right.mean(0), rule.coalitions).errors
    assert (errors > 0).all()
    assert errors.max() > 0.05
    for one, error in zip(phi, errors, strict=True):
        assert one.value - one.low > 1.96 * error
        assert one.high - one.value > 1.96 * error
    shown = {one.condition for one in found.all(statistic="value", metric="accuracy")}
    assert condition(ablated="modality", filled="zero", fold=1, shown="") in shown
    assert condition(ablated="modality", filled="zero", fold=1, shown="+".join(names)) in shown
    assert len(found.all(statistic="value", metric="accuracy")) < 8 * len(names) * 2


def test_classes_of_the_material_differ():
    assert {class_of(n) for n in range(4)} == {"LGG", "HGG"}


@pytest.mark.slow
def test_estimates_of_many_cases_take_seconds(tmp_path):
    """Five folds of 74 cases, four modalities, two fills, 2000 draws; processor time, as others use the machine."""
    rule = rule_of(modalities=MODALITIES, folds=(1, 2, 3, 4, 5), fills=("zero", "tissue"), draws=2000)
    worth = []
    for fold in rule.folds:
        right = drawn(rule, 74, fold, lambda m: 0.3 + 0.4 * m[:, 1])
        worth += [subsets(right, rule, ablated=a, filled=f, fold=fold, first=100 * fold)
                  for a in ("modality", "lesion") for f in rule.fills]  # fmt: skip
    before = time.process_time()
    found = estimated(tmp_path, rule, worth=worth)
    assert time.process_time() - before < 15
    assert len(found.all(statistic="shapley")) == 2 * 2 * 2 * 6 * 4
