"""The localization study's page: do the maps point where the radiologists do?"""

import math
from collections import Counter
from collections.abc import Sequence

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import TEST
from heatcheck.judging.sizes import stored_sizes
from heatcheck.report import appendix, cost, glossary
from heatcheck.report.appendix import undefined_scores
from heatcheck.report.blocks.block import Block, Figures, Prose, Table, Terms, fold, prose, tables
from heatcheck.report.blocks.matrix import by_finding, by_floor
from heatcheck.report.charts import legend
from heatcheck.report.downloads import room_for_pictures
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SHARE, count, difference_of, listed, number
from heatcheck.report.page import Section, StudyPage
from heatcheck.report.verdict import CLEARLY, NOT_SHOWN
from heatcheck.studies.localization.report.answer import answer, floors_in_short
from heatcheck.studies.localization.report.caveats import caveats
from heatcheck.studies.localization.report.facts import speaks_of
from heatcheck.studies.localization.report.figures import ranking
from heatcheck.studies.localization.report.gallery import gallery_section, localization_gallery
from heatcheck.studies.localization.report.sections.architectures import architectures
from heatcheck.studies.localization.report.sections.cases import cases
from heatcheck.studies.localization.report.sections.confidence import confidence
from heatcheck.studies.localization.report.sections.counts import counts
from heatcheck.studies.localization.report.sections.findings import findings
from heatcheck.studies.localization.report.sections.geometry import geometry
from heatcheck.studies.localization.report.sections.modelcard import model_section
from heatcheck.studies.localization.report.sections.presets import presets
from heatcheck.studies.localization.report.sections.subgroups import subgroups
from heatcheck.studies.localization.report.sections.thresholds import thresholds
from heatcheck.studies.localization.report.sections.wrong_answers import wrong_answers
from heatcheck.studies.localization.report.standing import NAMES, Standing, best, standing_on
from heatcheck.studies.localization.report.verdict import verdict
from heatcheck.studies.localization.vocabulary import TESTED

NO_FAILURE = (
    "An image in which the experts outlined nothing has no truth to hit or to overlap with; such a gap is not a "
    "failure."
)


def localization_page(evidence: Evidence) -> StudyPage:
    """The study's answer, verdict, sections and downloads."""
    undefined = undefined_scores(evidence.run, evidence.primary if len(evidence.models) > 1 else "")
    files = appendix.downloads(evidence, undefined.table)
    gallery = localization_gallery(evidence, room_for_pictures(evidence, files))
    sections = (
        gallery_section(gallery),
        _overview(evidence),
        findings(evidence),
        _floors(evidence),
        cases(evidence, gallery),
        thresholds(evidence),
        architectures(evidence),
        geometry(evidence),
        confidence(evidence),
        wrong_answers(evidence),
        subgroups(evidence),
        presets(evidence),
        cost.section(evidence, [m for m in TESTED if m in evidence.metrics]),
        model_section(evidence),
        counts(evidence),
        appendix.gaps(evidence, undefined, NO_FAILURE),
        appendix.record(evidence),
    )
    return StudyPage(
        templates=__package__,
        kicker="Do the heat maps point where the radiologists do?",
        answer=answer(evidence, gallery),
        verdict=verdict(evidence),
        caveats=caveats(evidence),
        speaks_of=speaks_of(evidence),
        sections=tuple(section for section in sections if section),
        downloads=files,
        best=best(evidence),
    )


def _overview(evidence: Evidence) -> Section:
    """Every method, the readers and the floors over all findings, and what the terms mean."""
    panels = tuple(panel for metric in TESTED if metric in evidence.metrics and (panel := ranking(evidence, metric)))
    terms = [(evidence.metrics[m].label, evidence.metrics[m].summary) for m in TESTED if m in evidence.metrics]
    terms += [("Interval", glossary.INTERVAL), ("Floor", glossary.FLOOR)]
    terms += (
        [(evidence.readers.label, glossary.SIMULATED_READERS if evidence.manifest.source.drawn else glossary.READERS)]
        if evidence.has_readers
        else []
    )
    candidates = [_may_be_best(standing) for metric in TESTED if (standing := standing_on(evidence, metric))]
    floor = legend.floor_tick("floor, a picture made without the model")
    readers = (legend.readers(evidence.readers.label.lower()),) if evidence.has_readers else ()
    keys = (legend.METHOD, *readers, *((floor,) if evidence.floors else ()))
    shown: tuple[Block, ...] = (
        (
            Prose(
                "Each row is the mean over all findings, with equal weight for every finding. Further right is better."
            ),
            Figures(panels, keys, "pair"),
            *(block for sentence in candidates for block in prose(sentence)),
        )
        if panels
        else prose("There are no scores to show yet.")
    )
    beside = listed([*(["readers"] if evidence.has_readers else []), "floors"])
    summary = f"Overlap and hit rate of every method over all findings, beside {beside}."
    return Section(
        "overview", "All methods at a glance", "Methods", (*shown, Terms(tuple(terms))), summary, printed=True
    )


def _may_be_best(standing: Standing) -> str:
    """All methods that may be best by one metric, by name."""
    if not standing.is_tested or len(standing.may_be_best) < 2:
        return ""
    names = listed([entrant.label for entrant in standing.may_be_best])
    return f"May have the best {NAMES[standing.metric]}: {names}."


def _floors(evidence: Evidence) -> Section:
    """Each method against each picture made without the model."""
    title = "Does it beat a picture made without the model?"
    tested = [m for m in evidence.metrics_of(TEST) if m in evidence.metrics]
    shown = [table for metric in tested if (table := by_floor(evidence, metric))]
    if not evidence.floors or not shown:
        none = (
            "No test against a floor was made." if evidence.floors else "No floor was run, so this question stays open."
        )
        return Section("floors", title, "Floors", prose(glossary.FLOOR) + prose(none), none)
    detail = tuple(
        Table(table, f"{table.caption}: method minus {floor.label}")
        for metric in tested
        for floor in evidence.floors
        if (table := by_finding(evidence, TEST, metric, other=floor.name)) and len(table.columns) > 1
    )
    overall = [(key, row) for key, row in evidence.estimates.items() if key[0] == TEST and key[2] == ALL_FINDINGS]
    families = Counter(row.family for _, row in overall if row.family)
    together = "; ".join(f"{family} ({count(n, 'comparison')})" for family, n in sorted(families.items()))
    blocks: tuple[Block, ...] = (
        Prose(glossary.FLOOR),
        Prose(
            "Each cell: the method\u2019s mean minus the floor\u2019s, its 95 % interval, and what that shows (pp: "
            f"percentage points). {glossary.TEST}"
        ),
        *prose(CLEARLY, NOT_SHOWN, _sizes(evidence, tested)),
        *tables(shown, ": method minus floor, all findings"),
        *prose(f"Corrected together: {together}." if together else "", small=True),
        *fold("The same, finding by finding", detail),
    )
    return Section("floors", title, "Floors", blocks, floors_in_short(evidence), printed=True)


def _sizes(evidence: Evidence, tested: Sequence[str]) -> str:
    """From which difference on a floor counts as beaten."""
    sizes = [size for metric in tested if (size := _size(evidence, metric))]
    if not sizes:
        return ""
    share = number(stored_sizes(evidence.manifest.sizes, "run.json").maps, SHARE.rounded(0))
    top = "the readers" if evidence.has_readers else "the best possible score"
    return (
        f"Here a difference matters from {', '.join(sizes)} on, {share} of the room between the best floor and {top}."
    )


def _size(evidence: Evidence, metric: str) -> str:
    """The distance from a floor that matters over all findings, with the metric's name."""
    rows = (row for key, row in evidence.estimates.items() if key[:3] == (TEST, metric, ALL_FINDINGS))
    size = next((row.size for row in rows), math.nan)
    if math.isnan(size):
        return ""
    return f"{number(size, difference_of(evidence.metrics[metric].unit))} ({evidence.metrics[metric].label})"
