"""What the sections of the page ask of a modality run: its manifest, and its estimates by condition."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, Condition, Statistic, condition
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.evidence import Entrant, Evidence, Key
from heatcheck.studies.modality.report.order import first_among, order_in_words
from heatcheck.studies.modality.vocabulary import (
    EDGES,
    EMPTY,
    EVERY_FOLD,
    FLOORS,
    INTENSITY,
    KNOWN,
    PERFORMANCE,
    PHI,
    PHI_MODALITY,
    SHAPLEY,
    UNIFORM,
    USUAL_PLACE,
    VALUE,
    Fill,
    Importance,
    Measure,
    ModalityManifest,
)

FLOOR_ENTRANTS = (
    Entrant(UNIFORM, "Uniform map", "floor", summary="1 everywhere inside the head: a map without information."),
    Entrant(INTENSITY, "Brightness", "floor", summary="In each modality what is brighter than its mean, sharpened."),
    Entrant(EDGES, "Edges", "floor", summary="In each modality where the image has strong edges."),
    Entrant(
        USUAL_PLACE, "Usual place", "floor", summary="In each modality the mean mask of other patients\u2019 lesions."
    ),
)  # made without the network
MEASURES: Mapping[Measure, str] = {"balanced": "balanced accuracy", "accuracy": "accuracy"}
FILLS: Mapping[Fill, str] = {"zero": "0", "tissue": "values of healthy tissue"}
IMPORTANCES: Mapping[Importance, str] = {
    "lesion": "by measured importance of the lesion",
    "known": "by known importance",
}


@dataclass(frozen=True, slots=True)
class Game:
    """What a Shapley value is a value of: what was ablated, in which fold, how it was measured and filled."""

    metric: str  # phi_modality or phi_lesion
    measure: Measure
    filled: Fill
    fold: int | str = EVERY_FOLD

    @property
    def condition(self) -> Condition:
        """The condition of its estimates."""
        return {"filled": self.filled, "fold": self.fold, "measure": self.measure}

    @property
    def words(self) -> str:
        """Measure and fill for a caption."""
        return f"{MEASURES[self.measure]}, filled by {FILLS[self.filled]}"

    def of_fold(self, fold: int | str) -> "Game":
        """The same in another fold."""
        return replace(self, fold=fold)


@dataclass(frozen=True, slots=True)
class MsfiView:
    """One of the importances that MSFI is weighted by; `label` is empty where there is only one."""

    condition: Condition
    label: str


def manifest(evidence: Evidence) -> ModalityManifest:
    """What run.json says of the run."""
    return evidence.run.manifest_as(ModalityManifest)


def prepared(evidence: Evidence) -> Evidence:
    """The evidence with the study's floors, and with the primary estimates in place of plain ones.

    Differences are those from the floor with the highest MSFI.
    """
    methods = tuple(method for method in evidence.methods if method.name not in FLOORS)
    floors = tuple(floor for floor in evidence.floors if floor.name not in FLOORS)
    primary = manifest(evidence).primary
    weighted: Condition = {"fold": EVERY_FOLD, "importance": primary.importance, "weights": primary.weights}
    means = {floor: estimate(evidence, MEAN, "msfi", weighted, floor) for floor in FLOORS}
    best = max(FLOORS, key=lambda name: row.value if (row := means[name]) and is_defined(row) else -math.inf)
    shown: tuple[Condition, ...] = ({}, {"versus": best}, {"fold": EVERY_FOLD}, weighted)
    estimates = {key: row for facts in shown for key, row in _slice(evidence, facts).items()}
    used = tuple(each for each in FLOOR_ENTRANTS if each.name == UNIFORM or means[each.name])
    return replace(evidence, methods=methods, floors=(*floors, *used), estimates=estimates)


def study_floors(evidence: Evidence) -> list[Entrant]:
    """The floors that every run of this study has, the one with the highest MSFI first."""
    values = {each: evidence.value(MEAN, "msfi", ALL_FINDINGS, each.name) for each in FLOOR_ENTRANTS}
    known = [each for each, value in values.items() if not math.isnan(value)]
    return sorted(known, key=lambda each: -values[each])


def _slice(evidence: Evidence, facts: Condition) -> Mapping[Key, Estimate]:
    return evidence.slices.get((evidence.primary, condition(**facts)), {})


def estimate(
    evidence: Evidence, statistic: Statistic, metric: str, facts: Condition, method: str = ""
) -> Estimate | None:
    """The estimate under exactly this condition; None when the run did not make it."""
    return _slice(evidence, facts).get((statistic, metric, ALL_FINDINGS, method, ""))


def primary_game(evidence: Evidence, metric: str) -> Game:
    """The game by the primary measure and fill, over all folds."""
    primary = manifest(evidence).primary
    return Game(metric, primary.measure, primary.filled)


def phi(evidence: Evidence, game: Game, modality: str) -> Estimate | None:
    """A modality's Shapley value."""
    return estimate(evidence, SHAPLEY, game.metric, {**game.condition, "modality": modality})


def importances_of(evidence: Evidence, game: Game | None = None) -> dict[str, Estimate]:
    """The importance of each modality, where it is defined; of whole modalities over all folds if no game is given."""
    game = game or primary_game(evidence, PHI_MODALITY)
    rows = {name: phi(evidence, game, name) for name in manifest(evidence).modalities}
    return {name: row for name, row in rows.items() if row and not math.isnan(row.value)}


def _complete(evidence: Evidence, game: Game) -> dict[str, Estimate]:
    """The importances, or none where one of them is not known."""
    known = importances_of(evidence, game)
    return known if len(known) == len(manifest(evidence).modalities) else {}


def pair_of(evidence: Evidence, game: Game, one: str, other: str) -> Estimate | None:
    """By how much the first of two modalities is more important; stored in the order of the modalities."""
    return estimate(evidence, DIFFERENCE, game.metric, {**game.condition, "modality": one, "versus": other})


def pairs_of(evidence: Evidence, game: Game) -> dict[tuple[str, str], Estimate]:
    """The differences of all pairs of modalities."""
    pairs = combinations(manifest(evidence).modalities, 2)
    return {pair: row for pair in pairs if (row := pair_of(evidence, game, *pair))}


def clearly_above(evidence: Evidence, game: Game) -> frozenset[tuple[str, str]]:
    """The pairs of modalities of which the first is clearly more important."""
    rows = pairs_of(evidence, game)
    above = [pair for pair, row in rows.items() if judgement_of(row).is_yes]
    below = [(other, one) for (one, other), row in rows.items() if opposite_of(row).is_yes]
    return frozenset([*above, *below])


def ranked(evidence: Evidence, game: Game) -> str:
    """The modalities in order of importance with their ties, such as "T1C > FLAIR > T1 = T2"; "" where unknown."""
    return order_in_words(_values(evidence, game), clearly_above(evidence, game))


def first_of(evidence: Evidence, game: Game) -> tuple[str, ...]:
    """The modalities that share the first place; none where an importance is not known."""
    return first_among(_values(evidence, game), clearly_above(evidence, game))


def _values(evidence: Evidence, game: Game) -> dict[str, float]:
    return {name: row.value for name, row in _complete(evidence, game).items()}


def needs_images(evidence: Evidence) -> bool:
    """Whether some modality clearly helps the network; assumed where no importance is known."""
    known = importances_of(evidence)
    return not known or any(judgement_of(row).is_yes for row in known.values())


def tied_pairs(evidence: Evidence, game: Game) -> list[tuple[str, str]]:
    """Pairs of modalities whose order is not clear."""
    above = clearly_above(evidence, game)
    known = importances_of(evidence, game)
    return [pair for pair in combinations(known, 2) if not {pair, pair[::-1]} & above]


def these_networks(evidence: Evidence) -> str:
    """What the run speaks of: its own networks."""
    folds = manifest(evidence).folds
    return "this network" if folds == 1 else f"these {folds} networks"


def value_of(evidence: Evidence, game: Game, shown: Sequence[str]) -> Estimate | None:
    """The network's performance when only these modalities, or only their lesions, are shown."""
    ablated = next(name for name, metric in PHI.items() if metric == game.metric)
    facts: Condition = {"ablated": ablated, "filled": game.filled, "fold": game.fold, "shown": "+".join(shown)}
    return estimate(evidence, VALUE, PERFORMANCE[game.measure], facts)


def known_estimate(evidence: Evidence, modality: str, fold: int | str) -> Estimate | None:
    """The accuracy on images in which only this modality is informative."""
    return estimate(evidence, KNOWN, "known_importance", {"fold": fold, "modality": modality})


def empty_maps(evidence: Evidence, metric: str, method: str) -> Estimate | None:
    """How many of a method's maps are empty and count 0 by a metric; None where no map is."""
    return estimate(evidence, EMPTY, metric, {"fold": EVERY_FOLD}, method)


def msfi_mean(evidence: Evidence, view: MsfiView, method: str) -> Estimate | None:
    """A method's mean MSFI over all folds."""
    return estimate(evidence, MEAN, "msfi", {**view.condition, "fold": EVERY_FOLD}, method)


def msfi_views(evidence: Evidence) -> list[MsfiView]:
    """The importances for which the run has MSFI by the primary weights, the primary one first."""
    primary = manifest(evidence).primary
    views = [
        MsfiView({"importance": name, "weights": primary.weights}, IMPORTANCES[name])
        for name in sorted(IMPORTANCES, key=lambda name: name != primary.importance)
    ]
    used = [view for view in views if any(msfi_mean(evidence, view, method.name) for method in evidence.methods)]
    return used if len(used) > 1 else [replace(view, label="") for view in used]


def is_defined(row: Estimate | None) -> bool:
    """Whether there is a value."""
    return row is not None and not math.isnan(row.value)


def grades_in_words(evidence: Evidence) -> str:
    """What tells low from high grade in drawn tumours, which have a core and a rim whatever their grade."""
    source = manifest(evidence).spec.get("source")
    if (
        not manifest(evidence).source.drawn
        or not isinstance(source, dict)
        or not {"LGG", "HGG"} <= {*manifest(evidence).classes}
    ):
        return ""
    signs = [
        *(["a round outline, high grade (HGG) an irregular one"] if source.get("shape", True) else []),
        *(["a fine texture, high grade (HGG) a coarse one"] if source.get("texture") else []),
    ]
    if not signs:
        return ""
    return (
        f"In these drawings low grade (LGG) has {' and '.join(signs)}. Every tumour has a rim and a dark core, so "
        "one of low grade may look like a ring-enhancing metastasis."
    )


def masks_in_words(evidence: Evidence) -> str:
    """What counts as the lesion."""
    primary = manifest(evidence).primary
    text = (
        "each modality\u2019s own mask"
        if primary.masks == "own"
        else "one mask for all modalities, the union of theirs"
    )
    text += ", as its bounding box" if primary.boxes else ""
    return text + (f", widened by {primary.dilate} pixels within each slice" if primary.dilate else "")
