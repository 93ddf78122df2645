"""What the study must find on the brain phantom: T1C always tells the grade, FLAIR in 7 of 10, T1 and T2 never."""

import json

import pytest
import yaml

from heatcheck import read_run, run_study
from heatcheck.running.study import RunOptions

CASES = 100
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def estimates(tmp_path_factory):
    """The estimates of the shipped network on slices that neither its training nor the demonstration has seen."""
    folder = tmp_path_factory.mktemp("claim")
    settings = {"name": "phantom_brain", "size": 80, "first": 9_000_000}
    alone = {"cases": CASES, "tumour_only": True}
    values = {
        "study": "modality",
        "threads": 1,
        "batch_size": 20,
        "shard_size": CASES,
        "gallery": 0,
        "source": settings | {"cases": CASES, "flair": 0.7},
        "model": "phantom_brain_vgg",
        "methods": ["gradient"],
        "known": [
            {"modality": "T1C", "source": settings | alone | {"t1c": 1.0, "flair": 0.0}},
            {"modality": "FLAIR", "source": settings | alone | {"t1c": 0.0, "flair": 1.0}},
        ],
        "removal": None,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(values))
    run_study(folder / "study.yaml", folder / "run", RunOptions(workers=1))
    return read_run(folder / "run").estimates


def by_modality(estimates, statistic, metric, **facts):
    """The rows of a statistic under these facts, by modality."""
    rows = estimates[(estimates["statistic"] == statistic) & (estimates["metric"] == metric)]
    told = {row.condition: row for row in rows.itertuples()}
    return {json.loads(at)["modality"]: row for at, row in told.items() if facts.items() <= json.loads(at).items()}


@pytest.mark.parametrize("measure", ["balanced", "accuracy"])
def test_t1c_is_worth_most_and_what_t1_and_t2_are_worth_cannot_be_told_from_nothing(estimates, measure):
    worth = by_modality(estimates, "shapley", "phi_modality", measure=measure, filled="zero", fold=1)
    assert max(worth, key=lambda name: worth[name].value) == "T1C"
    assert worth["T1C"].low > worth["FLAIR"].high
    assert worth["FLAIR"].value > 0
    for name in ("T1", "T2"):
        assert worth[name].low <= 0 <= worth[name].high, name


def test_the_tumour_in_t1c_is_what_tells_the_grade(estimates):
    worth = by_modality(estimates, "shapley", "phi_lesion", measure="balanced", filled="zero", fold=1)
    assert max(worth, key=lambda name: worth[name].value) == "T1C"


def test_where_the_two_disagree_the_network_follows_t1c(estimates):
    known = by_modality(estimates, "known", "known_importance", fold=1)
    assert known["T1C"].value > 0.9
    assert known["FLAIR"].value < 0.1


def test_the_network_tells_the_grade(estimates):
    rows = estimates[(estimates["statistic"] == "mean") & (estimates["metric"] == "accuracy")]
    assert (rows["value"] > 0.95).all()
