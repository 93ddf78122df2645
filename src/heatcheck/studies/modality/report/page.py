"""The modality study's page: which modality does the network rely on, and do the heat maps show it and its lesion?"""

from collections.abc import Mapping

from heatcheck.core.vocabulary import condition
from heatcheck.report import appendix
from heatcheck.report.appendix import undefined_scores
from heatcheck.report.blocks.block import Drawn
from heatcheck.report.blocks.gallery import Gallery
from heatcheck.report.downloads import room_for_pictures
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import Section, StudyPage
from heatcheck.studies.modality.report.caveats import caveats
from heatcheck.studies.modality.report.claims import highest
from heatcheck.studies.modality.report.facts import manifest, prepared
from heatcheck.studies.modality.report.gallery import ModalityCard, modality_gallery
from heatcheck.studies.modality.report.sections import cost as modality_cost
from heatcheck.studies.modality.report.sections.comparison import comparison, treated
from heatcheck.studies.modality.report.sections.distributions import distributions
from heatcheck.studies.modality.report.sections.heat import heat
from heatcheck.studies.modality.report.sections.importance import importance
from heatcheck.studies.modality.report.sections.networks import networks
from heatcheck.studies.modality.report.sections.overview import overview
from heatcheck.studies.modality.report.sections.quality import quality
from heatcheck.studies.modality.report.sections.ranking import ranks
from heatcheck.studies.modality.report.sections.ratings import ratings
from heatcheck.studies.modality.report.sections.wrong_answers import wrong_answers
from heatcheck.studies.modality.report.verdict import verdict

KICKER = "Which of the modalities does the network rely on, and do the heat maps show it and the lesion in it?"
NO_FAILURE = (
    "A method that gives one map for all modalities has no modality correlation by construction; in rankings it counts "
    "0."
)
AS_SHOWN = (
    "Test cases with all their modalities, in radiological orientation where the files state theirs: axial slices seen "
    "from the feet, the front of the head up."
)
SLICED = " Move the slider to go through the slices; all pictures of the case follow."
BELOW = (
    "Below them is each method\u2019s map of the predicted class, the methods with the highest MSFI over all cases "
    "first."
)


def modality_page(evidence: Evidence) -> StudyPage:
    """The study's verdict, sections and downloads."""
    evidence = prepared(evidence)
    undefined = undefined_scores(evidence.run, conditions=_conditions(evidence))
    files = appendix.downloads(evidence, undefined.table)
    gallery = modality_gallery(evidence, room_for_pictures(evidence, files))
    sections = (
        _section("overview", "At a glance", "At a glance", overview(evidence)),
        _section("importance", "Which modality matters?", "Importance", importance(evidence)),
        _section("networks", "The networks", "Networks", networks(evidence)),
        _section("comparison", "The methods side by side", "Comparison", comparison(evidence)),
        _section("distributions", "Case by case", "Case by case", distributions(evidence)),
        _section("heat", "Where does the heat go?", "Heat", heat(evidence)),
        _section("ranks", "Which methods differ?", "Differences", ranks(evidence)),
        _section("wrong_answers", "Does anything warn of a wrong answer?", "Wrong answers", wrong_answers(evidence)),
        _section("quality", "Where are maps better?", "Quality", quality(evidence)),
        _section("ratings", "What do readers think?", "Ratings", ratings(evidence)),
        modality_cost.section(evidence),
        _section("cases", "Cases to look at", "Gallery", shown(evidence, gallery)),
        appendix.gaps(evidence, undefined, NO_FAILURE, treated=treated(evidence)),
        appendix.record(evidence),
    )
    return StudyPage(
        templates=__package__,
        kicker=KICKER,
        verdict=verdict(evidence),
        caveats=caveats(evidence),
        speaks_of="",
        sections=tuple(section for section in sections if section),
        downloads=files,
        best=highest(evidence),
    )


def shown(evidence: Evidence, gallery: Gallery[ModalityCard]) -> Mapping[str, object]:
    """The content of the section of cases."""
    deep = manifest(evidence).space == 3
    labels = [trial.label for card in gallery.cards for trial in card.trials]
    return {
        "gallery": gallery,
        "methods": list(dict.fromkeys(labels)),
        "first": 1 if deep else 2,
        "intro": f"{AS_SHOWN}{SLICED if deep else ''} {BELOW}",
    }


def _conditions(evidence: Evidence) -> list[str]:
    """Those of the primary scores of every fold."""
    folds, primary = manifest(evidence).fold_numbers, manifest(evidence).primary
    weighted = [condition(fold=fold, importance=primary.importance, weights=primary.weights) for fold in folds]
    return [condition(fold=fold) for fold in folds] + weighted


def _section(anchor: str, title: str, short: str, content: Mapping[str, object] | None) -> Section | None:
    """The section whose template has the anchor's name; None when the run has nothing to show in it."""
    return Section(anchor, title, short, (Drawn(f"study/{anchor}.html", content),)) if content else None
