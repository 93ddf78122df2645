"""Operating points against scikit-learn, and answers by hand."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_curve
from tests.studies.localization.paper_material import rule_of, write_folder

from heatcheck.core.records import Prediction
from heatcheck.runs.tables import write_table
from heatcheck.studies.localization.vocabulary import Calls
from heatcheck.studies.localization.wrong_answers.calls import call_estimates, called_answers, youden_point

SAID = {"a": (1, 0.9), "b": (1, 0.3), "c": (0, 0.6), "d": (0, 0.1), "e": (math.nan, 0.8)}


def predictions(shift=0.0):
    return [Prediction(case, case, "f", "model", label, 0.0, p + shift) for case, (label, p) in SAID.items()]


def test_the_point_of_the_highest_youden_index_is_scikit_learns():
    generator = np.random.default_rng(2)
    labels = (generator.random(200) < 0.3).astype(float)
    said = np.round(0.3 * labels + 0.7 * generator.random(200), 2)  # with ties
    false, true, thresholds = roc_curve(labels, said, drop_intermediate=False)
    best = (true - false).max()
    point = youden_point(labels, said)
    assert (said[labels == 1] >= point).mean() - (said[labels == 0] >= point).mean() == pytest.approx(best)
    assert point == thresholds[np.isclose(true - false, best)].min()
    assert math.isnan(youden_point(np.ones(3), np.array([0.1, 0.2, 0.3])))


@pytest.mark.parametrize(
    ("given", "point", "source"), [(0.5, 0.5, "spec"), ({"f": 0.2}, 0.2, "spec"), ({"g": 0.2}, 0.3, "run")]
)
def test_answers_at_a_given_point_by_hand(tmp_path, given, point, source):
    called = called_answers(write_folder(tmp_path, predictions=predictions()), rule_of(["f"], ["m"]), given)
    rows = list(call_estimates(called, rule_of(["f"], ["m"])))
    assert rows[0].value == pytest.approx(point)
    assert f'"fitted_on":"{source}"' in rows[0].condition
    if point == 0.5:
        kinds = {call: called.of(call)[:, 0].tolist() for call in (Calls.FOUND, Calls.MISSED, Calls.FALSE_ALARM)}
        assert kinds == {
            Calls.FOUND: [True, False, False, False, False],
            Calls.MISSED: [False, True, False, False, False],
            Calls.FALSE_ALARM: [False, False, True, False, False],
        }
        assert [row.value for row in rows[1:]] == [1, 1, 1, 1]
        assert called.wrong(Calls.POSITIVE)[:, 0] == pytest.approx([0, np.nan, 1, np.nan, np.nan], nan_ok=True)


def test_validation_data_choose_the_point_where_there_are_any(tmp_path):
    folder = write_folder(tmp_path, predictions=predictions())
    (tmp_path / "validation").mkdir()
    write_table(tmp_path / "validation" / "predictions.parquet", Prediction, predictions(0.05))
    called = called_answers(folder, rule_of(["f"], ["m"]), None)
    assert called.points[0] == pytest.approx(0.35)
    assert called.chosen_on == (Calls.ON_VALIDATION,)
