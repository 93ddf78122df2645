"""A case's donors are drawn with the seed and never show its own patient."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from heatcheck.core.errors import CaseError, SpecError
from heatcheck.core.records import Case, CaseKey
from heatcheck.explaining.donors import MOST, NO_DONOR, gather_donors
from heatcheck.models import BlackBox, Preprocessing

CLASSIFIER = BlackBox("box", lambda _: None, Preprocessing(outputs=("f",), size=(4, 4), mean=(0.0,), std=(1.0,)))


@dataclass
class Numbers:
    """A case of patient n is an image of the value n; some cannot be read."""

    broken: frozenset[str] = frozenset()

    def load(self, key):
        if key.patient in self.broken:
            raise CaseError("broken")
        return Case(key, np.full((1, 6, 8), float(key.patient[1:]), np.float32), {})


def keys(patients, views=2):
    return [CaseKey(f"c{n}_{view}", f"p{n}", {}) for n in range(patients) for view in range(views)]


def values(donors, patient):
    return [int(image.mean()) for image in donors.for_patient(patient)]


def test_no_patient_is_its_own_donor_and_everyone_has_as_many():
    donors = gather_donors(Numbers(), keys(12), CLASSIFIER, 1, seed=5)
    assert donors.images.shape == (MOST + 1, 1, 4, 4)
    for n in range(12):
        chosen = values(donors, f"p{n}")
        assert n not in chosen
        assert len(set(chosen)) == MOST


def test_the_seed_alone_decides_who_gives():
    first, again, other = (gather_donors(Numbers(), keys(30), CLASSIFIER, 1, seed).patients for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_cases_that_cannot_be_read_do_not_give():
    donors = gather_donors(Numbers(frozenset({"p0", "p2"})), keys(5), CLASSIFIER, 1, seed=5)
    assert sorted(donors.patients) == ["p1", "p3", "p4"]
    assert len(donors.for_patient("p0")) == 3
    assert len(donors.for_patient("p1")) == 2


def test_a_case_without_a_donor_has_no_map_and_says_why():
    donors = gather_donors(Numbers(frozenset({"p1"})), keys(2), CLASSIFIER, 2, seed=5)
    cases = [Case(key, np.zeros((1, 6, 8), np.float32), {}) for key in keys(2, views=1)]
    extra_values = donors.for_batch(cases, CLASSIFIER)
    assert extra_values.missing == [{0: NO_DONOR, 1: NO_DONOR}, {}]
    assert torch.equal(extra_values.settings["donors"][1], torch.zeros(1, 1, 4, 4))
    assert all(len(images) for images in extra_values.settings["donors"])


def test_where_nothing_can_be_read_the_method_is_refused():
    with pytest.raises(SpecError, match="leave it out"):
        gather_donors(Numbers(frozenset({"p0", "p1"})), keys(2), CLASSIFIER, 1, seed=5)
