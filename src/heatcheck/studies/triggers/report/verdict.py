"""Which methods find the planted triggers: the criterion, each method's judgement, and three sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.judging.judgement import Judgement, both, judgement_of
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import MISSING, SCORE, SHARE, Unit, count, few, listed, number
from heatcheck.report.verdict import Verdict, first_methods, highest_first, would_decide
from heatcheck.studies.triggers.report.facts import (
    graded_triggers,
    grading,
    images_graded,
    span,
    these_networks,
    training_each,
    trainings,
    triggers_of,
)
from heatcheck.studies.triggers.report.sections.artefacts import artefact_verdict
from heatcheck.studies.triggers.report.sections.rules import box_rule, under_other_rules
from heatcheck.studies.triggers.vocabulary import BASELINE, CONTROL, CRITERION_METRICS, RANDOM_BOX, floor_of

FINDS, NOT, OPEN, UNKNOWN = "finds it", "does not", "not shown", "not judged"
CRITERION = (
    "its boxes overlap the triggers (IoU) clearly more than random boxes of the same height and width;",
    "its boxes also overlap them clearly more than on the same images for the baseline, which was never attacked;",
    "and clean pixels pasted into its boxes undo the attack clearly more often than pasted into such random boxes.",
)
NO_TRAINING_MORE = "not with one training"  # instead of "not shown", where patients are not what is missing


@dataclass(frozen=True, slots=True)
class TriggerJudgement:
    """The outcome of the criterion for one method, and the numbers behind it."""

    entrant: Entrant
    overlap: Estimate | None  # the means
    recovered: Estimate | None
    overlaps: Estimate | None  # the differences from random boxes
    recovers: Estimate | None
    follows: Estimate | None  # the difference in overlap between the poisoned model and the baseline

    @property
    def claim(self) -> Judgement:
        """Whether it clearly beats random boxes in overlap and in recovery, and its overlap on the baseline."""
        return both(*map(judgement_of, self.comparisons))

    @property
    def comparisons(self) -> tuple[Estimate | None, ...]:
        """What the criterion rests on."""
        return self.overlaps, self.recovers, self.follows

    @property
    def outcome(self) -> str:
        """The claim in words, or that the method could not be scored."""
        if any(row is None or math.isnan(row.value) for row in (self.overlap, self.recovered)):
            return UNKNOWN
        return FINDS if self.claim.is_yes else NOT if self.claim.is_no else OPEN

    @property
    def only_recovers(self) -> bool:
        """Whether it undoes the attack with boxes that do not show where the trigger is."""
        return judgement_of(self.recovers).is_yes and judgement_of(self.overlaps).is_no

    @property
    def ignores_the_attack(self) -> bool:
        """Whether it overlaps the triggers more than random boxes do, but as much where the model ignores them."""
        return judgement_of(self.overlaps).is_yes and judgement_of(self.follows).is_no

    @property
    def would_decide(self) -> str:
        """How many patients would decide all comparisons; empty where it is not known."""
        rows = [row for row in self.comparisons if row is not None]
        still_open = [row for row in rows if not (judgement_of(row).is_yes or judgement_of(row).is_no)]
        if self.outcome != OPEN or not all(would_decide(row) for row in still_open):
            return ""
        return would_decide(max(still_open, key=lambda row: row.n_needed))


def judge(evidence: Evidence, entrant: Entrant) -> TriggerJudgement:
    """The criterion applied to one method over all triggers."""
    means = [evidence.find(MEAN, m, ALL_FINDINGS, entrant.name) for m in CRITERION_METRICS]
    controls = [(metric, RANDOM_BOX) for metric in CRITERION_METRICS] + [("trigger_iou", BASELINE)]
    above = [evidence.find(DIFFERENCE, metric, ALL_FINDINGS, entrant.name, other) for metric, other in controls]
    return TriggerJudgement(entrant, *means, *above)


def judgements(evidence: Evidence) -> list[TriggerJudgement]:
    """Every method, those that find triggers first, the highest overlap first within each outcome."""
    order = (FINDS, OPEN, NOT, UNKNOWN)

    def key(judgement: TriggerJudgement) -> tuple[int, float]:
        value = judgement.overlap.value if judgement.overlap else math.nan
        return order.index(judgement.outcome), math.inf if math.isnan(value) else -value

    return sorted((judge(evidence, method) for method in evidence.methods), key=key)


def highest(evidence: Evidence) -> tuple[str, ...]:
    """The methods with the highest overlap, with their intervals."""
    rows = [(judgement.entrant.label, judgement.overlap) for judgement in judgements(evidence)]
    return first_methods("Highest overlap with the trigger (IoU)", highest_first(rows), SCORE.rounded(2))


def judged_methods(evidence: Evidence) -> list[TriggerJudgement]:
    """The methods whose overlap and recovery are both defined, in the order of `judgements`."""
    return [judgement for judgement in judgements(evidence) if judgement.outcome != UNKNOWN]


def floors_that_find(evidence: Evidence) -> list[Entrant]:
    """The pictures made without the model that meet the criterion, which then proves little."""
    return [floor for floor in evidence.floors if judge(evidence, floor).outcome == FINDS]


def of_these_only(evidence: Evidence) -> str:
    """What a run with one training cannot say."""
    return f"this speaks of {these_networks(evidence)} only and says nothing about the methods in general"


def tally(judged: Sequence[TriggerJudgement]) -> str:
    """How many of the methods find the triggers, do not, and are not shown to."""
    n = {outcome: sum(each.outcome == outcome for each in judged) for outcome in (FINDS, NOT, OPEN)}
    counts = (
        (n[FINDS], "finds the triggers", "find the triggers"),
        (n[NOT], "does not", "do not"),
        (n[OPEN], "is not shown to", "are not shown to"),
    )
    parts = [f"{each} {one if each == 1 else several}" for each, one, several in counts if each]
    return f"Of {count(len(judged), 'method')}, {listed(parts)}."


def overlaps_in_short(evidence: Evidence, judged: Sequence[TriggerJudgement]) -> str:
    """The mean overlaps of these methods, lowest to highest, beside those of random boxes and on the baseline.

    Then how far they reach under all other box rules that were tried.
    """
    metrics = {"mean overlap (IoU)": "trigger_iou", "random boxes": floor_of("trigger_iou"), "on the baseline": CONTROL}
    rows = {
        words: [evidence.find(MEAN, metric, ALL_FINDINGS, each.entrant.name) for each in judged]
        for words, metric in metrics.items()
    }
    parts = [f"{words} {_range(each, SCORE.rounded(2))}" for words, each in rows.items() if any(each)]
    others = span(under_other_rules(evidence, [each.entrant.name for each in judged]), SCORE.rounded(2))
    return ", ".join(parts) + (f"; under other box rules {others}" if others != MISSING else "")


def verdict(evidence: Evidence) -> Verdict:
    """What the run's estimates say about its methods."""
    every, judged = judgements(evidence), judged_methods(evidence)
    if judged and trainings(evidence) == 1:
        return _of_one_network(evidence, judged)
    if judged:
        first = _finders(evidence, judged, unjudged=len(every) > len(judged))
        return Verdict(first, _others(evidence, every), box_rule(evidence))
    if not evidence.finished:
        return Verdict(
            "There is no verdict yet, because the run is not finished.", "Finish the run and rebuild this report."
        )
    if not triggers_of(evidence):
        return artefact_verdict(evidence)
    return _nothing_defined(evidence) if graded_triggers(evidence) else _nothing_graded(evidence)


def _of_one_network(evidence: Evidence, judged: Sequence[TriggerJudgement]) -> Verdict:
    """What one training showed, which is no claim about any method."""
    overlap, share = _of_methods_and_boxes(evidence, judged)
    boxes = (
        f"the boxes of {count(len(judged), 'method')}" if len(judged) > 1 else f"{judged[0].entrant.label}\u2019s boxes"
    )
    return Verdict(
        f"{_capital(training_each(evidence))} of {evidence.models[0].label} was judged: {of_these_only(evidence)}.",
        f"In {these_networks(evidence)}, {boxes} overlapped the planted triggers by a mean IoU of {overlap}, and clean "
        f"pixels pasted into them undid the attack in {share}; {_basis(evidence)}.",
        box_rule(evidence),
    )


def _of_methods_and_boxes(evidence: Evidence, judged: Sequence[TriggerJudgement]) -> list[str]:
    """The means of both metrics, lowest to highest, each beside those of random boxes."""
    words = []
    for metric, unit, noun in zip(
        CRITERION_METRICS, (SCORE.rounded(2), SHARE.rounded(0)), ("", " of images"), strict=True
    ):
        rows, floors = (
            [evidence.find(MEAN, name, ALL_FINDINGS, each.entrant.name) for each in judged]
            for name in (metric, floor_of(metric))
        )
        others = [f"random boxes of the same size: {_range(floors, unit)}"] if any(floors) else []
        controls = [evidence.find(MEAN, CONTROL, ALL_FINDINGS, each.entrant.name) for each in judged]
        if metric == "trigger_iou" and any(controls):
            others.append(f"boxes for the baseline, which was never attacked: {_range(controls, unit)}")
        chance = f" ({'; '.join(others)})" if others else ""
        words.append(f"{_range(rows, unit)}{noun}{chance}")
    return words


def _finders(evidence: Evidence, judged: Sequence[TriggerJudgement], *, unjudged: bool) -> str:
    finders = [judgement for judgement in judged if judgement.outcome == FINDS]
    model = evidence.models[0].label
    if not finders:
        return _no_finder(model, judged, unjudged=unjudged)
    names = listed([judgement.entrant.label for judgement in finders])
    find, whose = ("finds", "its") if len(finders) == 1 else ("find", "their")
    overlap = _values([judgement.overlap for judgement in finders], SCORE.rounded(2))
    share = _values([judgement.recovered for judgement in finders], SHARE.rounded(0))
    return (
        f"On {model}, {names} {find} the planted triggers: {whose} boxes overlap them (IoU {overlap}) clearly more "
        "than random boxes of the same size and than boxes for the baseline, which was never attacked, and clean "
        f"pixels pasted into these boxes undo the attack clearly more often than in random ones (in {share} of images)."
    )


def _no_finder(model: str, judged: Sequence[TriggerJudgement], *, unjudged: bool) -> str:
    which = " that could be judged" if unjudged else " tested" if len(judged) == 1 else ""
    if all(judgement.outcome == NOT for judgement in judged):
        found = (
            f"the one method{which} does not find"
            if len(judged) == 1
            else f"none of {len(judged)} methods{which} finds"
        )
        return (
            f"On {model}, {found} the planted triggers: in overlap or in recovery, each beats random boxes of the same "
            "size, or its boxes for the baseline, which was never attacked, by too little to matter or not at all."
        )
    found = (
        f"the one method{which} is not shown" if len(judged) == 1 else f"none of {len(judged)} methods{which} is shown"
    )
    return (
        f"On {model}, {found} to find the planted triggers: none clearly beats random boxes of the same size in "
        "overlap and in recovery, and in overlap its own boxes for the baseline, which was never attacked."
    )


def _values(rows: Sequence[Estimate | None], unit: Unit) -> str:
    """Every value in its order where they are few, else the lowest and the highest."""
    values = [row.value for row in rows if row]
    if len(values) <= 3:
        return listed([number(value, unit) for value in values])
    return f"{number(min(values), Unit(unit.factor, unit.decimals))} to {number(max(values), unit)}"


def _range(rows: Sequence[Estimate | None], unit: Unit) -> str:
    return span((row.value for row in rows if row), unit)


def _others(evidence: Evidence, every: Sequence[TriggerJudgement]) -> str:
    not_finding = [judgement for judgement in every if judgement.outcome == NOT]
    recover = [judgement for judgement in not_finding if judgement.only_recovers]
    ignore = [judgement for judgement in not_finding if judgement.ignores_the_attack]
    failed = [judgement for judgement in not_finding if judgement not in (*recover, *ignore)]
    still_open = [judgement for judgement in every if judgement.outcome == OPEN]
    overlaps = _values([judgement.overlap for judgement in recover], SCORE.rounded(2))
    but = f"the attack, but with boxes that do not show where the trigger is (IoU {overlaps})"
    decided_by = _decided_by(still_open)
    as_much = "the triggers just as much on the baseline, which was never attacked"
    parts = [
        _clause(recover, f"undoes {but}", f"undo {but}"),
        _clause(ignore, f"overlaps {as_much}", f"overlap {as_much}"),
        _clause(failed, "does not find them", "do not find them"),
        _clause(still_open, f"is not shown to find them{decided_by}", f"are not shown to find them{decided_by}"),
        _clause(
            [judgement for judgement in every if judgement.outcome == UNKNOWN], "cannot be judged", "cannot be judged"
        ),
    ]
    text = listed([part for part in parts if part])
    basis = _basis(evidence)
    if not text:
        text = "No other method was tested" if len(every) == 1 else "No method fails"
    return f"{text}; {basis}."


def _decided_by(still_open: Sequence[TriggerJudgement]) -> str:
    """The patients that would decide the only open method; several are in the table."""
    words = still_open[0].would_decide if len(still_open) == 1 else ""
    return f" ({words})" if words else ""


def _clause(judgements: Sequence[TriggerJudgement], one: str, several: str) -> str:
    names = [judgement.entrant.label for judgement in judgements]
    if not names:
        return ""
    methods = listed(names) if len(names) <= 8 else few(names)
    return f"{methods} {one if len(names) == 1 else several}"


def _basis(evidence: Evidence) -> str:
    graded, planted = graded_triggers(evidence), triggers_of(evidence)
    text = (
        f"this rests on {count(images_graded(evidence), 'poisoned image')}, {count(len(graded), 'trigger')} and "
        f"{count(trainings(evidence), 'seed')}"
    )
    left_out = [trigger.label for trigger in planted if trigger not in graded]
    if not left_out:
        return text
    was = "was" if len(left_out) == 1 else "were"
    return f"{text}, and {few(left_out)} {was} not graded because the attack did not work"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _nothing_graded(evidence: Evidence) -> Verdict:
    """Why no method can be judged: a map can only show a trigger that the model uses."""
    planted = triggers_of(evidence)
    example = f"{planted[0].label} ({grading(evidence, planted[0].name).first_reason})"
    attacks = (
        f"the attack with {example} did not work"
        if len(planted) == 1
        else f"none of {len(planted)} attacks worked well enough, for example not with {example}"
    )
    return Verdict(
        f"No method can be judged on {evidence.models[0].label}, because {attacks}.",
        "A method can only be asked to find a trigger on which the model relies: the section on the attack has the "
        "numbers, and more training, more poisoned images or a larger trigger may help.",
    )


def _nothing_defined(evidence: Evidence) -> Verdict:
    return Verdict(
        f"No method can be judged on {evidence.models[0].label}, because none has both a defined overlap and a defined "
        "recovery.",
        "The tables of detection give the reasons.",
    )
