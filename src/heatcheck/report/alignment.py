"""The alignment study's page: how far can a score be pushed by changing the model alone, and whose fault is it?"""

from collections.abc import Mapping

from heatcheck.report import closing
from heatcheck.report.alignment_blame import blame
from heatcheck.report.alignment_caveats import caveats
from heatcheck.report.alignment_overview import overview
from heatcheck.report.alignment_robustness import robustness
from heatcheck.report.alignment_verdict import verdict
from heatcheck.report.evidence import Evidence
from heatcheck.report.gaps import undefined_scores
from heatcheck.report.page import Section, StudyPage

KICKER = "How far can the same heat-map score be pushed by changing the model alone, and whose fault is a low one?"


def alignment_page(evidence: Evidence) -> StudyPage:
    """The study's verdict, sections and downloads."""
    undefined = undefined_scores(evidence.run)
    files = closing.downloads(evidence, undefined.table)
    sections = (
        _section("overview", "At a glance", "At a glance", overview(evidence)),
        _section("blame", "Whose fault is a low score?", "Blame", blame(evidence)),
        _section("robustness", "How far can the score be pushed?", "Robustness", robustness(evidence)),
        closing.gaps(evidence, undefined, ""),
        closing.record(evidence),
    )
    return StudyPage(
        kicker=KICKER,
        verdict=verdict(evidence),
        caveats=caveats(evidence),
        speaks_of="",
        sections=tuple(section for section in sections if section),
        downloads=files,
    )


def _section(anchor: str, title: str, short: str, content: Mapping[str, object] | None) -> Section | None:
    """The section whose template has the anchor's name; None when the run has nothing to show in it."""
    return Section(anchor, title, short, f"alignment_{anchor}.html", content) if content else None
