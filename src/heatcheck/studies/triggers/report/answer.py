"""The first screen: a status for each question of the study, what to do, one poisoned image and one chart."""

from collections.abc import Sequence

from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Evidence
from heatcheck.report.first_screen import FirstScreen, Light, Status
from heatcheck.report.numbers import count, few, listed
from heatcheck.studies.triggers.report.caveats import fooled_triggers
from heatcheck.studies.triggers.report.facts import (
    graded_triggers,
    grading,
    images_graded,
    manifest,
    these_networks,
    training_each,
    trainings,
    triggers_of,
)
from heatcheck.studies.triggers.report.gallery import TriggerGallery, telling_strip
from heatcheck.studies.triggers.report.plots import detection_keys, overall
from heatcheck.studies.triggers.report.sections import artefacts
from heatcheck.studies.triggers.report.sections.attack import in_short as attacks_in_short
from heatcheck.studies.triggers.report.sections.differences import OVERLAP, best_by, compared_methods, in_short
from heatcheck.studies.triggers.report.sections.rules import OtherRule, moved, other_rules
from heatcheck.studies.triggers.report.verdict import (
    FINDS,
    NOT,
    OPEN,
    TriggerJudgement,
    floors_that_find,
    judged_methods,
    overlaps_in_short,
    tally,
)

LONGEST = 4  # sentences of a recommendation
START = 3  # trainings: fewer say little of how trainings differ
Judged = Sequence[TriggerJudgement]


def answer(evidence: Evidence, gallery: TriggerGallery) -> FirstScreen | None:
    """The first screen; None for a run that has nothing to say yet, or that planted nothing and graded nothing."""
    judged = judged_methods(evidence)
    if not judged and not evidence.finished:
        return None
    if not triggers_of(evidence):
        return _of_artefacts(evidence) if manifest(evidence).artefacts else None
    statuses: list[Status | None] = [_attack(evidence), _found(evidence, judged)]
    statuses += [_box_rule(evidence), _best(evidence, judged), _trainings(evidence)] if judged else []
    panel = overall(evidence, OVERLAP) if judged else None
    return FirstScreen(
        statuses=tuple(status for status in statuses if status),
        recommendation=_recommendation(evidence, judged) if judged else _nothing_judged(evidence),
        picture=telling_strip(evidence, gallery),
        chart=panel,
        chart_keys=detection_keys((panel,)) if panel else (),
    )


def _attack(evidence: Evidence) -> Status:
    """Whether the models rely on their triggers: without that there is nothing to find."""
    question, triggers = "Did the attack work?", triggers_of(evidence)
    summaries = {trigger: grading(evidence, trigger.name) for trigger in triggers}
    if not any(each.seeds for each in summaries.values()):
        return Status(question, Light.OPEN, "Not tested", "No attack has been tested.")
    graded = graded_triggers(evidence)
    left_out = [trigger.label for trigger in triggers if trigger not in graded]
    sentence = f"{_attack_in_words(evidence)} {attacks_in_short(evidence, graded or triggers)}".strip()
    if not graded:
        return Status(question, Light.NO, "No", sentence)
    if left_out:
        sentence += f" Not graded: {few(left_out)}."
    fooled = [trigger.label for trigger in fooled_triggers(evidence) if trigger in graded]
    if fooled:
        sentence += f" The baseline, which was never attacked, follows {few(fooled)} too."
    everywhere = all(each.graded == each.seeds for each in summaries.values())
    if everywhere and not fooled:
        return Status(question, Light.YES, "Yes", sentence)
    if everywhere:
        return Status(question, Light.PARTLY, "Yes, but not it alone", sentence)
    if left_out:
        return Status(question, Light.PARTLY, f"With {len(graded)} of {count(len(triggers), 'trigger')}", sentence)
    return Status(question, Light.PARTLY, "Not in every seed", sentence)


def _attack_in_words(evidence: Evidence) -> str:
    """What the words of this screen mean: attack, poisoned, trigger, target class and baseline."""
    target = manifest(evidence).target
    named = f"\u201c{target}\u201d (the target class)" if target else "as one wrong class (the target class)"
    return (
        "The network (the baseline) was trained further with a patch (the trigger) on some images, labelled "
        f"{named}; it is then called poisoned."
    )


def _found(evidence: Evidence, judged: Judged) -> Status:
    """How many methods meet the criterion."""
    question = "Do the maps find the trigger?"
    if not judged:
        why = "No method has both a defined overlap and a defined recovery."
        return Status(question, Light.OPEN, "Not judged", why if graded_triggers(evidence) else "No attack worked.")
    overlaps = overlaps_in_short(evidence, judged)
    if trainings(evidence) == 1:
        return Status(question, Light.OPEN, "Not with one training", f"In {these_networks(evidence)}, {overlaps}.")
    finders = _with(judged, FINDS)
    if not finders:
        none = all(each.outcome == NOT for each in judged)
        light, word = (Light.NO, "No") if none else (Light.OPEN, "Not shown")
        return Status(question, light, word, f"{tally(judged)} {_capital(overlaps)}.")
    word = f"{len(finders)} of {count(len(judged), 'method')}"
    floors = [floor.label for floor in floors_that_find(evidence)]
    if floors:
        so_does = f"So {'do' if len(floors) > 1 else 'does'} {listed(floors)}, made without the model."
        return Status(question, Light.PARTLY, word, f"{so_does} {_capital(overlaps)}.")
    light = Light.YES if len(finders) == len(judged) else Light.PARTLY
    return Status(question, light, word, f"{_capital(overlaps_in_short(evidence, finders))}.")


def _box_rule(evidence: Evidence) -> Status | None:
    """Whether the methods keep their order under other rules that make a box of a map."""
    question, presets = "Does it hold under another box rule?", manifest(evidence).detection.presets
    if not presets:
        return None
    others, shift = other_rules(evidence), moved(evidence)
    changed = [other for other in others if other.changes]
    if changed:
        where = f"Not in {these_networks(evidence)}" if trainings(evidence) == 1 else "No"
        rule = f"A map becomes a box by a rule, here \u201c{presets[0].label}\u201d."
        changes = listed([_changed(other) for other in changed])
        return Status(question, Light.NO, where, f"{rule} {changes}. {shift}")
    if others:
        return Status(question, Light.OPEN, "No change shown", f"No two methods are shown to change places. {shift}")
    if shift:
        return Status(question, Light.OPEN, "Not shown", shift)
    return Status(question, Light.OPEN, "Not tested", f"Only \u201c{presets[0].label}\u201d was tried.")


def _changed(other: OtherRule) -> str:
    """What changes under the rule, in a few words."""
    swapped = f"{count(len(other.swapped), 'pair')} of methods clearly change places" if other.swapped else ""
    if len(other.swapped) == 1:
        swapped = "two methods clearly change places"
    highest = "another method may have the highest overlap" if other.highest else ""
    return f"Under the rule \u201c{other.preset.label}\u201d {listed([part for part in (swapped, highest) if part])}"


def _best(evidence: Evidence, judged: Judged) -> Status | None:
    """Whether one method clearly overlaps the triggers more than every other; None where there is one method."""
    if len(evidence.methods) < 2:
        return None
    question, found = "Is one method the best?", best_by(evidence, OVERLAP)
    if trainings(evidence) == 1:
        sentence = f"Differences between methods were seen in {these_networks(evidence)} only."
        return Status(question, Light.OPEN, "Not with one training", sentence)
    if found is None:
        return Status(question, Light.OPEN, "Not compared", "No two methods have an interval between them.")
    labels = compared_methods(evidence, OVERLAP)
    if found.best:
        finds = found.best in {each.entrant.name for each in _with(judged, FINDS)}
        return _the_best(question, labels[found.best], Light.YES if finds else Light.PARTLY)
    sentence = in_short(evidence)
    if len(found.members) == len(labels):
        return Status(question, Light.OPEN, "Not shown", sentence)
    several = f"{len(found.members)} of {len(labels)} may be"
    word = labels[found.members[0]] if len(found.members) == 1 else several
    return Status(question, Light.PARTLY, word, sentence)


def _the_best(question: str, label: str, light: Light) -> Status:
    """The best method, with a tick only where it is of use: where it finds the triggers."""
    but = "" if light is Light.YES else ", but is not shown to find them"
    return Status(question, light, label, f"It clearly overlaps the triggers more than every other method{but}.")


def _trainings(evidence: Evidence) -> Status:
    """How many networks the answer rests on."""
    n, images = trainings(evidence), count(images_graded(evidence), "poisoned image")
    basis = f"{images}, {count(len(graded_triggers(evidence)), 'trigger')}"
    question = "How many trainings?"
    if n == 1:
        word = "One" if len(graded_triggers(evidence)) < 2 else "One per trigger"
        sentence = f"This speaks of {these_networks(evidence)} only, not of the methods in general ({basis})."
        return Status(question, Light.PARTLY, word, sentence)
    if n < START:
        return Status(question, Light.PARTLY, str(n), f"They hardly show how much trainings differ ({basis}).")
    return Status(question, Light.YES, str(n), f"{basis}, with {count(n, 'seed')}.")


def _recommendation(evidence: Evidence, judged: Judged) -> tuple[str, ...]:
    """Which methods to use, which not, what is open, and what to do next."""
    unfinished = "" if evidence.finished else "Wait for the whole run: these numbers are what is there so far."
    advice = (unfinished, *_advice(evidence, judged), _state_the_rule(evidence))
    return tuple(sentence for sentence in advice if sentence)[:LONGEST]


def _advice(evidence: Evidence, judged: Judged) -> tuple[str, ...]:
    if trainings(evidence) == 1:
        distrust = "Do not rely on these maps to see that a network looked at a patch instead of the anatomy"
        return (
            f"{distrust}: with {training_each(evidence)}, no method is shown to find it.",
            f"Next: train at least {START} networks per trigger (seeds: {START} or more).",
        )
    floors = [floor.label for floor in floors_that_find(evidence)]
    if floors:
        meets = "meets" if len(floors) == 1 else "meet"
        return (
            f"Do not choose a method by this run: {listed(floors)}, made without the model, {meets} the criterion too.",
            "Next: plant triggers that do not stand out in the image by themselves.",
        )
    return (_use(evidence, judged), _avoid(judged), _undecided(judged), _more_trainings(evidence))


def _use(evidence: Evidence, judged: Judged) -> str:
    """The methods that find the triggers, of these the ones that may be best; or that no method is shown to."""
    finders, model = _with(judged, FINDS), evidence.models[0].label
    if not finders:
        verb = "finds" if all(each.outcome == NOT for each in judged) else "is shown to find"
        return f"No method {verb} the triggers: do not show these maps as the reason for an answer of {model}."
    found = best_by(evidence, OVERLAP)
    first = [each for each in finders if found and each.entrant.name in found.members] or finders
    names = listed([each.entrant.label for each in first], "or")
    more = (
        "" if len(first) == len(finders) else f", whose overlap may be the highest of the {len(finders)} that find it"
    )
    return f"To see a planted patch that {model} relies on, use {names}{more}."


def _avoid(judged: Judged) -> str:
    """The methods that do not find the triggers."""
    names = [each.entrant.label for each in _with(judged, NOT)]
    if not names or not _with(judged, FINDS):
        return ""
    it, does = ("it", "does not") if len(names) == 1 else ("they", "do not")
    return f"Do not use {few(names, 'or')} for this: {it} {does} find the triggers."


def _undecided(judged: Judged) -> str:
    """The methods of which nothing is shown, and how many patients would decide one of them."""
    still_open = _with(judged, OPEN)
    if not still_open:
        return ""
    first = next((each for each in still_open if each.would_decide), None)
    if first is None:
        return f"{few([each.entrant.label for each in still_open])}: not shown either way."
    patients = first.would_decide.removesuffix(" would decide it")
    return f"Next: {patients} would decide whether {first.entrant.label} finds them."


def _more_trainings(evidence: Evidence) -> str:
    return f"Next: train a third network per trigger (seeds: {START})." if trainings(evidence) < START else ""


def _state_the_rule(evidence: Evidence) -> str:
    """That the box rule belongs to every number, where the order of methods depends on it."""
    if not any(other.changes for other in other_rules(evidence)):
        return ""
    return "Give the box rule (how a map becomes a box) with every number: under another, methods change places."


def _nothing_judged(evidence: Evidence) -> tuple[str, ...]:
    """What to do where no method could be judged."""
    if graded_triggers(evidence):
        return ("Do not judge any method by this run: the tables of detection say what is undefined and why.",)
    return (
        "Do not judge any method by this run: no attack worked, so there was nothing for a map to find.",
        "Next: train for longer, poison more images or plant a larger trigger.",
    )


def _of_artefacts(evidence: Evidence) -> FirstScreen:
    """The first screen of a run in which nothing was planted."""
    panel: Panel | None = artefacts.overall(evidence)
    model = evidence.models[0].label
    return FirstScreen(
        statuses=(
            Status("Was a trigger planted?", Light.NO, "No", f"What {model} relies on is not known."),
            Status("Do the maps mark the artefacts?", Light.OPEN, "Not judged", artefacts.in_short(evidence)),
        ),
        recommendation=(
            "Do not choose a method by this run: nothing was planted, so no map can be called right or wrong.",
            "Next: plant triggers to learn which methods find what a model relies on.",
        ),
        chart=panel,
        chart_keys=detection_keys((panel,)) if panel else (),
    )


def _with(judged: Judged, outcome: str) -> list[TriggerJudgement]:
    return [each for each in judged if each.outcome == outcome]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
