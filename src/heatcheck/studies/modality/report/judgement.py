"""The criterion applied to every method: does it name the modality that matters, and mark the lesion in it?"""

import math
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, ONE_VALUE, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.verdict import LEVEL
from heatcheck.studies.modality.report.facts import is_defined, manifest

BOTH, LESION, MODALITY, NEITHER, UNKNOWN = (
    "both",
    "the lesion only",
    "the modality only",
    "neither",
    "not judged",
)
ORDER = (BOTH, LESION, MODALITY, NEITHER, UNKNOWN)
UNANIMOUS = 6  # the smallest number of agreeing patients for which a two-sided sign test has p < 0.05
NAMES_IT = (
    "It names the modality: over all cases, the more heat it gives a modality, the more that modality matters to the "
    "network (the mean modality correlation is clearly above 0). A method with one map for all modalities cannot."
)
MARKS_IT = (
    "It marks the lesion: in the modalities that matter, clearly more of its heat lies inside the lesion than a map "
    "that is the same everywhere in the head would put there (its MSFI clearly beats the uniform map\u2019s)."
)
CLEARLY = (
    "Clearly means that the 95 % interval lies above 0, or that all of at least six patients give the same value "
    "above 0; against the uniform map also that p is below 0.05 after correcting for the number of methods "
    "(Holm)."
)


@dataclass(frozen=True, slots=True)
class ModalityJudgement:
    """One method under the criterion, with the numbers behind it."""

    entrant: Entrant
    outcome: str
    shares: bool  # it gives one map for all modalities
    correlation: Estimate | None
    msfi: Estimate | None
    difference: Estimate | None  # from the uniform map
    names: bool | None  # the modality; None where it cannot be judged
    marks: bool | None  # the lesion


def judge(evidence: Evidence, entrant: Entrant) -> ModalityJudgement:
    """The criterion applied to one method."""
    shares = entrant.name in manifest(evidence).shared
    correlation, msfi = (
        evidence.find(MEAN, metric, ALL_FINDINGS, entrant.name) for metric in ("mi_correlation", "msfi")
    )
    difference = evidence.find(DIFFERENCE, "msfi", ALL_FINDINGS, entrant.name)
    names = False if shares else _above_zero(correlation)
    marks = _beats(difference)
    return ModalityJudgement(entrant, _outcome(names, marks), shares, correlation, msfi, difference, names, marks)


def judgements(evidence: Evidence) -> list[ModalityJudgement]:
    """Every method, those that do both first, the highest MSFI first within each outcome."""

    def position(judgement: ModalityJudgement) -> tuple[int, float]:
        value = judgement.msfi.value if judgement.msfi else math.nan
        return ORDER.index(judgement.outcome), math.inf if math.isnan(value) else -value

    return sorted((judge(evidence, method) for method in evidence.methods), key=position)


def _outcome(names: bool | None, marks: bool | None) -> str:
    if names is None or marks is None:
        return UNKNOWN
    return {(True, True): BOTH, (False, True): LESION, (True, False): MODALITY, (False, False): NEITHER}[names, marks]


def _above_zero(row: Estimate | None) -> bool | None:
    if row is None or not is_defined(row):
        return None
    if math.isnan(row.low):
        return row.value > 0 if _is_unanimous(row) or row.value <= 0 else None
    return row.low > 0


def _beats(row: Estimate | None) -> bool | None:
    if row is None or not is_defined(row):
        return None
    if math.isnan(row.low):
        return row.value > 0 if _is_unanimous(row) or row.value <= 0 else None
    return row.low > 0 and not row.p_adjusted >= LEVEL


def _is_unanimous(row: Estimate) -> bool:
    """Whether all patients agree, so that there is no interval, and suffice for a sign test at 5 %."""
    return row.reason == ONE_VALUE and row.n_patients >= UNANIMOUS
