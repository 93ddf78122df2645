"""The study's page: a sentence and a table."""

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report import appendix
from heatcheck.report.appendix import undefined_scores
from heatcheck.report.blocks.block import Table
from heatcheck.report.blocks.matrix import by_finding
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SHARE, number
from heatcheck.report.page import Section, StudyPage
from heatcheck.report.verdict import Verdict


def bright_page(evidence: Evidence) -> StudyPage:
    """The verdict, the table, and what every page ends with."""
    share = number(evidence.value(MEAN, "bright_share", ALL_FINDINGS, "threshold"), SHARE)
    undefined = undefined_scores(evidence.run)
    table = by_finding(evidence, MEAN, "bright_share")
    return StudyPage(
        kicker="How much of the image is bright?",
        verdict=Verdict(f"On average {share} of an image is bright.", "That says nothing about any heat map."),
        caveats=(),
        speaks_of="",
        sections=(
            Section("bright", "Bright pixels", "Bright", (Table(table),) if table else ()),
            appendix.gaps(evidence, undefined, ""),
            appendix.record(evidence),
        ),
        downloads=appendix.downloads(evidence, undefined.table),
    )
