"""Each method finding by finding, against readers, floors and published figures."""

from collections.abc import Mapping, Sequence

from heatcheck.core.records import ALL_FINDINGS, HUMAN
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, PERCENT_DECREASE, RATIO, Statistic
from heatcheck.report import glossary
from heatcheck.report.blocks.block import Block, Figures, Heading, Legend, Prose, Table, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import GROUPS, Column, Matrix, Row, by_finding, cell_of
from heatcheck.report.charts import legend
from heatcheck.report.charts.legend import Key
from heatcheck.report.charts.panels import Panel, PanelGroup
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, few
from heatcheck.report.page import Section
from heatcheck.studies.localization.report import literature
from heatcheck.studies.localization.report.answer import won_by_finding
from heatcheck.studies.localization.report.facts import manifest
from heatcheck.studies.localization.report.figures import against_readers
from heatcheck.studies.localization.vocabulary import BOXES, TESTED

BOX_MEASURES = {"iou": "as areas", "box_iou": "as boxes"}


SMALL_PRINT = (
    "Small print below a number is its 95 % interval; n is the number of cases with the finding (in the first column: "
    "of pairs of image and finding). Where several methods were tested, the highest of each column is underlined. A "
    "dash means undefined; the footnote says why."
)
MINUS_READERS = (
    "Method minus readers on the cases both have: below 0 the method is worse than these readers. The intervals hold "
    "for all methods together, but they speak of these readers, not of readers in general (pp: percentage points)."
)
BOX_WORDS = (
    "The experts drew boxes, which contain more than the finding. Left of each pair, the map\u2019s region is compared "
    "with the whole area of the boxes; right, the box around the region with the box."
)
PIXEL_N = (
    "Pixels are counted over all images of which outlines are known, also those without the finding: n is the number "
    "of these images."
)
SHOWN = 6  # plots of methods that are not folded away
Explained = Sequence[tuple[Matrix, str]]


def findings(evidence: Evidence) -> Section:
    """The section with a plot and a table per measure, by finding."""
    shown_metrics = [metric for metric in TESTED if metric in evidence.metrics]
    groups = [group for metric in shown_metrics if (group := against_readers(evidence, metric, published=True))]
    boxes = _box_tables(evidence)
    shown = {*TESTED, "box_iou"} if boxes else set(TESTED)
    rest = [name for name in evidence.metrics_of(MEAN) if name not in shown]
    means = _explained(evidence, MEAN, TESTED)
    pixels = _explained(evidence, RATIO, evidence.metrics_of(RATIO))
    blocks = (
        *_plots(evidence, groups),
        *_numbers(evidence, means),
        *_against_the_readers(evidence, has_means=bool(means)),
        *_box_blocks(boxes),
        *fold(
            "Pixel by pixel: sensitivity, specificity and precision",
            (Prose(PIXEL_N, small=True), *_with_sentences(pixels)) if pixels else (),
        ),
        *(
            block
            for table, sentence in _explained(evidence, MEAN, rest)
            for block in fold(f"More: {table.caption}", (Prose(sentence, small=True), Table(table)))
        ),
    )
    return Section("findings", "Finding by finding", "By finding", blocks, _summary(evidence), printed=True)


def _summary(evidence: Evidence) -> str:
    """On how many findings some method clearly beats the best floor."""
    won = won_by_finding(evidence)
    beaten = [finding for finding, winners in won.items() if winners]
    if not won:
        return "Every method on every finding."
    where = f": {few(beaten)}" if beaten else ""
    return f"A method clearly beats the best floor on {len(beaten)} of {count(len(won), 'finding')}{where}."


def _plots(evidence: Evidence, groups: Sequence[PanelGroup]) -> tuple[Block, ...]:
    """Each method's plot by finding; of one method, its measures side by side."""
    if not groups:
        return ()
    order = (
        "Findings on which the method with the highest mean is clearly worse than the readers come first, those on "
        "which it is clearly better last; within each, the largest shortfall is on top."
        if evidence.has_readers
        else "No human readers were given, so the plots show the methods and the floors alone."
    )
    intro = (
        "One row per finding. AUROC on the right of each row says how well the model separates images with the finding "
        "from images without it: a map can hardly be better than the model it explains."
    )
    has_crosses = any("published-mark" in panel.plot for group in groups for panel in group.panels)
    keys = _keys(evidence, published=has_crosses)
    if len(evidence.methods) == 1:
        single = tuple(Panel(group.name, group.panels[0].plot, group.sentence) for group in groups)
        return (*prose(intro, order), Figures(single, keys, "pair"))
    return (*prose(intro, order), Legend(keys), *(block for group in groups for block in _group_blocks(group)))


def _group_blocks(group: PanelGroup) -> tuple[Block, ...]:
    more = group.panels[SHOWN:]
    others = "method" if len(more) == 1 else f"{len(more)} methods"
    return (
        Heading(group.name),
        Prose(group.sentence, small=True),
        Figures(group.panels[:SHOWN]),
        *fold(f"{group.name}: the other {others}", (Figures(more),) if more else ()),
    )


def _keys(evidence: Evidence, *, published: bool) -> tuple[Key, ...]:
    floor = legend.floor_tick("the best floor: a method should lie to the right of it")
    return (
        legend.METHOD,
        *((legend.readers(evidence.readers.label.lower()),) if evidence.has_readers else ()),
        *((floor,) if evidence.floors else ()),
        *((legend.published(literature.SOURCE),) if published else ()),
    )


def _numbers(evidence: Evidence, means: Explained) -> tuple[Block, ...]:
    """The tables of means."""
    if not means:
        return prose("There are no scores by finding yet.")
    note = literature.caveat_of(evidence, [table for table, _ in means])
    return (Heading("The numbers"), Prose(SMALL_PRINT, small=True), *_with_sentences(means), *prose(note, small=True))


def _with_sentences(explained: Explained) -> tuple[Table, ...]:
    return tuple(Table(table, note=sentence) for table, sentence in explained)


def _against_the_readers(evidence: Evidence, *, has_means: bool) -> tuple[Block, ...]:
    """Differences and percentage decreases from the readers, behind folds."""
    differences = tables([table for table, _ in _explained(evidence, DIFFERENCE, TESTED, other=HUMAN)],
                         ": method minus readers")  # fmt: skip
    decreases = tables([table for table, _ in _explained(evidence, PERCENT_DECREASE, TESTED, other=HUMAN)],
                       ": decrease from the readers")  # fmt: skip
    none = has_means and not evidence.has_readers and not differences
    return (
        *prose("No human readers were given, so there is no difference from readers to show." if none else ""),
        *fold(
            "Difference from the human readers",
            (Prose(MINUS_READERS, small=True), *differences) if differences else (),
        ),
        *fold(
            "Percentage decrease from the human readers",
            (Prose(glossary.DECREASE, small=True), *decreases) if decreases else (),
        ),
    )


def _box_blocks(boxes: Mapping[str, Matrix] | None) -> tuple[Block, ...]:
    """Overlap with boxes as areas and as boxes."""
    if boxes is None:
        return ()
    return (
        Heading("Boxes compared as areas and as boxes"),
        Prose(BOX_WORDS),
        Table(boxes["overall"], "Overlap (IoU) with the boxes, mean over all findings"),
        *fold("The same, finding by finding", (Table(boxes["each"], "Overlap (IoU) with the boxes"),)),
    )


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
    for entrant in (evidence.readers, *evidence.methods, *evidence.floors):
        means = [evidence.find(MEAN, metric, finding, entrant.name) for finding in findings for metric in BOX_MEASURES]
        if any(row and row.metric == "box_iou" for row in means):
            unit = evidence.metrics["iou"].unit
            rows.append(Row(entrant, tuple(cell_of(row, unit, notes) for row in means)))
    if not rows:
        return None
    columns = tuple(Column(finding, aside) for finding in findings for aside in BOX_MEASURES.values())
    kinds = ((title, tuple(row for row in rows if row.entrant.kind == kind)) for kind, title in GROUPS.items())
    return Matrix("Overlap", columns, tuple((title, some) for title, some in kinds if some), tuple(notes.reasons))
