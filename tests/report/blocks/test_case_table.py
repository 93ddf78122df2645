"""The table of single cases: which are on the page, and how a reader goes through them."""

import html
import json
import math
import re

import pytest
from tests.report.browser import needs_browser, shown

from heatcheck.report.blocks.case_table import CaseColumn, CaseRow, CaseTable, worst_and_random
from heatcheck.report.build import render
from heatcheck.report.evidence import evidence_of
from heatcheck.report.page import Section, StudyPage
from heatcheck.report.verdict import Verdict
from heatcheck.runs.store import RunFolder, read_run

GALLERY = """<div id="gallery" data-first="1"><select data-control="finding"><option value="">all</option></select>
<input type="range" data-control="opacity"><p data-control="count"></p><button data-control="more"></button>
<article class="card" id="card-a" data-finding="Edema">A</article>
<article class="card" id="card-b" data-finding="Edema">B</article></div>"""
ROWS = (
    CaseRow("ward/b", "Edema", (0.2, 3.0), link="card-b", badness=0.8),
    CaseRow("ward/a", "Nodule", (-0.1, math.nan), link="card-a", badness=1.0),
    CaseRow("ward/c10", "Edema", (0.9, 2.0), note="cannot be read", badness=0.1),
    CaseRow("ward/c9", "Edema", (0.5, 1.0), badness=0.5),
)


@pytest.fixture
def page(tmp_path):
    """A page with the table and a gallery that shows one of its two cards."""
    columns = (CaseColumn("Overlap", 2), CaseColumn("Distance", 1, higher_is_better=False))
    table = CaseTable("Every case", "Finding", columns, worst_and_random(ROWS), 4, "cases.csv")
    sections = (Section("each", "Case by case", "Cases", (table,)),)
    with RunFolder.locked(tmp_path / "run", {}, {"study": "localization"}):
        pass
    evidence = evidence_of(read_run(tmp_path / "run"))
    text = render(evidence, StudyPage("Q", Verdict("", ""), (), "", sections, ()))
    cards = f'<section id="cases"><details class="part">{GALLERY}</details></section>'
    return text.replace('<section id="downloads"', f'{cards}<section id="downloads"')


def test_without_a_script_it_is_a_plain_table_the_worst_case_first(page):
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    assert re.findall(r"ward/\w+", body) == ["ward/a", "ward/b", "ward/c9", "ward/c10"]
    assert "−0.10" in body
    assert body.count("data-missing") == 2  # one failed, one has no distance
    assert "All 4 rows; cases.csv has them too." in page


def test_of_many_rows_the_worst_and_a_draw_of_the_others_are_kept():
    rows = [CaseRow(f"case{i:04d}", "", (0.0,), badness=-i) for i in range(900)]
    kept = worst_and_random(rows, 500)
    assert [row.case for row in kept[:250]] == [f"case{i:04d}" for i in range(250)]
    assert len({row.case for row in kept}) == 500
    assert kept == worst_and_random(rows[::-1], 500)


SCRIPT = """
const body = document.querySelector(".case-table tbody");
const rows = () => [...body.rows].filter((r) => !r.hidden).map((r) => r.cells[0].textContent.trim());
const found = {};
const [name, , overlap, distance] = document.querySelectorAll(".case-table th button");
name.click(); found.byName = rows();
overlap.click(); found.overlap = rows(); found.sorted = overlap.parentElement.getAttribute("aria-sort");
overlap.click(); found.reversed = rows();
distance.click(); found.distance = rows();
const set = (control, value) => {
  const field = document.querySelector(`.cases-frame [data-control="${control}"]`);
  if (typeof value === "boolean") field.checked = value; else field.value = value;
  field.dispatchEvent(new Event("input"));
};
set("missing", true); found.missing = rows(); set("missing", false);
set("group", "Nodule"); found.group = rows(); set("group", "");
set("case", "C1"); found.part = rows();
found.count = document.querySelector('[data-control="shown"]').textContent; set("case", "");
found.before = document.getElementById("card-b").hidden;
location.hash = "card-b";
setTimeout(() => {
  found.after = document.getElementById("card-b").hidden;
  found.opened = document.querySelector("#cases details").open;
  document.title = JSON.stringify(found);
}, 300);
"""


@pytest.mark.slow
@needs_browser
def test_rows_are_sorted_and_filtered_and_lead_to_their_card(page, tmp_path):
    title = re.search(r"<title>(.*?)</title>", shown(page, SCRIPT, tmp_path)).group(1)
    found = json.loads(html.unescape(title))
    a, b, c9, c10 = "ward/a", "ward/b", "ward/c9", "ward/c10"
    assert found["byName"] == [a, b, c9, c10]
    assert (found["overlap"], found["sorted"]) == ([a, b, c9, c10], "ascending")
    assert found["reversed"] == [c10, c9, b, a]
    assert found["distance"] == [b, c10, c9, a]  # the worst first, the undefined one last
    assert found["missing"] == [c10, a]
    assert found["group"] == [a]
    assert (found["part"], found["count"]) == ([c10], "1 of 4 rows shown.")
    assert (found["before"], found["after"], found["opened"]) == (True, False, True)
