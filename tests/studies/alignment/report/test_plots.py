"""Strips, densities and scatters of the alignment page: marks lie where their numbers are."""

import math
import re

import numpy as np
import pandas as pd
import pytest

from heatcheck.core.records import Estimate
from heatcheck.studies.alignment.report.sections import scatter as scatters
from heatcheck.studies.alignment.report.sections.density import Density
from heatcheck.studies.alignment.report.sections.density import _draw as densities_drawn
from heatcheck.studies.alignment.report.strip import Line, ScoreStrip, draw, limits_of

LEFT, RIGHT = 74.0, 288.0  # of a strip's axis


def estimate(value, low=math.nan, high=math.nan, reason=""):
    return Estimate("scaled", "mass", "Edema", "gradient", "model", value, low, high, reason=reason)


def strip(row, arm="align", limits=(0.0, 1.0)):
    return str(draw(ScoreStrip("title", (Line(arm, "aligned", row),), limits, {0.0: "random map"})))


def test_mark_and_interval_of_a_strip_lie_at_their_values():
    drawn = strip(estimate(0.5, 0.25, 0.75))
    assert '<circle cx="181" cy="29.5"' in drawn
    assert '<line x1="127.5" y1="29.5" x2="234.5" y2="29.5" class="whisker arm-align">' in drawn
    assert f'<line x1="{LEFT:.0f}" y1="16" x2="{LEFT:.0f}" y2="39" class="end-mark">' in drawn
    assert ">0.50</text>" in drawn


def test_value_beyond_the_axis_stops_at_its_end_and_keeps_its_number():
    drawn = strip(estimate(3.25, 2.0, 4.0))
    assert f'<circle cx="{RIGHT:.0f}"' in drawn
    assert ">3.25</text>" in drawn


def test_value_without_an_interval_has_no_whisker_and_an_undefined_one_no_mark():
    assert "whisker" not in strip(estimate(0.5))
    drawn = strip(estimate(math.nan, reason="no <map>"))
    assert "<circle" not in drawn
    assert "undefined: no &lt;map&gt;" in drawn
    assert "not computed in this run" in strip(None)


def test_each_arm_has_a_shape_of_its_own():
    shapes = {
        arm: re.sub(r"arm-\w+", "", strip(estimate(0.5), arm)) for arm in ("base", "control", "align", "misalign")
    }
    assert len(set(shapes.values())) == 4


def test_limits_hold_every_interval_but_never_leave_the_furthest():
    assert limits_of([estimate(0.5, 0.2, 1.17), None, estimate(math.nan)], (0.0, 1.0), (-1.0, 1.5)) == (
        0.0,
        pytest.approx(1.2),
    )
    assert limits_of([estimate(40.0, -30.0, 90.0)], (0.0, 1.0), (-1.0, 1.5)) == (-1.0, 1.5)


@pytest.mark.parametrize("values", [np.linspace(0, 1, 50), np.full(9, 0.3), np.array([0.0, 0.01, 0.02, 1.0])])
def test_density_has_the_area_1_between_0_and_1(values):
    places = np.linspace(0, 1, 4001)
    assert np.trapezoid(Density("align", values).evaluate(places), places) == pytest.approx(1, abs=2e-3)


def test_density_is_highest_where_the_scores_are():
    places = np.linspace(0, 1, 101)
    values = np.random.default_rng(0).normal(0.7, 0.05, 200)
    assert places[Density("align", values).evaluate(places).argmax()] == pytest.approx(0.7, abs=0.03)


def test_dot_of_a_scatter_has_mass_across_and_rank_up():
    table = pd.DataFrame({"model": "m", "method": "g", "finding": "Edema", "case": ["a"], "mass_align": 0.9,
                          "mass_misalign": 0.4, "rank_align": 0.3, "rank_misalign": 0.1})  # fmt: skip
    pairs = scatters._differences(table)
    assert (pairs["mass"].item(), pairs["rank"].item()) == (pytest.approx(0.5), pytest.approx(0.2))
    drawn = str(scatters._draw("m · g", pairs, {"Edema": "dots family0"}, (0.0, 1.0)))
    assert 'd="M138.0 158.4h0"' in drawn  # halfway across, a fifth of the way up


def test_pair_of_which_one_score_is_undefined_has_no_dot():
    table = pd.DataFrame({"model": "m", "method": "g", "finding": "Edema", "case": ["a"], "mass_align": 0.9,
                          "mass_misalign": math.nan, "rank_align": 0.3, "rank_misalign": 0.1})  # fmt: skip
    assert scatters._differences(table).empty


def test_needle_is_cut_off_so_that_the_other_curves_can_be_seen():
    flat, needle = Density("align", np.linspace(0, 1, 200)), Density("misalign", np.full(40, 0.1))
    drawn = str(densities_drawn("title", [flat, needle]))
    (route,) = re.findall(r'd="M([^"Z]+)" class="density arm-align"', drawn)
    heights = [float(point.split()[1]) for point in route.split("L")]
    assert min(heights) == pytest.approx(60, abs=1)  # a quarter of the way up, from 78 to 6


def names_of(marks, limits):
    """The names of the marks with their ends and heights, from left to right."""
    drawn = str(draw(ScoreStrip("title", (Line("align", "aligned", estimate(0.5)),), limits, marks)))
    marked = drawn[: drawn.index(">aligned</text>")]
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*?text-anchor="(\w+)"[^>]*>([^<]+)</text>', marked)
    widths = [
        (float(x), float(y), 6.0 * len(name), {"start": 0, "middle": 0.5, "end": 1}[a]) for x, y, a, name in found
    ]
    return [name for *_, name in found], [(x - w * part, x + w * (1 - part), y) for x, y, w, part in widths]


def overlap(one, other):
    return one[2] == other[2] and one[0] < other[1] and other[0] < one[1]


@pytest.mark.parametrize("zero", [0.0, -0.5, -2.0, -20.0])
@pytest.mark.parametrize("whole", [0.01, 0.08, 0.3, 1.0, 2.0])
def test_names_of_marks_never_stand_on_each_other_nor_leave_the_strip(zero, whole):
    names, ends = names_of({whole: "all it tells", 0.0: "none"}, (zero, 2.0))
    assert names == ["none", "all it tells"]
    assert all(start >= 0 and end <= 330 + 1 for start, end, _ in ends)
    assert not overlap(*ends)


def test_name_without_room_stands_a_row_higher_and_its_line_reaches_it():
    """Such as the usual place, where it scores a little more than the readers."""
    names, ends = names_of({0.0: "random map", 1.0: "simulated readers", 1.04: "usual place"}, (-0.1, 1.1))
    assert names == ["random map", "simulated readers", "usual place"]
    assert [height for *_, height in ends] == [25, 25, 12]
    strip = ScoreStrip(
        "title",
        (Line("align", "aligned", estimate(0.0)),),
        (-0.1, 1.1),
        {1.0: "simulated readers", 1.04: "usual place"},
    )
    lines = re.findall(r'y1="([\d.]+)" [^>]*class="end-mark"', str(draw(strip)))
    assert [float(top) for top in lines] == [29, 16]


def test_few_scores_are_marked_one_by_one_and_more_are_a_curve():
    few, many = np.array([0.25, 0.5]), np.linspace(0.1, 0.9, 8)
    drawn = str(densities_drawn("mass", [Density("align", few), Density("misalign", few)]))
    assert drawn.count("point arm-align") == drawn.count("point arm-misalign") == 2
    assert "density" not in drawn.lower()
    assert "aligned: 0.250, 0.500; misaligned: 0.250, 0.500." in drawn
    assert "point" not in str(densities_drawn("mass", [Density("align", many)]))
