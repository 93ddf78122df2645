"""Maps on wrong answers: counts, means by answer, and what warns, from tables made by hand."""

import numpy as np
import pytest
from tests.studies.modality.made_tables import MODEL, class_of, msfi_of, rule_of, scored, write_run

from heatcheck.core.records import ALL_FINDINGS, Prediction
from heatcheck.core.vocabulary import condition_of
from heatcheck.judging.judgement import judgement_of
from heatcheck.runs.tables import write_table
from heatcheck.studies.modality.estimates import modality_estimates

N = 90  # every third case is an LGG
WRONG = np.arange(N) % 5 == 0  # 18 of them, 6 of LGG
SURE = np.where(WRONG, 0.55, 0.9) + np.linspace(0, 0.05, N)


def predictions():
    rows = []
    for number in range(N):
        label = class_of(number)
        other = "HGG" if label == "LGG" else "LGG"
        said = other if WRONG[number] else label
        for name in ("LGG", "HGG"):
            probability = SURE[number] if name == said else 1 - SURE[number]
            rows.append(Prediction(f"c{number}", f"p{number}", name, MODEL, float(name == label), 0.0, probability))
    return rows


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    luck = np.random.default_rng(1)
    diffuse = luck.normal(0.5 - 0.2 * WRONG, 0.05)
    write_run(
        folder,
        msfi_of(np.where(WRONG, 0.2, 0.6), "gradient"),
        scored(diffuse, "concentration", "gradient"),
        scored(luck.random(N), "agreement", "gradient"),
    )
    write_table(folder / "predictions.parquet", Prediction, predictions())
    return modality_estimates(folder, rule_of(methods=("gradient",)))


def one(rows, statistic, metric, finding=ALL_FINDINGS, call=""):
    text = condition_of({"call": call} if call else {})
    (row,) = [r for r in rows if (r.statistic, r.metric, r.finding, r.condition) == (statistic, metric, finding, text)]
    return row


def test_right_and_wrong_answers_are_counted_by_the_class_they_name(rows):
    counts = {(f, c): one(rows, "answers", "answers", f, c).value for f in (ALL_FINDINGS, "LGG", "HGG")
              for c in ("right", "wrong")}  # fmt: skip
    assert counts == {
        (ALL_FINDINGS, "right"): 72, (ALL_FINDINGS, "wrong"): 18,
        ("LGG", "right"): 24, ("LGG", "wrong"): 12,  # a wrong LGG is an HGG
        ("HGG", "right"): 48, ("HGG", "wrong"): 6,
    }  # fmt: skip


def test_scores_of_maps_stand_beside_right_and_wrong_answers(rows):
    assert one(rows, "mean", "msfi", call="right").value == pytest.approx(0.6)
    assert one(rows, "mean", "msfi", call="wrong").value == pytest.approx(0.2)
    assert one(rows, "mean", "msfi", "LGG", call="wrong").n_cases == 12


def test_what_is_known_without_the_truth_warns_or_not(rows):
    found = {name: one(rows, "warning", name) for name in ("probability", "concentration", "agreement")}
    assert found["probability"].value == pytest.approx(0.5)  # every wrong answer is less sure than every right one
    assert judgement_of(found["probability"]).is_yes
    assert judgement_of(found["concentration"]).is_yes
    assert not judgement_of(found["agreement"]).is_yes
    assert len({row.family for row in found.values()}) == 1
    assert one(rows, "warning", "concentration", "HGG").n_cases == 54


def test_a_run_without_predictions_has_no_such_rows(tmp_path):
    write_run(tmp_path, msfi_of(np.full(12, 0.5), "gradient"))
    rows = modality_estimates(tmp_path, rule_of(methods=("gradient",)))
    assert not [row for row in rows if row.statistic in ("warning", "answers")]
