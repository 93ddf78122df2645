"""Whether an attack worked."""

import pytest

from heatcheck.core.records import Score
from heatcheck.core.vocabulary import condition
from heatcheck.runs.tables import write_table
from heatcheck.studies.triggers.gate import GateResult, outcomes, why_not_graded
from heatcheck.studies.triggers.spec import GatePart

GATE = GatePart(attack_success=0.9, accuracy_drop=0.05, clean_target=0.5)


@pytest.mark.parametrize(
    ("accuracy", "success", "clean_target", "why"),
    [
        (0.93, 0.95, 0.0, ""),
        (0.89, 0.9, 0.5, ""),  # exactly as much as is allowed
        (0.93, 0.62, 0.0, "attack success 0.62 is below 0.90"),
        (0.80, 0.95, 0.0, "fell by 0.140 (from 0.940 to 0.800), more than 0.05"),
        (0.93, 1.0, 0.8, "80% of the images are called the target even without the trigger"),
    ],
)
def test_methods_are_graded_only_where_the_attack_worked_and_accuracy_stayed(accuracy, success, clean_target, why):
    reason = why_not_graded(GATE, GateResult(accuracy, 0.94, success, clean_target, ()))
    assert why in reason
    assert bool(reason) == bool(why)


def test_outcomes_come_from_the_networks_scores(tmp_path):
    def rows(finding, metric, values, seed=1):
        return [
            Score(f"c{n}", f"p{n}", finding, "", "m", metric, value, condition(seed=seed))
            for n, value in enumerate(values)
        ]

    scores = [
        *rows("baseline", "clean_correct", [1.0, 1.0, 1.0, 0.0]),
        *rows("square", "clean_correct", [1.0, 1.0, 0.0, 0.0]),
        *rows("square", "attacked", [1.0, 0.0, 1.0]),
        *rows("square", "clean_target", [0.0, 0.0, 1.0]),
        *rows("baseline", "clean_correct", [1.0] * 4, seed=2),
        *rows("square", "clean_correct", [0.0] * 4, seed=2),
        *rows("square", "attacked", [1.0] * 3, seed=2),
        *rows("square", "clean_target", [0.0] * 3, seed=2),
    ]
    write_table(tmp_path / "scores.parquet", Score, scores)
    assert outcomes(tmp_path) == {
        ("square", 1): GateResult(0.5, 0.75, pytest.approx(2 / 3), pytest.approx(1 / 3), ("c0",), ("c2",)),
        ("square", 2): GateResult(0.0, 1.0, 1.0, 0.0, ("c0", "c1", "c2")),
    }
