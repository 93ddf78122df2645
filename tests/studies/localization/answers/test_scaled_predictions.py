"""Temperatures that were not fitted to the case they scale."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from tests.studies.localization.paper_material import rule_of

from heatcheck.stats.temperature import fitted_temperature
from heatcheck.studies.localization.answers.calibration import FEW_PATIENTS, logits_of, scaled_predictions


def answers(patients, labels, logits, finding="f"):
    return pd.DataFrame(
        {
            "case": [f"c{n:03d}" for n in range(len(labels))],
            "patient": patients,
            "finding": finding,
            "model": "model",
            "label": labels,
            "logit": logits,
            "probability": expit(logits),
        }
    )


def many(patients=40, positives=20):
    generator = np.random.default_rng(5)
    labels = (np.arange(2 * patients) < 2 * positives).astype(float)
    return answers([f"p{n // 2}" for n in range(2 * patients)], labels, labels + generator.normal(0, 1, len(labels)))


def test_a_patient_is_scaled_by_a_temperature_of_the_others():
    table = many()
    scaling = scaled_predictions(table, None, rule_of(["f"], ["m"]))
    used = table["logit"].to_numpy() / logit(scaling.predictions["scaled"].to_numpy())
    temperatures = {round(t, 6) for t in used}
    assert len(temperatures) == 5
    for temperature in temperatures:
        fold = np.isclose(used, temperature)
        others = table[~fold]
        expected = fitted_temperature(others["label"].to_numpy(), others["logit"].to_numpy()).value
        assert temperature == pytest.approx(expected, rel=1e-5)
        assert not set(table[fold]["patient"]) & set(others["patient"])
    assert scaling.temperatures["f"].value == pytest.approx(np.exp(np.mean(np.log(list(temperatures)))), rel=1e-5)


def test_every_fold_has_positives_even_where_they_are_few():
    table = many(positives=5)
    scaled = scaled_predictions(table, None, rule_of(["f"], ["m"])).predictions["scaled"].to_numpy()
    temperatures = (table["logit"].to_numpy() / logit(scaled)).round(6)
    positives = table[table["label"] == 1].groupby(temperatures[table["label"] == 1])["patient"].nunique()
    assert positives.tolist() == [1] * 5


def test_a_single_patient_with_the_finding_leaves_none_to_the_others():
    lone = scaled_predictions(many(positives=1), None, rule_of(["f"], ["m"]))
    assert math.isnan(lone.temperatures["f"].value)
    assert lone.temperatures["f"].reason
    assert lone.predictions["scaled"].equals(lone.predictions["probability"].rename("scaled"))  # as they were


def test_folds_are_the_same_every_time():
    one, other = (scaled_predictions(many(), None, rule_of(["f"], ["m"])) for _ in range(2))
    assert one.predictions.equals(other.predictions)


def test_one_patient_cannot_be_held_out():
    table = answers(["p"] * 4, np.array([1.0, 0, 1, 0]), np.array([1.0, 1, 2, -1]))
    assert scaled_predictions(table, None, rule_of(["f"], ["m"])).temperatures["f"].reason == FEW_PATIENTS


def test_the_logit_is_the_stored_one_only_where_it_made_the_probability():
    stored = np.array([45.0, 2.0, math.nan, 0.0])
    said = np.array([1.0, 0.9, 0.9, 1.0])  # saturated; an ensemble's mean; from elsewhere; surely
    found = logits_of(pd.DataFrame({"logit": stored, "probability": said}))
    assert found[:3] == pytest.approx([45, logit(0.9), logit(0.9)])
    assert 20 < found[3] < 40
