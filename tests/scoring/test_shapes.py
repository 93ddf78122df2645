"""The rows of the table of shapes."""

import numpy as np

from heatcheck.core.records import Case, CaseKey
from heatcheck.scoring.shapes import shapes_of


def test_outlines_are_counted_where_they_are_known_and_else_the_parts():
    mask = np.zeros((20, 20), bool)
    mask[2:5, 2:9] = mask[10:14, 10:14] = True
    truth = {"f": mask, "g": mask, "empty": np.zeros((20, 20), bool)}
    case = Case(CaseKey("c", "p", {}), np.zeros((1, 20, 20), np.float32), truth, instances={"f": 5})
    rows = shapes_of(case)
    assert [(row.case, row.patient, row.finding) for row in rows] == [("c", "p", "f"), ("c", "p", "g")]
    assert [(row.instances, row.components) for row in rows] == [(5, 2), (2, 2)]
    assert rows[0].size == (21 + 16) / 400
    assert rows[0].elongation == 3
