"""The diagram of mean ranks: its bars, its scale and its words."""

import re

import pytest

from heatcheck.report.charts.rank_diagram import RankDiagram, Ranked, draw, joined


def labels_in(plot):
    return re.findall(r'class="row-label[^"]*"[^>]*>([^<]*)<', str(plot))


@pytest.mark.parametrize(
    ("places", "critical", "runs"),
    [
        ([1, 2, 3, 4], 0.5, []),
        ([1, 2, 3, 4], 9, [(0, 3)]),
        ([1.2, 2.1, 3.0, 3.9], 1.9, [(0, 2), (1, 3)]),
        ([1, 2, 5, 6], 1.5, [(0, 1), (2, 3)]),
        ([1, 1.1, 1.2, 5], 1, [(0, 2)]),
        ([1, 3], 2, []),  # apart by the critical difference itself
    ],
)
def test_bars_join_the_longest_runs_of_methods_that_do_not_differ(places, critical, runs):
    assert joined(places, critical) == runs


def test_diagram_draws_the_critical_difference_to_scale_and_says_it_in_words():
    plot = str(draw(RankDiagram("t", (Ranked("B", 3.0), Ranked("A", 1.0), Ranked("C", 2.0)), 1.5)))
    strokes = re.findall(r'<line x1="([\d.]+)" y1="27" x2="([\d.]+)" y2="27" class="critical"', plot)
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', plot)]
    assert float(strokes[0][1]) - float(strokes[0][0]) == pytest.approx(1.5 * (dots[1] - dots[0]), abs=0.1)
    assert labels_in(plot) == ["A", "C", "B"]
    assert plot.count('class="alike"') == 2
    assert "May be chance: A, C. May be chance: C, B." in plot
