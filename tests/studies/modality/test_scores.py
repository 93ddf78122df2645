"""The rows that a map leaves, and those of a case of which a method has no map."""

import numpy as np
from tests.studies.modality.material import MODALITIES, small_case

from heatcheck.studies.modality.cases import MaskRule, modal_case
from heatcheck.studies.modality.estimating.importance import Importances
from heatcheck.studies.modality.scores import MapScorer


def test_a_missing_map_leaves_every_row_that_a_map_leaves():
    worth = np.array([0.0, 1.0, 0.0, 0.5])
    importances = Importances(worth, worth, np.array([-1.0, 0, 0, 1, 0, 0]), worth)
    scorer = MapScorer(MODALITIES, importances, "net", 1, model_free=None)
    case = modal_case(small_case(), MODALITIES, MaskRule())
    made = scorer.scores(case, "m", np.ones((4, 8, 8), np.float32), shared=False)
    missing = scorer.missing(case, "m", "no donor")
    rows = [{(row.metric, row.condition) for row in each} for each in (made, missing)]
    assert rows[0] == rows[1]
    assert len(missing) == len(made)
    assert {row.reason for row in missing} == {"no donor"}
    assert np.isnan([row.value for row in missing]).all()
