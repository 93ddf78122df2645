"""The localization study's page: do the maps point where the radiologists do?"""

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS, HUMAN
from heatcheck.report import cost, published, words
from heatcheck.report.architectures import architectures
from heatcheck.report.calibration import curves, scaling
from heatcheck.report.caveats import caveats
from heatcheck.report.confidence import confidence
from heatcheck.report.counts import counts
from heatcheck.report.downloads import Download, download
from heatcheck.report.evidence import READERS, Evidence
from heatcheck.report.figures import against_readers, ranking
from heatcheck.report.gallery import gallery_of
from heatcheck.report.gaps import UndefinedScores, failed_cases, seconds_per_map, undefined_scores
from heatcheck.report.geometry import geometry
from heatcheck.report.matrix import Matrix, by_finding, by_floor
from heatcheck.report.modelcard import model_card
from heatcheck.report.numbers import count, listed
from heatcheck.report.page import Section, StudyPage, description, record_of
from heatcheck.report.presets import presets
from heatcheck.report.thresholds import thresholds
from heatcheck.report.truthboxes import box_tables
from heatcheck.report.verdict import verdict

MAIN = ("iou", "hit")
PICTURES = 9_000_000  # bytes of pictures in the page
TEXT_AND_PICTURES = 13_500_000  # with the embedded tables
TEXT_PER_ESTIMATE = 120  # bytes of tables and plots, about
SHOWN = 100  # rows of a list of gaps on the page; the download has all


def localization_page(evidence: Evidence) -> StudyPage:
    """The study's verdict, sections and downloads."""
    undefined = undefined_scores(evidence.run, evidence.primary if len(evidence.models) > 1 else "")
    files = _downloads(evidence, undefined.table)
    text = TEXT_PER_ESTIMATE * len(evidence.run.estimates)
    room = TEXT_AND_PICTURES - text - sum(len(file.uri) for file in files)
    return StudyPage(
        kicker="Do the heat maps point where the radiologists do?",
        verdict=verdict(evidence),
        caveats=caveats(evidence),
        speaks_of=words.speaks_of(evidence),
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
                _cost(evidence),
                Section("cases", "Cases to look at", "Cases", "gallery.html",
                        {"gallery": gallery_of(evidence, max(0, min(PICTURES, room)))}),
                Section("model", "How good is the model itself?", "Model", "model.html", _model(evidence)),
                _optional(evidence, "counts", "What was looked at", counts(evidence)),
                _gaps(evidence, undefined),
                Section("record", "How this was made", "Record", "record.html", _record(evidence)),
            )
            if section
        ),
        downloads=files,
    )  # fmt: skip


def _optional(evidence: Evidence, anchor: str, title: str, content: Mapping[str, object] | None) -> Section | None:
    """The section whose template has the anchor's name; None when the run has nothing to show in it."""
    if content is None:
        return None
    caveat = published.caveat(evidence) if published.is_in(content) else ""
    return Section(anchor, title, anchor.capitalize(), f"{anchor}.html", {**content, "published": caveat})


def _overview(evidence: Evidence) -> Section:
    panels = [panel for metric in MAIN if metric in evidence.measures and (panel := ranking(evidence, metric))]
    terms = [(words.plain(evidence.measures[m]).name, words.plain(evidence.measures[m]).sentence)
             for m in MAIN if m in evidence.measures]  # fmt: skip
    terms += [("Interval", words.INTERVAL), ("Floor", words.FLOOR), ("Human readers", words.READERS)]
    return Section("overview", "At a glance", "At a glance", "overview.html", {"panels": panels, "terms": terms})


def _findings(evidence: Evidence) -> Section:
    made = [against_readers(evidence, metric, published=True) for metric in MAIN if metric in evidence.measures]
    groups = [group for group in made if group]
    shown = {*MAIN, "box_iou"} if (boxes := box_tables(evidence)) else set(MAIN)
    rest = [name for name in evidence.measures_of("mean") if name not in shown]
    content: dict[str, object] = {
        "groups": groups,
        "single": len(evidence.methods) == 1,
        "tables": _explained(evidence, "mean", MAIN),
        "differences": _explained(evidence, "difference", MAIN, other=HUMAN),
        "decreases": _explained(evidence, "percent_decrease", MAIN, other=HUMAN),
        "decrease_sentence": words.DECREASE,
        "boxes": boxes,
        "pixels": _explained(evidence, "ratio", evidence.measures_of("ratio")),
        "more": _explained(evidence, "mean", rest),
        "has_readers": evidence.has_readers,
        "has_floors": bool(evidence.floors),
        "published_marks": any("published-mark" in panel.plot for group in groups for panel in group.panels),
    }
    content["published"] = published.caveat(evidence) if published.is_in(content) else ""
    return Section("findings", "Finding by finding", "By finding", "findings.html", content)


def _explained(
    evidence: Evidence, statistic: str, metrics: Sequence[str], *, other: str = ""
) -> list[tuple[Matrix, str]]:
    """The tables that exist, published rows below ours, each with the sentence that says what it measures."""
    found = [(by_finding(evidence, statistic, m, other=other), m) for m in metrics if m in evidence.measures]
    made = [(published.beside(table, evidence, statistic, m), m) for table, m in found]
    return [(table, words.plain(evidence.measures[m]).sentence) for table, m in made if table]


def _floors(evidence: Evidence) -> Section:
    tested = [m for m in evidence.measures_of("test") if m in evidence.measures]
    overall = [(key, row) for key, row in evidence.estimates.items() if key[0] == "test" and key[2] == ALL_FINDINGS]
    made = Counter(row.family for _, row in overall if row.family)
    content = {
        "tables": [table for metric in tested if (table := by_floor(evidence, metric))],
        "detail": [
            (floor.label, table)
            for metric in tested
            for floor in evidence.floors
            if (table := by_finding(evidence, "test", metric, other=floor.name)) and len(table.columns) > 1
        ],
        "floors": evidence.floors,
        "floor_sentence": words.FLOOR,
        "test_sentence": words.TEST,
        "families": [f"{family} ({count(n, 'comparison')})" for family, n in sorted(made.items())],
    }
    return Section("floors", "Does it beat a picture made without the model?", "Floors", "floors.html", content)


def _cost(evidence: Evidence) -> Section | None:
    """What maps cost; None where the run neither took times nor changed a setting."""
    shown = [metric for metric in MAIN if metric in evidence.measures]
    plots = [(plain(evidence, m), plot) for m in shown if (plot := cost.cost_plot(evidence, m))]
    entrants = (*evidence.methods, *evidence.floors)
    if not cost.seconds_by_method(evidence) and not any(entrant.changed for entrant in entrants):
        return None
    content = {
        "plots": plots,
        "machine": cost.machine(evidence),
        "families": cost.family_classes(evidence),
        "has_floors": bool(evidence.floors),
        "rows": cost.costs(evidence, shown),
        "measures": [plain(evidence, m) for m in shown],
        "changed": [(entrant.label, listed(entrant.changed)) for entrant in entrants if entrant.changed],
        "changed_sentence": words.SMALLER if any(e.saves_time for e in entrants) else words.CHANGED,
    }
    return Section("cost", "What does a map cost?", "Cost", "cost.html", content)


def plain(evidence: Evidence, metric: str) -> str:
    """The metric's short name."""
    return words.plain(evidence.measures[metric]).name


def _model(evidence: Evidence) -> Mapping[str, object]:
    return {
        "model": description(evidence, "model"),
        "card": model_card(evidence),
        "curves": curves(evidence),
        "scaling": scaling(evidence),
        "auroc": words.plain(evidence.measures["auroc"]).sentence if "auroc" in evidence.measures else "",
        "ece": words.plain(evidence.measures["ece"]).sentence if "ece" in evidence.measures else "",
    }


def _gaps(evidence: Evidence, scores: UndefinedScores) -> Section:
    failed, undefined = failed_cases(evidence.run), scores.table
    entrants = (READERS, *evidence.methods, *evidence.floors)
    content = {
        "undefined": _rows(undefined.head(SHOWN)),
        "model": evidence.models[0].label if len(evidence.models) > 1 else "",
        "n_undefined": int(undefined["undefined"].sum()),
        "n_scores": scores.n_scores,
        "more_undefined": max(0, len(undefined) - SHOWN),
        "failed": _rows(failed.head(SHOWN)),
        "n_failed": len(failed),
        "n_cases": len(evidence.run.cases),
        "labels": {entrant.name: entrant.label for entrant in entrants},
        "measures": {name: words.plain(measure).name for name, measure in evidence.measures.items()},
    }
    return Section("gaps", "What is missing", "Gaps", "gaps.html", content)


def _rows(table: pd.DataFrame) -> list[dict[str, object]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]


def _record(evidence: Evidence) -> Mapping[str, object]:
    speed = {row["method"]: row["seconds_per_map"] for row in _rows(seconds_per_map(evidence.run))}
    return {
        "record": record_of(evidence),
        "source": description(evidence, "source"),
        "entrants": [*evidence.methods, *evidence.floors],
        "speed": speed,
    }


def _downloads(evidence: Evidence, undefined: pd.DataFrame) -> tuple[Download, ...]:
    run = evidence.run
    tables = (
        ("estimates.csv", "every number of this report with its interval, counts and reasons", run.estimates),
        ("undefined.csv", "undefined scores by metric, method and reason", undefined),
        ("failed_cases.csv", "cases that failed, with stage and reason", failed_cases(run)),
        ("seconds_per_map.csv", "how long each method took", seconds_per_map(run)),
    )
    return tuple(download(name, about, table) for name, about, table in tables if len(table))
