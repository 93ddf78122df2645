"""AUROC and mutual information of fine-tuned networks: means over seeds, and which findings count."""

import math

import numpy as np
import pytest
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import roc_auc_score
from tests.studies.alignment.made_tables import CNN, estimated, rule_of, said

from heatcheck.core.records import ALL_FINDINGS, CaseRecord
from heatcheck.core.vocabulary import condition
from heatcheck.judging.judgement import judgement_of
from heatcheck.stats.auroc import clustered_auroc
from heatcheck.studies.alignment.estimating.answers import NO_PREDICTIONS, TOO_FEW
from heatcheck.studies.alignment.estimating.predictions import INFORMATION
from heatcheck.studies.alignment.vocabulary import ONE_TRAINING

NAN = math.nan
RULE = rule_of(bases=(CNN,), methods=("gradient",), metrics=("mass",), draws=200)
AUROC = {"statistic": "auroc", "metric": "auroc"}
INFORMED = {"statistic": "mutual_information", "metric": INFORMATION}


def cohort(seed, n=60, positives=20):
    """Labels, and the probabilities of one network after another."""
    generator = np.random.default_rng(seed)
    labels = (np.arange(n) < positives).astype(float)
    while True:
        yield labels, 1 / (1 + np.exp(-generator.normal(size=n) - labels))


def asked(found, arm="base", finding="Nodule", method="", **which):
    return found.one(**(which or AUROC), finding=finding, method=method, condition=condition(arm=arm))


def test_the_values_are_means_over_seeds_of_those_of_scikit_learn(tmp_path):
    networks = ("cnn · gradient · align · seed 1", "cnn · gradient · align · seed 2")
    answers = cohort(1)
    rows = {network: next(answers) for network in networks}
    found = estimated(tmp_path, RULE, predictions=[said(name, *own) for name, own in rows.items()])
    judge = np.mean([roc_auc_score(*own) for own in rows.values()])
    one = asked(found, "align", method="gradient")
    assert one.value == pytest.approx(judge)
    assert one.low < one.value < one.high
    assert (one.model, one.n_cases, one.n_patients, one.n_undefined, one.reason) == ("cnn", 60, 60, 0, "")
    informed = [
        mutual_info_classif(said[:, None], labels.astype(int), discrete_features=False, random_state=0)[0]
        for labels, said in rows.values()
    ]
    known = asked(found, "align", method="gradient", **INFORMED)
    assert known.value == pytest.approx(np.mean(informed), abs=1e-9)
    assert max(known.low, 0) <= known.value <= known.high


def test_the_interval_of_one_network_is_that_of_its_auroc(tmp_path):
    labels, rated = next(cohort(2))
    one = asked(estimated(tmp_path, RULE, predictions=[said("cnn", labels, rated)]))
    judge = clustered_auroc(labels, rated, np.array([f"p{n}" for n in range(60)])).interval
    assert (one.value, one.low, one.high) == pytest.approx((judge.value, judge.low, judge.high))


def test_seeds_that_differ_widen_the_interval(tmp_path):
    answers, generator = cohort(2), np.random.default_rng(0)
    labels, rated = next(answers)
    worse = np.where(generator.random(60) < 0.5, generator.random(60), rated)  # half of the images by chance
    rows = {"alike": (rated, rated), "apart": (rated, worse)}
    found = {}
    for name, each in rows.items():
        (tmp_path / name).mkdir()
        networks = [said(f"cnn · control · seed {s}", labels, own) for s, own in enumerate(each, 1)]
        found[name] = asked(estimated(tmp_path / name, RULE, predictions=networks), "control")
    alone = clustered_auroc(labels, rated, np.arange(60)).interval
    assert (found["alike"].low, found["alike"].high) == pytest.approx((alone.low, alone.high))
    of_seeds = abs(roc_auc_score(labels, rated) - roc_auc_score(labels, worse)) / 2
    assert found["apart"].value - found["apart"].low > 12 * of_seeds  # t with one degree of freedom
    assert found["apart"].high <= 1


def test_prediction_is_compared_with_guessing_and_with_the_control(tmp_path):
    labels, rated = next(cohort(10))
    predictions = [said("cnn", labels, rated)]
    for seed in (1, 2, 3):
        near = rated + 1e-3 * np.random.default_rng(seed).normal(size=60)
        predictions.append(said(f"cnn · control · seed {seed}", labels, near))
        predictions.append(said(f"cnn · gradient · align · seed {seed}", labels, near))
        predictions.append(said(f"cnn · gradient · misalign · seed {seed}", labels, 1 - near))
    rule = rule_of(bases=(CNN,), methods=("gradient",), metrics=("mass",), seeds=(1, 2, 3))
    found = estimated(tmp_path, rule, predictions=predictions)
    compared = {"statistic": "difference", "metric": "auroc", "finding": "Nodule"}
    above = found.one(**compared, condition=condition(arm="base", versus="guessing"))
    base = asked(found)
    assert (above.value, above.low) == pytest.approx((base.value - 0.5, base.low - 0.5))
    assert above.size == pytest.approx(0.05)
    kept, lost = (
        found.one(**compared, method="gradient", condition=condition(arm=arm, versus="control"))
        for arm in ("align", "misalign")
    )
    assert lost.value == pytest.approx(2 * base.value - 1, abs=0.01)
    assert judgement_of(lost).is_yes
    assert not judgement_of(kept).is_yes


def test_networks_that_rate_every_image_alike_lost_nothing(tmp_path):
    labels, rated = next(cohort(12))
    networks = [f"cnn · {kind} · seed {seed}" for kind in ("control", "gradient · align") for seed in (1, 2)]
    rule = rule_of(bases=(CNN,), methods=("gradient",))
    found = estimated(tmp_path, rule, predictions=[said(name, labels, rated) for name in networks])
    at = condition(arm="align", versus="control")
    kept = found.one(statistic="difference", metric="auroc", finding="Nodule", method="gradient", condition=at)
    assert (kept.low, kept.high) == (0.0, 0.0)
    assert judgement_of(kept).is_no


def test_one_training_has_no_claim_about_what_tuning_costs(tmp_path):
    labels, rated = next(cohort(11))
    networks = ("cnn · control · seed 1", "cnn · gradient · misalign · seed 1")
    predictions = [said(name, labels, own) for name, own in zip(networks, (rated, 1 - rated), strict=True)]
    found = estimated(tmp_path, rule_of(bases=(CNN,), methods=("gradient",), seeds=(1,)), predictions=predictions)
    at = condition(arm="misalign", versus="control")
    lost = found.one(statistic="difference", metric="auroc", finding="Nodule", method="gradient", condition=at)
    assert lost.low > 0.05
    assert (judgement_of(lost).answer, judgement_of(lost).reason) == ("cannot say", ONE_TRAINING)


def test_only_findings_with_ten_images_of_either_kind_count_in_the_mean(tmp_path):
    rule = rule_of(
        bases=(CNN,), methods=("gradient",), metrics=("mass",), findings=("Nodule", "Effusion", "Mass", "Fracture")
    )
    many, some = next(cohort(3)), next(cohort(4, positives=10))
    nine, none = next(cohort(5, positives=9)), next(cohort(6, positives=0))
    answers = dict(zip(rule.findings, (many, some, nine, none), strict=True))
    found = estimated(tmp_path, rule, predictions=[said("cnn", *own, finding=f) for f, own in answers.items()])
    for which in (AUROC, INFORMED):
        each = [asked(found, finding=finding, **which) for finding in rule.findings]
        overall = asked(found, finding=ALL_FINDINGS, **which)
        assert overall.value == pytest.approx((each[0].value + each[1].value) / 2)
        assert overall.reason == "over 2 of 4 findings"
        assert math.isfinite(each[2].value)
        assert each[3].reason == "no positive case"
        assert math.isnan(each[3].value)


def test_no_finding_that_counts_leaves_no_mean(tmp_path):
    found = estimated(tmp_path, RULE, predictions=[said("cnn", *next(cohort(7, positives=9)))])
    overall = asked(found, finding=ALL_FINDINGS)
    assert math.isnan(overall.value)
    assert overall.reason == TOO_FEW
    assert math.isfinite(asked(found).value)


def test_a_network_that_failed_is_left_out_and_told_of(tmp_path):
    answers = cohort(8)
    good, (labels, _) = next(answers), next(answers)
    predictions = [
        said("cnn · control · seed 1", *good),
        said("cnn · control · seed 2", labels, np.full(60, NAN)),
        said("cnn", labels, good[1]),
    ]
    failed = [
        CaseRecord(f"cnn · gradient · {arm} · seed {seed} · {subject}", "", "failed", "training", why)
        for arm, subject, why in (("align", "Nodule", "the loss turned NaN"), ("misalign", "2 findings", "as well"))
        for seed in (1, 2)
    ]
    found = estimated(tmp_path, RULE, predictions=predictions, failed=failed)
    control = asked(found, "control")
    assert control.value == pytest.approx(roc_auc_score(*good))
    assert control.reason == "over 1 of 2 seeds"
    align, misalign = (asked(found, arm, method="gradient") for arm in ("align", "misalign"))
    assert (align.reason, misalign.reason) == ("the loss turned NaN", "as well")
    assert math.isnan(align.value)
    assert asked(found, "align", method="gradient", **INFORMED).reason == "the loss turned NaN"
    assert asked(found, finding="Effusion").reason == NO_PREDICTIONS


def test_images_without_a_label_or_an_answer_take_no_part(tmp_path):
    labels, rated = next(cohort(9))
    unsure, silent = labels.copy(), rated.copy()
    unsure[0], unsure[30], silent[40] = NAN, -1.0, NAN
    found = asked(estimated(tmp_path, RULE, predictions=[said("cnn", unsure, silent)]))
    known = np.delete(np.arange(60), [0, 30, 40])
    assert found.value == pytest.approx(roc_auc_score(labels[known], rated[known]))
    assert (found.n_cases, found.n_patients, found.n_undefined) == (57, 57, 3)


def test_one_finding_with_one_patient_of_either_kind_has_a_value_and_says_why_no_interval(tmp_path):
    found = estimated(tmp_path, RULE, predictions=[said("cnn", [1.0, 0.0, 0.0], [0.9, 0.1, 0.2])])
    one = asked(found)
    assert one.value == 1.0
    assert math.isnan(one.low)
    assert one.reason
    assert math.isnan(asked(found, **INFORMED).value)
    assert asked(found, **INFORMED).reason
