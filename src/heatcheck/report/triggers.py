"""The trigger study's page: the model was made to rely on a planted patch; do the heat maps find it?"""

from collections.abc import Mapping

from heatcheck.core.records import condition
from heatcheck.report import closing, published, words
from heatcheck.report import trigger_literature as literature
from heatcheck.report.evidence import Evidence
from heatcheck.report.gaps import undefined_scores
from heatcheck.report.page import Section, StudyPage
from heatcheck.report.trigger_attack import attack
from heatcheck.report.trigger_facts import architecture, seeds_of, triggers_of
from heatcheck.report.trigger_tables import by_trigger, dynamic_table
from heatcheck.report.trigger_verdict import CRITERION, verdict

MAIN = ("trigger_iou", "recovered")
NO_FAILURE = "A map in which nothing was detected is no gap: its overlap is 0."


def triggers_page(evidence: Evidence) -> StudyPage:
    """The study's verdict, sections and downloads."""
    conditions = [condition(), condition(kind="artefact"), *(condition(seed=seed) for seed in seeds_of(evidence))]
    undefined = undefined_scores(evidence.run, conditions=conditions)
    sections = (
        _section("attack", "Did the attack work?", "Attack", attack(evidence)),
        _section("detection", "Do the methods find the trigger?", "Detection", _detection(evidence)),
        closing.gaps(evidence, undefined, NO_FAILURE),
        closing.record(evidence),
    )
    return StudyPage(
        kicker="The model was taught to rely on a planted patch: do the heat maps find it?",
        verdict=verdict(evidence),
        caveats=(),
        speaks_of="",
        sections=tuple(section for section in sections if section),
        downloads=closing.downloads(evidence, undefined.table),
    )


def _section(anchor: str, title: str, short: str, content: Mapping[str, object] | None) -> Section | None:
    """The section whose template has the anchor's name; None when the run has nothing to show in it."""
    return Section(anchor, title, short, f"trigger_{anchor}.html", content) if content else None


def _detection(evidence: Evidence) -> Mapping[str, object] | None:
    static = [trigger for trigger in triggers_of(evidence) if not trigger.is_dynamic]
    metrics = [metric for metric in MAIN if metric in evidence.measures]
    tables = [
        (table, words.plain(evidence.measures[m]).sentence)
        for m in metrics
        if (table := by_trigger(evidence, m, static))
    ]
    content = {"tables": tables, "dynamic": dynamic_table(evidence), "criterion": CRITERION}
    caveat = literature.caveat(architecture(evidence)) if published.is_in(content) else ""
    return {**content, "published": caveat} if triggers_of(evidence) else None
