"""Letter values: nested quantiles, as deep as the number of cases allows."""

import numpy as np
import pytest

from heatcheck.report.charts.distributions import draw, spread_of
from heatcheck.report.numbers import SCORE


@pytest.mark.parametrize(("cases", "depth"), [(1, 1), (15, 1), (16, 2), (31, 2), (32, 3), (1024, 8)])
def test_each_letter_value_halves_what_lies_beyond_down_to_a_few_cases(cases, depth):
    values = np.random.default_rng(1).permutation(cases).astype(float)
    letters = spread_of("Edema", values.tolist()).letters
    assert len(letters) == depth  # log2(n) - 3 beyond the fourths, as Hofmann, Wickham and Kafadar (2017) put Tukey
    for number, pair in enumerate(letters, 2):
        assert pair == pytest.approx(np.percentile(values, [100 / 2**number, 100 - 100 / 2**number]))


def test_boxes_are_nested_and_said_in_words():
    drawn = draw("Size", [spread_of("Edema", [float(value) for value in range(65)])], SCORE)
    assert drawn.count('class="middle-half"') == 4
    assert "median 32.000, 50 % between 16.000 and 48.000, 75 % between 8.000 and 56.000" in drawn
    assert "93.75 % between 2.000 and 62.000" in drawn
