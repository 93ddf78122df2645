"""The page of an alignment study."""

from collections.abc import Mapping

from heatcheck.report import appendix
from heatcheck.report.appendix import undefined_scores
from heatcheck.report.blocks.block import Drawn
from heatcheck.report.downloads import room_for_pictures
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import Section, StudyPage
from heatcheck.studies.alignment.report.caveats import caveats
from heatcheck.studies.alignment.report.facts import conditions, manifest, prepared
from heatcheck.studies.alignment.report.gallery import alignment_gallery
from heatcheck.studies.alignment.report.scores import image_scores
from heatcheck.studies.alignment.report.sections.blame import blame
from heatcheck.studies.alignment.report.sections.density import densities
from heatcheck.studies.alignment.report.sections.example import example
from heatcheck.studies.alignment.report.sections.factors import factors
from heatcheck.studies.alignment.report.sections.overview import overview, size_of
from heatcheck.studies.alignment.report.sections.prediction import prediction
from heatcheck.studies.alignment.report.sections.robustness import robustness
from heatcheck.studies.alignment.report.sections.scatter import scatter
from heatcheck.studies.alignment.report.verdict import verdict

KICKER = "How far can the same heat-map score be pushed by changing the model alone, and whose fault is a low one?"
PAIRS = (
    "Where one of a pair of aligned and misaligned scores is undefined, both are left out of their difference. A "
    "network that failed has no scores at all."
)


def alignment_page(evidence: Evidence) -> StudyPage:
    """The study's verdict, sections and downloads."""
    evidence = prepared(evidence)
    undefined = undefined_scores(evidence.run, conditions=conditions(evidence))
    files = appendix.downloads(evidence, undefined.table)
    gallery = alignment_gallery(evidence, room_for_pictures(evidence, files))
    sections = (
        _section("overview", "At a glance", "At a glance", overview(evidence)),
        _section("blame", "Whose fault is a low score?", "Blame", blame(evidence)),
        _section("robustness", "How far can the score be pushed?", "Robustness", robustness(evidence)),
        _section("images", "Image by image", "Images", images(evidence)),
        _section("factors", "What does the distance depend on?", "Factors", factors(evidence)),
        _section("prediction", "Does the model still predict?", "Prediction", prediction(evidence)),
        _section("example", "The paper\u2019s example: Grad-CAM", "Grad-CAM", example(evidence)),
        _section("cases", "Cases to look at", "Cases", {"gallery": gallery}),
        appendix.gaps(evidence, undefined, PAIRS, every_model=True),
        appendix.record(evidence),
    )
    return StudyPage(
        templates=__package__,
        kicker=KICKER,
        verdict=verdict(evidence),
        caveats=caveats(evidence),
        speaks_of="",
        sections=tuple(section for section in sections if section),
        downloads=files,
        models=tuple(base.label for base in manifest(evidence).tuned),
        size=size_of(evidence),
    )


def images(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on single images shows; None when there are no scores."""
    scores = image_scores(evidence)
    content = {"densities": densities(evidence, scores), "scatter": scatter(evidence, scores)}
    return content if any(content.values()) else None


def _section(anchor: str, title: str, short: str, content: Mapping[str, object] | None) -> Section | None:
    """The section whose template has the anchor's name; None when the run has nothing to show in it."""
    return Section(anchor, title, short, (Drawn(f"study/{anchor}.html", content),)) if content else None
