"""The page that leads to several reports."""

import html
from dataclasses import replace

from tests.report.page_reading import outline

from heatcheck.report.contents import write_contents
from heatcheck.report.evidence import evidence_of
from heatcheck.report.first_screen import FirstScreen, Light, Status
from heatcheck.running.reporting import build_contents, page_of
from heatcheck.runs.store import read_run


def test_every_run_stands_with_its_question_verdict_and_a_link_that_exists(made_run, trigger_run):
    localization, triggers = made_run(), trigger_run()
    folder = localization.parent / "both"
    folder.mkdir()
    for name, run in (("localization", localization), ("triggers", triggers)):
        run.rename(folder / name)
    text = build_contents(folder, ["localization", "triggers"], "Both <studies>").read_text()
    assert "Do the heat maps point where the radiologists do?" in text
    assert "do the heat maps find it?" in text
    assert 'href="localization/report.html"' in text
    assert 'href="triggers/report.html"' in text
    assert "Both &lt;studies&gt;" in text
    assert "<script" not in text


def test_what_a_study_answers_stands_there_in_place_of_its_verdict(made_run):
    folder = made_run()
    statuses = (Status("Do the maps beat the floors?", Light.PARTLY, "2 of 9", "Gradient & LRP do."),)
    answer = FirstScreen(statuses, ("Use LRP for <Edema>.",))
    page = replace(build_page(folder), answer=answer)
    text = write_contents(folder.parent, ["run"], "Both", lambda _: page).read_text()
    assert '<span aria-hidden="true">◐</span> 2 of 9</b> Gradient &amp; LRP do.' in text
    assert "<li>Use LRP for &lt;Edema&gt;.</li>" in text
    assert page.verdict.text not in html.unescape(text)
    parsed = outline(text)
    assert (parsed.faults, parsed.open) == ([], [])


def build_page(folder):
    return page_of(evidence_of(read_run(folder)))
