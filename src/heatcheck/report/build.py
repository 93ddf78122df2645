"""From a run folder to its report: one HTML file that needs nothing else, and what it says first."""

import base64
import functools
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2
from markupsafe import Markup

from heatcheck.core.atomic_files import replaced
from heatcheck.report.appendix import failed_cases
from heatcheck.report.caveats import of_every_study, of_models
from heatcheck.report.citing.section import section as citing
from heatcheck.report.downloads import write_beside
from heatcheck.report.evidence import Evidence, evidence_of
from heatcheck.report.numbers import count
from heatcheck.report.page import StudyPage, heading, signature, subtitle
from heatcheck.runs.store import read_run

MOST_FAILED = 3  # cases that are named at once
TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("heatcheck.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

_SCRIPTS = ("gallery.js", "cases.js", "saving.js", "page.js")  # the page comes last: it opens what its address names


@dataclass(frozen=True, slots=True)
class Brief:
    """What a report says first, and what failed."""

    title: str
    status: str
    answer: tuple[str, ...] = ()  # a line for each question and what to do; the verdict where a page has no such answer
    best: tuple[str, ...] = ()  # the methods that come first, with their intervals
    failed: tuple[str, ...] = ()  # a line for each of the first cases, and how many more there are


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """The file of a report, and what it says first."""

    path: Path
    brief: Brief


def write_report(run_dir: Path, page_of: Callable[[Evidence], StudyPage]) -> WrittenReport:
    """Write the report of a run folder; its path and what it says first."""
    evidence = evidence_of(read_run(run_dir))
    page = page_of(evidence)
    write_beside(page.downloads, Path(run_dir))
    target = Path(run_dir) / "report.html"
    with replaced(target) as temporary:
        temporary.write_text(render(evidence, page), encoding="utf-8")
    return WrittenReport(target, brief_of(evidence, page))


@dataclass(frozen=True, slots=True)
class Head:
    """What stands at the top and at the foot of a page."""

    title: str
    subtitle: str
    signature: str
    finished: bool = True


def render(evidence: Evidence, page: StudyPage) -> str:
    """The whole page as text; the same run gives the same text. Its last section says how to cite the run."""
    title = heading(evidence, page, "Heat map report")
    head = Head(title, subtitle(evidence, page), signature(evidence), evidence.finished)
    caveats, sections = (*of_every_study(evidence), *page.caveats), (*page.sections, citing(evidence, page.looked_for))
    doubts = len(evidence.manifest.cautions) + len(of_models(evidence))
    return filled(replace(page, caveats=caveats, sections=sections, doubts=doubts), head)


def filled(page: StudyPage, head: Head) -> str:
    """The page as text, with our script and no other."""
    script = "".join(map(_asset, _SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _templates(page.templates)
        .get_template("page.html")
        .render(
            page=page,
            head=head,
            script=Markup(script),  # noqa: S704 - our own file; the policy names its digest, so no other script runs
            script_digest=f"sha256-{digest}",
        )
    )


def brief_of(evidence: Evidence, page: StudyPage) -> Brief:
    """The page in a few lines."""
    return Brief(
        title=heading(evidence, page, "Heat map report"),
        status=_status(evidence),
        answer=tuple(_answer(page)),
        best=page.best,
        failed=tuple(_failed(evidence)),
    )


@functools.cache  # a new environment would compile every template anew, which takes as long as half a page
def _templates(package: str) -> jinja2.Environment:
    """The templates that all studies share, and those of the study's package."""
    if not package:
        return TEMPLATES
    of_study = jinja2.PrefixLoader({"study": jinja2.PackageLoader(package)})
    shared = TEMPLATES.loader
    return TEMPLATES.overlay(loader=jinja2.ChoiceLoader([*([shared] if shared else []), of_study]))


def _asset(name: str) -> str:
    return TEMPLATES.get_template(name).render()


def _answer(page: StudyPage) -> Iterator[str]:
    if page.answer is None:
        yield from filter(None, (page.verdict.first, page.verdict.second, page.verdict.third))
        return
    for status in page.answer.statuses:
        yield f"{status.light.sign} {status.question} {status.word}. {status.sentence}".strip()
    yield from page.answer.recommendation


def _status(evidence: Evidence) -> str:
    n_cases, n_failed = evidence.manifest.n_cases, evidence.manifest.n_failed
    if not evidence.finished:
        return "Not finished: the report shows what is there so far."
    return f"Finished: {count(n_cases or 0, 'case')}, {f'{n_failed:,}' if n_failed else 'none'} failed."


def _failed(evidence: Evidence) -> Iterator[str]:
    failed = failed_cases(evidence.run)
    for row in failed.head(MOST_FAILED).itertuples():
        yield f"{row.case}: {row.reason}"
    if len(failed) > MOST_FAILED:
        yield f"and {len(failed) - MOST_FAILED:,} more; the report lists them"
