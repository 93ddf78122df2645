"""Each method finding by finding, against readers, floors and published figures."""

from collections.abc import Mapping, Sequence

from heatcheck.core.records import ALL_FINDINGS, HUMAN
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, PERCENT_DECREASE, RATIO, Statistic
from heatcheck.report import glossary
from heatcheck.report.blocks.block import Drawn
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import GROUPS, Column, Matrix, Row, by_finding, cell_of
from heatcheck.report.evidence import READERS, Evidence
from heatcheck.report.page import Section
from heatcheck.report.published import has_published_rows
from heatcheck.studies.localization.report import literature
from heatcheck.studies.localization.report.facts import manifest
from heatcheck.studies.localization.report.figures import against_readers
from heatcheck.studies.localization.vocabulary import BOXES, TESTED

BOX_MEASURES = {"iou": "as areas", "box_iou": "as boxes"}


def findings(evidence: Evidence) -> Section:
    """The section with a plot and a table per measure, by finding."""
    shown_metrics = [metric for metric in TESTED if metric in evidence.metrics]
    groups = [group for metric in shown_metrics if (group := against_readers(evidence, metric, published=True))]
    shown = {*TESTED, "box_iou"} if (boxes := _box_tables(evidence)) else set(TESTED)
    rest = [name for name in evidence.metrics_of(MEAN) if name not in shown]
    content: dict[str, object] = {
        "groups": groups,
        "single": len(evidence.methods) == 1,
        "tables": _explained(evidence, MEAN, TESTED),
        "differences": _explained(evidence, DIFFERENCE, TESTED, other=HUMAN),
        "decreases": _explained(evidence, PERCENT_DECREASE, TESTED, other=HUMAN),
        "decrease_sentence": glossary.DECREASE,
        "boxes": boxes,
        "pixels": _explained(evidence, RATIO, evidence.metrics_of(RATIO)),
        "more": _explained(evidence, MEAN, rest),
        "has_readers": evidence.has_readers,
        "has_floors": bool(evidence.floors),
        "published_marks": any("published-mark" in panel.plot for group in groups for panel in group.panels),
    }
    content["published"] = literature.caveat(evidence) if has_published_rows(content) else ""
    return Section("findings", "Finding by finding", "By finding", (Drawn("study/findings.html", content),))


def _explained(
    evidence: Evidence, statistic: Statistic, metrics: Sequence[str], *, other: str = ""
) -> list[tuple[Matrix, str]]:
    """The tables that exist, published rows below ours, each with the summary of its metric."""
    tables = {m: by_finding(evidence, statistic, m, other=other) for m in metrics if m in evidence.metrics}
    published = {m: literature.with_published(table, evidence, statistic, m) for m, table in tables.items()}
    return [(table, evidence.metrics[m].summary) for m, table in published.items() if table]


def _box_tables(evidence: Evidence) -> Mapping[str, Matrix] | None:
    """Both overlaps side by side, over all findings and for each; None where the truth is not boxes."""
    if manifest(evidence).truth_kind != BOXES or not set(BOX_MEASURES) <= set(evidence.metrics):
        return None
    overall = _box_table(evidence, (ALL_FINDINGS,))
    each = _box_table(evidence, evidence.findings)
    return {"overall": overall, "each": each} if overall and each else None


def _box_table(evidence: Evidence, findings: Sequence[str]) -> Matrix | None:
    """Entrants against findings, each finding scored as areas and as boxes."""
    notes, rows = Footnotes(), []
    for entrant in (READERS, *evidence.methods, *evidence.floors):
        means = [evidence.find(MEAN, metric, finding, entrant.name) for finding in findings for metric in BOX_MEASURES]
        if any(row and row.metric == "box_iou" for row in means):
            unit = evidence.metrics["iou"].unit
            rows.append(Row(entrant, tuple(cell_of(row, unit, notes) for row in means)))
    if not rows:
        return None
    columns = tuple(Column(finding, aside) for finding in findings for aside in BOX_MEASURES.values())
    kinds = ((title, tuple(row for row in rows if row.entrant.kind == kind)) for kind, title in GROUPS.items())
    return Matrix("Overlap", columns, tuple((title, some) for title, some in kinds if some), tuple(notes.reasons))
