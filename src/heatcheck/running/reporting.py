"""The report of a run, and the page that links to the reports of several runs."""

from collections.abc import Sequence
from pathlib import Path

from heatcheck.report.build import WrittenReport, write_report
from heatcheck.report.contents import write_contents
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import StudyPage
from heatcheck.running.registry import study_of


def build_report(run_dir: Path) -> Path:
    """Write the report of the run in this folder, and return its path."""
    return written_report(run_dir).path


def written_report(run_dir: Path) -> WrittenReport:
    """Write the report of the run in this folder; its path and what it says first."""
    return write_report(run_dir, page_of)


def build_contents(folder: Path, runs: Sequence[str], title: str) -> Path:
    """Write the page that links to the reports of the runs in this folder, and return its path."""
    return write_contents(folder, runs, title, page_of)


def page_of(evidence: Evidence) -> StudyPage:
    """The page of the report, made by the run's study."""
    return study_of(evidence.run).make_page(evidence)
