"""What a map needs and costs: access to the model, kinds of models, and seconds against scores."""

from collections.abc import Sequence

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report import cost
from heatcheck.report.blocks.block import Block, ListColumn, Listing
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import Section
from heatcheck.studies.modality.report.facts import manifest
from heatcheck.studies.modality.vocabulary import ModalityMethod

METRICS = ("msfi", "mi_correlation")


def section(evidence: Evidence) -> Section | None:
    """What methods need, and seconds per map against the scores; None when nothing of it is known."""
    shown = [m for m in METRICS if any(evidence.find(MEAN, m, ALL_FINDINGS, e.name) for e in evidence.methods)]
    of = "class, for all modalities together"
    methods = [method for method in manifest(evidence).methods if method.kind == "method"]
    needs = [method for method in methods if method.access or method.models or method.speed]
    timed = cost.section(evidence, shown, of)
    if timed is None and not needs:
        return None
    times: tuple[Block, ...] = ()
    if timed:
        times = (
            *cost.plots(evidence, shown, of),
            *cost.changed_settings(evidence),
            *cost.seconds_table(evidence, shown, opened=False),
        )
    blocks = (*((_needs(needs),) if needs else ()), *times)
    return Section("cost", "What does a map need and cost?", "Cost", blocks, cost.summary(evidence))


def _needs(methods: Sequence[ModalityMethod]) -> Listing:
    """What each method needs of the model, and whether it makes one map for all modalities."""
    names = "Method", "Group", "Access to the model", "For which models", "Speed", "Maps"
    rows = tuple(
        (
            each.label,
            each.family,
            each.access,
            each.models,
            each.speed,
            "one for all modalities" if each.shares_modalities else "one per modality",
        )
        for each in methods
    )
    return Listing("What each method needs", tuple(ListColumn(name) for name in names), rows)
