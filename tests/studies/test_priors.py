"""The location prior never sees its own patient."""

import numpy as np
import torch

from heatcheck.core.errors import CaseError
from heatcheck.core.records import CaseKey
from heatcheck.studies.priors import GRID, gather_priors, group_of
from heatcheck.studies.progress import Silent


class Corners:
    """Patient n's finding fills one row of the grid, so that each mask is told apart in the mean."""

    findings = ("f", "never")

    def truth(self, key):
        if key.case == "bad":
            raise CaseError("broken")
        mask = np.zeros((GRID * 2, GRID * 3), bool)
        row = int(key.patient[1:])
        mask[2 * row : 2 * row + 2] = True
        return {"f": mask}


def keys(count):
    return [CaseKey(f"c{n}", f"p{n}", {"f": 1.0}) for n in range(count)]


def test_a_patient_gets_the_mean_of_the_patients_in_other_groups():
    priors = gather_priors(Corners(), keys(40), ("f", "never"), Silent())
    for n in range(40):
        others = [m for m in range(40) if group_of(f"p{m}") != group_of(f"p{n}")]
        expected = torch.zeros(GRID, GRID)
        expected[others] = 1 / len(others)
        torch.testing.assert_close(priors.of([f"p{n}"])[0, 0], expected)
        assert priors.of([f"p{n}"])[0, 0, n].max() == 0


def test_a_finding_nobody_has_is_dark_everywhere():
    assert gather_priors(Corners(), keys(10), ("f", "never"), Silent()).of(["p1"])[0, 1].max() == 0


def test_a_case_whose_masks_cannot_be_read_takes_no_part():
    cases = [*keys(10), CaseKey("bad", "p11", {"f": 1.0})]
    priors = gather_priors(Corners(), cases, ("f",), Silent())
    assert priors.counts.sum() == 10


def test_many_cases_are_thinned_evenly():
    assert gather_priors(Corners(), keys(50), ("f",), Silent(), most=25).counts.sum() == 25
