"""The modality study's page: which modality does the network rely on, and do the heat maps show it and its lesion?"""

from heatcheck.report import appendix
from heatcheck.report.appendix import undefined_scores
from heatcheck.report.downloads import room_for_pictures
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import StudyPage
from heatcheck.studies.modality.report.answer import answer
from heatcheck.studies.modality.report.caveats import caveats
from heatcheck.studies.modality.report.claims import highest
from heatcheck.studies.modality.report.facts import prepared
from heatcheck.studies.modality.report.gallery import modality_gallery
from heatcheck.studies.modality.report.sections import cost as modality_cost
from heatcheck.studies.modality.report.sections.cases import cases, primary_conditions
from heatcheck.studies.modality.report.sections.comparison import comparison, treated
from heatcheck.studies.modality.report.sections.distributions import distributions
from heatcheck.studies.modality.report.sections.heat import heat
from heatcheck.studies.modality.report.sections.importance import importance
from heatcheck.studies.modality.report.sections.networks import networks
from heatcheck.studies.modality.report.sections.overview import overview
from heatcheck.studies.modality.report.sections.pictures import pictures
from heatcheck.studies.modality.report.sections.quality import quality
from heatcheck.studies.modality.report.sections.ranking import ranks
from heatcheck.studies.modality.report.sections.ratings import ratings
from heatcheck.studies.modality.report.sections.wrong_answers import wrong_answers
from heatcheck.studies.modality.report.telling_case import telling_case
from heatcheck.studies.modality.report.verdict import verdict

KICKER = "Which of the modalities does the network rely on, and do the heat maps show it and the lesion in it?"
NO_FAILURE = (
    "A method that gives one map for all modalities has no modality correlation by construction; in rankings it counts "
    "0."
)


def modality_page(evidence: Evidence) -> StudyPage:
    """The study's answers, verdict, sections and downloads."""
    evidence = prepared(evidence)
    undefined = undefined_scores(evidence.run, conditions=primary_conditions(evidence))
    files = appendix.downloads(evidence, undefined.table)
    picture = telling_case(evidence)
    room = room_for_pictures(evidence, files) - (picture.weight if picture else 0)
    gallery = modality_gallery(evidence, room)
    sections = (
        pictures(evidence, gallery),
        overview(evidence),
        importance(evidence),
        comparison(evidence),
        heat(evidence),
        cases(evidence, gallery),
        distributions(evidence),
        wrong_answers(evidence),
        quality(evidence),
        ranks(evidence),
        networks(evidence),
        ratings(evidence),
        modality_cost.section(evidence),
        appendix.gaps(evidence, undefined, NO_FAILURE, treated=treated(evidence)),
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
        best=highest(evidence),
        answer=answer(evidence, picture),
    )
