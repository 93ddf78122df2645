import dataclasses
import json

import pytest

from heatcheck.core import records
from heatcheck.core.records import CaseKey, Estimate, Measured, Score
from heatcheck.core.vocabulary import condition

RECORDS = [kind for kind in vars(records).values() if dataclasses.is_dataclass(kind)]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_record_is_frozen_and_slotted(kind):
    assert kind.__dataclass_params__.frozen
    assert "__slots__" in vars(kind)


def test_equal_conditions_are_equal_strings_in_any_order():
    assert condition(seed=1, trigger="patch") == condition(trigger="patch", seed=1) == '{"seed":1,"trigger":"patch"}'


def test_condition_without_facts_is_the_default_of_scores_and_estimates():
    score = Score("case", "patient", "finding", "method", "model", "iou", 0.5)
    estimate = Estimate("mean", "iou", "finding", "method", "model", 0.5)
    assert condition() == score.condition == estimate.condition


def test_condition_is_json_that_reads_back():
    assert json.loads(condition(fold=2, direction="align")) == {"fold": 2, "direction": "align"}


def test_condition_refuses_what_json_cannot_hold():
    with pytest.raises(ValueError, match="not JSON compliant"):
        condition(alpha=float("nan"))


def test_defined_value_needs_no_reason():
    assert Measured(0.5).reason == ""


def test_an_examination_is_stated_or_the_id_without_its_view():
    assert CaseKey("patient00001_study1_view1_frontal", "patient00001", {}).examination == "patient00001_study1"
    assert CaseKey("a", "p", {}).examination == ""
    assert CaseKey("a", "p", {}, {"study": ""}).examination == ""
    stated = [CaseKey(name, patient, {}, {"study": "1"}).examination for name, patient in ("ap", "bp", "cq")]
    assert stated[0] == stated[1] != stated[2]  # studies are numbered patient by patient
