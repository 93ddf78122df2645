"""The modality study's page: which modality does the network rely on, and do the heat maps show it and its lesion?"""

from collections.abc import Mapping

from heatcheck.core.records import condition
from heatcheck.report import closing
from heatcheck.report.evidence import Evidence
from heatcheck.report.gaps import undefined_scores
from heatcheck.report.modality_comparison import comparison
from heatcheck.report.modality_distributions import distributions
from heatcheck.report.modality_facts import folds_of, prepared, primary
from heatcheck.report.modality_importance import importance
from heatcheck.report.modality_networks import networks
from heatcheck.report.modality_overview import overview
from heatcheck.report.modality_ranking import ranks
from heatcheck.report.modality_verdict import verdict
from heatcheck.report.page import Section, StudyPage

KICKER = "Which of the modalities does the network rely on, and do the heat maps show it and the lesion in it?"
NO_FAILURE = (
    "A method that gives one map for all modalities has no MI correlation by construction; in rankings it counts 0."
)


def modality_page(evidence: Evidence) -> StudyPage:
    """The study's verdict, sections and downloads."""
    evidence = prepared(evidence)
    undefined = undefined_scores(evidence.run, conditions=_conditions(evidence))
    files = closing.downloads(evidence, undefined.table)
    sections = (
        _section("overview", "At a glance", "At a glance", overview(evidence)),
        _section("importance", "Which modality counts?", "Importance", importance(evidence)),
        _section("networks", "The networks", "Networks", networks(evidence)),
        _section("comparison", "The methods side by side", "Comparison", comparison(evidence)),
        _section("distributions", "Case by case", "Cases one by one", distributions(evidence)),
        _section("ranks", "Which methods differ?", "Differences", ranks(evidence)),
        closing.gaps(evidence, undefined, NO_FAILURE),
        closing.record(evidence),
    )
    return StudyPage(
        kicker=KICKER,
        verdict=verdict(evidence),
        caveats=(),
        speaks_of="",
        sections=tuple(section for section in sections if section),
        downloads=files,
    )


def _conditions(evidence: Evidence) -> list[str]:
    """Those of the primary scores of every fold."""
    own = primary(evidence)
    plain = [condition(fold=fold) for fold in folds_of(evidence)]
    return plain + [condition(fold=fold, importance=own.importance, weights=own.weights) for fold in folds_of(evidence)]


def _section(anchor: str, title: str, short: str, content: Mapping[str, object] | None) -> Section | None:
    """The section whose template has the anchor's name; None when the run has nothing to show in it."""
    return Section(anchor, title, short, f"modality_{anchor}.html", content) if content else None
