"""The page on paper: the parts that are marked for it, and no more than fits on a few sheets."""

import re
from dataclasses import replace

import pytest
from tests.report.browser import needs_browser, printed

from heatcheck.report.blocks.block import prose
from heatcheck.report.build import render
from heatcheck.report.evidence import evidence_of
from heatcheck.report.page import Section
from heatcheck.running.reporting import page_of
from heatcheck.runs.store import read_run

MOST = 12  # sheets of A4
TALL = tuple(block for i in range(600) for block in prose(f"Sentence {i} of a long text."))


def sheets(content):
    return len(re.findall(rb"/Type /Page\b", content))


@pytest.mark.slow
@needs_browser
def test_paper_has_the_parts_that_are_marked_for_it_and_no_more(made_run, tmp_path):
    evidence = evidence_of(read_run(made_run(methods=9, gallery=12)))
    page = page_of(evidence)
    main = {"overview", "findings", "floors", "cases", "model"}
    sections = tuple(replace(each, opened=False, printed=each.anchor in main) for each in page.sections)
    content = printed(render(evidence, replace(page, sections=sections)), tmp_path)
    assert 2 <= sheets(content) <= MOST
    closed, marked = (
        sheets(
            printed(
                render(evidence, replace(page, sections=(Section("t", "T", "T", TALL, printed=is_printed),))), tmp_path
            )
        )
        for is_printed in (False, True)
    )
    assert closed <= 2
    assert marked > closed + 5
