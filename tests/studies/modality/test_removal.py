"""Voxels are taken away from a case, the most salient first, and the network is asked each time."""

import numpy as np
import pytest
import torch
from tests.studies.modality.material import MODALITIES, small_case, weighed

from heatcheck.explaining.batch import GridMaps
from heatcheck.studies.modality.cases import MaskRule, modal_case
from heatcheck.studies.modality.explaining import BatchAnswers, ModalBatchMaps
from heatcheck.studies.modality.scores import RemovalTest, removal_rows


def examined(classifier, case, values, *, orders=5, missing=()):
    """The areas of one map of one case, by metric."""
    seen = modal_case(case, MODALITIES, MaskRule())
    images = classifier.prepare([case.image])
    answers = BatchAnswers([case], images, *(torch.zeros(1, 2),) * 2)
    test = RemovalTest(classifier, 10, orders, 4, seed=1)
    made = ModalBatchMaps("m", GridMaps(torch.from_numpy(values)[None]), 0.0, dict(missing))
    rows = removal_rows([test.case(answers, 0, seen)], [seen], made, "net", 1)
    return {row.metric: row for row in rows}


def bright_lesion():
    """A case whose class only the lesion in T1C tells."""
    case = small_case(seed=4)
    case.image[1][case.truth["T1C"]] = 30.0
    return case, weighed([0.0, 1.0, 0.0, 0.0], threshold=1.2)


def test_a_map_of_the_voxels_the_network_reads_turns_its_answer_long_before_chance_does():
    case, classifier = bright_lesion()
    values = np.zeros((4, 8, 8), np.float32)
    values[1] = case.image[1]
    found = examined(classifier, case, values)
    assert found["aupc"].value == pytest.approx(0.05)  # the lesion, 4 of 36 voxels, is gone after the first step
    assert found["delta_aupc"].value > 0.5


def test_a_map_of_another_modality_changes_nothing_and_falls_short_of_chance():
    case, classifier = bright_lesion()
    values = np.zeros((4, 8, 8), np.float32)
    values[0] = case.image[0]
    found = examined(classifier, case, values)
    assert found["aupc"].value == 1
    assert found["delta_aupc"].value <= 0


def test_a_map_without_positive_voxels_takes_nothing_away():
    case, classifier = bright_lesion()
    found = examined(classifier, case, np.zeros((4, 8, 8), np.float32))
    assert found["aupc"].value == 1
    assert found["delta_aupc"].value == 0


def test_a_missing_map_leaves_rows_with_its_reason():
    case, classifier = bright_lesion()
    found = examined(classifier, case, np.zeros((4, 8, 8), np.float32), missing={0: "no donor"})
    assert {row.reason for row in found.values()} == {"no donor"}
    assert all(np.isnan(row.value) for row in found.values())


def test_a_map_on_a_coarser_grid_is_brought_to_the_networks():
    case, classifier = bright_lesion()
    found = examined(classifier, case, np.ones((1, 2, 2), np.float32))
    assert found["aupc"].value == pytest.approx(0.05)  # all of one value: everything goes in the first step
    assert set(found) == {"aupc", "delta_aupc"}


def test_the_random_curve_is_the_same_each_time():
    case, classifier = bright_lesion()
    values = np.ones((4, 8, 8), np.float32)
    one, again = (examined(classifier, case, values)["delta_aupc"].value for _ in range(2))
    assert one == again


def test_what_takes_a_voxels_place_is_black_as_the_network_sees_it():
    case = small_case(seed=4)
    classifier = weighed([0.0, 1.0, 0.0, 0.0], threshold=-0.3, mean=[0.5])
    found = examined(classifier, case, np.ones((1, 8, 8), np.float32))
    # black is -0.5 there: with everything gone the mean falls below the threshold, which a 0 in each voxel would not do
    assert found["aupc"].value == pytest.approx(0.05)
