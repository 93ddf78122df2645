"""The verdict in two sentences: which modality the network relies on, and which methods show it and its lesion."""

import math
from collections.abc import Mapping, Sequence

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import POINTS, SCORE, Unit, count, few, interval, listed, number
from heatcheck.report.verdict import FEW_PATIENTS, Verdict
from heatcheck.studies.modality.report.facts import (
    MEASURES,
    first_of,
    importances_of,
    manifest,
    needs_images,
    phi,
    primary_game,
)
from heatcheck.studies.modality.report.judgement import (
    BOTH,
    LESION,
    MODALITY,
    NEITHER,
    UNKNOWN,
    ModalityJudgement,
    judgements,
)
from heatcheck.studies.modality.report.order import bounds, first_among
from heatcheck.studies.modality.vocabulary import PHI_MODALITY, UNIFORM

NOISE = (
    "Compared with such importances, scores of maps say nothing about the methods: study a network that needs its "
    "images."
)
UNSURE = (
    "Compared with importances that may be chance, scores of maps say nothing about the methods: study more patients."
)
_POINTS = Unit(POINTS.factor, 0)
_SCORE = SCORE.rounded(2)


def verdict(evidence: Evidence) -> Verdict:
    """What the run's estimates say."""
    first, second = _relies(evidence), _shows(evidence) if needs_images(evidence) else _noise(evidence)
    if first or second:
        return Verdict(
            first or f"How much each modality matters to the network is not known{_why_unknown(evidence)}.",
            second or "No method can be judged, because maps are scored by what the network relies on; see the gaps.",
        )
    if not evidence.finished:
        return Verdict(
            "There is no verdict yet, because the run is not finished.", "Finish the run and rebuild this report."
        )
    return Verdict(
        f"There is no verdict, because neither importances nor scores are defined{_why_unknown(evidence)}.",
        "The section on gaps says what was missing.",
    )


def _noise(evidence: Evidence) -> str:
    return NOISE if _is_bounded(importances_of(evidence)) else UNSURE


def _is_bounded(importances: Mapping[str, Estimate]) -> bool:
    """Whether every importance has an interval."""
    return all(math.isfinite(bounds(row)[0]) for row in importances.values())


def _why_unknown(evidence: Evidence) -> str:
    """Why no modality has an importance, where the estimates give a reason."""
    game = primary_game(evidence, PHI_MODALITY)
    rows = [phi(evidence, game, name) for name in manifest(evidence).modalities]
    reason = next((row.reason for row in rows if row and row.reason), "")
    return f": {reason}" if reason else ""


def _relies(evidence: Evidence) -> str:
    """Which modality matters most, by how much, and how clear that is."""
    importances = importances_of(evidence)
    if not importances:
        return ""
    ordered = sorted(importances, key=lambda name: -importances[name].value)
    first = first_among(importances)
    total = sum(row.value for row in importances.values())
    top = importances[ordered[0]]
    measure = MEASURES[manifest(evidence).primary.measure]
    if not needs_images(evidence):
        so = (
            "so its maps have little to explain"
            if _is_bounded(importances)
            else "but there are too few patients for an interval"
        )
        return (
            f"No modality clearly helps the network: {ordered[0]}, the highest, adds {_points(top)} to its "
            f"{measure}, {so}."
        )
    every = "both" if len(importances) == 2 else f"all {len(importances)}"
    context = f"of {measure}, while {every} together contribute {number(total, _POINTS)}"
    if len(first) == 1:
        text = f"The network relies most on {first[0]}, which contributes {_points(importances[first[0]])} {context}"
        text += _folds(evidence, first)
    else:
        text = (
            f"The network relies on {listed([*first])} without a clear order among them: {ordered[0]}, the highest, "
            f"contributes {_points(top)} {context}"
        )
    return text + _rest({name: importances[name] for name in ordered if name not in first}) + "."


def _points(row: Estimate) -> str:
    between = interval(row.low, row.high, _POINTS)
    value = number(row.value, _POINTS)
    noun = "percentage point" if value == "1" else "percentage points"
    return f"{value} {noun}" + (f" (95 % interval {between})" if between else "")


def _folds(evidence: Evidence, first: Sequence[str]) -> str:
    folds = manifest(evidence).fold_numbers
    if len(folds) < 2:
        return ""
    game = primary_game(evidence, PHI_MODALITY)
    same = sum(first_of(evidence, game.of_fold(fold)) == tuple(first) for fold in folds)
    return f", and is first in {'all' if same == len(folds) else f'{same} of'} {len(folds)} networks"


def _rest(others: dict[str, Estimate]) -> str:
    """What the other modalities add: those that clearly add something, and those that do not."""
    parts = [f"{name} adds {number(row.value, _POINTS)}" for name, row in others.items() if bounds(row)[0] > 0]
    nothing = [name for name, row in others.items() if not bounds(row)[0] > 0]
    if nothing:
        parts.append(f"{listed(nothing)} {'does' if len(nothing) == 1 else 'do'} not clearly add anything")
    return f"; {', '.join(parts)}" if parts else ""


def _shows(evidence: Evidence) -> str:
    """Which methods name the modality and mark the lesion, and which do not."""
    every = judgements(evidence)
    judged = [one for one in every if one.outcome != UNKNOWN]
    if not judged:
        return ""
    lesion = [one for one in judged if one.outcome == LESION]
    shared = [one for one in lesion if one.shares]
    others = [
        _clause(shared, "marks the lesion but has one map for all modalities, so cannot say which one matters",
              "mark the lesion but have one map for all modalities, so cannot say which one matters"),
        _clause([one for one in lesion if not one.shares], "marks the lesion, not the modality",
              "mark the lesion, not the modality"),
        _clause([one for one in judged if one.outcome == MODALITY], "names the modality, not the lesion",
              "name the modality, not the lesion"),
        _clause([one for one in judged if one.outcome == NEITHER], "does neither", "do neither"),
    ]  # fmt: skip
    best = _best(evidence, [one for one in judged if one.outcome == BOTH], len(judged))
    text = "; ".join([best, *filter(None, others)])
    patients = max((one.msfi.n_patients or one.msfi.n_cases for one in judged if one.msfi), default=0)
    if 0 < patients < FEW_PATIENTS:
        text += f"; with only {count(patients, 'patient')} behind it, this is a first impression"
    return text + "."


def _best(evidence: Evidence, both: Sequence[ModalityJudgement], judged: int) -> str:
    floor = evidence.value(MEAN, "msfi", ALL_FINDINGS, UNIFORM)
    against = f"against {number(floor, _SCORE)}" if not math.isnan(floor) else "which has no value here"
    methods = count(judged, "method")
    if not both:
        return (
            f"None of {methods} clearly gives more heat to the modalities that matter and also marks the lesion in "
            "them better than a uniform map would"
        )
    names = few([one.entrant.label for one in both])
    values = [one.msfi.value for one in both if one.msfi]
    scores = (
        number(values[0], _SCORE)
        if len(values) == 1
        else f"{number(min(values), _SCORE)} to {number(max(values), _SCORE)}"
    )
    share = f"{len(both)} of {methods}" if len(both) > 1 else f"1 of {methods}"
    verb = ("gives", "puts") if len(both) == 1 else ("give", "put")
    return (
        f"{names} ({share}) {verb[0]} more heat to the modalities that matter and {verb[1]} it on the lesion better "
        f"than a uniform map (MSFI {scores}, {against})"
    )


def _clause(judged: Sequence[ModalityJudgement], one: str, several: str) -> str:
    names = [judgement.entrant.label for judgement in judged]
    return f"{few(names)} {one if len(names) == 1 else several}" if names else ""
