"""Importances to plain networks, and their difference from those to the networks explained, from tables by hand."""

import json

import numpy as np
import pytest
from tests.studies.modality.made_tables import Found, class_of, rule_of, subsets, write_run

from heatcheck.core.records import Score
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.runs.tables import write_table
from heatcheck.studies.modality.estimates import modality_estimates

N = 60
# subsets of T1C and FLAIR: none, T1C, FLAIR, both; networks that guess HGG where they see nothing
HIGH = np.array([class_of(number) == "HGG" for number in range(N)], float)


def right(of_t1c, of_flair):
    """Right with T1C alone or FLAIR alone on these shares of the LGG, on all with both, and on every HGG."""
    answers = np.ones((N, 4))
    low = np.flatnonzero(HIGH == 0)
    answers[low, 0] = 0
    answers[low, 1] = np.arange(len(low)) < round(of_t1c * len(low))
    answers[low, 2] = np.arange(len(low)) < round(of_flair * len(low))
    return answers


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder, rule = tmp_path_factory.mktemp("plain"), rule_of()
    order = [tuple(row) for row in rule.coalitions.members.astype(int).tolist()]
    columns = [[(0, 0), (1, 0), (0, 1), (1, 1)].index(row) for row in order]

    def both(values, **more):
        return [
            row for kind in ("modality", "lesion") for row in subsets(values[:, columns], rule, ablated=kind, **more)
        ]

    write_run(folder, worth=[both(right(1.0, 0.0))])
    (folder / "plain").mkdir()
    write_table(folder / "plain" / "scores.parquet", Score, both(right(0.5, 0.5))[: 4 * N * 2])
    return Found(modality_estimates(folder, rule))


def phi(found, statistic, modality):
    facts = {"filled": "zero", "fold": "all", "measure": "balanced", "modality": modality}
    return found.one(statistic, "phi_modality", **facts)


def test_importances_to_plain_networks_are_shapley_values_of_their_own_answers(found):
    """v(none) 0.5, both 1. Explained: T1C alone 1, FLAIR alone 0.5; plain: 0.75 each."""
    assert [phi(found, "shapley", name).value for name in ("T1C", "FLAIR")] == pytest.approx([0.5, 0.0])
    assert [phi(found, "shapley_plain", name).value for name in ("T1C", "FLAIR")] == pytest.approx([0.25, 0.25])


def test_differences_are_judged_by_what_all_modalities_contribute(found):
    more, less = (phi(found, "shapley_less_plain", name) for name in ("T1C", "FLAIR"))
    assert (more.value, less.value) == pytest.approx((0.25, -0.25))
    assert more.size == less.size == pytest.approx(0.05)  # a tenth of 0.5
    assert more.low < 0.25 < more.high
    assert judgement_of(more).is_yes
    assert opposite_of(less).is_yes
    assert more.family == less.family
    assert (more.n_cases, more.n_patients) == (N, N)


def test_every_fold_has_its_own(found):
    folds = {json.loads(row.condition)["fold"] for row in found.all(statistic="shapley_plain")}
    assert folds == {1, "all"}


def test_a_run_without_plain_networks_has_no_such_rows(tmp_path):
    write_run(tmp_path, worth=[subsets(np.ones((N, 4)), rule_of())])
    rows = modality_estimates(tmp_path, rule_of())
    assert not [row for row in rows if "plain" in row.statistic]
