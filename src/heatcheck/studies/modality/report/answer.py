"""The first screen: what the networks rely on, whether maps show it, what to do, one case and one chart."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.judging.judgement import Answer, Judgement, judgement_of
from heatcheck.report.blocks.films import FilmStrip
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Evidence
from heatcheck.report.first_screen import FirstScreen, Light, Status
from heatcheck.report.numbers import SCORE, count, few, listed, number
from heatcheck.report.verdict import FEW_PATIENTS, would_decide
from heatcheck.studies.modality.report.caveats import weak_networks
from heatcheck.studies.modality.report.claims import (
    BOTH,
    LESION,
    LESION_AT_LEAST,
    MODALITY,
    MODALITY_AT_LEAST,
    NEITHER,
    UNJUDGED,
    MethodClaims,
    every_claim,
    patients_behind,
)
from heatcheck.studies.modality.report.facts import (
    FILLS,
    importances_of,
    manifest,
    needs_images,
    primary_game,
    study_floors,
    these_networks,
)
from heatcheck.studies.modality.report.reliance import WHOLE_POINTS, Reliance, reliance_of, why_unknown
from heatcheck.studies.modality.report.sections.importance import plot
from heatcheck.studies.modality.vocabulary import AGREEMENT, EDGES, INTENSITY, PHI_MODALITY, UNIFORM, USUAL_PLACE

RELIES = "Which modality (sequence) does the network rely on?"
NAMES = "Do maps name the modality that matters?"
MARKS = "Do maps mark the lesion?"
FOLLOWS = "Do maps follow the network?"
NOT_FINISHED = "The run is not finished."
NOTHING_TO_FIND = "Judged against importances that may be chance, maps say nothing about methods."
ONE_NETWORK = "With one network, a method that follows it looks like one that always prefers the same modality."
MSFI_IN_WORDS = "Highest share of the heat inside the lesion, in the modalities that count (MSFI)"
OF_FLOORS = {
    UNIFORM: "the same everywhere",
    INTENSITY: "what is bright in the image",
    EDGES: "what has edges in the image",
    USUAL_PLACE: "where other patients have lesions",
}
MOST = 4  # sentences of the recommendation
_UNIT = SCORE.rounded(2)
_ADVICE = (  # by outcomes
    ((BOTH,), "Use {} to see which modality counted and where its lesion is."),
    ((LESION, LESION_AT_LEAST), "Use {} to see where the lesion is, not which modality counted."),
    ((MODALITY, MODALITY_AT_LEAST), "Use {} to see which modality counted, not where its lesion is."),
)
_NOTHING_SHOWN = (
    "Do not show maps of {} to say which modality counted or where its lesion is: no method is shown to do either "
    "better than maps made without the network."
)
FloorValue = Callable[[str], float]  # by the name of a floor


def answer(evidence: Evidence, picture: FilmStrip | None) -> FirstScreen:
    """What a reader sees first, whatever the run shows."""
    reliance = reliance_of(evidence)
    judged = [one for one in every_claim(evidence) if one.outcome != UNJUDGED]
    statuses = (_relies(evidence, reliance), *_on_methods(evidence, judged))
    chart = plot(evidence, PHI_MODALITY)
    heading = "What each modality adds, with 95 % intervals"
    return FirstScreen(
        statuses,
        recommendation(evidence, reliance, judged),
        picture,
        Panel(heading, chart.plot) if chart else None,
    )


def _relies(evidence: Evidence, reliance: Reliance | None) -> Status:
    """Which modality counts, and how clear that is."""
    question = RELIES if manifest(evidence).folds == 1 else RELIES.replace("does the network", "do the networks")
    if reliance is None:
        reason = why_unknown(evidence)
        why = f"Importances are undefined: {reason}." if reason else "No importance was computed."
        return Status(question, Light.OPEN, "Not known", why if evidence.finished else NOT_FINISHED)
    top = reliance.named[0] if reliance.helping else reliance.top
    adds = f"{top} adds {reliance.points(top)} to {reliance.measure}"
    if not reliance.helping:
        if reliance.is_idle:
            return Status(question, Light.NO, "None", f"No modality helps by as much as matters: {adds}.")
        why = reliance.why_open(top)
        return Status(question, Light.OPEN, "Not shown", f"That any helps is not shown: {adds}{why}.")
    adds += f"; all modalities together, {number(reliance.total, WHOLE_POINTS)}{_by_other_fills(evidence)}"
    if reliance.is_clear:
        return Status(question, Light.YES, top, f"{adds}.")
    if len(reliance.named) == 1:
        return Status(question, Light.PARTLY, top, f"{adds}. That no other counts as much is not shown.")
    return Status(question, Light.PARTLY, listed(reliance.named), f"No clear order among them: {adds}.")


def _by_other_fills(evidence: Evidence) -> str:
    """What each modality adds by another fill, where other modalities help by it."""
    game, first = primary_game(evidence, PHI_MODALITY), manifest(evidence).primary.filled
    words = []
    for filled in (each for each in manifest(evidence).fills if each != first):
        by_fill = {one: importances_of(evidence, replace(game, filled=each)) for one, each in ((0, first), (1, filled))}
        helping = {one: {name for name, row in rows.items() if not judgement_of(row).is_no}
                   for one, rows in by_fill.items()}  # fmt: skip
        if by_fill[1] and helping[0] != helping[1]:
            named = sorted(helping[0] | helping[1], key=lambda name: -by_fill[1][name].value)
            points = [f"{name} {number(by_fill[1][name].value, WHOLE_POINTS)}" for name in named if name in by_fill[1]]
            words.append(f". With {FILLS[filled]} instead of {FILLS[first]} in what is left out: {listed(points)}")
    return "".join(words)


def _on_methods(evidence: Evidence, judged: Sequence[MethodClaims]) -> tuple[Status, ...]:
    """The three questions that are asked of methods."""
    questions = (NAMES, MARKS, FOLLOWS)
    reason = _why_unjudged(evidence, judged)
    if reason:
        return tuple(Status(question, Light.OPEN, "Not judged", reason) for question in questions)
    return (
        _counted(NAMES, judged, lambda one: one.names, _highest_order(evidence, judged)),
        _counted(MARKS, judged, lambda one: one.marks, _highest_msfi(evidence, judged)),
        _follows(evidence, judged),
    )


def _why_unjudged(evidence: Evidence, judged: Sequence[MethodClaims]) -> str:
    """Why no method can be judged; empty where methods are."""
    if not evidence.methods:
        return NOT_FINISHED if not evidence.finished else "No method was run."
    if not needs_images(evidence):
        return NOTHING_TO_FIND
    if not judged:
        return NOT_FINISHED if not evidence.finished else "No method has scores to compare with maps made without it."
    return ""


def _counted(
    question: str, judged: Sequence[MethodClaims], judgement: Callable[[MethodClaims], Judgement], numbers: str
) -> Status:
    """Of how many methods it is shown."""
    answers = {one.entrant.label: judgement(one).answer for one in judged}
    shown = [label for label, each in answers.items() if each is Answer.YES]
    undecided = sum(each is Answer.OPEN for each in answers.values())
    if shown:
        every = len(shown) == len(judged)
        word = "Yes" if every else f"{len(shown)} of {count(len(judged), 'method')}"
        return Status(question, Light.YES if every else Light.PARTLY, word, f"{few(shown)}. {numbers}".strip())
    if undecided:
        others = len(judged) - undecided
        no = f", and {others} {'does' if others == 1 else 'do'} not" if others else ""
        open_for = (
            f"Of {count(len(judged), 'method')}, {undecided} {'is' if undecided == 1 else 'are'} not shown to{no}."
        )
        return Status(question, Light.OPEN, "Not shown", f"{open_for} {numbers}".strip())
    none = "The method does not." if len(judged) == 1 else f"None of {count(len(judged), 'method')} does."
    return Status(question, Light.NO, "No", f"{none} {numbers}".strip())


def _highest_order(evidence: Evidence, judged: Sequence[MethodClaims]) -> str:
    """The highest agreement with the order of the modalities, of a method and of a floor."""
    rows = [(one, one.agreement) for one in judged]
    words = "How often the modality that counts more gets more heat, pair by pair (1: always, 0: half of the time)"

    def of_floor(name: str) -> float:
        return evidence.value(AGREEMENT, "mi_correlation", ALL_FINDINGS, name)

    return _against_floor(evidence, rows, words, of_floor)


def _highest_msfi(evidence: Evidence, judged: Sequence[MethodClaims]) -> str:
    """The highest MSFI, of a method and of a floor."""

    def of_floor(name: str) -> float:
        return evidence.value(MEAN, "msfi", ALL_FINDINGS, name)

    return _against_floor(evidence, [(one, one.msfi) for one in judged], MSFI_IN_WORDS, of_floor)


def _against_floor(
    evidence: Evidence, rows: Sequence[tuple[MethodClaims, Estimate | None]], words: str, floor_value: FloorValue
) -> str:
    """The method with the highest value, beside the floor with the highest."""
    known = {one.entrant.label: row.value for one, row in rows if row and not math.isnan(row.value)}
    if not known:
        return ""
    best = max(known, key=lambda label: known[label])
    floors = {floor: floor_value(floor.name) for floor in study_floors(evidence)}
    floors = {floor: value for floor, value in floors.items() if not math.isnan(value)}
    text = f"{words}: {number(known[best], _UNIT)} ({best})"
    if not floors:
        return f"{text}."
    highest = max(floors, key=lambda floor: floors[floor])
    made = f"\u201c{highest.label}\u201d, {OF_FLOORS[highest.name]}"
    return f"{text}; {number(floors[highest], _UNIT)} without the network ({made})."


def _follows(evidence: Evidence, judged: Sequence[MethodClaims]) -> Status:
    """Of how many methods it is shown over networks that they follow the one explained."""
    if manifest(evidence).folds == 1:
        return Status(FOLLOWS, Light.OPEN, "Not with one network", ONE_NETWORK)
    tested = [one for one in judged if one.following is not None]
    if not tested:
        return Status(FOLLOWS, Light.OPEN, "Not judged", "No method was tested over the networks.")
    reasons = {one.follows.reason for one in tested}
    why = reasons.pop() if len(reasons) == 1 else ""
    over = f"Tested over {manifest(evidence).folds} networks" + (f": {why}." if why else ".")
    return _counted(FOLLOWS, tested, lambda one: one.follows, over)


def recommendation(evidence: Evidence, reliance: Reliance | None, judged: Sequence[MethodClaims]) -> tuple[str, ...]:
    """What to show, what not, and what to do next; at most four sentences."""
    these = these_networks(evidence)
    if not evidence.methods or not judged or not needs_images(evidence):
        return _without_judgement(evidence, reliance)
    said = [
        sentence
        for outcomes, words in _ADVICE
        if (sentence := _named([one for one in judged if _use_of(one) in outcomes], words))
    ]
    if not said:
        said = [_NOTHING_SHOWN.format(these)]
    else:
        said.append(_named([one for one in judged if one.outcome == NEITHER], "Do not use {}: shown to do neither."))
    first = (weak_networks(evidence), *said)
    return (*[sentence for sentence in first if sentence][: MOST - 1], _next(evidence, judged))


def _without_judgement(evidence: Evidence, reliance: Reliance | None) -> tuple[str, ...]:
    """What to do where no method can be judged."""
    these = these_networks(evidence)
    if not evidence.finished:
        return ("Finish the run before you use anything on this page; the same command continues it.",)
    if not evidence.methods:
        return ("Next: name methods in the spec to learn whether maps of this network can be shown.",)
    if reliance is None or needs_images(evidence):
        return (f"Do not show maps of {these} yet: scores are missing, see \u201cWhat is missing\u201d.",)
    if reliance.is_idle:
        return (
            f"Do not show maps of {these}: no modality helps by as much as matters, so there is nothing to point at.",
            "Next: study a network that needs its images.",
        )
    return (
        f"Do not choose a method by this run: that any modality helps {these} is not shown.",
        "Next: study more patients.",
    )


def _use_of(one: MethodClaims) -> str:
    """What it is good for: one that does not follow the network names the modality by coincidence."""
    without = {BOTH: LESION, MODALITY_AT_LEAST: "", MODALITY: ""}
    return without.get(one.outcome, one.outcome) if one.follows.is_no else one.outcome


def _named(claims: Sequence[MethodClaims], words: str) -> str:
    return words.format(few([one.entrant.label for one in claims])) if claims else ""


def _next(evidence: Evidence, judged: Sequence[MethodClaims]) -> str:
    """How many patients would decide what is open soonest, or what else would."""
    questions = {
        "whether maps name the modality": [[one.agreement, *one.order_from_floors] for one in judged if not one.shares],
        "whether maps mark the lesion": [[one.difference, *one.from_floors] for one in judged],
    }
    needed = {words: row for words, rows in questions.items() if (row := _soonest(rows))}
    if needed and manifest(evidence).folds == 1:
        words = min(needed, key=lambda each: needed[each].n_needed)
        return (
            "Next: explain several networks (folds), since one cannot show that a method follows its network. For this "
            f"network alone, {would_decide(needed[words]).removesuffix(' it')} {words}."
        )
    if needed:
        words = min(needed, key=lambda each: needed[each].n_needed)
        return f"Next: {words} is open; {would_decide(needed[words])} for at least one method."
    if 0 < patients_behind(judged) < FEW_PATIENTS:
        return f"Next: score more patients; {count(patients_behind(judged), 'patient')} give a first impression only."
    if manifest(evidence).folds == 1:
        return "Next: explain several networks (folds); one cannot show whether a method follows its network."
    if not any(one.follows.is_yes for one in judged):
        return "Next: explain networks that rely on different modalities; that a method follows its network is open."
    return "Next: repeat this on other patients and other trainings before you rely on it."


def _soonest(claims: Sequence[Sequence[Estimate | None]]) -> Estimate | None:
    """Of the claims that more patients would decide, the comparison that decides the one with the fewest of them."""
    decisive = []
    for rows in claims:
        undecided = [row for row in rows if row and judgement_of(row).answer is Answer.OPEN]
        refuted = any(judgement_of(row).is_no for row in rows if row)
        if undecided and not refuted and all(would_decide(row) for row in undecided):
            decisive.append(max(undecided, key=lambda row: row.n_needed))
    return min(decisive, key=lambda row: row.n_needed, default=None)
