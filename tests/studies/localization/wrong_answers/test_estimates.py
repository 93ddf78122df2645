"""A feature that warns, one that does not, and scores of findings that were missed."""

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from tests.studies.localization.paper_material import table_of, write_folder

from heatcheck.core.records import Prediction, Score
from heatcheck.core.vocabulary import condition
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.wrong_answers.estimates import FEW_WRONG, wrong_answer_estimates

SETTINGS = LocalizationSettings(("f", "g"), ("cam", "noise", "random"), ("random",), ("iou", "hit"), "model",
                                draws=300, seed=0)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Maps of cam agree with the others where the answer is right; maps of noise say nothing; random is a floor."""
    generator = np.random.default_rng(4)
    scores, predictions = [], []
    for number in range(150):
        for finding in SETTINGS.findings:
            present = generator.random() < 0.5
            logit = 1.6 * (present - 0.5) + generator.normal()
            key = (f"c{number:03d}", f"p{number // 2:03d}", finding)
            predictions.append(Prediction(*key, "model", float(present), logit, expit(logit)))
            right = (logit >= 0) == present
            for method in SETTINGS.methods:
                warns = 0.4 * right if method == "cam" else 0.0
                agreement = float(np.clip(0.3 + warns + 0.15 * generator.normal(), 0, 1))
                scores.append(Score(*key, method, "model", "agreement", agreement))
                scores.append(Score(*key, method, "model", "concentration", float(generator.random())))
                if present:
                    overlap = 0.2 + 0.3 * (method == "cam" and logit >= 0) + 0.05 * generator.normal()
                    scores.append(Score(*key, method, "model", "iou", overlap))
    folder = write_folder(tmp_path_factory.mktemp("answers"), scores, predictions)
    rows = wrong_answer_estimates(folder, SETTINGS, 0.5)
    return (
        {(r.statistic, r.metric, r.method, r.condition): r for r in rows if r.finding == "All findings"},
        scores,
        predictions,
    )


def one(made, statistic, metric, method, **facts):
    return made[0][statistic, metric, method, condition(**facts)]


def by_hand(made, call, values):
    """The mean over findings of scikit-learn's AUROC of the values for a wrong call."""
    aurocs = []
    for finding in SETTINGS.findings:
        calls = [p for p in made[2] if p.finding == finding and (p.probability >= 0.5) == (call == "positive")]
        wrong = [p.label == (call == "negative") for p in calls]
        aurocs.append(roc_auc_score(wrong, [values(p) for p in calls]))
    return np.mean(aurocs)


@pytest.mark.parametrize(("call", "sign"), [("positive", -1), ("negative", 1)])
def test_the_probability_is_the_reference(made, call, sign):
    row = one(made, "warning", "probability", "", call=call)
    assert row.value == pytest.approx(by_hand(made, call, lambda p: sign * p.probability) - 0.5)
    assert (row.size, row.low < row.value < row.high) == (0.1, True)
    assert ("beyond_probability", "probability", "", condition(call=call)) not in made[0]


@pytest.mark.parametrize("call", ["positive", "negative"])
def test_a_feature_that_warns_is_found_and_compared_with_the_probability(made, call):
    agreement = {(s.case, s.finding): s.value for s in made[1] if (s.method, s.metric) == ("cam", "agreement")}
    row = one(made, "warning", "agreement", "cam", call=call)
    auroc = by_hand(made, call, lambda p: -agreement[p.case, p.finding])
    assert row.value == pytest.approx(auroc - 0.5)
    assert judgement_of(row).is_yes
    beyond = one(made, "beyond_probability", "agreement", "cam", call=call)
    assert beyond.value == pytest.approx(row.value - one(made, "warning", "probability", "", call=call).value)
    assert judgement_of(beyond).is_yes
    assert len({r.family for key, r in made[0].items() if key[0] == "warning"}) == 1


def test_features_without_news_claim_nothing_and_floors_have_none(made):
    silent = [r for key, r in made[0].items() if key[0] == "warning" and key[1:3] not in
              {("agreement", "cam"), ("probability", "")}]  # fmt: skip
    assert len(silent) == 6
    assert not any(judgement_of(row).is_yes or opposite_of(row).is_yes for row in silent)
    assert not [key for key in made[0] if key[2] == "random"]


def test_missed_findings_are_compared_with_found_ones(made):
    for method, difference in (("cam", -0.3), ("noise", 0.0)):
        values = {
            call: [s.value for p in made[2] for s in made[1] if (s.case, s.finding) == (p.case, p.finding)
                   and (s.method, s.metric) == (method, "iou") and p.finding == "f" and (p.probability >= 0.5) == yes]
            for call, yes in (("true positive", True), ("false negative", False))
        }  # fmt: skip
        assert all(values.values())
        row = one(made, "difference", "iou", method, call="false negative", versus="true positive")
        assert row.value == pytest.approx(difference, abs=0.03)
        assert opposite_of(row).is_yes == (method == "cam")
        assert one(made, "mean", "iou", method, call="true positive").value == pytest.approx(
            np.mean(values["true positive"]), abs=0.03
        )


def test_too_few_wrong_answers_say_so(tmp_path):
    said = [(1, 0.9)] * 10 + [(0, 0.1)] * 10 + [(0, 0.8), (1, 0.2)]
    predictions = [Prediction(f"c{n:02d}", f"p{n:02d}", "f", "model", y, 0.0, p) for n, (y, p) in enumerate(said)]
    scores = [Score(p.case, p.patient, "f", "cam", "model", "agreement", 0.5) for p in predictions]
    rows = table_of(wrong_answer_estimates(write_folder(tmp_path, scores, predictions), SETTINGS, 0.5))
    warnings = rows[rows["statistic"].isin(["warning", "beyond_probability"])]
    assert set(warnings["reason"]) == {FEW_WRONG}
    assert warnings["value"].isna().all()


def test_without_probabilities_there_is_nothing_to_say(tmp_path):
    assert wrong_answer_estimates(write_folder(tmp_path), SETTINGS) == []
    only = [Prediction("c", "p", "f", "model", math.nan, 0.0, 0.5)]
    assert wrong_answer_estimates(write_folder(tmp_path, predictions=only), SETTINGS) == []
