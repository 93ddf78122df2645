"""The report of a run, and the page that leads to the reports of several; each study draws its own."""

from collections.abc import Sequence
from pathlib import Path

from heatcheck.report.build import write_report
from heatcheck.report.contents import write_contents
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import StudyPage
from heatcheck.running.registry import study_of


def build_report(run_dir: Path) -> Path:
    """The report's path, after it was written into the run folder from what lies there."""
    return write_report(run_dir, page_of)


def build_contents(folder: Path, runs: Sequence[str], title: str) -> Path:
    """The page's path, after it was written into the folder whose subfolders hold the runs."""
    return write_contents(folder, runs, title, page_of)


def page_of(evidence: Evidence) -> StudyPage:
    """The page that the run's study makes of the evidence."""
    return study_of(evidence.run).make_page(evidence)
