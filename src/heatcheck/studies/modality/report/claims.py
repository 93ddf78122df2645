"""What is claimed of every method: that it gives heat to what counts, marks the lesion, and follows the network."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.judging.judgement import Answer, Judgement, both, judgement_of
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE
from heatcheck.report.verdict import first_methods, highest_first
from heatcheck.studies.modality.report.facts import estimate, is_defined, manifest
from heatcheck.studies.modality.vocabulary import AGREEMENT, EVERY_FOLD, FLOORS, FOLLOWING, MODEL_FREE

ONE_MAP = "one map for all modalities"
BOTH, LESION, MODALITY, NEITHER = "both", "the lesion only", "the modality only", "neither"
LESION_AT_LEAST, MODALITY_AT_LEAST = "the lesion; modality not shown", "the modality; lesion not shown"
NOT_LESION, NOT_MODALITY = "not the lesion; modality not shown", "not the modality; lesion not shown"
NOT_SHOWN, UNJUDGED = "not shown", "not judged"
ORDER = (
    BOTH,
    LESION_AT_LEAST,
    LESION,
    MODALITY_AT_LEAST,
    MODALITY,
    NOT_SHOWN,
    NOT_LESION,
    NOT_MODALITY,
    NEITHER,
    UNJUDGED,
)
_OUTCOMES = {
    (Answer.YES, Answer.YES): BOTH,
    (Answer.OPEN, Answer.YES): LESION_AT_LEAST,
    (Answer.NO, Answer.YES): LESION,
    (Answer.YES, Answer.OPEN): MODALITY_AT_LEAST,
    (Answer.YES, Answer.NO): MODALITY,
    (Answer.OPEN, Answer.NO): NOT_LESION,
    (Answer.NO, Answer.OPEN): NOT_MODALITY,
    (Answer.NO, Answer.NO): NEITHER,
}  # whether it names the modality, and whether it marks the lesion; not shown where both are open
SIGNS = {
    BOTH: "✓",
    LESION_AT_LEAST: "◐",
    LESION: "◐",
    MODALITY_AT_LEAST: "◐",
    MODALITY: "◐",
    NOT_SHOWN: "?",
    NOT_LESION: "✕",
    NOT_MODALITY: "✕",
    NEITHER: "✕",
}
NAMES_IT = (
    "It names the modality: of two modalities whose importance to the network clearly differs, the more important one "
    "gets more heat in clearly more than half of the cases, and clearly more often than in maps made without the "
    "network. A method with one map for all modalities cannot."
)
MARKS_IT = (
    "It marks the lesion: in the modalities that matter, clearly more of its heat lies inside the lesion than in any "
    "map made without the network (its MSFI is clearly above that of every floor, the best of them too)."
)
FOLLOWS_IT = (
    "Neither says that a method follows the network: one that always prefers the same modality names the right one of "
    "four by chance. Only networks that rely on different modalities can tell the two apart, by whether heat fits the "
    "network that it explains better than it fits the others."
)


@dataclass(frozen=True, slots=True)
class MethodClaims:
    """What may be said of one method, with the numbers behind it."""

    entrant: Entrant
    shares: bool  # it gives one map for all modalities
    agreement: Estimate | None  # of heat and importance, over the pairs of modalities that clearly differ
    msfi: Estimate | None
    difference: Estimate | None  # in MSFI from the best floor
    following: Estimate | None  # over networks
    from_floors: tuple[Estimate, ...] = ()  # in MSFI from every floor
    order_from_floors: tuple[Estimate, ...] = ()  # in agreement from every floor with a map for each modality

    @property
    def names(self) -> Judgement:
        """Whether it gives more heat to the modalities that count."""
        if self.shares:
            return Judgement(Answer.NO, math.nan, ONE_MAP)
        return both(judgement_of(self.agreement), *map(judgement_of, self.order_from_floors))

    @property
    def marks(self) -> Judgement:
        """Whether it marks the lesion better than every floor."""
        return both(judgement_of(self.difference), *map(judgement_of, self.from_floors))

    @property
    def follows(self) -> Judgement:
        """Whether its heat fits its own network better than other networks."""
        return judgement_of(self.following)

    @property
    def outcome(self) -> str:
        """What it shows, in words."""
        if not is_defined(self.difference):
            return UNJUDGED
        return _OUTCOMES.get((self.names.answer, self.marks.answer), NOT_SHOWN)


def patients_behind(judged: Sequence[MethodClaims]) -> int:
    """How many patients the scores of the methods rest on, or cases where patients were not counted."""
    return max((one.msfi.n_patients or one.msfi.n_cases for one in judged if one.msfi), default=0)


def claims_of(evidence: Evidence, entrant: Entrant) -> MethodClaims:
    """What may be said of one method."""
    return MethodClaims(
        entrant,
        entrant.name in manifest(evidence).shared,
        evidence.find(AGREEMENT, "mi_correlation", ALL_FINDINGS, entrant.name),
        evidence.find(MEAN, "msfi", ALL_FINDINGS, entrant.name),
        evidence.find(DIFFERENCE, "msfi", ALL_FINDINGS, entrant.name),
        evidence.find(FOLLOWING, "mi_correlation", ALL_FINDINGS, entrant.name),
        tuple(row for floor in FLOORS if (row := from_floor(evidence, entrant, floor))),
        tuple(row for floor in MODEL_FREE if (row := order_from_floor(evidence, entrant, floor))),
    )


def highest(evidence: Evidence) -> tuple[str, ...]:
    """The methods with the highest MSFI, with their intervals."""
    rows = [(claims.entrant.label, claims.msfi) for claims in every_claim(evidence)]
    return first_methods("Highest share of heat in the lesion (MSFI)", highest_first(rows), SCORE.rounded(2))


def from_floor(evidence: Evidence, entrant: Entrant, floor: str) -> Estimate | None:
    """By how much its MSFI is above a floor's."""
    return estimate(evidence, DIFFERENCE, "msfi", {"versus": floor}, entrant.name)


def order_from_floor(evidence: Evidence, entrant: Entrant, floor: str) -> Estimate | None:
    """By how much its heat has the order of the clear pairs more often than a floor's."""
    return estimate(evidence, AGREEMENT, "mi_correlation", {"fold": EVERY_FOLD, "versus": floor}, entrant.name)


def every_claim(evidence: Evidence) -> list[MethodClaims]:
    """Every method, those that do both first, the highest MSFI first within each outcome."""

    def position(claims: MethodClaims) -> tuple[int, float]:
        value = claims.msfi.value if claims.msfi else math.nan
        return ORDER.index(claims.outcome), math.inf if math.isnan(value) else -value

    return sorted((claims_of(evidence, method) for method in evidence.methods), key=position)
