"""Charts and pages of runs in which nothing differs: one value, all 0, a single point, or nothing defined."""

import functools
import math
import re

import numpy as np
import pandas as pd
import pytest
from tests.studies.alignment.report.material import AlignmentPlan, write_alignment_run
from tests.studies.localization.report.full_material import write_full_run
from tests.studies.modality.report.material import ModalityPlan, write_modality_run
from tests.studies.triggers.report.material import TriggerPlan, write_trigger_run

from heatcheck.core.records import Estimate
from heatcheck.report.charts import curves, distributions, dotplot, rank_diagram, reliability, swarm
from heatcheck.report.charts.axes import Axis, SecondsAxis, limits_around
from heatcheck.report.numbers import SCORE
from heatcheck.running.reporting import build_report
from heatcheck.studies.alignment.report import strip as alignment_strip
from heatcheck.studies.alignment.report.sections import density as alignment_density
from heatcheck.studies.alignment.report.sections import scatter as alignment_scatter

NAN = math.nan
LEVELS = {"all 0": 0.0, "all equal": 0.4, "all negative": -0.3, "all 1": 1.0, "all undefined": NAN}


@pytest.fixture(params=LEVELS.values(), ids=list(LEVELS))
def level(request):
    return request.param


def sound(drawn):
    """The picture as text, with a number in every place."""
    text = str(drawn)
    assert text.startswith("<svg")
    assert not re.search(r'="[^"]*\b(nan|inf)\b', text)
    return text


def estimate(value):
    return Estimate("mean", "mass", "Edema", "gradient", "model", value, value, value)


def test_an_axis_without_width_has_its_one_value_in_the_middle():
    axis = Axis(0.3, 0.3, 10.0, 30.0)
    assert [axis.at(value) for value in (-5.0, 0.3, 5.0)] == [20.0] * 3
    assert axis.ticks() == [0.3]


def test_limits_around_equal_values_have_width(level):
    assert limits_around([]) == (0.0, 1.0)
    for values in ([level], [level] * 5, [level, NAN, math.inf]):
        low, high = limits_around(values)
        assert low < high
        assert math.isnan(level) or low <= level <= high


@pytest.mark.parametrize("seconds", [[], [0.0], [1.0], [NAN], [0.0, NAN, 2.0], [1e-9, 1e-9]])
def test_an_axis_of_seconds_holds_times_of_nothing(seconds):
    axis = SecondsAxis.around(seconds, 0.0, 10.0)
    assert axis.low < axis.high
    assert all(0 <= axis.at(value) <= 10 for value in seconds if not math.isnan(value))


@pytest.mark.parametrize("limits", [None, (0.0, 0.0)], ids=["own limits", "no width"])
def test_dots(level, limits):
    marks = tuple(dotplot.Mark(kind, kind, level, level, level) for kind in ("method", "human", "floor", "bar"))
    rows = (dotplot.PlotRow("a", "", marks), dotplot.PlotRow("b", "", marks[:1], strong=True))
    limits = limits or limits_around([level])
    sound(dotplot.draw(dotplot.DotPlot("title", "axis", rows, SCORE, limits)))
    sound(dotplot.draw(dotplot.DotPlot("title", "axis", (), SCORE, limits)))


@pytest.mark.parametrize("limits", [(-1.0, 1.0), (0.0, 0.0)], ids=["width", "no width"])
def test_swarm(level, limits):
    values = () if math.isnan(level) else tuple((1, level) for _ in range(300))
    rows = tuple(swarm.SwarmRow("a", part, "no defined score") for part in (values, values[:1], ()))
    for shown in (rows, rows[-1:], ()):
        sound(swarm.draw(swarm.Swarm("title", "axis", shown, limits, (0.0, "floor"))))


@pytest.mark.parametrize("always", [(0.25,), (0.0,), (0.0, 1.0)])
def test_strip(level, always):
    rows = [estimate(level), None]
    limits = alignment_strip.limits_of(rows, always, (-1.0, 1.5))
    assert limits[0] < limits[1]
    lines = tuple(alignment_strip.Line("align", "aligned", row) for row in rows)
    sound(alignment_strip.draw(alignment_strip.ScoreStrip("title", lines, limits, {0.0: "none", 1.0: "all"})))
    sound(alignment_strip.draw(alignment_strip.ScoreStrip("title", lines, (0.0, 0.0), {0.0: "none", 0.5: "all"})))


@pytest.mark.parametrize("cases", [1, 20])
def test_scatter(level, cases):
    fixed = {"model": "m", "method": "g", "finding": "Edema", "mass_misalign": 0.0, "rank_misalign": 0.0}
    table = pd.DataFrame({"case": [str(i) for i in range(cases)], "mass_align": level, "rank_align": level} | fixed)
    pairs = alignment_scatter._differences(table)
    assert len(pairs) == (0 if math.isnan(level) else cases)
    if len(pairs):
        low, high = alignment_scatter._limits(pairs)
        assert low < high
        assert low <= level <= high
        sound(alignment_scatter._draw("m", pairs, {"Edema": "dots"}, (low, high)))


def test_points_that_did_not_move_lie_in_the_middle_of_the_scatter():
    pairs = pd.DataFrame({"finding": ["Edema"], "mass": [0.0], "rank": [0.0]})
    drawn = sound(alignment_scatter._draw("m", pairs, {"Edema": "dots"}, alignment_scatter._limits(pairs)))
    assert 'd="M138.0 102.0h0"' in drawn


@pytest.mark.parametrize("cases", [1, alignment_density.FEWEST, 50])
def test_density(level, cases):
    values = np.full(cases, 0.5 if math.isnan(level) else level)
    shown = [alignment_density.Density(arm, values) for arm in ("align", "misalign", "control")]
    sound(alignment_density._draw("title", shown))


@pytest.mark.parametrize("tried", [(), (0.5,), (0.5, 0.5), (0.0, 0.5, 1.0)])
def test_curve(level, tried):
    points = tuple((x, level) for x in tried)
    for chosen in (NAN, 0.5):
        curve = curves.Curve("title", "threshold", points, chosen, floor=points)
        sound(curves.draw(curve, limits_around(curves.limits([curve]))))
        sound(curves.draw(curve, (0.0, 0.0)))


@pytest.mark.parametrize("critical", [0.0, 1.0, NAN])
@pytest.mark.parametrize("methods", [0, 1, 3])
def test_ranks(critical, methods):
    ranked = tuple(rank_diagram.Ranked(f"method {i}", (methods + 1) / 2) for i in range(methods))
    sound(rank_diagram.draw(rank_diagram.RankDiagram("title", ranked, critical)))


@pytest.mark.parametrize("cases", [0, 1, 10])
def test_reliability(level, cases):
    bins = () if math.isnan(level) else (reliability.Bin(level, level, cases),) * 3
    for before, after in ((bins, ()), (bins, bins), ((), bins)):
        sound(reliability.draw("Edema", before, after))


def test_distribution(level):
    spread = distributions.spread_of("a", [level] * 5)
    assert (spread is None) == math.isnan(level)
    shown = [spread] if spread else []
    sound(distributions.draw("title", shown, SCORE))
    sound(distributions.draw_seconds("title", shown, "method"))


STUDIES = {
    "localization": write_full_run,
    "triggers": functools.partial(write_trigger_run, plan=TriggerPlan(gallery=0)),
    "alignment": functools.partial(write_alignment_run, plan=AlignmentPlan(gallery=0)),
    "modality": functools.partial(write_modality_run, plan=ModalityPlan(gallery=0)),
}
NUMBERS = {
    "scores": ("value",),
    "estimates": ("value", "low", "high"),
    "timings": ("seconds",),
    "shapes": ("size", "elongation", "irrectangularity"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A function from a study's name to a made-up run of it."""
    return functools.cache(lambda name: STUDIES[name](tmp_path_factory.mktemp(name) / "run"))


@pytest.mark.parametrize("level", [0.0, NAN], ids=["all 0", "all undefined"])
@pytest.mark.parametrize("study", STUDIES)
def test_a_run_in_which_nothing_differs_has_a_report(made, study, level):
    folder = made(study)
    for table, columns in NUMBERS.items():
        for path in folder.rglob(f"{table}.parquet"):
            rows = pd.read_parquet(path)
            rows[list(columns)] = level
            rows.to_parquet(path)
    page = build_report(folder).read_text(encoding="utf-8")
    assert not re.search(r' (?:x|y|[xy][12]|c[xy]|d)="[^"]*\b(?:nan|inf)\b', page)
