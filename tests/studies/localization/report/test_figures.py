"""Plots and tables: order, alt text, limits, and undefined values that neither crash nor vanish."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.studies.localization.report.material import FINDINGS, floor_test, mean

import heatcheck
from heatcheck.core.records import ALL_FINDINGS, HUMAN, ONE_VALUE, Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.report.blocks.matrix import by_finding, by_floor
from heatcheck.report.charts import reliability
from heatcheck.report.charts.axes import Axis, SecondsAxis, limits_around
from heatcheck.report.charts.curves import Curve
from heatcheck.report.charts.curves import draw as draw_curve
from heatcheck.report.charts.curves import limits as limits_of
from heatcheck.report.charts.dotplot import DotPlot, Mark, PlotRow, draw
from heatcheck.report.numbers import SCORE, SHARE, count, duration, interval, listed, number, probability
from heatcheck.studies.localization.report import literature
from heatcheck.studies.localization.report.figures import against_readers, ranking
from heatcheck.studies.localization.report.sections.modelcard import model_card


def labels_in(plot):
    return re.findall(r'class="row-label[^"]*"[^>]*>([^<]*)<', plot)


def compared(finding, gap, width):
    low, high = gap - width, gap + width
    decrease = Estimate("percent_decrease", "iou", finding, "grad_cam", "m", -100 * gap, other_method=HUMAN)
    return [mean("iou", finding, "grad_cam", 0.5 + gap), mean("iou", finding, HUMAN, 0.5), decrease,
            Estimate("difference", "iou", finding, "grad_cam", "m", gap, low, high, other_method=HUMAN,
                     size=0.05)]  # fmt: skip


def test_findings_are_ordered_by_sureness_then_by_shortfall(evidence_from):
    rows = [mean("iou", ALL_FINDINGS, "grad_cam", 0.4)]
    rows += compared("Edema", -0.3, 0.4) + compared("Lung Lesion", -0.1, 0.05) + compared("Atelectasis", -0.2, 0.05)
    plot = against_readers(evidence_from(rows), "iou").panels[0].plot
    assert labels_in(plot)[:4] == ["All findings", "Atelectasis", "Lung Lesion", "Edema"]


def test_plot_says_every_number_in_words_and_auroc_at_the_row(evidence_from):
    values = {"grad_cam": 0.62, HUMAN: 0.9, "edge": 0.2, "random": 0.1}
    rows = [mean("hit", ALL_FINDINGS, name, value) for name, value in values.items()]
    rows.append(Estimate("auroc", "auroc", ALL_FINDINGS, "", "m", 0.853))
    plot = against_readers(evidence_from(rows), "hit").panels[0].plot
    assert "All findings: best floor (Edges) 20.0\u00a0%; Human readers 90.0\u00a0%" in plot
    assert "Grad-CAM 62.0\u00a0% (58.0\u201366.0\u00a0%)" in plot
    assert "AUROC 0.85" in plot


def test_undefined_mean_is_written_in_the_row(evidence_from):
    rows = [mean("iou", ALL_FINDINGS, "grad_cam", math.nan), mean("iou", "Edema", "grad_cam", 0.3)]
    plot = against_readers(evidence_from(rows), "iou").panels[0].plot
    assert ">undefined<" in plot
    assert "nan" not in plot


def test_ranking_puts_the_highest_first_be_it_readers_methods_or_floors(evidence_from):
    values = {"edge": 0.9, "grad_cam": 0.3, "method_1": 0.5, HUMAN: 0.4, "random": 0.1}
    plot = ranking(
        evidence_from([mean("iou", ALL_FINDINGS, name, v) for name, v in values.items()], methods=2), "iou"
    ).plot
    assert labels_in(plot) == ["Edges (floor)", "Grad-CAM++", "Human readers", "Grad-CAM", "Random map (floor)"]


def test_hostile_label_stays_text_in_a_plot():
    row = PlotRow("<b>", "&", (Mark("method", '"><script>', 0.5),))
    plot = draw(DotPlot("<i>", "x", (row,), SCORE, (0, 1)))
    assert "<script" not in plot
    assert "<b>" not in plot
    assert "&lt;b&gt;" in plot


def test_axis_holds_every_value_and_ends_on_round_numbers():
    assert limits_around([0.13, 0.47, math.nan]) == (0, 0.5)
    assert limits_around([]) == (0, 1)
    assert limits_around([-0.12, 0.3])[0] <= -0.12
    assert limits_around([0.2, 0.97]) == (0, 1)
    assert Axis(0, 0.5, 10, 110).at(0.25) == 60
    assert [round(tick, 9) for tick in Axis(0, 0.5, 0, 1).ticks()] == [0, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_reliability_curve_reads_its_bins_and_skips_damaged_ones(evidence_from):
    blank = Estimate("reliability", "observed", ALL_FINDINGS, "", "m", math.nan)
    rows = [replace(blank, value=value, condition=condition(bin=k, predicted=predicted), n_cases=n)
            for k, (predicted, value, n) in enumerate([(0.8, 0.7, 10), (0.1, 0.05, 90)])]  # fmt: skip
    rows += [replace(rows[0], condition="{}"), replace(rows[0], value=math.nan)]
    bins = reliability.bins_by_finding(evidence_from(rows))[ALL_FINDINGS]
    assert [b.predicted for b in bins] == [0.1, 0.8]
    assert "stated 80%, present in 70% of 10 cases" in reliability.draw(ALL_FINDINGS, bins)


def test_table_marks_the_best_method_and_never_a_floor(evidence_from):
    values = {"grad_cam": 0.3, "method_1": 0.5, "edge": 0.9}
    table = by_finding(
        evidence_from([mean("iou", ALL_FINDINGS, name, v) for name, v in values.items()], methods=2), "mean", "iou"
    )
    strong = {row.entrant.name: row.cells[0].strong for _, rows in table.groups for row in rows}
    assert strong == {"method_1": True, "grad_cam": False, "edge": False}
    assert [title for title, _ in table.groups] == ["Methods", "Floors"]


def test_table_shows_how_many_cases_stand_behind_a_column(evidence_from):
    rows = [mean("iou", "Edema", "grad_cam", 0.3, n=40), mean("iou", "Edema", "edge", 0.1, n=42)]
    table = by_finding(evidence_from(rows), "mean", "iou")
    column = [c.name for c in table.columns].index("Edema")
    assert table.columns[column].aside == "n 40\u201342"
    assert table.groups[0][1][0].cells[column].title == "40 cases, 35 patients, 1 undefined"


def test_undefined_cell_points_to_a_footnote(evidence_from):
    rows = [replace(mean("iou", ALL_FINDINGS, "grad_cam", math.nan), reason="no positive case")]
    table = by_finding(evidence_from(rows), "mean", "iou")
    cell = table.groups[0][1][0].cells[0]
    assert (cell.text, cell.interval, cell.title) == ("\u2013", "", "no positive case")
    assert table.notes[cell.note - 1] == "no positive case"


def test_column_without_any_estimate_is_left_out_and_one_with_a_reason_is_not(evidence_from):
    unknown = replace(mean("iou", "Lung Lesion", "grad_cam", math.nan), reason="no positive case")
    table = by_finding(evidence_from([mean("iou", "Edema", "grad_cam", 0.3), unknown]), "mean", "iou")
    assert [column.name for column in table.columns] == ["Edema", "Lung Lesion"]
    assert [cell.text for cell in table.groups[0][1][0].cells] == ["0.300", "\u2013"]
    assert table.notes == ("no positive case",)


def test_best_method_is_found_in_its_own_column_when_others_are_left_out(evidence_from):
    rows = [mean("iou", "Edema", "grad_cam", 0.3), mean("iou", "Edema", "method_1", 0.2)]
    rows += [mean("iou", "Lung Lesion", "grad_cam", 0.3), mean("iou", "Lung Lesion", "method_1", 0.4)]
    table = by_finding(evidence_from(rows, methods=2), "mean", "iou")
    strong = {row.entrant.name: [cell.strong for cell in row.cells] for _, rows in table.groups for row in rows}
    assert strong == {"grad_cam": [True, False], "method_1": [False, True]}


def sure(metric, finding, method, value=1.0):
    """A value on which all draws agree."""
    return replace(mean(metric, finding, method, value), low=math.nan, high=math.nan, reason=ONE_VALUE)


def test_value_without_an_interval_has_a_dash_and_one_footnote_for_all_its_kind(evidence_from):
    rows = [sure("hit", finding, HUMAN) for finding in (ALL_FINDINGS, *FINDINGS)]
    rows += [mean("hit", finding, "grad_cam", 0.6) for finding in (ALL_FINDINGS, *FINDINGS)]
    table = by_finding(evidence_from(rows), "mean", "hit")
    readers, method = (members[0].cells for _, members in table.groups)
    assert {(cell.text, cell.interval, cell.note) for cell in readers} == {("100.0\u00a0%", "\u2013", 1)}
    assert {(cell.interval, cell.note) for cell in method} == {("56.0\u201364.0", 0)}
    assert readers[0].title == f"120 cases, 115 patients, 1 undefined; no interval: {ONE_VALUE}"
    assert table.notes == (f"no interval: {ONE_VALUE}",)


def test_interval_nobody_asked_for_is_not_missed(evidence_from):
    table = by_finding(evidence_from([Estimate("mean", "iou", "Edema", "grad_cam", "m", 0.3)]), "mean", "iou")
    assert table.groups[0][1][0].cells[0].interval == ""
    assert table.notes == ()


def test_value_without_an_interval_is_a_dot_without_whiskers(evidence_from):
    rows = [sure("hit", ALL_FINDINGS, HUMAN), mean("hit", ALL_FINDINGS, "grad_cam", 0.6)]
    for plot in (ranking(evidence_from(rows), "hit").plot, against_readers(evidence_from(rows), "hit").panels[0].plot):
        assert plot.count('class="point human"') == 1
        assert "whisker human" not in plot
        assert plot.count("whisker method") == 1
        assert "nan" not in plot


def test_model_card_says_a_reason_once(evidence_from):
    rows = [replace(sure("auroc", finding, ""), statistic="auroc") for finding in FINDINGS]
    rows += [Estimate("calibration", "ece", finding, "", "m", 0.06, n_cases=120) for finding in FINDINGS]
    card = model_card(evidence_from(rows))
    assert {(row.auroc.text, row.auroc.interval, row.auroc.note) for row in card.rows} == {("1.000", "\u2013", 1)}
    assert {(row.ece.text, row.ece.interval, row.ece.note) for row in card.rows} == {("0.060", "", 0)}
    assert card.notes == (f"no interval: {ONE_VALUE}",)


def test_floor_table_says_in_words_who_beats_whom(evidence_from):
    rows = [
        floor_test("hit", ALL_FINDINGS, "grad_cam", "edge", 0.2),
        floor_test("hit", ALL_FINDINGS, "grad_cam", "random", 0.01),
    ]
    cells = by_floor(evidence_from(rows), "hit").groups[0][1][0].cells
    assert [cell.outcome for cell in cells] == ["not shown to be higher, p = 0.210", "✓ clearly higher, p < 0.001"]
    assert cells[1].text == "+20.0\u00a0pp"
    worse = replace(floor_test("hit", ALL_FINDINGS, "grad_cam", "edge", -0.2), p_adjusted=0.0008)
    (cell,) = by_floor(evidence_from([worse]), "hit").groups[0][1][0].cells
    assert cell.outcome == "✕ clearly lower, p < 0.001"
    assert by_floor(evidence_from([mean("hit", ALL_FINDINGS, "grad_cam", 0.3)]), "hit") is None


@pytest.mark.parametrize(
    ("ends", "words"),
    [((0.01, 0.05), "higher, not shown to be by enough to matter"), ((0.01, 0.025), "no difference that matters")],
)
def test_a_difference_above_0_that_may_be_too_small_is_not_called_none(evidence_from, ends, words):
    row = replace(floor_test("hit", ALL_FINDINGS, "grad_cam", "edge", 0.02), low=ends[0], high=ends[1])
    (cell,) = by_floor(evidence_from([row]), "hit").groups[0][1][0].cells
    assert cell.outcome.startswith(words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (number(0.6243, SHARE), "62.4\u00a0%"),
        (number(-0.0001), "0.000"),
        (number(-0.25, signed=True), "\u22120.250"),
        (number(math.nan, SHARE), "\u2013"),
        (interval(0.1, math.nan), ""),
        (interval(-0.1, 0.2), "\u22120.100 to 0.200"),
        (probability(0.0004), "p < 0.001"),
        (probability(0.0123), "p = 0.012"),
        (count(1, "case"), "1 case"),
        (count(1200, "case"), "1,200 cases"),
        (listed(["a", "b", "c"]), "a, b and c"),
        (duration(2530), "42 min 10 s"),
    ],
)
def test_numbers_are_written_the_way_people_do(text, expected):
    assert text == expected


@pytest.mark.parametrize("metric", ["iou", "hit"])
def test_findings_come_in_the_order_of_the_published_figure(evidence_from, metric):
    """The paper sorts by significance of the decrease, then by the decrease; its tables are printed in that order."""
    rows = [mean(metric, ALL_FINDINGS, "grad_cam", 0.4)]
    for finding in sorted(FINDINGS):
        figure = literature.against_human(metric, finding, "percent_decrease")
        human = literature.against_human(metric, finding, "human").value
        low, high = (-human * bound / 100 for bound in (figure.high, figure.low))
        if finding == "Atelectasis" and metric == "hit":
            low, high = -0.5, -0.3  # printed as fractions
        gap = Estimate("difference", metric, finding, "grad_cam", "m", -human * figure.value / 100, low, high,
                       other_method=HUMAN, size=0.001)  # fmt: skip
        fall = replace(gap, statistic="percent_decrease", value=figure.value)
        rows += [mean(metric, finding, "grad_cam", 0.4), gap, fall]
    name = {"iou": "miou", "hit": "hit_rate"}[metric]
    table = Path(heatcheck.__file__).parent / "reference" / f"percentage_decrease_{name}.csv"
    printed = [line.split(",")[0] for line in table.read_text().splitlines()[1:-1]]
    plot = against_readers(evidence_from(rows), metric).panels[0].plot
    assert labels_in(plot) == [ALL_FINDINGS, *printed]


def test_without_percentages_the_difference_itself_orders_the_findings(evidence_from):
    rows = [mean("iou", ALL_FINDINGS, "grad_cam", 0.4)]
    for finding, gap in (("Edema", -0.1), ("Lung Lesion", -0.3), ("Atelectasis", 0.2)):
        rows += [row for row in compared(finding, gap, 0.05) if row.statistic != "percent_decrease"]
    plot = against_readers(evidence_from(rows), "iou").panels[0].plot
    assert labels_in(plot)[1:3] == ["Lung Lesion", "Edema"]
    assert labels_in(plot)[-1] == "Atelectasis"


def test_published_mean_is_a_cross_in_the_plot_only_when_asked_for(evidence_from):
    rows = [mean("iou", name, "grad_cam", 0.3) for name in (ALL_FINDINGS, "Edema", "Scoliosis")]
    evidence = evidence_from(rows)
    assert "published" not in against_readers(evidence, "iou").panels[0].plot
    plot = against_readers(evidence, "iou", published=True).panels[0].plot
    assert plot.count("published-mark") == 2  # the two strokes of one cross
    assert "published by Saporta et al. 2022 0.362" in plot


def test_seconds_lie_on_powers_of_ten_and_few_of_many_are_named():
    axis = SecondsAxis.around([0.002, 0.9], 0, 300)
    assert (axis.low, axis.high) == (-3, 0)
    assert axis.at(0.001) == 0
    assert axis.at(0.1) == pytest.approx(200)
    assert axis.at(50) == 300
    assert [axis.label(tick, SCORE) for tick in axis.ticks()] == ["1\u00a0ms", "10\u00a0ms", "100\u00a0ms", "1\u00a0s"]
    wide = SecondsAxis.around([2e-6, 90], 0, 300)
    named = [label for tick in wide.ticks() if (label := wide.label(tick, SCORE))]
    assert named == ["1\u00a0µs", "100\u00a0µs", "10\u00a0ms", "1\u00a0s", "100\u00a0s"]
    assert SecondsAxis.around([1.0], 0, 1).high == 1  # one length of time still has an axis


def test_bar_reaches_from_nought_to_its_value_and_a_picture_is_a_square():
    bar, square = (PlotRow("r", "", (Mark(kind, "m", 0.5, 0.4, 0.6),)) for kind in ("bar", "picture"))
    drawn = str(draw(DotPlot("t", "x", (bar, square), SCORE, (0, 1))))
    (found,) = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="10" class="bar"', drawn)
    assert (float(found[0]), float(found[1])) == (10, 155)
    assert drawn.count("<circle") == 0
    assert drawn.count('class="point family-floor"') == 1


def test_curve_shows_chance_as_a_line_of_its_own():
    curve = Curve("c", "size", ((20, 0.3), (40, 0.2)), floor=((20, 0.9), (40, math.nan)), unit=SHARE)
    drawn = str(draw_curve(curve, (0, 1)))
    assert "random boxes of the same size: 20: 90.0\u00a0%; 40: –" in drawn
    assert drawn.count('class="floor-line"') == 1
    assert "floor-line" not in str(draw_curve(replace(curve, floor=()), (0, 1)))
    assert max(limits_of([curve]), key=lambda value: (not math.isnan(value), value)) == 0.9
