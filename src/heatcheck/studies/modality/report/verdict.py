"""The verdict in three sentences: what the network relies on, which methods show it, and whether they follow it."""

import math
from collections.abc import Sequence

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.judging.judgement import judgement_of
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, count, few, listed, number
from heatcheck.report.verdict import FEW_PATIENTS, Verdict
from heatcheck.studies.modality.report.claims import (
    BOTH,
    LESION,
    LESION_AT_LEAST,
    MODALITY,
    MODALITY_AT_LEAST,
    NEITHER,
    NOT_LESION,
    NOT_MODALITY,
    NOT_SHOWN,
    UNJUDGED,
    MethodClaims,
    every_claim,
    from_floor,
    order_from_floor,
    patients_behind,
)
from heatcheck.studies.modality.report.facts import (
    first_of,
    manifest,
    needs_images,
    primary_game,
    study_floors,
    these_networks,
)
from heatcheck.studies.modality.report.reliance import WHOLE_POINTS, reliance_of, why_unknown
from heatcheck.studies.modality.vocabulary import PHI_MODALITY, UNIFORM

NOISE = (
    "Compared with such importances, scores of maps say nothing about the methods: study a network that needs its "
    "images."
)
UNSURE = (
    "Compared with importances that may be chance, scores of maps say nothing about the methods: study more patients."
)
ONE_NETWORK = (
    "Whether a method follows the network or always prefers the same modality, one network cannot show: this is about "
    "this network, not about the methods."
)
_SCORE = SCORE.rounded(2)
_CLAUSES = {  # by outcome: of one method and of several
    LESION_AT_LEAST: ("marks the lesion; that it names the modality is not shown",
                      "mark the lesion; that they name the modality is not shown"),
    LESION: ("marks the lesion, not the modality", "mark the lesion, not the modality"),
    MODALITY_AT_LEAST: ("names the modality; that it marks the lesion is not shown",
                        "name the modality; that they mark the lesion is not shown"),
    MODALITY: ("names the modality, not the lesion", "name the modality, not the lesion"),
    NOT_SHOWN: ("is not shown to do either", "are not shown to do either"),
    NOT_LESION: ("does not mark the lesion; that it names the modality is not shown",
                 "do not mark the lesion; that they name the modality is not shown"),
}  # fmt: skip
_ONE_MAP = {  # the same of methods that cannot say which modality matters
    LESION: ("marks the lesion but has one map for all modalities, so cannot say which one matters",
             "mark the lesion but have one map for all modalities, so cannot say which one matters"),
    NOT_MODALITY: ("has one map for all modalities and is not shown to mark the lesion",
                "have one map for all modalities and are not shown to mark the lesion"),
}  # fmt: skip


def verdict(evidence: Evidence) -> Verdict:
    """What the run's estimates say."""
    needs = needs_images(evidence)
    first, second = _relies(evidence), _shows(evidence) if needs else _noise(evidence)
    if first or second:
        return Verdict(
            first or f"How much each modality matters to the network is not known{_why_unknown(evidence)}.",
            second or "No method can be judged, because maps are scored by what the network relies on; see the gaps.",
            _follows(evidence) if needs and second else "",
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
    reliance = reliance_of(evidence)
    return NOISE if reliance is None or reliance.is_idle else UNSURE


def _why_unknown(evidence: Evidence) -> str:
    reason = why_unknown(evidence)
    return f": {reason}" if reason else ""


def _relies(evidence: Evidence) -> str:
    """Which modality matters most, by how much, and how clear that is."""
    reliance = reliance_of(evidence)
    if reliance is None:
        return ""
    network, relies = ("This network", "relies") if manifest(evidence).folds == 1 else ("The networks", "rely")
    if not reliance.helping:
        adds = f"{reliance.top}, the highest, adds {reliance.points(reliance.top)} to {reliance.measure}"
        if reliance.is_idle:
            return f"No modality helps {these_networks(evidence)} by as much as matters: {adds}."
        why = reliance.why_open(reliance.top)
        return f"That any modality helps {these_networks(evidence)} is not shown: {adds}{why}."
    importances, named = reliance.importances, reliance.named
    every = "both" if len(importances) == 2 else f"all {len(importances)}"
    total = number(reliance.total, WHOLE_POINTS)
    context = f"of {reliance.measure}, while {every} together contribute {total}"
    points = reliance.points(named[0])
    if reliance.is_clear:
        folds = _folds(evidence, reliance.first)
        text = f"{network} {relies} most on {named[0]}, which contributes {points} {context}{folds}"
    elif len(named) == 1:
        text = (
            f"{network} {relies} on {named[0]}, which contributes {points} {context}; that no other counts as much is "
            "not shown"
        )
    else:
        text = (
            f"{network} {relies} on {listed(named)} without a clear order among them: {named[0]}, the highest, "
            f"contributes {points} {context}"
        )
    return text + _rest({name: row for name, row in importances.items() if name not in named}) + "."


def _folds(evidence: Evidence, first: Sequence[str]) -> str:
    folds = manifest(evidence).fold_numbers
    if len(folds) < 2:
        return ""
    game = primary_game(evidence, PHI_MODALITY)
    same = sum(first_of(evidence, game.of_fold(fold)) == tuple(first) for fold in folds)
    return f", and is clearly first in {'all' if same == len(folds) else f'{same} of'} {len(folds)} networks"


def _rest(others: dict[str, Estimate]) -> str:
    """What the other modalities add: those that clearly add something, those that do not, and those not shown."""
    parts = [
        f"{name} adds {number(row.value, WHOLE_POINTS)}" for name, row in others.items() if judgement_of(row).is_yes
    ]
    nothing = [name for name, row in others.items() if judgement_of(row).is_no]
    if nothing:
        parts.append(f"{listed(nothing)} {'adds' if len(nothing) == 1 else 'add'} nothing that matters")
    rest = [name for name, row in others.items() if not judgement_of(row).is_yes and name not in nothing]
    if rest:
        parts.append(f"that {listed(rest)} {'adds' if len(rest) == 1 else 'add'} anything is not shown")
    return f"; {', '.join(parts)}" if parts else ""


def _shows(evidence: Evidence) -> str:
    """Which methods name the modality and mark the lesion, and which do not."""
    judged = [one for one in every_claim(evidence) if one.outcome != UNJUDGED]
    if not judged:
        return ""
    others = [
        _clause([one for one in judged if one.outcome == outcome and one.shares is shares], *words)
        for clauses, shares in ((_ONE_MAP, True), (_CLAUSES, False))
        for outcome, words in clauses.items()
    ]
    neither = [one for one in judged if one.outcome == NEITHER]
    others.append(_clause(neither, "does neither", "do neither"))
    best = _best(evidence, [one for one in judged if one.outcome == BOTH], len(judged))
    text = "; ".join([best, *filter(None, others), *_unbeaten(evidence, judged)])
    patients = patients_behind(judged)
    if 0 < patients < FEW_PATIENTS:
        text += f"; with only {count(patients, 'patient')} behind it, this is a first impression"
    return text + "."


def _best(evidence: Evidence, both: Sequence[MethodClaims], judged: int) -> str:
    floors = study_floors(evidence)
    floor = evidence.value(MEAN, "msfi", ALL_FINDINGS, floors[0].name) if floors else math.nan
    against = f"against {number(floor, _SCORE)} of {_named(floors[0])}" if floors else "with no floor to compare"
    methods, where = count(judged, "method"), f"On {these_networks(evidence)}"
    if not both:
        return (
            f"{where}, none of {methods} is shown both to give more heat to the modalities that matter and to mark the "
            "lesion in them better than maps made without the network"
        )
    names = few([one.entrant.label for one in both])
    values = [one.msfi.value for one in both if one.msfi]
    scores = (
        number(values[0], _SCORE)
        if len(values) == 1
        else f"{number(min(values), _SCORE)} to {number(max(values), _SCORE)}"
    )
    verb = ("gives", "puts") if len(both) == 1 else ("give", "put")
    return (
        f"{where}, {names} ({len(both)} of {methods}) clearly {verb[0]} more heat to the modalities that matter and "
        f"{verb[1]} it on the lesion better than any map made without the network (MSFI {scores}, {against})"
    )


def _unbeaten(evidence: Evidence, judged: Sequence[MethodClaims]) -> list[str]:
    """The floors that no method clearly beats, in MSFI or in the order of the modalities."""
    words = []
    for floor in study_floors(evidence):
        scores = {"msfi": [from_floor(evidence, one.entrant, floor.name) for one in judged]}
        if floor.name != UNIFORM:
            scores["mi_correlation"] = [order_from_floor(evidence, one.entrant, floor.name) for one in judged]
        parts = [
            _against_floor(evidence, metric, floor, judged)
            for metric, rows in scores.items()
            if any(rows) and not any(judgement_of(row).is_yes for row in rows)
        ]
        if parts:
            words.append(
                f"{_named(floor)}, which never sees the network, is not clearly beaten by any: {listed(parts)}"
            )
    return words


def _named(floor: Entrant) -> str:
    return f"the floor \u201c{floor.label}\u201d"


def _against_floor(evidence: Evidence, metric: str, floor: Entrant, judged: Sequence[MethodClaims]) -> str:
    values = [evidence.value(MEAN, metric, ALL_FINDINGS, one.entrant.name) for one in judged]
    highest = max((value for value in values if not math.isnan(value)), default=math.nan)
    own = evidence.value(MEAN, metric, ALL_FINDINGS, floor.name)
    label = evidence.metrics[metric].label if metric in evidence.metrics else metric
    name = label if label.isupper() else label[0].lower() + label[1:]
    return f"{name} {number(own, _SCORE)}, the highest method {number(highest, _SCORE)}"


def _clause(claims: Sequence[MethodClaims], one: str, several: str) -> str:
    names = [claim.entrant.label for claim in claims]
    return f"{few(names)} {one if len(names) == 1 else several}" if names else ""


def _follows(evidence: Evidence) -> str:
    """Which methods follow the network, over networks."""
    networks = manifest(evidence).folds
    if networks == 1:
        return ONE_NETWORK
    tested = [one for one in every_claim(evidence) if one.following is not None]
    follow = [one.entrant.label for one in tested if one.follows.is_yes]
    if follow:
        verb = "follows" if len(follow) == 1 else "follow"
        return f"Over {networks} networks, {few(follow)} clearly {verb} the network in what gets heat."
    do_not = [one.entrant.label for one in tested if one.follows.is_no]
    reasons = {one.follows.reason for one in tested}
    why = f": {reasons.pop()}" if len(reasons) == 1 and "" not in reasons else ""
    not_at_all = f"; {few(do_not)} {'does' if len(do_not) == 1 else 'do'} not" if do_not else ""
    return f"That a method follows the network, over {networks} networks, is not shown{why}{not_at_all}."
