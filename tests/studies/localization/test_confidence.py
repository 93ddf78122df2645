"""Scores against probabilities."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from tests.studies.localization.paper_material import rule_of, write_folder

from heatcheck.core.records import Estimate, Prediction, Score
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.runs.tables import to_table
from heatcheck.stats.regression import Observations, clustered_least_squares, least_squares
from heatcheck.studies.localization.chexlocalize.estimates import paper_estimates
from heatcheck.studies.localization.regressions import confidence_estimates
from heatcheck.studies.localization.score_grid import score_grid

CASES = 40


@pytest.fixture
def material():
    """Probabilities of g are all below 0.1 and those of f above 0.5; scores rise with both as with their ranks."""
    generator = np.random.default_rng(3)
    said = {"f": 0.5 + 0.5 * generator.random(CASES), "g": 0.1 * generator.random(CASES)}
    scores, predictions = [], []
    for finding, values in said.items():
        for n, p in enumerate(values):
            key = (f"c{n:02d}", f"p{n // 2:02d}", finding)
            predictions.append(Prediction(*key, "model", 1.0, 0.0, p))
            scores.append(Score(*key, "m", "model", "iou_full", p + 0.1 * generator.normal()))
    return *(to_table(*pair).to_pandas() for pair in ((Score, scores), (Prediction, predictions))), said


def estimates(material, preset=""):
    scores, predictions, _ = material
    rule = rule_of(["f", "g"], ["m"])
    rows = confidence_estimates(score_grid("iou_full", scores, rule), predictions, rule, preset)
    return {(slope.row.statistic, slope.row.finding): slope.row for slope in rows}


def test_recommended_slopes_are_per_range_of_each_finding(material):
    found = estimates(material)
    scores, _, said = material
    scaled = {f: (p - p.min()) / (p.max() - p.min()) for f, p in said.items()}
    values = {f: scores[scores["finding"] == f]["value"].to_numpy() for f in said}
    patients = np.arange(CASES) // 2
    one = clustered_least_squares(Observations(scaled["g"], values["g"], np.zeros(CASES, int), patients))
    assert (found["slope", "g"].value, found["slope", "g"].low) == pytest.approx((one.value, one.low))
    both = Observations(*(np.concatenate([d["f"], d["g"]]) for d in (scaled, values)), np.repeat([0, 1], CASES),
                        np.tile(patients, 2))  # fmt: skip
    pooled = clustered_least_squares(both)
    row = found["slope", "All findings"]
    assert (row.value, row.low, row.n_patients) == pytest.approx((pooled.value, pooled.low, CASES // 2))
    assert set(found) == {("slope", finding) for finding in ("f", "g", "All findings")}


def test_the_range_is_that_of_all_predictions_not_only_of_scored_cases(material):
    scores, predictions, _ = material
    some = (scores[scores["case"] < "c30"], predictions, None)
    wider = predictions.assign(probability=np.where(predictions["case"] == "c35", 0.0, predictions["probability"]))
    assert estimates(some)["slope", "f"].value < estimates((some[0], wider, None))["slope", "f"].value


def test_the_papers_slopes_are_on_raw_probabilities_of_all_rows_alike(material):
    found = estimates(material, "chexlocalize")
    scores, _, said = material
    plain = least_squares(np.concatenate(list(said.values())), scores["value"].to_numpy())
    assert found["slope", "All findings"].value == pytest.approx(plain.value)
    assert found["spearman", "All findings"].value > found["spearman", "g"].value
    assert len(found) == 6


def test_another_models_probabilities_do_not_matter(material):
    scores, predictions, said = material
    more = pd.concat([predictions.assign(model="other", probability=0.3), predictions])
    assert estimates((scores, more, said)) == estimates(material)


def slopes_of_noise(folder, seed, patients=40):
    """The slopes on the probability of maps that know nothing, with a model that tells 30 % of the images apart."""
    generator = np.random.default_rng(seed)
    scores, predictions = [], []
    for number in range(patients):
        for finding in ("f", "g"):
            present = generator.random() < 0.3
            logit = 1.5 * present - 1 + generator.normal()
            key = (f"c{number:02d}", f"p{number:02d}", finding)
            predictions.append(Prediction(*key, "model", float(present), logit, float(expit(logit))))
            overlap = float(0.3 * generator.random()) if present else 0.0
            scores.append(Score(*key, "noise", "model", "iou_full", overlap))
            if present:
                scores.append(Score(*key, "noise", "model", "iou", overlap))
                scores.append(Score(*key, "noise", "model", "hit", float(generator.random() < 0.3)))
    rows = paper_estimates(write_folder(folder, scores, predictions), rule_of(["f", "g"], ["noise"]))
    return [row for row in rows if row.statistic == "slope" and "probability" in row.condition]


def claims(row: Estimate) -> bool:
    return judgement_of(row).is_yes or opposite_of(row).is_yes


def test_noise_is_hardly_ever_said_to_point_better_when_the_model_is_sure(tmp_path):
    """By the fit over all images, which the paper makes, it was said in every one of these runs."""
    runs = [slopes_of_noise(tmp_path, seed) for seed in range(20)]
    assert {row.metric for rows in runs for row in rows} == {"iou", "hit"}
    assert sum(any(map(claims, rows)) for rows in runs) <= 3  # 5 % of 20 runs is one


def test_a_rise_among_cases_with_the_finding_is_found(material):
    scores, predictions, _ = material
    rule = rule_of(["f", "g"], ["m"])
    grid = score_grid("iou", scores.assign(metric="iou"), rule)
    found = {slope.row.finding: slope.row for slope in confidence_estimates(grid, predictions, rule)}
    assert claims(found["All findings"])
    assert found["All findings"].value > 0
