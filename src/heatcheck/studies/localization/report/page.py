"""The localization study's page: do the maps point where the radiologists do?"""

from collections import Counter
from collections.abc import Mapping, Sequence

from heatcheck.core.records import ALL_FINDINGS, HUMAN
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, PERCENT_DECREASE, RATIO, TEST, Statistic
from heatcheck.report import appendix, cost, glossary
from heatcheck.report.appendix import undefined_scores
from heatcheck.report.downloads import room_for_pictures
from heatcheck.report.evidence import Evidence
from heatcheck.report.matrix import Matrix, by_finding, by_floor
from heatcheck.report.numbers import count
from heatcheck.report.page import Section, StudyPage
from heatcheck.report.published import has_published_rows
from heatcheck.studies.localization.report import published
from heatcheck.studies.localization.report.caveats import caveats
from heatcheck.studies.localization.report.facts import speaks_of
from heatcheck.studies.localization.report.figures import against_readers, ranking
from heatcheck.studies.localization.report.gallery import localization_gallery, shown
from heatcheck.studies.localization.report.sections.architectures import architectures
from heatcheck.studies.localization.report.sections.calibration import curves, scaling
from heatcheck.studies.localization.report.sections.confidence import confidence
from heatcheck.studies.localization.report.sections.counts import counts
from heatcheck.studies.localization.report.sections.geometry import geometry
from heatcheck.studies.localization.report.sections.modelcard import model_card
from heatcheck.studies.localization.report.sections.presets import presets
from heatcheck.studies.localization.report.sections.thresholds import thresholds
from heatcheck.studies.localization.report.sections.truthboxes import box_tables
from heatcheck.studies.localization.report.verdict import verdict

MAIN = ("iou", "hit")
NO_FAILURE = (
    "An image in which the experts outlined nothing has no truth to hit or to overlap with; such a gap is no failure."
)


def localization_page(evidence: Evidence) -> StudyPage:
    """The study's verdict, sections and downloads."""
    undefined = undefined_scores(evidence.run, evidence.primary if len(evidence.models) > 1 else "")
    files = appendix.downloads(evidence, undefined.table)
    return StudyPage(
        templates=__package__,
        kicker="Do the heat maps point where the radiologists do?",
        verdict=verdict(evidence),
        caveats=caveats(evidence),
        speaks_of=speaks_of(evidence),
        sections=tuple(
            section
            for section in (
                _overview(evidence),
                _findings(evidence),
                _floors(evidence),
                _optional(evidence, "thresholds", "Would other thresholds change it?", thresholds(evidence)),
                _optional(evidence, "architectures", "Is it the model or the method?", architectures(evidence)),
                _optional(evidence, "geometry", "Which findings are hard to point at?", geometry(evidence)),
                _optional(evidence, "confidence", "Do maps point better when the model is sure?", confidence(evidence)),
                _optional(evidence, "presets", "Where the two presets disagree", presets(evidence)),
                cost.section(evidence, [m for m in MAIN if m in evidence.measures]),
                Section("cases", "Cases to look at", "Cases", "study/gallery.html",
                        shown(localization_gallery(evidence, room_for_pictures(evidence, files)))),
                Section("model", "How good is the model itself?", "Model", "study/model.html", _model(evidence)),
                _optional(evidence, "counts", "What was looked at", counts(evidence)),
                appendix.gaps(evidence, undefined, NO_FAILURE),
                appendix.record(evidence),
            )
            if section
        ),
        downloads=files,
    )  # fmt: skip


def _optional(evidence: Evidence, anchor: str, title: str, content: Mapping[str, object] | None) -> Section | None:
    """The section whose template has the anchor's name; None when the run has nothing to show in it."""
    if content is None:
        return None
    caveat = published.caveat(evidence) if has_published_rows(content) else ""
    return Section(anchor, title, anchor.capitalize(), f"study/{anchor}.html", {**content, "published": caveat})


def _overview(evidence: Evidence) -> Section:
    panels = [panel for metric in MAIN if metric in evidence.measures and (panel := ranking(evidence, metric))]
    terms = [(evidence.measures[m].label, evidence.measures[m].summary)
             for m in MAIN if m in evidence.measures]  # fmt: skip
    terms += [("Interval", glossary.INTERVAL), ("Floor", glossary.FLOOR), ("Human readers", glossary.READERS)]
    return Section("overview", "At a glance", "At a glance", "study/overview.html", {"panels": panels, "terms": terms})


def _findings(evidence: Evidence) -> Section:
    made = [against_readers(evidence, metric, published=True) for metric in MAIN if metric in evidence.measures]
    groups = [group for group in made if group]
    shown = {*MAIN, "box_iou"} if (boxes := box_tables(evidence)) else set(MAIN)
    rest = [name for name in evidence.measures_of(MEAN) if name not in shown]
    content: dict[str, object] = {
        "groups": groups,
        "single": len(evidence.methods) == 1,
        "tables": _explained(evidence, MEAN, MAIN),
        "differences": _explained(evidence, DIFFERENCE, MAIN, other=HUMAN),
        "decreases": _explained(evidence, PERCENT_DECREASE, MAIN, other=HUMAN),
        "decrease_sentence": glossary.DECREASE,
        "boxes": boxes,
        "pixels": _explained(evidence, RATIO, evidence.measures_of(RATIO)),
        "more": _explained(evidence, MEAN, rest),
        "has_readers": evidence.has_readers,
        "has_floors": bool(evidence.floors),
        "published_marks": any("published-mark" in panel.plot for group in groups for panel in group.panels),
    }
    content["published"] = published.caveat(evidence) if has_published_rows(content) else ""
    return Section("findings", "Finding by finding", "By finding", "study/findings.html", content)


def _explained(
    evidence: Evidence, statistic: Statistic, metrics: Sequence[str], *, other: str = ""
) -> list[tuple[Matrix, str]]:
    """The tables that exist, published rows below ours, each with the sentence that says what it measures."""
    found = [(by_finding(evidence, statistic, m, other=other), m) for m in metrics if m in evidence.measures]
    made = [(published.beside(table, evidence, statistic, m), m) for table, m in found]
    return [(table, evidence.measures[m].summary) for table, m in made if table]


def _floors(evidence: Evidence) -> Section:
    tested = [m for m in evidence.measures_of(TEST) if m in evidence.measures]
    overall = [(key, row) for key, row in evidence.estimates.items() if key[0] == TEST and key[2] == ALL_FINDINGS]
    made = Counter(row.family for _, row in overall if row.family)
    content = {
        "tables": [table for metric in tested if (table := by_floor(evidence, metric))],
        "detail": [
            (floor.label, table)
            for metric in tested
            for floor in evidence.floors
            if (table := by_finding(evidence, TEST, metric, other=floor.name)) and len(table.columns) > 1
        ],
        "floors": evidence.floors,
        "floor_sentence": glossary.FLOOR,
        "test_sentence": glossary.TEST,
        "families": [f"{family} ({count(n, 'comparison')})" for family, n in sorted(made.items())],
    }
    return Section("floors", "Does it beat a picture made without the model?", "Floors", "study/floors.html", content)


def _model(evidence: Evidence) -> Mapping[str, object]:
    return {
        "model": evidence.manifest.model_description,
        "card": model_card(evidence),
        "curves": curves(evidence),
        "scaling": scaling(evidence),
        "auroc": evidence.measures["auroc"].summary if "auroc" in evidence.measures else "",
        "ece": evidence.measures["ece"].summary if "ece" in evidence.measures else "",
    }
