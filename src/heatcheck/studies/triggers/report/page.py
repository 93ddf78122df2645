"""The trigger study's page: the model was made to rely on a planted patch; do the heat maps find it?"""

from heatcheck.core.vocabulary import condition, condition_of
from heatcheck.report import appendix
from heatcheck.report.appendix import undefined_scores
from heatcheck.report.downloads import room_for_pictures
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, listed
from heatcheck.report.page import StudyPage
from heatcheck.studies.triggers.report.answer import answer
from heatcheck.studies.triggers.report.caveats import caveats
from heatcheck.studies.triggers.report.facts import (
    images_graded,
    manifest,
    noted_once,
    patients_graded,
    triggers_of,
)
from heatcheck.studies.triggers.report.gallery import pictures, trigger_gallery
from heatcheck.studies.triggers.report.sections import cost as trigger_cost
from heatcheck.studies.triggers.report.sections.agreement import agreement
from heatcheck.studies.triggers.report.sections.artefacts import artefacts
from heatcheck.studies.triggers.report.sections.attack import attack
from heatcheck.studies.triggers.report.sections.cases import cases
from heatcheck.studies.triggers.report.sections.detection import detection
from heatcheck.studies.triggers.report.sections.differences import differences
from heatcheck.studies.triggers.report.sections.overview import overview
from heatcheck.studies.triggers.report.sections.sensitivity import section as box_rules
from heatcheck.studies.triggers.report.sections.uncovered import uncovered
from heatcheck.studies.triggers.report.verdict import highest, verdict
from heatcheck.studies.triggers.vocabulary import ARTEFACT

PLANTED = "The model was taught to rely on a planted patch: do the heat maps find it?"
FOUND = "The images contain artefacts: do the heat maps mark them?"
NOTHING_DETECTED = "A map in which nothing was detected is not a gap: its overlap is 0."


def triggers_page(evidence: Evidence) -> StudyPage:
    """The study's answer, verdict, sections and downloads."""
    evidence = noted_once(evidence)
    conditions = [condition(), condition_of(ARTEFACT), *(condition(seed=seed) for seed in manifest(evidence).seeds)]
    undefined = undefined_scores(evidence.run, conditions=conditions)
    files = appendix.downloads(evidence, undefined.table)
    gallery = trigger_gallery(evidence, room_for_pictures(evidence, files))
    sections = (
        pictures(evidence, gallery),
        overview(evidence),
        attack(evidence),
        detection(evidence),
        cases(evidence, gallery),
        box_rules(evidence),
        differences(evidence),
        uncovered(evidence),
        artefacts(evidence),
        agreement(evidence),
        trigger_cost.section(evidence),
        appendix.gaps(evidence, undefined, NOTHING_DETECTED),
        appendix.record(evidence),
    )
    return StudyPage(
        templates=__package__,
        kicker=PLANTED if triggers_of(evidence) else FOUND,
        answer=answer(evidence, gallery),
        verdict=verdict(evidence),
        caveats=caveats(evidence),
        speaks_of="",
        sections=tuple(section for section in sections if section),
        downloads=files,
        best=highest(evidence),
        size=_judged(evidence),
        looked_for=_looked_for(evidence),
    )


def _judged(evidence: Evidence) -> str:
    """The images that the scores of maps rest on: most cases of the run trained and tested networks."""
    images, patients = images_graded(evidence), patients_graded(evidence)
    return f"judged on {count(images, 'poisoned image')} of {count(patients, 'patient')}" if images else ""


def _looked_for(evidence: Evidence) -> str:
    """What the maps were to show, in a sentence."""
    triggers, judged = [trigger.label for trigger in triggers_of(evidence)], _judged(evidence)
    return f"Triggers: {listed(triggers)}{f'; maps were {judged}' if judged else ''}." if triggers else ""
