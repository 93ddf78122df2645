"""What is claimed of every method: that it gives heat to what counts, marks the lesion, and follows the network."""

import math
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.judging.judgement import Answer, Judgement, judgement_of
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.studies.modality.report.facts import is_defined, manifest
from heatcheck.studies.modality.vocabulary import AGREEMENT, FOLLOWING

ONE_MAP = "one map for all modalities"
BOTH, LESION, MODALITY, NEITHER = "both", "the lesion only", "the modality only", "neither"
LESION_AT_LEAST, MODALITY_AT_LEAST = "the lesion; modality not shown", "the modality; lesion not shown"
NOT_SHOWN, UNJUDGED = "not shown", "not judged"
ORDER = (BOTH, LESION_AT_LEAST, LESION, MODALITY_AT_LEAST, MODALITY, NOT_SHOWN, NEITHER, UNJUDGED)
_OUTCOMES = {
    (Answer.YES, Answer.YES): BOTH,
    (Answer.OPEN, Answer.YES): LESION_AT_LEAST,
    (Answer.NO, Answer.YES): LESION,
    (Answer.YES, Answer.OPEN): MODALITY_AT_LEAST,
    (Answer.YES, Answer.NO): MODALITY,
    (Answer.NO, Answer.NO): NEITHER,
}  # whether it names the modality, and whether it marks the lesion; not shown for all others
NAMES_IT = (
    "It names the modality: of two modalities whose importance to the network clearly differs, the more important one "
    "gets more heat in clearly more than half of the cases. A method with one map for all modalities cannot."
)
MARKS_IT = (
    "It marks the lesion: in the modalities that matter, clearly more of its heat lies inside the lesion than a map "
    "that is the same everywhere in the head would put there (its MSFI is clearly above the uniform map\u2019s)."
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
    difference: Estimate | None  # from the uniform map
    following: Estimate | None  # over networks

    @property
    def names(self) -> Judgement:
        """Whether it gives more heat to the modalities that count."""
        if self.shares:
            return Judgement(Answer.NO, math.nan, ONE_MAP)
        return judgement_of(self.agreement)

    @property
    def marks(self) -> Judgement:
        """Whether it marks the lesion better than a uniform map."""
        return judgement_of(self.difference)

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


def claims_of(evidence: Evidence, entrant: Entrant) -> MethodClaims:
    """What may be said of one method."""
    return MethodClaims(
        entrant,
        entrant.name in manifest(evidence).shared,
        evidence.find(AGREEMENT, "mi_correlation", ALL_FINDINGS, entrant.name),
        evidence.find(MEAN, "msfi", ALL_FINDINGS, entrant.name),
        evidence.find(DIFFERENCE, "msfi", ALL_FINDINGS, entrant.name),
        evidence.find(FOLLOWING, "mi_correlation", ALL_FINDINGS, entrant.name),
    )


def every_claim(evidence: Evidence) -> list[MethodClaims]:
    """Every method, those that do both first, the highest MSFI first within each outcome."""

    def position(claims: MethodClaims) -> tuple[int, float]:
        value = claims.msfi.value if claims.msfi else math.nan
        return ORDER.index(claims.outcome), math.inf if math.isnan(value) else -value

    return sorted((claims_of(evidence, method) for method in evidence.methods), key=position)
