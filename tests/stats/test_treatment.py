"""Coefficients of factors by hand, against statsmodels, and the reasons where they are not identified."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from heatcheck.stats.regression import FEW_PATIENTS, ONE_LINE
from heatcheck.stats.treatment import (
    EXACT,
    INTERCEPT,
    NO_ROW,
    NO_ROW_OF_LEVEL,
    ONE_NETWORK,
    TOO_FEW_ROWS,
    Factor,
    RowOrigin,
    treatment_effects,
)

FAMILIES, METHODS, STARTS = ("DenseNet", "ViT", "Swin"), ("gradient", "lrp"), ("no", "yes")


def table_of(generator, rows=500, patients=40):
    """Rows in which family, method, start and patient all matter."""
    patient = generator.integers(0, patients, rows)
    table = pd.DataFrame(
        {
            "patient": patient,
            "architecture": generator.choice(FAMILIES, rows, p=[0.5, 0.3, 0.2]),
            "method": generator.choice(METHODS, rows),
            "pretrained": generator.choice(STARTS, rows),
        }
    )
    moved = 0.5 * (table["architecture"] == "Swin") - 0.3 * (table["method"] == "lrp")
    return table.assign(outcome=moved + generator.normal(size=patients)[patient] + generator.normal(size=rows))


def factors_of(table):
    levels = {"pretrained": STARTS, "architecture": FAMILIES, "method": METHODS}
    return [Factor(name, table[name].to_numpy(), levels[name]) for name in levels]


def origin_of(table):
    """Four networks of each family."""
    networks = table["architecture"].astype(str) + (table.index % 4).astype(str)
    return RowOrigin(table["patient"].to_numpy(), networks.to_numpy(str))


def each_its_own(n):
    """As many patients and networks as rows."""
    return RowOrigin(np.arange(n), np.arange(n))


def effects(table):
    fitted = treatment_effects(table["outcome"].to_numpy(), factors_of(table), origin_of(table))
    return {(term.factor, term.level): term for term in fitted.terms}


def test_two_groups_by_hand():
    # means 2 and 6; squares about them sum to 2 + 8, over 4 degrees of freedom: 2.5; each group has three rows
    outcome = np.array([1.0, 2, 3, 4, 6, 8])
    factor = Factor("method", np.repeat(["gradient", "lrp"], 3), METHODS)
    fitted = treatment_effects(outcome, [factor], each_its_own(6))
    level, effect = (term.classical for term in fitted.terms)
    assert (level.value, effect.value) == pytest.approx((2.0, 4.0))
    reach = 2.776445  # the t table's value for 4 and 97.5 %
    assert level.high - level.value == pytest.approx(reach * math.sqrt(2.5 / 3), rel=1e-6)
    assert effect.value - effect.low == pytest.approx(reach * math.sqrt(2.5 * 2 / 3), rel=1e-6)
    assert (effect.n_cases, effect.n_patients, effect.n_undefined) == (6, 6, 0)
    assert fitted.references == {"method": "gradient"}


def test_a_test_over_networks_by_hand():
    # ten networks, each with one row of either method that differ by 1 or by 3, on as many patients: the effect is
    # their mean 2, and by networks as by patients its variance is that of a paired t-test, 10/9 over 10
    level = np.arange(10.0)
    outcome = np.concatenate([level, level + np.tile([1.0, 3.0], 5)])
    factor = Factor("method", np.repeat(["gradient", "lrp"], 10), METHODS)
    origin = RowOrigin(np.tile(np.arange(10), 2), np.tile(np.arange(10), 2))
    effect = treatment_effects(outcome, [factor], origin).terms[1].networks
    assert effect.value == pytest.approx(2.0)
    assert effect.error == pytest.approx(math.sqrt(2 / 9))  # both sources together
    assert effect.high - 2 == pytest.approx(2.262157 * math.sqrt(2 / 9), rel=1e-6)  # the t table's value for 9
    judge = stats.ttest_rel(outcome[10:], outcome[:10])
    two_errors = 2 * stats.t.sf(judge.statistic / math.sqrt(2), 9)
    assert effect.p_value == pytest.approx(two_errors)


def test_what_one_network_decides_has_no_test_however_many_images_there_are():
    generator = np.random.default_rng(8)
    luck = {"DenseNet": 0.0, "ViT": 0.05, "Swin": -0.04}  # one network of each kind, trained once
    table = table_of(generator, rows=3000).assign(pretrained="no")
    outcome = table["architecture"].map(luck) + 0.1 * generator.normal(size=len(table))
    origin = RowOrigin(table["patient"].to_numpy(), table["architecture"].to_numpy(str))
    terms = {term.level: term for term in treatment_effects(outcome.to_numpy(), factors_of(table), origin).terms}
    for family in ("ViT", "Swin"):
        assert terms[family].classical.p_value < 0.001
        assert terms[family].networks.reason == ONE_NETWORK
        assert math.isnan(terms[family].networks.p_value)
        assert terms[family].networks.value == terms[family].classical.value
    assert math.isfinite(terms["lrp"].networks.p_value)  # every network has both methods


def test_networks_that_differ_by_luck_alone_are_not_taken_for_an_effect():
    generator = np.random.default_rng(9)
    false = {"classical": 0, "networks": 0}
    for _ in range(60):
        base = np.repeat(np.arange(6), 80)
        luck = generator.normal(0, 0.06, (6, 2))
        rows = [0.3 + luck[base, method] + generator.normal(0, 0.1, len(base)) for method in (0, 1)]
        labels = [np.tile(FAMILIES, 2)[base]] * 2
        factors = [
            Factor("architecture", np.concatenate(labels), FAMILIES),
            Factor("method", np.repeat(METHODS, len(base)), METHODS),
        ]
        origin = RowOrigin(np.tile(np.tile(np.arange(40), 12), 2), np.tile(base, 2))
        for term in treatment_effects(np.concatenate(rows), factors, origin).terms[1:]:
            for errors in false:
                false[errors] += getattr(term, errors).p_value < 0.05
    assert false["classical"] / 180 > 0.4
    assert false["networks"] / 180 < 0.08


@pytest.mark.parametrize("seed", [1, 2])
def test_coefficients_and_classical_errors_are_those_of_statsmodels(seed):
    table = table_of(np.random.default_rng(seed))
    table.loc[::17, "outcome"] = np.nan
    fitted = effects(table)
    formula = (
        "outcome ~ C(pretrained, Treatment('no')) + C(architecture, Treatment('DenseNet')) + "
        "C(method, Treatment('gradient'))"
    )
    known = table.dropna()
    judge = smf.ols(formula, known).fit()
    names = {
        (factor, level): f"C({factor}, Treatment('{levels[0]}'))[T.{level}]"
        for factor, levels in (("pretrained", STARTS), ("architecture", FAMILIES), ("method", METHODS))
        for level in levels[1:]
    }
    for term, name in ({(INTERCEPT, ""): "Intercept"} | names).items():
        fit = fitted[term].classical
        wanted = [judge.params[name], judge.bse[name], judge.pvalues[name], *judge.conf_int().loc[name]]
        assert [fit.value, fit.error, fit.p_value, fit.low, fit.high] == pytest.approx(wanted, rel=1e-8), term
        assert (fit.n_cases, fit.n_undefined) == (len(known), len(table) - len(known))
        assert fitted[term].networks.value == fit.value


def test_a_factor_with_one_level_is_left_out_and_says_so():
    table = table_of(np.random.default_rng(3)).assign(architecture="ViT")
    fitted = effects(table)
    assert {key for key in fitted if key[0] == "architecture"} == {("architecture", "")}
    assert fitted["architecture", ""].classical.reason == "nothing to compare: architecture is “ViT” throughout"
    assert math.isnan(fitted["architecture", ""].networks.value)
    alone = treatment_effects(table["outcome"].to_numpy(), factors_of(table)[::2], origin_of(table))
    assert fitted["method", "lrp"].classical == alone.terms[2].classical


def test_factors_that_go_together_name_each_other_and_leave_the_others_alone():
    table = table_of(np.random.default_rng(4))
    table["pretrained"] = np.where(table["architecture"] == "ViT", "yes", "no")
    fitted = effects(table)
    assert fitted["pretrained", "yes"].classical.reason == "cannot be separated from architecture ViT"
    assert fitted["architecture", "ViT"].networks.reason == "cannot be separated from pretrained yes"
    assert math.isnan(fitted["architecture", "ViT"].classical.value)
    judge = smf.ols("outcome ~ C(architecture) + C(method)", table).fit()
    assert fitted["method", "lrp"].classical.value == pytest.approx(judge.params["C(method)[T.lrp]"])
    assert fitted["method", "lrp"].classical.p_value == pytest.approx(judge.pvalues["C(method)[T.lrp]"])
    assert fitted["architecture", "Swin"].classical.value == pytest.approx(judge.params["C(architecture)[T.Swin]"])


def test_three_terms_that_only_together_cannot_be_told_apart_all_say_so():
    table = table_of(np.random.default_rng(5))
    table["pretrained"] = np.where(table["architecture"] == "DenseNet", "no", "yes")
    fitted = effects(table)
    reason = fitted["pretrained", "yes"].classical.reason
    assert reason == "cannot be separated from architecture ViT and architecture Swin"
    assert not fitted[INTERCEPT, ""].classical.reason


def test_the_first_level_that_has_an_outcome_is_the_reference():
    table = table_of(np.random.default_rng(6))
    table.loc[table["architecture"] == "DenseNet", "outcome"] = np.nan
    fitted = treatment_effects(table["outcome"].to_numpy(), factors_of(table), origin_of(table))
    assert fitted.references["architecture"] == "ViT"
    terms = {term.level: term.classical for term in fitted.terms if term.factor == "architecture"}
    assert terms["DenseNet"].reason == NO_ROW_OF_LEVEL
    assert math.isfinite(terms["Swin"].value)
    assert "ViT" not in terms


def test_few_patients_have_no_test_over_networks():
    table = table_of(np.random.default_rng(7), patients=9)
    term = effects(table)["method", "lrp"]
    assert term.networks.reason == FEW_PATIENTS
    assert term.networks.value == term.classical.value
    assert math.isnan(term.networks.low)
    assert math.isfinite(term.classical.low)


def test_rows_that_are_fitted_exactly_or_are_too_few_have_no_interval():
    factor = Factor("method", np.array(["gradient", "lrp"] * 10), METHODS)
    exact = treatment_effects(np.array([0.1, 0.4] * 10), [factor], each_its_own(20)).terms[1]
    assert (exact.classical.value, exact.classical.reason) == (pytest.approx(0.3), EXACT)
    assert math.isnan(exact.networks.p_value)
    two = Factor("method", np.array(["gradient", "lrp"]), METHODS)
    few = treatment_effects(np.array([0.1, 0.4]), [two], each_its_own(2)).terms[1]
    assert few.classical.reason == TOO_FEW_ROWS


def test_patients_and_networks_whose_pulls_cancel_have_no_error():
    # every patient has the same four rows
    factor = Factor("method", np.tile(["gradient", "lrp"], 24), METHODS)
    outcome = np.tile([0.1, 0.4, 0.3, 0.8], 12)
    origin = RowOrigin(np.repeat(np.arange(12), 4), np.repeat(np.arange(12), 4))
    term = treatment_effects(outcome, [factor], origin).terms[1]
    assert term.networks.reason == ONE_LINE
    assert math.isfinite(term.classical.p_value)


def test_no_outcome_at_all_is_a_reason():
    factor = Factor("method", np.array(["gradient", "lrp"]), METHODS)
    fitted = treatment_effects(np.full(2, np.nan), [factor], each_its_own(2))
    assert [term.classical.reason for term in fitted.terms] == [NO_ROW, NO_ROW]
    assert fitted.terms[0].classical.n_undefined == 2
    assert fitted.references == {}


def test_labels_without_a_level_lengths_that_differ_and_infinity_are_refused():
    with pytest.raises(ValueError, match="must be among its levels, got 'ig'"):
        Factor("method", np.array(["gradient", "ig"]), METHODS)
    factor = Factor("method", np.array(["gradient", "lrp"]), METHODS)
    with pytest.raises(ValueError, match="must have the same length"):
        treatment_effects(np.zeros(3), [factor], each_its_own(3))
    with pytest.raises(ValueError, match="finite"):
        treatment_effects(np.array([0.0, np.inf]), [factor], each_its_own(2))
