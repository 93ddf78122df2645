"""What the distance between aligned and misaligned depends on: by hand, and from the published table."""

import csv
import math
from dataclasses import replace
from importlib import resources
from itertools import product

import numpy as np
import pytest
from scipy import stats
from tests.studies.alignment.made_tables import CNN, VIT, estimated, rule_of, scored

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import condition, facts_of
from heatcheck.stats.treatment import ONE_NETWORK, Factor, RowOrigin, treatment_effects
from heatcheck.studies.alignment.estimates import PAIRS
from heatcheck.studies.alignment.vocabulary import Base

NAN = math.nan


def published(name):
    """The rows of a shipped table of published figures."""
    text = resources.files("heatcheck").joinpath("reference", f"alignment_{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def ends(differences, **where):
    """Scores whose two ends lie so far apart on each image, in each seed."""
    rows = []
    for seed, apart in enumerate(differences, 1):
        rows += scored([0.5 + value for value in apart], "align", seed, **where)
        rows += scored([0.5] * len(apart), "misalign", seed, **where)
    return rows


def term(found, name, errors="classical", metric="mass"):
    return found.one(statistic="regression", metric=metric, condition=condition(errors=errors, term=name))


def names(found, metric="mass"):
    rows = found.all(statistic="regression", metric=metric)
    return [facts_of(row.condition)["term"] for row in rows if facts_of(row.condition)["errors"] == "classical"]


def test_coefficients_by_hand(tmp_path):
    # means: gradient on the CNN 0.1, on the ViT 0.3; lrp on the CNN 0.2, on the ViT 0.4
    level = {("cnn", "gradient"): 0.1, ("vit", "gradient"): 0.3, ("cnn", "lrp"): 0.2, ("vit", "lrp"): 0.4}
    noise = np.array([0.02, -0.02] * 6)
    rows = [ends([mean + noise], model=model, method=method) for (model, method), mean in level.items()]
    found = estimated(tmp_path, rule_of(bases=(CNN, replace(VIT, pretrained=False))), *rows)
    assert names(found) == ["intercept", "pretrained", "architecture:ViT", "method:lrp"]
    by_hand = {"intercept": 0.1, "architecture:ViT": 0.2, "method:lrp": 0.1}
    for name, value in by_hand.items():
        one = term(found, name)
        assert one.value == pytest.approx(value)
        assert (one.n_cases, one.n_patients, one.n_undefined) == (48, 12, 0)
        assert (one.finding, one.model, one.method) == (ALL_FINDINGS, "", "")
    # 48 rows about three coefficients, residuals ±0.02; half of the rows are of either method
    error = math.sqrt(48 * 0.02**2 / 45 * (1 / 24 + 1 / 24))
    assert term(found, "method:lrp").error == pytest.approx(error)
    assert term(found, "method:lrp").high - 0.1 == pytest.approx(stats.t.ppf(0.975, 45) * error)
    assert term(found, "method:lrp").p_value == pytest.approx(2 * stats.t.sf(0.1 / error, 45))
    assert term(found, "pretrained").reason == "nothing to compare: pretrained is “no” throughout"
    assert term(found, "intercept").reason == "the level at architecture: DenseNet, method: gradient"


def test_an_image_is_one_row_however_many_seeds_there_are_and_a_lost_pair_is_not_missed(tmp_path):
    generator = np.random.default_rng(1)
    apart = generator.normal(0.1, 0.05, (2, 12))
    lost = apart.copy()
    lost[1, 3] = NAN
    noise = generator.normal(0, 0.02, (2, 2, 12))
    rows = [*ends(lost), *ends(apart + 0.1, method="lrp")]
    rows += [
        row for k, name in enumerate(("gradient", "lrp")) for row in ends(apart + noise[k], model="b", method=name)
    ]
    found = estimated(tmp_path, rule_of(bases=(CNN, replace(CNN, key="b"))), rows)
    of_images = [np.nanmean(lost, 0), apart.mean(0) + 0.1, *(apart + noise).mean(1)]
    outcome = np.stack([of_images[place] for place in (0, 1, 2, 3)], 1)
    factor = Factor("method", np.tile(["gradient", "lrp"], 24), ("gradient", "lrp"))
    origin = RowOrigin(np.repeat(np.arange(12), 4), np.tile([0, 0, 1, 1], 12))
    judge = treatment_effects(outcome.ravel(), [factor], origin).terms[1]
    for errors in ("classical", "networks"):
        one, fit = term(found, "method:lrp", errors), getattr(judge, errors)
        assert (one.value, one.low, one.p_value) == pytest.approx((fit.value, fit.low, fit.p_value))
        assert (one.n_cases, one.n_undefined) == (48, 0)
    assert term(found, "architecture").reason == "nothing to compare: architecture is “DenseNet” throughout"


def test_an_architecture_that_one_base_alone_has_is_not_tested_however_many_seeds_it_has(tmp_path):
    generator = np.random.default_rng(4)
    luck = {"cnn": 0.1, "vit": 0.2}
    rows = [
        ends(luck[model] + generator.normal(0, 0.02, (2, 30)), model=model, method=method)
        for model, method in product(luck, ("gradient", "lrp"))
    ]
    found = estimated(tmp_path, rule_of(bases=(CNN, replace(VIT, pretrained=False))), *rows)
    assert term(found, "architecture:ViT").p_value < 0.001  # as published
    tested = term(found, "architecture:ViT", "networks")
    assert tested.value == term(found, "architecture:ViT").value
    assert (math.isnan(tested.low), math.isnan(tested.p_value), tested.reason) == (True, True, ONE_NETWORK)


def test_without_the_usual_references_the_first_level_is_one(tmp_path):
    generator = np.random.default_rng(2)
    bases = (VIT, Base("swin", "swin_tiny", "Swin", "random", False))
    rule = rule_of(bases=bases, methods=("lrp", "grad_cam"), through="lrp")
    rows = [ends(generator.random((1, 12)) / 3, model=base.key, method=m) for base in bases for m in rule.methods]
    found = estimated(tmp_path, rule, *rows)
    assert names(found) == ["intercept", "pretrained", "architecture:Swin", "method:grad_cam"]
    assert term(found, "pretrained").reason == "cannot be separated from intercept and architecture Swin"


def test_the_published_table_of_robustness_gives_the_published_coefficients(tmp_path):
    """Both are means over the same images: least squares on the table's cells has the paper's coefficients."""
    families = {"densenet201": "DenseNet", "vit_base": "ViT", "swin": "Swin"}
    bases = tuple(
        Base(f"{name}/{start}", name, family, start, start == "1")
        for start, (name, family) in product("01", families.items())
    )
    methods = ("integrated_gradients", "gradient", "smooth_grad", "lrp")  # the reference need not come first
    rule = rule_of(bases=bases, methods=methods, seeds=(1,), draws=20)
    around = np.array([0.01, -0.01] * 6)  # images that differ, and leave the mean as it is
    cells = {
        (f"{row['architecture']}/{row['pretrained']}", row["method"], row["quantity"][-4:]): float(row["value"])
        for row in published("robustness")
        if row["quantity"].startswith("robustness") and row["value"]
    }
    rows = [ends([value + around], model=m, method=e, metric=metric) for (m, e, metric), value in cells.items()]
    found = estimated(tmp_path, rule, *rows)
    pooled = {"statistic": "robustness", "finding": ALL_FINDINGS, "condition": condition(pooled="images")}
    for (model, method, metric), value in cells.items():
        assert found.one(**pooled, model=model, method=method, metric=metric).value == pytest.approx(value)
    table = published("regression")
    assert len(table) == 14
    for row in table:  # both are printed with three digits
        assert term(found, row["term"], metric=row["metric"]).value == pytest.approx(float(row["value"]), abs=0.0013)


def four_scores(generator, n=40):
    """Both ends of both metrics for two seeds, as rows and as columns in the order of the pairs' names."""
    common = generator.normal(size=(2, n, 1))
    values = 1 / (1 + np.exp(-common - 0.5 * generator.normal(size=(2, n, 4))))
    values[1, 3, 0] = NAN
    places = list(product(("mass", "rank"), ("align", "misalign")))
    rows = [
        row
        for place, (metric, arm) in enumerate(places)
        for seed in (0, 1)
        for row in scored(values[seed, :, place], arm, seed + 1, metric=metric)
    ]
    return rows, {f"{metric}_{arm}": values[:, :, place].ravel() for place, (metric, arm) in enumerate(places)}


def test_the_six_correlations_are_those_of_scipy_over_the_rows_that_have_all_four(tmp_path):
    rows, columns = four_scores(np.random.default_rng(3))
    found = estimated(tmp_path, rule_of(bases=(CNN,), methods=("gradient",)), rows)
    known = ~np.isnan(np.stack(list(columns.values()))).any(0)
    for kind, judge in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        for left, right in PAIRS:
            at = condition(kind=kind, left=left, right=right)
            one = found.one(statistic="correlation", condition=at)
            assert one.value == pytest.approx(judge(columns[left][known], columns[right][known])[0]), (kind, left)
            assert one.low < one.value < one.high
            assert (one.metric, one.finding, one.n_cases, one.n_undefined) == (left[:4], ALL_FINDINGS, 79, 1)
            assert one.n_patients == 40


def test_the_pairs_are_the_published_ones_in_their_order():
    assert [(row["left"], row["right"]) for row in published("metric_correlation") if row["kind"] == "pearson"] == list(
        PAIRS
    )


def test_a_run_without_rank_has_a_regression_of_mass_and_no_correlations(tmp_path):
    found = estimated(tmp_path, rule_of(metrics=("mass",)), ends([np.linspace(0, 0.3, 12)]))
    assert {row.metric for row in found.all(statistic="regression")} == {"mass"}
    assert not found.all(statistic="correlation")
