"""Tables and figures saved from the page: what the browser writes."""

import csv
import html
import io
import json
import re
from xml.etree import ElementTree as ET

import pytest
from tests.report.browser import needs_browser, shown

from heatcheck.report.blocks.block import Code, Figures, ListColumn, Listing, Table
from heatcheck.report.blocks.films import Film, FilmStrip, Outline
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, grouped, labelled
from heatcheck.report.build import render
from heatcheck.report.charts import legend, svg
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import evidence_of
from heatcheck.report.page import Section, StudyPage
from heatcheck.report.verdict import Verdict
from heatcheck.runs.store import RunFolder, read_run

DOT = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
CLEAR = Cell("41.2 %", "38.0–44.5", strong=True, outcome="✓ clearly higher")
ROWS = [
    labelled("Grad_CAM & co", [CLEAR, Cell("+0.050", "−0.010 to +0.110")],
             kind="method"),
    labelled("Noise", [Cell("–", note=1), Cell("−0.020", "–")], kind="floor"),
]  # fmt: skip
MATRIX = Matrix(
    "Overlap 50 %", (Column("IoU", "n 12"), Column("Change")), grouped(ROWS), ("no case has a map; all <empty>",)
)
SCRIPT = """
const files = {};
const waiting = [];
let last = null;
const made = URL.createObjectURL;
URL.createObjectURL = (blob) => { last = blob; return made(blob); };
const wide = async (blob) => `${new DataView(await blob.slice(16, 20).arrayBuffer()).getInt32(0)} wide`;
HTMLAnchorElement.prototype.click = function () {
  const [name, blob] = [this.download, last];
  waiting.push((async () => { files[name] = blob.type === "image/png" ? await wide(blob) : await blob.text(); })());
};
for (const button of document.querySelectorAll(".take button")) if (button.textContent !== "Copy") button.click();
setTimeout(async () => {
  await Promise.all(waiting);
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = JSON.stringify(files);
  document.body.append(found);
}, 1500);
"""


@pytest.fixture
def page(tmp_path):
    """A page with a table, a listing, a plot with its legend, a case with one map, and a text to copy."""
    plot = svg.picture((100, 40), "Seconds", "One dot.", [svg.circle(20, 20, 4, "point method")])
    film = Film("Grad-CAM", "a map", DOT, (Outline("truth", "M1 1L5 5Z"),), caption="hits it")
    blocks = (
        Table(MATRIX),
        Listing("Plain", (ListColumn("Case"), ListColumn("n", numeric=True)), (("a, b", "1,200"),)),
        Figures((Panel("How long?", plot),), (legend.METHOD,)),
        FilmStrip("one", "One case", "", (10, 20), DOT, (film, film)),
        Code("@misc{a}", "code.txt"),
    )
    with RunFolder.locked(tmp_path / "run", {}, {"study": "localization"}):
        pass
    sections = (Section("all", "All", "All", blocks, opened=True),)
    return render(evidence_of(read_run(tmp_path / "run")), StudyPage("Q", Verdict("", ""), (), "", sections, ()))


@pytest.fixture
def saved(page, tmp_path):
    """The texts of the files by their names, as a page in dark colours saves them."""
    text = shown(page, SCRIPT, tmp_path, "?theme=dark")
    assert 'data-theme="dark"' in text[:200]
    return json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', text, re.DOTALL).group(1)))


@pytest.mark.slow
@needs_browser
def test_every_table_and_figure_can_be_saved(saved):
    rows = list(csv.reader(io.StringIO(saved["all-overlap-50.csv"])))
    assert rows == [
        ["group", "Method", "IoU, n 12 (%)", "IoU, n 12 (%), low", "IoU, n 12 (%), high", "IoU, n 12 (%), remark",
         "Change", "Change, low", "Change, high"],
        ["Methods", "Grad_CAM & co", "41.2", "38.0", "44.5", "✓ clearly higher", "0.050", "-0.010", "0.110"],
        ["Floors", "Noise", "", "", "", "no case has a map; all <empty>", "-0.020", "", ""],
    ]  # fmt: skip
    assert list(csv.reader(io.StringIO(saved["all-plain.csv"]))) == [["Case", "n"], ["a, b", "1200"]]
    tex = saved["all-overlap-50.tex"]
    assert r"\caption{Overlap 50 \%}" in tex
    assert r"Grad\_CAM \& co & \textbf{41.2 \%} (38.0--44.5; clearly higher) & +0.050 ($-$0.010 to +0.110) \\" in tex
    assert r"Noise & --$^{1}$ & $-$0.020 \\" in tex
    assert r"$^{1}$ no case has a map; all $<$empty$>$ \\" in tex
    assert r"\begin{tabular}{lrr}" in tex

    drawing = ET.fromstring(saved["all-how-long.svg"])  # noqa: S314 - our own
    circle = next(each for each in drawing.iter() if each.tag.endswith("circle") and each.get("cx") == "20")
    assert circle.get("fill") == "rgb(0, 114, 178)"  # of the light page
    assert not [each for each in drawing.iter() if each.get("class")]
    assert "method, with its 95 % interval" in saved["all-how-long.svg"]
    width = int(drawing.get("width"))
    assert saved["all-how-long.png"] == f"{2 * width} wide"

    strip = ET.fromstring(saved["all-one-case.svg"])  # noqa: S314
    assert sum(each.tag.endswith("}use") for each in strip.iter()) == 2
    assert "hits it" in saved["all-one-case.svg"]
    assert int(saved["all-one-case.png"].split()[0]) == 2 * int(strip.get("width"))
    assert saved["code.txt"] == "@misc{a}"
