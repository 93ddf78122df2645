"""Means, AUROC and differences of groups, by hand and against scikit-learn."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from tests.studies.localization.paper_material import table_of, write_folder

from heatcheck.core.records import CaseRecord, Prediction, Score
from heatcheck.core.vocabulary import condition
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.runs.tables import write_table
from heatcheck.studies.localization.answers.predictions import LabelledProbabilities
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.subgroups.estimates import Pair, auroc_differences, subgroup_estimates
from heatcheck.studies.localization.subgroups.groups import Groups

PATIENTS = 60
SETTINGS = LocalizationSettings(("f", "g"), ("cam", "random"), ("random",), ("iou", "hit"), "model", draws=200, seed=0)
WHO = {"F": 22, "M": 34, "X": 4}  # patients; of X there are too few


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two films of each patient; maps of women are worse by 0.3, while the model sees their findings as well."""
    generator = np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("divided")
    sexes = [sex for sex, number in WHO.items() for _ in range(number)]
    scores, predictions, cases, of_case = [], [], [], {}
    for number, sex in enumerate(sexes):
        for film in "ab":
            case, patient = f"c{number:02d}{film}", f"p{number:02d}"
            of_case[case] = sex
            cases.append(CaseRecord(case, patient, "ok"))
            for finding in SETTINGS.findings:
                present = generator.random() < 0.5
                logit = 2 * present + generator.normal()
                predictions.append(Prediction(case, patient, finding, "model", float(present), logit, expit(logit)))
                if present:
                    good = 0.6 - 0.3 * (sex == "F") + 0.05 * generator.normal()
                    scores += [Score(case, patient, finding, "cam", "model", "iou", good)]
                    scores += [Score(case, patient, finding, "random", "model", "iou", 0.1 * generator.random())]
    cases.append(CaseRecord("failed", "p99", "failed"))
    write_folder(folder, scores, predictions)
    write_table(folder / "cases.parquet", CaseRecord, cases)
    groups = Groups("sex", tuple(WHO), {**of_case, "failed": "M"})
    return table_of(subgroup_estimates(folder, SETTINGS, [groups])), scores, predictions, of_case


def one(table, statistic, metric, finding="All findings", method="", **facts):
    under = condition(subgroup="sex", **facts)
    keys = {"statistic": statistic, "metric": metric, "finding": finding, "method": method, "condition": under}
    chosen = table[np.logical_and.reduce([table[name] == value for name, value in keys.items()])]
    assert len(chosen) == 1, keys
    return chosen.iloc[0]


def test_each_group_is_counted_without_failed_cases(made):
    counts = {sex: [one(made[0], "count", what, group=sex)["value"] for what in ("images", "patients")] for sex in WHO}
    assert counts == {sex: [2 * number, number] for sex, number in WHO.items()}


@pytest.mark.parametrize("finding", ["f", "g"])
@pytest.mark.parametrize("sex", ["F", "M"])
def test_means_are_those_of_the_groups_cases(made, finding, sex):
    table, scores, _, of_case = made
    for method in SETTINGS.methods:
        values = [s.value for s in scores if (s.finding, s.method) == (finding, method) and of_case[s.case] == sex]
        row = one(table, "mean", "iou", finding, method, group=sex)
        assert row["value"] == pytest.approx(np.mean(values))
        assert row["n_cases"] == len(values)
        assert row["low"] < row["value"] < row["high"]


def test_the_auroc_of_a_group_is_scikit_learns(made):
    table, _, predictions, of_case = made
    chosen = [p for p in predictions if p.finding == "f" and of_case[p.case] == "F"]
    expected = roc_auc_score([p.label for p in chosen], [p.probability for p in chosen])
    assert one(table, "auroc", "auroc", "f", group="F")["value"] == pytest.approx(expected)


def test_a_group_of_few_patients_has_means_and_a_reason_instead_of_intervals(made):
    row = one(made[0], "mean", "iou", "f", "cam", group="X")
    assert math.isfinite(row["value"])
    assert math.isnan(row["low"])
    assert row["reason"] == "fewer than 6 patients"
    difference = one(made[0], "difference", "iou", method="cam", group="X", versus="M")
    assert math.isnan(difference["low"])
    assert difference["reason"] == "fewer than 6 patients in X"


def test_groups_are_compared_with_the_largest_and_judged(made):
    row = one(made[0], "difference", "iou", method="cam", group="F", versus="M")
    assert row["value"] == pytest.approx(-0.3, abs=0.03)
    assert (row["size"], row["family"] != "") == (0.05, True)
    record = type("Row", (), dict(row))
    assert opposite_of(record).is_yes
    assert row["p_adjusted"] < 0.05
    same = one(made[0], "difference", "auroc", group="F", versus="M")
    assert same["low"] < 0 < same["high"]
    assert not judgement_of(type("Row", (), dict(same))).is_yes
    assert made[0].query("statistic == 'difference' and method == 'random'").empty  # floors differ in cases alone


def test_each_group_has_its_own_test_against_the_best_floor(made):
    row = one(made[0], "test", "iou", method="cam", group="F")
    assert row["other_method"] == "random"
    assert row["value"] == pytest.approx(0.25, abs=0.03)
    assert judgement_of(type("Row", (), dict(row))).is_yes


def test_nothing_is_divided_unless_asked_for(tmp_path):
    assert subgroup_estimates(tmp_path, SETTINGS, []) == []


def test_a_group_without_an_error_has_no_interval_of_its_difference():
    """Its patients cannot say how sure an AUROC of 1 is; the error of the other group alone would be too small."""
    generator = np.random.default_rng(1)
    names = [f"c{n}" for n in range(60)]
    labels = np.tile([0.0, 1.0], 30)[:, None]
    perfect = np.arange(60)[:, None] < 20
    probabilities = np.where(perfect, 0.1 + 0.8 * labels, generator.random((60, 1)))
    answers = LabelledProbabilities(labels, probabilities, np.array(names), np.array(names, object))
    groups = Groups("sex", ("F", "M"), {name: "F" if n < 20 else "M" for n, name in enumerate(names)})
    (row,) = auroc_differences(answers, [Pair(groups, "F", "M")], replace(SETTINGS, findings=("f",)))
    assert row.value > 0
    assert math.isnan(row.low)
    assert "no error" in row.reason
