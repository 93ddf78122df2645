"""The scores of two runs on the cases they share, with intervals of their differences."""

import numpy as np
import pandas as pd
import pytest

from heatcheck.estimating.compared_scores import compared_scores
from heatcheck.stats.resampling.studentised import FEW_PATIENTS, TOO_WIDE


def compared(first, second, patients):
    table = pd.DataFrame({"case": patients, "patient": patients, "value_0": first, "value_1": second})
    table = table.assign(metric="iou", finding="Effusion", method="gradcam", condition="{}")
    ((rows, _),) = compared_scores(table, 200, lambda *_: 0.05)
    return next(row for row in rows if row.finding == "Effusion")


def test_a_difference_has_an_interval_from_six_patients_on_and_a_reason_below():
    generator = np.random.default_rng(0)
    first = generator.random(6)
    second = first + 0.1 + 0.02 * generator.normal(size=6)
    row = compared(first, second, list("abcdef"))
    assert row.difference == pytest.approx((second - first).mean())
    assert 0 < row.low < row.difference < row.high
    few = compared(first[:5], second[:5], list("abcde"))
    assert (few.low, few.high, few.reason) == (None, None, FEW_PATIENTS)


def test_a_difference_that_one_patient_alone_decides_has_no_interval():
    row = compared(np.zeros(7), np.array([0, 0, 0, 0, 0, 0, 0.5]), list("abcdefg"))
    assert (row.low, row.high, row.reason) == (None, None, TOO_WIDE)
