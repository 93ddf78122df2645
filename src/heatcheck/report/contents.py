"""The contents page of several runs in one folder: what each answers, with a link to its report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heatcheck.core.atomic_files import replaced
from heatcheck.report.build import TEMPLATES
from heatcheck.report.evidence import Evidence, evidence_of
from heatcheck.report.first_screen import FirstScreen
from heatcheck.report.page import StudyPage, heading, subtitle
from heatcheck.runs.store import read_run

FILE = "report.html"


@dataclass(frozen=True, slots=True)
class ContentsEntry:
    """One run of the folder."""

    question: str
    title: str
    subtitle: str
    answer: FirstScreen | None
    verdict: str  # of a page that has no answer in short
    link: str


def write_contents(folder: Path, runs: Sequence[str], title: str, page_of: Callable[[Evidence], StudyPage]) -> Path:
    """Write the contents page of a folder of runs and return its path."""
    entries = [_entry(folder, name, page_of) for name in runs]
    target = folder / FILE
    with replaced(target) as temporary:
        temporary.write_text(TEMPLATES.get_template("contents.html").render(title=title, entries=entries), "utf-8")
    return target


def _entry(folder: Path, name: str, page_of: Callable[[Evidence], StudyPage]) -> ContentsEntry:
    evidence = evidence_of(read_run(folder / name))
    page = page_of(evidence)
    return ContentsEntry(
        page.kicker,
        heading(evidence, page, name),
        subtitle(evidence, page),
        page.answer,
        page.verdict.text,
        f"{name}/report.html",
    )
