"""The localization study's page: do the maps point where the radiologists do?"""

import math
from collections import Counter
from collections.abc import Mapping

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import TEST
from heatcheck.judging.sizes import stored_sizes
from heatcheck.report import appendix, cost, glossary
from heatcheck.report.appendix import undefined_scores
from heatcheck.report.downloads import room_for_pictures
from heatcheck.report.evidence import Evidence
from heatcheck.report.matrix import by_finding, by_floor
from heatcheck.report.numbers import SHARE, count, difference_of, listed, number
from heatcheck.report.page import Section, StudyPage
from heatcheck.report.published import has_published_rows
from heatcheck.report.verdict import CLEARLY, NOT_SHOWN
from heatcheck.studies.localization.report import literature
from heatcheck.studies.localization.report.caveats import caveats
from heatcheck.studies.localization.report.facts import speaks_of
from heatcheck.studies.localization.report.figures import ranking
from heatcheck.studies.localization.report.gallery import localization_gallery, shown
from heatcheck.studies.localization.report.sections.architectures import architectures
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
                findings(evidence),
                _floors(evidence),
                _optional(evidence, "thresholds", "Would other thresholds change it?", thresholds(evidence)),
                _optional(evidence, "architectures", "Is it the model or the method?", architectures(evidence)),
                _optional(evidence, "geometry", "Which findings are hard to point at?", geometry(evidence)),
                _optional(evidence, "confidence", "Do maps point better when the model is confident?",
                          confidence(evidence)),
                _optional(evidence, "wrong_answers", "Does a map warn of a wrong answer?", wrong_answers(evidence)),
                _optional(evidence, "subgroups", "Does it hold in every group of patients?", subgroups(evidence)),
                _optional(evidence, "presets", "Where the two presets disagree", presets(evidence)),
                cost.section(evidence, [m for m in TESTED if m in evidence.metrics]),
                Section("cases", "Cases to look at", "Cases", "study/gallery.html",
                        shown(localization_gallery(evidence, room_for_pictures(evidence, files)))),
                Section("model", "How good is the model itself?", "Model", "study/model.html", model_section(evidence)),
                _optional(evidence, "counts", "What was looked at", counts(evidence)),
                appendix.gaps(evidence, undefined, NO_FAILURE),
                appendix.record(evidence),
            )
            if section
        ),
        downloads=files,
        best=best(evidence),
    )  # fmt: skip


def _optional(evidence: Evidence, anchor: str, title: str, content: Mapping[str, object] | None) -> Section | None:
    """The section whose template has the anchor's name; None when the run has nothing to show in it."""
    if content is None:
        return None
    caveat = literature.caveat(evidence) if has_published_rows(content) else ""
    short = anchor.capitalize().replace("_", " ")
    return Section(anchor, title, short, f"study/{anchor}.html", {**content, "published": caveat})


def _overview(evidence: Evidence) -> Section:
    panels = [panel for metric in TESTED if metric in evidence.metrics and (panel := ranking(evidence, metric))]
    terms = [(evidence.metrics[m].label, evidence.metrics[m].summary)
             for m in TESTED if m in evidence.metrics]  # fmt: skip
    terms += [("Interval", glossary.INTERVAL), ("Floor", glossary.FLOOR), ("Human readers", glossary.READERS)]
    candidates = [_may_be_best(standing) for metric in TESTED if (standing := standing_on(evidence, metric))]
    content = {"panels": panels, "terms": terms, "best": [sentence for sentence in candidates if sentence]}
    return Section("overview", "At a glance", "At a glance", "study/overview.html", content)


def _may_be_best(standing: Standing) -> str:
    """All methods that may be best by one metric, by name."""
    if not standing.is_tested or len(standing.may_be_best) < 2:
        return ""
    names = listed([entrant.label for entrant in standing.may_be_best])
    return f"May have the best {NAMES[standing.metric]}: {names}."


def _floors(evidence: Evidence) -> Section:
    tested = [m for m in evidence.metrics_of(TEST) if m in evidence.metrics]
    overall = [(key, row) for key, row in evidence.estimates.items() if key[0] == TEST and key[2] == ALL_FINDINGS]
    families = Counter(row.family for _, row in overall if row.family)
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
        "clearly": CLEARLY,
        "not_shown": NOT_SHOWN,
        "sizes": [_size(evidence, metric) for metric in tested if _size(evidence, metric)],
        "share": number(stored_sizes(evidence.manifest.sizes, "run.json").maps, SHARE.rounded(0)),
        "top": "the readers" if evidence.has_readers else "the best possible score",
        "families": [f"{family} ({count(n, 'comparison')})" for family, n in sorted(families.items())],
    }
    return Section("floors", "Does it beat a picture made without the model?", "Floors", "study/floors.html", content)


def _size(evidence: Evidence, metric: str) -> str:
    """The distance from a floor that matters over all findings, with the metric's name."""
    rows = (row for key, row in evidence.estimates.items() if key[:3] == (TEST, metric, ALL_FINDINGS))
    size = next((row.size for row in rows), math.nan)
    if math.isnan(size):
        return ""
    return f"{number(size, difference_of(evidence.metrics[metric].unit))} ({evidence.metrics[metric].label})"
