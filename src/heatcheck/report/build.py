"""From a run folder to its report: one HTML file that needs nothing else."""

import base64
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path

import jinja2
from markupsafe import Markup

from heatcheck.core.atomic_files import replaced
from heatcheck.report.caveats import of_every_study
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


def write_report(run_dir: Path, page_of: Callable[[Evidence], StudyPage]) -> Path:
    """Write the report of a run folder and return its path."""
    evidence = evidence_of(read_run(run_dir))
    page = page_of(evidence)
    target = Path(run_dir) / "report.html"
    with replaced(target) as temporary:
        temporary.write_text(render(evidence, page), encoding="utf-8")
    return target


def render(evidence: Evidence, page: StudyPage) -> str:
    """The whole page as text; the same run gives the same text."""
    script = _asset("page.js") + _asset("gallery.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _templates(page.templates)
        .get_template("page.html")
        .render(
            page=page,
            caveats=(*of_every_study(evidence), *page.caveats),
            title=heading(evidence, page, "Heat map report"),
            subtitle=subtitle(evidence, page),
            finished=evidence.finished,
            signature=signature(evidence),
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
