"""Floors that never see the network: what is bright, edges, and where the lesions of other patients lie."""

import numpy as np
import pytest
from tests.studies.modality.material import MODALITIES, small_case

from heatcheck.core.records import CaseKey
from heatcheck.running.progress import Silent
from heatcheck.studies.modality.cases import MaskRule, modal_case
from heatcheck.studies.modality.floors import edge_map, floors_of, intensity_map
from heatcheck.studies.modality.vocabulary import MODEL_FREE


def test_intensity_is_the_positive_z_score_of_each_channel_to_the_power_of_four():
    image = np.array([[[0.0, 1.0, 3.0, 5.0]], [[0.0, 2.0, 2.0, 2.0]]])
    spread = np.std([1.0, 3.0, 5.0])
    expected = [[[0, 0, 0, (2 / spread) ** 4]], [[0, 0, 0, 0]]]  # 0 is air; a channel without contrast has no heat
    np.testing.assert_allclose(intensity_map(image), expected)


def test_edges_are_found_in_each_channel_by_itself():
    image = np.ones((2, 6, 6))
    image[0, :, 3:] = 2.0
    image[1, 3:] = 2.0
    edges = edge_map(image)
    strong = edges > 1e-6 * edges.max()
    assert set(np.flatnonzero(strong[0].any(0))) == {2, 3}
    assert set(np.flatnonzero(strong[1].any(1))) == {2, 3}


class Masks:
    """A source of masks alone."""

    def __init__(self, masks):
        self.masks = masks

    def truth(self, key):
        return dict.fromkeys(MODALITIES, self.masks[key.case])


def masked(*rows):
    mask = np.zeros((8, 8), bool)
    mask[list(rows)] = True
    return mask


def test_usual_place_is_the_mean_mask_of_other_patients():
    case = modal_case(small_case(), MODALITIES, MaskRule())
    own = case.case.key
    keys = [own, CaseKey("b", "other", {}), CaseKey("c", "third", {})]
    source = Masks({own.case: masked(7), "b": masked(1, 2), "c": masked(2)})
    floors = floors_of(source, keys, MODALITIES, MaskRule(), Silent())
    maps = {name: values for name, values, _ in floors.maps(case)}
    assert tuple(maps) == MODEL_FREE
    usual = maps["usual_place"]
    assert usual.shape == (4, 8, 8)
    assert usual[0, 2].mean() > usual[0, 1].mean() > usual[0, 4].mean() == usual[0, 7].mean() == 0


def test_without_another_patient_there_is_no_usual_place():
    case = modal_case(small_case(), MODALITIES, MaskRule())
    floors = floors_of(Masks({case.case.key.case: masked(3)}), [case.case.key], MODALITIES, MaskRule(), Silent())
    (reason,) = [why for name, values, why in floors.maps(case) if values is None]
    assert reason == "no other patient has this finding"


@pytest.mark.parametrize("rule", ["own", "shared"])
def test_masks_are_those_that_maps_are_scored_with(rule):
    class ByModality(Masks):
        def truth(self, _key):
            return {name: masked(number) for number, name in enumerate(MODALITIES)}

    case = modal_case(small_case(), MODALITIES, MaskRule())
    keys = [case.case.key, CaseKey("b", "other", {})]
    floors = floors_of(ByModality({}), keys, MODALITIES, MaskRule(rule), Silent())
    usual = next(values for name, values, _ in floors.maps(case) if name == "usual_place")
    assert (usual[0, 2].mean() > 0) == (rule == "shared")
