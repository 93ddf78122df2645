"""The shipped study of prevalence: two trainings that differ in nothing but how often they see each finding."""

import pytest

from heatcheck.fitting.spec import TrainingBody
from heatcheck.models import MODELS
from heatcheck.runs.spec import read_spec, shipped_specs
from heatcheck.studies.localization.spec import LocalizationBody

TRAININGS = ("phantom-prevalence-1", "phantom-prevalence-2")
RARE, COMMON = 0.02, 0.3


@pytest.fixture(scope="module")
def trainings():
    return [read_spec(name).checked_body(TrainingBody) for name in TRAININGS]


@pytest.fixture(scope="module")
def study():
    return read_spec("localization-prevalence").checked_body(LocalizationBody)


def test_each_training_sees_three_findings_rarely_and_the_other_sees_these_often(trainings):
    first, second = (body.training["prevalence"] for body in trainings)
    assert first.keys() == second.keys() == set(trainings[0].findings)
    assert sorted(first.values()) == sorted(second.values()) == 3 * [RARE] + 3 * [COMMON]
    assert all({first[name], second[name]} == {RARE, COMMON} for name in first)


def test_the_trainings_are_otherwise_the_same(trainings):
    """The same patients, seed, network and fit, and checkpoints chosen where every finding is as frequent."""
    first, second = (body.model_copy(update={"training": {**body.training, "prevalence": None}}) for body in trainings)
    assert first == second
    assert len({read_spec(name).envelope.seed for name in TRAININGS}) == 1
    for part in (first.validation, first.test):
        assert set(part["prevalence"].values()) == {COMMON}


def test_both_networks_are_compared_on_the_same_films_of_other_patients(trainings, study):
    assert [model.ensemble.as_posix() for model in study.models] == ["training/prevalence-1", "training/prevalence-2"]
    for name, model in zip(TRAININGS, study.models, strict=True):
        assert f"heatcheck train {name} --out {model.ensemble.as_posix()}" in shipped_specs()[name].read_text()
    assert study.findings == trainings[0].findings
    assert set(study.source["prevalence"].values()) == {COMMON}
    taken = [(part["first"], part["first"] + part["patients"])
             for part in (trainings[0].training, trainings[0].validation, trainings[0].test, study.source)]  # fmt: skip
    ends = [end for pair in sorted(taken) for end in pair]
    assert ends == sorted(ends)
    assert all(model.name == body.model in MODELS for model, body in zip(study.models, trainings, strict=True))
