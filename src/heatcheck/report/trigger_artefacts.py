"""Artefacts that were in the images before: do the maps mark them? Nothing was planted and nothing retrained."""

from collections.abc import Mapping

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.report import trigger_literature as literature
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, listed, number
from heatcheck.report.trigger_facts import Trigger, artefacts_of
from heatcheck.report.trigger_plots import by_trigger as panels_by_trigger
from heatcheck.report.trigger_tables import by_trigger
from heatcheck.report.words import plain

MORE = ("trigger_mask_iou", "uncovered")
CAUTION = (
    "Nobody knows whether the model uses such an artefact. A map that leaves it unmarked may be right, and one that "
    "marks it may be wrong: this shows whether a map would draw a reader\u2019s eye to the artefact, not whether the "
    "method is faithful."
)


def artefacts(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on artefacts shows; None when none were given."""
    names = artefacts_of(evidence)
    if not names:
        return None
    seen = evidence.under(kind="artefact")
    pooled = any(key[2] == ALL_FINDINGS for key in seen.estimates)
    given = tuple(Trigger(name, name) for name in names)
    columns = (*((Trigger(ALL_FINDINGS, "All artefacts"),) if pooled else ()), *given)
    more = [(table, plain(seen.measures[m]).sentence) for m in MORE if (table := by_trigger(seen, m, columns))]
    return {
        "table": by_trigger(seen, "trigger_iou", columns),
        "panels": panels_by_trigger(seen, "trigger_iou", given),
        "more": more,
        "caution": CAUTION,
        "published": _published(),
    }


def _published() -> str:
    told = [
        f"{each.method} {number(each.value, SCORE.rounded(2))} on {each.subject}"
        for each in literature.reported("artefact_iou")
    ]
    return f"Published ({literature.SOURCE}, single images): {listed(told)}."
