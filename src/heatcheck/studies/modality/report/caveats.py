"""What a careful reader should hold against a modality study's verdict, one plain sentence each."""

import math
from dataclasses import replace

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.report.caveats import failed, smaller_settings
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SHARE, few, listed, number
from heatcheck.studies.modality.report.facts import (
    FILLS,
    MEASURES,
    classes_of,
    estimate,
    fills_of,
    first_of,
    folds_of,
    game,
    importances_of,
    is_drawn,
    primary,
    ranked,
    shared_of,
    tied_pairs,
)
from heatcheck.studies.modality.report.judgement import LESION, judge

MOST_PAIRS = 4  # that a sentence names


def caveats(evidence: Evidence) -> tuple[str, ...]:
    """The sentences that apply to this run."""
    made = [
        failed(evidence),
        _one_network(evidence),
        _weak(evidence),
        _other_folds(evidence),
        _other_rules(evidence),
        _rules(evidence),
        _taken_as_given(evidence),
        _one_map(evidence),
        _floors(evidence),
        _phantom(evidence),
        _few_readers(evidence),
        smaller_settings(evidence),
    ]
    return tuple(sentence for sentence in made if sentence)


def _one_network(evidence: Evidence) -> str:
    if len(folds_of(evidence)) > 1:
        return ""
    return (
        "One network was studied: the intervals speak of other patients, not of another training, which may well rely "
        "on other modalities."
    )


def _weak(evidence: Evidence) -> str:
    """Networks that hardly tell the classes apart: their maps explain guesses."""
    chance = 1 / max(2, len(classes_of(evidence)))
    rows = {fold: estimate(evidence, ("mean", "balanced_accuracy"), {"fold": fold}) for fold in folds_of(evidence)}
    weak = [fold for fold, row in rows.items() if row and (row.low <= chance or row.value <= chance)]
    if not weak:
        return ""
    several = len(weak) > 1
    which = f"The network{'s' if several else ''}"
    if len(weak) < len(rows):
        which += f" of fold{'s' if several else ''} {listed([str(fold) for fold in weak])}"
    are, their = ("are", "their") if several else ("is", "its")
    return (
        f"{which} {are} not surely better than guessing (balanced accuracy {number(chance, SHARE.rounded(0))}), so "
        f"{their} importances are noise and {their} maps explain guesses."
    )


def _other_folds(evidence: Evidence) -> str:
    """Folds in which another modality comes first than over all."""
    played, folds = game(evidence, "phi_modality"), folds_of(evidence)
    first = first_of(evidence, played)
    if len(folds) < 2 or len(first) != 1:
        return ""
    orders = {fold: ranked(evidence, played.of_fold(fold)) for fold in folds}
    other = [fold for fold, order in orders.items() if order and first_of(evidence, played.of_fold(fold)) != first]
    if not other:
        return ""
    told = "; ".join(f"fold {fold}: {orders[fold]}" for fold in other[:2]) + ("; \u2026" if len(other) > 2 else "")
    return f"Not every network has {first[0]} alone in the first place ({told}), so read scores fold by fold, too."


def _other_rules(evidence: Evidence) -> str:
    """Other measures or fills that put another modality first."""
    own = game(evidence, "phi_modality")
    first, others = first_of(evidence, own), []
    for filled in fills_of(evidence):
        for measure, name in MEASURES.items():
            played = replace(own, measure=measure, filled=filled)
            order = ranked(evidence, played)
            if order and len(first) == 1 and first_of(evidence, played) != first:
                others.append(f"by {name}, filled by {FILLS.get(filled, filled)}: {order}")
    return f"The first place depends on how importance is measured ({'; '.join(others)})." if others else ""


def _rules(evidence: Evidence) -> str:
    """Primary settings that make scores look better, or importances depend on chance."""
    own, parts = primary(evidence), []
    if own.measure == "accuracy":
        parts.append("importances rest on plain accuracy and so depend on the class that an empty image falls into")
    if own.weights == "min_max":
        parts.append("MSFI never counts the least important modality, whatever its importance")
    if own.boxes:
        parts.append("the lesion is a bounding box, which also holds healthy tissue")
    if own.dilate:
        parts.append(f"lesions were widened by {own.dilate} pixels, which raises MSFI and its floor")
    return f"By the settings of this run, {listed(parts)}." if parts else ""


def _taken_as_given(evidence: Evidence) -> str:
    """What the intervals of the maps' scores do not hold, and where the order that they are held against is a tie."""
    if not importances_of(evidence):
        return ""
    played = game(evidence, "phi_modality")
    pairs = dict.fromkeys(pair for fold in folds_of(evidence) for pair in tied_pairs(evidence, played.of_fold(fold)))
    text = (
        "The intervals of modality correlation and MSFI take the importances as given, although these come from the "
        "same cases and are uncertain themselves"
    )
    if not pairs:
        return f"{text}."
    told = [f"{one} and {other}" for one, other in pairs]
    shown = told if len(told) <= MOST_PAIRS else [*told[: MOST_PAIRS - 1], f"{len(told) - MOST_PAIRS + 1} more pairs"]
    where = "" if len(folds_of(evidence)) == 1 else " in at least one network"
    return (
        f"{text}: which modality counts more is not sure{where} for {'; '.join(shown)}, so the modality correlation "
        "rests on an uncertain order there."
    )


def _one_map(evidence: Evidence) -> str:
    """Methods that score well although they cannot tell modalities apart."""
    shared = [m for m in evidence.methods if m.name in shared_of(evidence) and judge(evidence, m).outcome == LESION]
    if not shared:
        return ""
    return (
        f"MSFI does not see how heat is shared between modalities, so {few([m.label for m in shared])} can score well "
        "on it with one map for all: read it beside the modality correlation."
    )


def _floors(evidence: Evidence) -> str:
    """Floors that mark the lesion better than the uniform map: then beating it proves little."""
    names = [floor.label for floor in evidence.floors if judge(evidence, floor).marks]
    if not names:
        return ""
    return (
        f"{listed(names)}, made without the model, also {'beats' if len(names) == 1 else 'beat'} the uniform map, so "
        "marking lesions here proves little about the model."
    )


def _phantom(evidence: Evidence) -> str:
    if not is_drawn(evidence):
        return ""
    return "The images are drawn, not taken of patients: what holds here need not hold on MRI."


def _few_readers(evidence: Evidence) -> str:
    told = evidence.run.manifest.get("ratings") or {}
    rated = any(
        (row := evidence.find("mean", "rating", ALL_FINDINGS, m.name)) and not math.isnan(row.value)
        for m in evidence.methods
    )
    return "The ratings are those of one reader." if rated and told.get("readers") == 1 else ""
