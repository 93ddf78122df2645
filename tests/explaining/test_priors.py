"""The location prior never sees its own patient."""

import numpy as np
import pytest
from torch import nn

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Case, CaseKey
from heatcheck.explaining.priors import GRID, gather_priors
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.running.progress import Silent


class Rows:
    """Patient n's finding fills one row of the grid, so that each mask can be recognised in the mean."""

    findings = ("f", "rare", "never")

    def truth(self, key):
        if key.case == "bad":
            raise CaseError("broken")
        mask = np.zeros((GRID * 2, GRID * 3), bool)
        row = int(key.patient[1:])
        mask[2 * row : 2 * row + 2] = True
        return {"f": mask, "rare": mask} if row == 3 else {"f": mask}


def keys(count):
    return [CaseKey(f"c{n}", f"p{n}", {"f": 1.0}) for n in range(count)]


def test_a_patient_gets_the_mean_of_all_other_patients():
    priors = gather_priors(Rows(), keys(20), Rows.findings, Silent())
    for n in range(20):
        expected = np.zeros((GRID, GRID))
        expected[[m for m in range(20) if m != n]] = 1 / 19
        np.testing.assert_allclose(priors.for_patient(f"p{n}")[0], expected, atol=1e-12)


def test_another_view_of_the_patient_is_left_out_too():
    views = [CaseKey(f"{key.case}_{view}", key.patient, key.labels) for key in keys(5) for view in (1, 2)]
    assert gather_priors(Rows(), views, Rows.findings, Silent()).for_patient("p2")[0][2].max() == 0


def test_a_finding_nobody_else_has_gives_no_prior():
    priors = gather_priors(Rows(), keys(10), Rows.findings, Silent())
    assert priors.for_patient("p3")[1] is None
    assert priors.for_patient("p4")[1].max() == pytest.approx(1)
    assert priors.for_patient("p4")[2] is None


def test_a_case_whose_masks_cannot_be_read_takes_no_part():
    cases = [*keys(10), CaseKey("bad", "p11", {"f": 1.0})]
    assert gather_priors(Rows(), cases, Rows.findings, Silent()).total.counts[0] == 10


def test_many_cases_are_thinned_evenly():
    assert gather_priors(Rows(), keys(50), Rows.findings, Silent(), most=25).total.counts[0] == 25


class Slabs:
    """Volumes: patient n's finding fills slab n of the grid."""

    findings = ("f", "never")

    def truth(self, key):
        mask = np.zeros((GRID * 2, GRID, 5), bool)
        number = int(key.patient[1:])
        mask[2 * number : 2 * number + 2] = True
        return {"f": mask}


def test_the_prior_of_volumes_is_a_volume():
    priors = gather_priors(Slabs(), keys(4), Slabs.findings, Silent())
    for n in range(4):
        prior, missing = priors.for_patient(f"p{n}")
        expected = np.zeros((GRID, GRID, GRID))
        expected[[m for m in range(4) if m != n]] = 1 / 3
        np.testing.assert_allclose(prior, expected, atol=1e-6)
        assert missing is None


@pytest.mark.parametrize("fit", ["stretch", "pad"])
@pytest.mark.parametrize("known", [4, 0], ids=["masks", "no masks"])
def test_volumes_get_priors_on_the_models_field_of_view(fit, known):
    contract = Preprocessing(outputs=("f", "never"), size=(8, 8, 8), channels=1, mean=(0.0,), std=(1.0,), fit=fit)
    classifier = NetworkClassifier("tiny", nn.Identity(), contract)
    image = np.zeros((1, GRID * 2, GRID, 5), np.float32)
    cases = [Case(key, image, {}) for key in keys(2)]
    extra_values = gather_priors(Slabs(), keys(known), Slabs.findings, Silent()).for_batch(cases, classifier)
    assert extra_values.settings["priors"].ndim == 5
    assert [sorted(missing) for missing in extra_values.missing] == ([[1], [1]] if known else [[0, 1], [0, 1]])
