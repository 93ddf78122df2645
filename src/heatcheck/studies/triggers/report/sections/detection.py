"""Do the methods find the trigger? Overlap and recovery trigger by trigger, beside floors, controls and box areas."""

import math
from collections.abc import Sequence

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.block import Block, Figures, Heading, Prose, Table, fold, prose
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, SHARE
from heatcheck.report.page import Section
from heatcheck.report.published import has_published_rows
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.facts import TriggerRecord, graded_triggers, span, triggers_of
from heatcheck.studies.triggers.report.plots import by_trigger as panels_by_trigger
from heatcheck.studies.triggers.report.plots import detection_keys
from heatcheck.studies.triggers.report.tables import EVERY, by_trigger, dynamic_table
from heatcheck.studies.triggers.vocabulary import CRITERION_METRICS

MORE = ("trigger_mask_iou", "recovered_by_baseline")
NO_SCORES = "There are no scores yet."
SMALL_PRINT = (
    "Small print below a number: its 95 % interval; then the floor, which is what a random box of the same height and "
    "width would score, the overlap on the baseline, which was never attacked, and the share of the image that the box "
    "covers. n is the number of poisoned images. The best mean of each column is underlined, be it clearly better than "
    "the next or not. A dash is undefined or was not graded, and the footnote says why."
)
BOTH = "Dynamic triggers count among \u201cAll triggers\u201d; they also have a table of their own below."
DYNAMIC = (
    "A dynamic trigger has no fixed appearance: its pixels follow the gradient of the baseline\u2019s own loss, at a "
    "random position and in a random shape. OD, the overlap difference, is the share of the image that still differs "
    "after pasting: lower is better, and it can only be compared within one size."
)


def detection(evidence: Evidence) -> Section | None:
    """The scores of every method on every trigger; None when no trigger was planted."""
    if not triggers_of(evidence):
        return None
    blocks, title = _blocks(evidence), "Do the methods find the trigger?"
    return Section("detection", title, "Detection", blocks, _summary(evidence), printed=True)


def _blocks(evidence: Evidence) -> tuple[Block, ...]:
    static = (EVERY, *(trigger for trigger in triggers_of(evidence) if not trigger.is_dynamic))
    main, dynamic = _tables(evidence, CRITERION_METRICS, static), dynamic_table(evidence)
    if not main and not dynamic:
        return prose(_nothing(evidence))
    published = has_published_rows([table.matrix for table in main] + [dynamic])
    more = _tables(evidence, MORE, (EVERY, *triggers_of(evidence)))
    return (
        *_plots(evidence),
        *prose(SMALL_PRINT, BOTH if dynamic and main else "", small=True),
        *main,
        *((Heading("Dynamic triggers"), Prose(DYNAMIC), Table(dynamic)) if dynamic else ()),
        *prose(literature.caveat(evidence.models[0].label) if published else "", small=True),
        *(block for table in more for block in fold(f"More: {table.matrix.caption}", (table,))),
    )


def _nothing(evidence: Evidence) -> str:
    if not evidence.finished:
        return NO_SCORES
    return (
        "No method was graded, so there is nothing to show here; a score of 0 would be wrong. The section on the "
        "attack says why."
    )


def _plots(evidence: Evidence) -> tuple[Block, ...]:
    panels = tuple(panels_by_trigger(evidence, "trigger_iou", graded_triggers(evidence)))
    if not panels:
        return ()
    return Heading("Overlap, trigger by trigger"), Figures(panels, detection_keys(panels))


def _tables(evidence: Evidence, metrics: Sequence[str], triggers: Sequence[TriggerRecord]) -> list[Table]:
    """The tables that exist, each with a sentence on what it measures."""
    made = [(by_trigger(evidence, metric, triggers), metric) for metric in metrics]
    return [Table(matrix, note=evidence.metrics[metric].summary) for matrix, metric in made if matrix]


def _summary(evidence: Evidence) -> str:
    overlap, recovered = (
        [evidence.value(MEAN, metric, ALL_FINDINGS, method.name) for method in evidence.methods]
        for metric in CRITERION_METRICS
    )
    if all(map(math.isnan, overlap)):
        return "No method was graded." if evidence.finished else NO_SCORES
    return (
        f"Mean overlap (IoU) {span(overlap, SCORE.rounded(2))}, images recovered {span(recovered, SHARE.rounded(0))}, "
        "trigger by trigger."
    )
