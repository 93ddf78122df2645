"""The trigger study's page: the model was made to rely on a planted patch; do the heat maps find it?"""

from collections.abc import Mapping, Sequence

from heatcheck.core.vocabulary import condition, condition_of
from heatcheck.report import appendix
from heatcheck.report.appendix import undefined_scores
from heatcheck.report.blocks.block import Drawn
from heatcheck.report.blocks.matrix import Matrix
from heatcheck.report.downloads import room_for_pictures
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import Section, StudyPage
from heatcheck.report.published import has_published_rows
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.caveats import caveats
from heatcheck.studies.triggers.report.facts import TriggerRecord, graded_triggers, manifest, noted_once, triggers_of
from heatcheck.studies.triggers.report.gallery import trigger_gallery
from heatcheck.studies.triggers.report.plots import by_trigger as panels_by_trigger
from heatcheck.studies.triggers.report.sections import cost as trigger_cost
from heatcheck.studies.triggers.report.sections.agreement import agreement
from heatcheck.studies.triggers.report.sections.artefacts import artefacts
from heatcheck.studies.triggers.report.sections.attack import attack
from heatcheck.studies.triggers.report.sections.differences import differences
from heatcheck.studies.triggers.report.sections.overview import overview
from heatcheck.studies.triggers.report.sections.sensitivity import sensitivity
from heatcheck.studies.triggers.report.sections.uncovered import uncovered
from heatcheck.studies.triggers.report.tables import EVERY, by_trigger, dynamic_table
from heatcheck.studies.triggers.report.verdict import highest, verdict
from heatcheck.studies.triggers.vocabulary import ARTEFACT, CRITERION_METRICS

MORE = ("trigger_mask_iou", "recovered_by_baseline")
PLANTED = "The model was taught to rely on a planted patch: do the heat maps find it?"
FOUND = "The images contain artefacts: do the heat maps mark them?"
NOTHING_DETECTED = "A map in which nothing was detected is not a gap: its overlap is 0."


def triggers_page(evidence: Evidence) -> StudyPage:
    """The study's verdict, sections and downloads."""
    evidence = noted_once(evidence)
    conditions = [condition(), condition_of(ARTEFACT), *(condition(seed=seed) for seed in manifest(evidence).seeds)]
    undefined = undefined_scores(evidence.run, conditions=conditions)
    files = appendix.downloads(evidence, undefined.table)
    gallery = trigger_gallery(evidence, room_for_pictures(evidence, files))
    sections = (
        _section("overview", "At a glance", "At a glance", overview(evidence)),
        _section("attack", "Did the attack work?", "Attack", attack(evidence)),
        _section("detection", "Do the methods find the trigger?", "Detection", _detection(evidence)),
        _section("uncovered", "What do the boxes leave of the trigger?", "Remainder", uncovered(evidence)),
        _section("sensitivity", "Would another box rule change the result?", "Sensitivity", _sensitivity(evidence)),
        _section("differences", "Which methods differ?", "Differences", differences(evidence)),
        _section("artefacts", "Artefacts in the original images", "Artefacts", artefacts(evidence)),
        _section("agreement", "Do the methods agree with each other?", "Agreement", agreement(evidence)),
        trigger_cost.section(evidence),
        _section("cases", "Cases to look at", "Cases", {"gallery": gallery} if triggers_of(evidence) else None),
        appendix.gaps(evidence, undefined, NOTHING_DETECTED),
        appendix.record(evidence),
    )
    return StudyPage(
        templates=__package__,
        kicker=PLANTED if triggers_of(evidence) else FOUND,
        verdict=verdict(evidence),
        caveats=caveats(evidence),
        speaks_of="",
        sections=tuple(section for section in sections if section),
        downloads=files,
        best=highest(evidence),
    )


def _section(anchor: str, title: str, short: str, content: Mapping[str, object] | None) -> Section | None:
    """The section whose template has the anchor's name; None when the run has nothing to show in it."""
    return Section(anchor, title, short, (Drawn(f"study/{anchor}.html", content),)) if content else None


def _detection(evidence: Evidence) -> Mapping[str, object] | None:
    if not triggers_of(evidence):
        return None
    static = (EVERY, *(trigger for trigger in triggers_of(evidence) if not trigger.is_dynamic))
    panels = panels_by_trigger(evidence, "trigger_iou", graded_triggers(evidence))
    content = {
        "tables": _explained(evidence, CRITERION_METRICS, static),
        "dynamic": dynamic_table(evidence),
        "panels": panels,
        "published_marks": any("published-mark" in panel.plot for panel in panels),
        "source": literature.SOURCE,
        "more": _explained(evidence, MORE, (EVERY, *triggers_of(evidence))),
    }
    caveat = literature.caveat(evidence.models[0].label) if has_published_rows(content) else ""
    return {**content, "published": caveat}


def _sensitivity(evidence: Evidence) -> Mapping[str, object] | None:
    under_rules = sensitivity(evidence)
    return {"sensitivity": under_rules} if under_rules else None


def _explained(
    evidence: Evidence, metrics: Sequence[str], triggers: Sequence[TriggerRecord]
) -> list[tuple[Matrix, str]]:
    """The tables that exist, each with a sentence on what it measures."""
    tables = [(by_trigger(evidence, metric, triggers), metric) for metric in metrics]
    return [(table, evidence.metrics[metric].summary) for table, metric in tables if table]
