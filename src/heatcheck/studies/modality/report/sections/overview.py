"""What each method is shown to do: its answers with their numbers, and what the words mean."""

import math
from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.judging.judgement import Answer
from heatcheck.judging.sizes import Sizes
from heatcheck.report.blocks.block import ListCell, ListColumn, Listing, Prose, Terms, bullets, fold, prose
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, SHARE, count, interval, listed, number
from heatcheck.report.page import Section
from heatcheck.report.verdict import CLEARLY, NOT_SHOWN, answer, would_decide
from heatcheck.studies.modality.report.claims import (
    BOTH,
    FOLLOWS_IT,
    LESION,
    LESION_AT_LEAST,
    MARKS_IT,
    MODALITY,
    MODALITY_AT_LEAST,
    NAMES_IT,
    NEITHER,
    NOT_LESION,
    NOT_MODALITY,
    ORDER,
    SIGNS,
    UNJUDGED,
    MethodClaims,
    every_claim,
)
from heatcheck.studies.modality.report.claims import NOT_SHOWN as OPEN
from heatcheck.studies.modality.report.facts import manifest, masks_in_words, needs_images, study_floors
from heatcheck.studies.modality.vocabulary import AGREEMENT

_OUTCOMES = {  # in the summary
    BOTH: "show modality and lesion",
    LESION_AT_LEAST: "the lesion (modality not shown)",
    LESION: "only the lesion",
    MODALITY_AT_LEAST: "the modality (lesion not shown)",
    MODALITY: "only the modality",
    OPEN: "are not shown to do either",
    NOT_LESION: "do not mark the lesion (modality not shown)",
    NOT_MODALITY: "do not name the modality (lesion not shown)",
    NEITHER: "do neither",
    UNJUDGED: "not judged",
}
TERMS = ("mi_correlation", "msfi", "lesion_share", "delta_aupc")
_UNIT = SCORE.rounded(2)
ANSWERS = {Answer.YES: "yes", Answer.NO: "no", Answer.OPEN: "not shown"}
NOISE = (
    "That any modality helps is not shown, so importances may be chance and the table below says nothing about the "
    "methods."
)
CORRECTED = (
    "Intervals of this table hold for all its methods, and all floors, together: they are wider than those of the same "
    "scores by themselves, further down."
)
FLOOR = (
    "Maps that never see the network: the same everywhere inside the head, whose score depends on the size of the "
    "lesion alone; and in each modality what is bright (the positive part of the z-score to the power of four), where "
    "edges are, and the mean mask of other patients\u2019 lesions. A method that does no better shows what can be seen "
    "without the network."
)
INTERVAL = (
    "The range in which the true value plausibly lies, given the number of patients: patients are resampled, and with "
    "them the importances that modality correlation and MSFI rest on. It covers other patients, not another training "
    "of the network. With fewer than 6 patients there is none; below 60 it holds the true value in somewhat less than "
    "95 % of studies."
)


def overview(evidence: Evidence) -> Section | None:
    """What each method is shown to do, and what that means; None when there is no method."""
    claims = every_claim(evidence)
    if not claims:
        return None
    judged = [one for one in claims if one.outcome != UNJUDGED]
    unjudged = [one.entrant.label for one in claims if one.outcome == UNJUDGED]
    noise = () if needs_images(evidence) else (Prose(Markup("<b>{}</b>").format(NOISE)),)
    missing = f"Not judged because scores are missing: {', '.join(unjudged)}." if unjudged else ""
    blocks = (
        *noise,
        *((_table(evidence, judged),) if judged else ()),
        *prose(missing, small=True),
        *prose(CORRECTED, _perfect(evidence, judged), small=True),
        *prose("A map of several modalities should do two things:"),
        *bullets((NAMES_IT, MARKS_IT)),
        *prose(FOLLOWS_IT),
        *prose(f"{CLEARLY} {_sizes(evidence)} {NOT_SHOWN}"),
        *fold("What the scores mean", (_terms(evidence),)),
    )
    return Section("overview", "What does each method show?", "Methods", blocks, summary(claims), printed=True)


def summary(claims: Sequence[MethodClaims]) -> str:
    """How many methods have each outcome, the best outcome first."""
    if len(claims) == 1:
        return f"{claims[0].entrant.label}: {claims[0].outcome}."
    counted = Counter(one.outcome for one in claims)
    parts = [f"{counted[outcome]} {_OUTCOMES[outcome]}" for outcome in ORDER if counted[outcome]]
    return f"Of {count(len(claims), 'method')}, {listed(parts)}."


def _table(evidence: Evidence, judged: Sequence[MethodClaims]) -> Listing:
    """A row per method: its outcome, and the answer to each question with the numbers behind it."""
    heads = [
        ListColumn("Method"),
        ListColumn("It shows"),
        ListColumn("Names the modality? Order of the clear pairs, against the best floor\u2019s", wide=True),
        ListColumn("Marks the lesion? MSFI against the best floor\u2019s", wide=True),
    ]
    several = manifest(evidence).folds > 1
    if several:
        heads.append(ListColumn("Follows the network? Order, its own less other networks\u2019", wide=True))
    rows = [_row(evidence, one) for one in judged]
    return Listing(
        "What each method is shown to do",
        tuple(heads),
        tuple(row if several else row[:-1] for row in rows),
    )


def _perfect(evidence: Evidence, judged: Sequence[MethodClaims]) -> str:
    """Why the right order in every patient may not be enough."""
    perfect = [one for one in judged if one.agreement and one.agreement.value == 1 and one.names.answer is Answer.OPEN]
    floor = _best_order(evidence)
    if not perfect or floor is None:
        return ""
    label, value = floor
    patients = count(max(one.agreement.n_patients for one in perfect if one.agreement), "patient")
    return (
        f"An order of 1.00, every clear pair right in all of {patients}, is still not shown to come from the network: "
        f"{label}, which never sees it, has {number(value, _UNIT)}, and that 1.00 is more than that is not shown."
    )


def _best_order(evidence: Evidence) -> tuple[str, float] | None:
    """The floor with the most clear pairs in the right order, and its score."""
    floors = {each.label: evidence.value(AGREEMENT, "mi_correlation", ALL_FINDINGS, each.name)
              for each in study_floors(evidence)}  # fmt: skip
    known = {label: value for label, value in floors.items() if not math.isnan(value)}
    return max(known.items(), key=lambda item: item[1], default=None)


def _terms(evidence: Evidence) -> Terms:
    """The scores, the lesion, the floors and intervals, explained."""
    scores = [(evidence.metrics[m].label, evidence.metrics[m].summary)
              for m in TERMS if m in evidence.metrics]  # fmt: skip
    lesion = ("Lesion", f"In this run: {masks_in_words(evidence)}.")
    return Terms((*scores, lesion, ("Floors", FLOOR), ("Interval", INTERVAL)))


def _sizes(evidence: Evidence) -> str:
    """The sizes that matter in this study."""
    sizes = Sizes(**manifest(evidence).sizes)
    share, maps = number(sizes.importance, SHARE.rounded(0)), number(sizes.maps, _UNIT)
    rows = [one.difference for one in every_claim(evidence) if one.difference]
    size = next((row.size for row in rows if not math.isnan(row.size)), math.nan)
    here = f", here {number(size, SCORE)}" if not math.isnan(size) else ""
    return (
        f"The size that matters, for the importance of a modality or the difference of two, is {share} of what all "
        f"modalities together contribute. For MSFI it is {maps} of what is left from the best floor\u2019s MSFI to 1"
        f"{here}. For the order of the pairs (1: all are right; 0: half are) it is {maps}, and above a floor {maps} of "
        "what is left from that of the floor to 1."
    )


def _row(evidence: Evidence, claims: MethodClaims) -> tuple[str | ListCell, ...]:
    """Method, outcome, and the three answers in words."""
    floors = study_floors(evidence)
    floor = evidence.value(MEAN, "msfi", ALL_FINDINGS, floors[0].name) if floors else math.nan
    names = "no: one map for all modalities" if claims.shares else _named(evidence, claims)
    against = f" against {number(floor, _UNIT)} ({floors[0].label})" if floors else ""
    msfi = number(claims.msfi.value if claims.msfi else math.nan, _UNIT)
    said = ANSWERS[claims.marks.answer]
    marks = f"{said}: {msfi}{against}{_above(claims.difference)}{_decided(claims.difference)}"
    follows = "no: one map for all modalities" if claims.shares else _answered(claims.following)
    outcome = ListCell(claims.outcome, sign=SIGNS[claims.outcome])
    return claims.entrant.label, outcome, names, marks, follows


def _named(evidence: Evidence, claims: MethodClaims) -> str:
    """Whether it names the modality, its order of the clear pairs, and that of the floor that has it best."""
    row = claims.agreement
    if row is None or math.isnan(row.value):
        return _answered(row)
    floor = _best_order(evidence)
    against = f" against {number(floor[1], _UNIT)} ({floor[0]})" if floor else ""
    return f"{ANSWERS[claims.names.answer]}: {_value(row)}{against}{_decided(row)}"


def _above(row: Estimate | None) -> str:
    """The difference that is judged, with its interval."""
    between = interval(row.low, row.high, _UNIT, signed=True) if row else ""
    return f", {number(row.value, _UNIT, signed=True)} ({between})" if row and between else ""


def _answered(row: Estimate | None) -> str:
    if row is None:
        return f"{answer(row)}: not computed"
    if math.isnan(row.value):
        return f"{answer(row)}: {row.reason or 'no value'}"
    return f"{answer(row)}: {_value(row)}{_decided(row)}"


def _decided(row: Estimate | None) -> str:
    decides = would_decide(row) if row else ""
    return f"; {decides}" if decides else ""


def _value(row: Estimate) -> str:
    between = interval(row.low, row.high, _UNIT)
    return number(row.value, _UNIT) + (f" ({between})" if between else "")
