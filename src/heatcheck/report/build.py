"""From a run folder to its report: one HTML file that needs nothing else."""

import base64
import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2
from markupsafe import Markup

from heatcheck.core.atomic_files import replaced
from heatcheck.report.citing.section import section as citing
from heatcheck.report.downloads import write_beside
from heatcheck.report.evidence import Evidence, evidence_of
from heatcheck.report.page import StudyPage, heading, signature, subtitle
from heatcheck.runs.store import read_run

TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("heatcheck.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

_SCRIPTS = ("gallery.js", "cases.js", "saving.js", "page.js")  # the page comes last: it opens what its address names


def write_report(run_dir: Path, page_of: Callable[[Evidence], StudyPage]) -> Path:
    """Write the report of a run folder and return its path."""
    evidence = evidence_of(read_run(run_dir))
    page = page_of(evidence)
    write_beside(page.downloads, Path(run_dir))
    target = Path(run_dir) / "report.html"
    with replaced(target) as temporary:
        temporary.write_text(render(evidence, page), encoding="utf-8")
    return target


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
    return filled(replace(page, sections=(*page.sections, citing(evidence))), head)


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
