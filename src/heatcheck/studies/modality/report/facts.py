"""What a modality run says of itself: modalities, classes, folds, methods, and its estimates by what was taken away."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.report.evidence import Entrant, Evidence, Key
from heatcheck.studies.modality.vocabulary import UNIFORM, bounds, first_among

EVERY = "all"  # the fold of a mean over folds
FLOOR = Entrant(UNIFORM, "Uniform map", "floor", summary="1 everywhere inside the head: a map that knows nothing.")
KINDS = ("phi_modality", "phi_lesion")
MEASURES = {"balanced": "balanced accuracy", "accuracy": "accuracy"}
FILLS = {"zero": "0", "tissue": "values of healthy tissue"}
VALUES = {"balanced": "balanced_accuracy", "accuracy": "accuracy"}  # our measure to the metric of its values
Facts = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Primary:
    """The settings on which the page's own sentences rest."""

    measure: str = "balanced"
    filled: str = "zero"
    weights: str = "positive"
    importance: str = "lesion"
    masks: str = "own"
    boxes: bool = False
    dilate: int = 0


@dataclass(frozen=True, slots=True)
class MethodNotes:
    """What a reader should know of a method before its scores."""

    entrant: Entrant
    shares: bool  # it gives one map for all modalities
    access: str  # what of the model it needs
    models: str  # for which models it can be used
    speed: str


@dataclass(frozen=True, slots=True)
class FoldRecord:
    """One network and its share of the cases."""

    number: int
    training: int
    validation: int
    test: int
    classes: Mapping[str, int]
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Game:
    """What a Shapley value is a value of: what was taken away, in which fold, how it was measured and filled."""

    metric: str  # phi_modality or phi_lesion
    measure: str
    filled: str
    fold: int | str = EVERY

    @property
    def facts(self) -> dict[str, str | int]:
        """The condition of its estimates."""
        return {"filled": self.filled, "fold": self.fold, "measure": self.measure}

    @property
    def words(self) -> str:
        """Measure and fill for a caption."""
        return f"{MEASURES.get(self.measure, self.measure)}, filled by {FILLS.get(self.filled, self.filled)}"

    def of_fold(self, fold: int | str) -> "Game":
        """The same in another fold."""
        return replace(self, fold=fold)


def prepared(evidence: Evidence) -> Evidence:
    """The evidence with the uniform map as a floor, and with the primary estimates in place of plain ones."""
    methods = tuple(method for method in evidence.methods if method.name != UNIFORM)
    floors = tuple(floor for floor in evidence.floors if floor.name != UNIFORM)
    seen = replace(evidence, methods=methods, floors=(*floors, FLOOR))
    own = primary(evidence)
    weighed = {"fold": EVERY, "importance": own.importance, "weights": own.weights}
    shown: tuple[Facts, ...] = ({}, {"versus": UNIFORM}, {"fold": EVERY}, weighed)
    estimates = {key: row for facts in shown for key, row in _slice(evidence, facts).items()}
    return replace(seen, estimates=estimates)


def _slice(evidence: Evidence, facts: Facts) -> Mapping[Key, Estimate]:
    return evidence.slices.get((evidence.primary, condition(**facts)), {})


def estimate(evidence: Evidence, what: tuple[str, str], facts: Facts, method: str = "") -> Estimate | None:
    """The estimate of a statistic and metric under exactly these facts; None when the run did not make it."""
    statistic, metric = what
    return _slice(evidence, facts).get((statistic, metric, ALL_FINDINGS, method, ""))


def primary(evidence: Evidence) -> Primary:
    """The run's primary settings."""
    told = evidence.run.manifest.get("primary") or {}
    known = {name: told[name] for name in Primary.__slots__ if told.get(name) is not None}
    return Primary(**known)


def modalities_of(evidence: Evidence) -> tuple[str, ...]:
    """The modalities in the run's order."""
    return _names(evidence, "modalities")


def classes_of(evidence: Evidence) -> tuple[str, ...]:
    """The classes that the network tells apart."""
    return _names(evidence, "classes")


def fills_of(evidence: Evidence) -> tuple[str, ...]:
    """What took the place of ablated voxels, the primary one first."""
    return _names(evidence, "fills") or (primary(evidence).filled,)


def known_of(evidence: Evidence) -> tuple[str, ...]:
    """The modalities whose importance is known by construction."""
    return _names(evidence, "known")


def _names(evidence: Evidence, part: str) -> tuple[str, ...]:
    return tuple(str(name) for name in evidence.run.manifest.get(part) or [])


def folds_of(evidence: Evidence) -> tuple[int, ...]:
    """The numbers of the folds, from 1."""
    return tuple(range(1, int(evidence.run.manifest.get("folds") or 1) + 1))


def each_fold(evidence: Evidence) -> tuple[FoldRecord, ...]:
    """What is known of every fold."""
    return tuple(_fold(facts) for facts in evidence.run.manifest.get("per_fold") or [])


def _fold(facts: Mapping[str, Any]) -> FoldRecord:
    training, validation, test = (int(facts.get(name) or 0) for name in ("training", "validation", "test"))
    epoch = facts.get("epoch")
    classes = {str(name): int(number) for name, number in (facts.get("classes") or {}).items()}
    return FoldRecord(int(facts["fold"]), training, validation, test, classes, None if epoch is None else int(epoch))


def trained_here(evidence: Evidence) -> bool:
    """Whether the run trained its networks."""
    return bool(evidence.run.manifest.get("trained"))


def is_volume(evidence: Evidence) -> bool:
    """Whether the images have slices."""
    return int(evidence.run.manifest.get("space") or 2) == 3


def of_brats(evidence: Evidence) -> bool:
    """Whether the data are those of the paper, so that its figures may stand beside ours."""
    source = str((evidence.run.manifest.get("source") or {}).get("name") or "")
    return source.startswith("brats")


def is_drawn(evidence: Evidence) -> bool:
    """Whether the images are a phantom's."""
    return str((evidence.run.manifest.get("source") or {}).get("name") or "").startswith("phantom")


def methods_told(evidence: Evidence) -> tuple[MethodNotes, ...]:
    """Every method of the run with what it needs."""
    told = {str(facts["name"]): facts for facts in evidence.run.manifest.get("methods") or []}
    return tuple(_method(entrant, told.get(entrant.name, {})) for entrant in evidence.methods)


def _method(entrant: Entrant, facts: Mapping[str, Any]) -> MethodNotes:
    words = (str(facts.get(name) or "") for name in ("access", "models", "speed"))
    return MethodNotes(entrant, bool(facts.get("shares_modalities")), *words)


def shared_of(evidence: Evidence) -> frozenset[str]:
    """The methods that give one map for all modalities."""
    return frozenset(each.entrant.name for each in methods_told(evidence) if each.shares)


def game(evidence: Evidence, metric: str) -> Game:
    """The game by the primary measure and fill, over all folds."""
    own = primary(evidence)
    return Game(metric, own.measure, own.filled)


def phi(evidence: Evidence, played: Game, modality: str) -> Estimate | None:
    """A modality's Shapley value."""
    return estimate(evidence, ("shapley", played.metric), {**played.facts, "modality": modality})


def needs_images(evidence: Evidence) -> bool:
    """Whether some modality surely helps the network; where nothing is known of any, it is taken to."""
    known = importances_of(evidence)
    return not known or any(bounds(row)[0] > 0 for row in known.values())


def importances_of(evidence: Evidence) -> dict[str, Estimate]:
    """The importance of each whole modality over all folds, where it is defined."""
    played = game(evidence, "phi_modality")
    found = {name: phi(evidence, played, name) for name in modalities_of(evidence)}
    return {name: row for name, row in found.items() if row and not math.isnan(row.value)}


def value_of(evidence: Evidence, played: Game, shown: Sequence[str]) -> Estimate | None:
    """How well the network does when it is shown these modalities only, or only their lesions are left."""
    ablated = "modality" if played.metric == "phi_modality" else "lesion"
    facts = {"ablated": ablated, "filled": played.filled, "fold": played.fold, "shown": "+".join(shown)}
    return estimate(evidence, ("value", VALUES.get(played.measure, played.measure)), facts)


def ranked(evidence: Evidence, played: Game) -> str:
    """The modalities in order of importance with their ties, such as "T1C > FLAIR > T1 = T2"; "" where unknown.

    Behind a semicolon stands what fits no place: "T1C > FLAIR; T2 is tied with T1C, FLAIR". This is text to show, for
    a modality may have any name; `first_of` says who is first.
    """
    found = estimate(evidence, ("order", played.metric), played.facts)
    return found.reason if found else ""


def first_of(evidence: Evidence, played: Game) -> tuple[str, ...]:
    """The modalities that share the first place by their Shapley values; none where not all of these are known."""
    found = {name: phi(evidence, played, name) for name in modalities_of(evidence)}
    known = {name: row for name, row in found.items() if row and not math.isnan(row.value)}
    return first_among(known) if len(known) == len(found) else ()


def known_estimate(evidence: Evidence, modality: str, fold: int | str = EVERY) -> Estimate | None:
    """The accuracy on images of which only this modality tells the truth."""
    return estimate(evidence, ("known", "known_importance"), {"fold": fold, "modality": modality})


def silent(evidence: Evidence, metric: str, method: str) -> Estimate | None:
    """How many of a method's maps say nothing by a metric and count 0; None where every map says something."""
    return estimate(evidence, ("empty", metric), {"fold": EVERY}, method)


def tied_pairs(evidence: Evidence, played: Game) -> list[tuple[str, str]]:
    """The modalities of which it is not sure which one counts more, in pairs; not those that surely count the same."""
    found = {name: row for name in modalities_of(evidence) if (row := phi(evidence, played, name))}
    known = {name: bounds(row) for name, row in found.items() if not math.isnan(row.value)}
    return [
        (one, other)
        for one, other in combinations(known, 2)
        if known[one][0] <= known[other][1]
        and known[other][0] <= known[one][1]
        and len({*known[one], *known[other]}) > 1
    ]


def is_defined(row: Estimate | None) -> bool:
    """Whether there is a value."""
    return row is not None and not math.isnan(row.value)


def measure_name(evidence: Evidence) -> str:
    """The primary measure in words."""
    name = primary(evidence).measure
    return MEASURES.get(name, name)
