"""The page of an alignment study."""

from heatcheck.report import appendix
from heatcheck.report.appendix import undefined_scores
from heatcheck.report.downloads import Download, download, room_for_pictures
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import StudyPage
from heatcheck.studies.alignment.report.answer import answer
from heatcheck.studies.alignment.report.caveats import caveats
from heatcheck.studies.alignment.report.facts import conditions, manifest, prepared
from heatcheck.studies.alignment.report.gallery import alignment_gallery, gallery_section
from heatcheck.studies.alignment.report.scores import ImageScores, image_scores
from heatcheck.studies.alignment.report.sections.blame import blame
from heatcheck.studies.alignment.report.sections.cases import FILE, cases
from heatcheck.studies.alignment.report.sections.example import example
from heatcheck.studies.alignment.report.sections.factors import factors
from heatcheck.studies.alignment.report.sections.images import images
from heatcheck.studies.alignment.report.sections.overview import overview, size_of
from heatcheck.studies.alignment.report.sections.prediction import prediction
from heatcheck.studies.alignment.report.sections.robustness import robustness
from heatcheck.studies.alignment.report.verdict import verdict

KICKER = (
    "When a heat map scores low, is the method at fault or the model, and how far does the score move when only the "
    "model is tuned?"
)
PAIRS = (
    "Where one of a pair of aligned and misaligned scores is undefined, both are left out of their difference. A "
    "network that failed has no scores at all."
)


def alignment_page(evidence: Evidence) -> StudyPage:
    """The study's verdict, sections and downloads."""
    evidence = prepared(evidence)
    undefined = undefined_scores(evidence.run, conditions=conditions(evidence))
    scores = image_scores(evidence)
    files = (*appendix.downloads(evidence, undefined.table), *_downloads(scores))
    gallery = alignment_gallery(evidence, room_for_pictures(evidence, files))
    sections = (
        gallery_section(gallery),
        blame(evidence),
        robustness(evidence),
        cases(evidence, scores, gallery),
        prediction(evidence),
        images(evidence, scores),
        factors(evidence),
        example(evidence),
        overview(evidence),
        appendix.gaps(evidence, undefined, PAIRS, every_model=True),
        appendix.record(evidence),
    )
    return StudyPage(
        templates=__package__,
        kicker=KICKER,
        answer=answer(evidence, gallery),
        verdict=verdict(evidence),
        caveats=caveats(evidence),
        speaks_of="",
        sections=tuple(section for section in sections if section),
        downloads=files,
        models=tuple(base.label for base in manifest(evidence).tuned),
        size=size_of(evidence),
    )


def _downloads(scores: ImageScores) -> tuple[Download, ...]:
    """The scores of single images as a table to save; nothing where there are none."""
    if scores.table.empty:
        return ()
    about = "map scores of single images by network, means over seeds"
    return (download(FILE, about, scores.table.round(3)),)
