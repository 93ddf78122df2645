"""Did the attack work? Accuracy on clean images and attack success per trigger, and where methods could be graded."""

import math
from collections.abc import Collection, Mapping, Sequence

from heatcheck.report.blocks.block import Block, Facts, Table, Terms, fold, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import MISSING, POINTS, SHARE, SPACE, count, few, listed, number
from heatcheck.report.page import Section
from heatcheck.report.published import with_rows
from heatcheck.studies.triggers.report import literature
from heatcheck.studies.triggers.report.facts import (
    REFERENCE_SIDE,
    AttackSummary,
    TriggerRecord,
    grading,
    manifest,
    span,
    triggers_of,
)
from heatcheck.studies.triggers.report.sections.calibration import calibration
from heatcheck.studies.triggers.vocabulary import ATTACK, BASELINE, GRADED

_CLEAN = (
    "How often the model classifies test images that were not attacked correctly. A poisoned model should do this as "
    "well as the baseline did, or the attack would be noticed."
)
_SUCCESS = (
    "How often the poisoned model names the target class once the trigger is in the image. High success "
    "means that the model really uses the trigger: there is something for a map to find."
)
_ALREADY = (
    "How often the poisoned model names the target class on the same images without the trigger. Where this "
    "is high, the model tends to that answer anyway, and its success says little about the trigger."
)
_CONTROL = (
    "How often the baseline, which was never poisoned, names the target class on images with the trigger. "
    "It is the control of the maps, so it should not follow the trigger: this should be near 0."
)
_SMALL_PRINT = (
    "Means over seeds; small print below a number is its 95 % interval. Accuracy lost: the baseline\u2019s accuracy "
    "less the poisoned model\u2019s, in percentage points (pp)."
)
_UNTESTED = "No attack has been tested yet."
_PRINTED = "The published figures are for VGG-16 on the full COVID-19 Radiography data."
_EMPTY = Cell("")
COLUMNS = {
    "cda": "Clean accuracy (CDA)",
    "cda_drop": "Accuracy lost",
    "asr": "Attack success (ASR)",
    "clean_target": "Target without trigger",
    "baseline_asr": "Baseline sent to the target",
}
TERMS = {"cda": _CLEAN, "asr": _SUCCESS, "clean_target": _ALREADY, "baseline_asr": _CONTROL}


def attack(evidence: Evidence) -> Section | None:
    """Whether the poisoned models rely on their triggers; None when no trigger was planted."""
    triggers = triggers_of(evidence)
    if not triggers:
        return None
    summaries = {trigger: grading(evidence, trigger.name) for trigger in triggers}
    known = any(summary.seeds for summary in summaries.values())
    terms = tuple((COLUMNS[metric], TERMS[metric]) for metric in _measured(evidence) if metric in TERMS)
    by_seed = (Table(_by_seed(evidence, triggers)),) if known and len(manifest(evidence).seeds) > 1 else ()
    blocks = (
        *prose(_planted(evidence)),
        *(_outcomes(evidence, summaries) if known else ()),
        *prose(_left_out(evidence)),
        *((Table(_table(evidence, summaries), note=_note(evidence)),) if known else prose(_UNTESTED)),
        *((Terms(terms),) if terms else ()),
        *calibration(evidence),
        *fold("Seed by seed", by_seed),
        *fold("What the triggers look like", (Facts(tuple(map(_look, triggers))),)),
    )
    summary = in_short(evidence, triggers) if known else _UNTESTED
    return Section("attack", "Did the attack work?", "Attack", blocks, summary, printed=True)


def in_short(evidence: Evidence, triggers: Collection[TriggerRecord]) -> str:
    """How often the models name the target class once one of these triggers is in, and how often the baseline does."""
    poisoned, baseline = (
        [evidence.value(ATTACK, metric, trigger.name) for trigger in triggers] for metric in ("asr", "baseline_asr")
    )
    if all(map(math.isnan, poisoned)):
        return ""
    share = SHARE.rounded(0)
    ignored = "" if all(map(math.isnan, baseline)) else f", the baseline in {span(baseline, share)}"
    named = "With the trigger, the poisoned models name the target class in"
    return f"{named} {span(poisoned, share)} of images{ignored}."


def _note(evidence: Evidence) -> str:
    """How the table is read."""
    printed = _PRINTED if literature.is_own_data(evidence) else ""
    return " ".join(filter(None, (_SMALL_PRINT, printed, _sizes(evidence))))


def _sizes(evidence: Evidence) -> str:
    """The size of the image that triggers are measured on, where the model's images have another."""
    run = manifest(evidence)
    if not run.input or min(run.input) == REFERENCE_SIDE or not any(each.size for each in triggers_of(evidence)):
        return ""
    return (
        f"Sizes in px are those on an image of {REFERENCE_SIDE} pixels; this model\u2019s images have {run.input_size}."
    )


def _look(trigger: TriggerRecord) -> tuple[str, str]:
    """The trigger's name, and what it looks like."""
    pixels = f"; {trigger.pixels} pixels of the model\u2019s image" if trigger.pixels else ""
    return trigger.label, f"{trigger.summary or trigger.kind or MISSING}{pixels}"


def _planted(evidence: Evidence) -> str:
    run = manifest(evidence)
    if run.poison is None or not run.target:
        return ""
    share, half = (number(part, SHARE.rounded(0)) for part in (run.poison.training, run.poison.test))
    seeds = len(run.seeds)
    start = f"For each of {seeds} seeds, a" if seeds > 1 else "A"
    return (
        f"{start} baseline model was poisoned once per trigger: {share} of the training images got the trigger and the "
        f"label \u201c{run.target}\u201d, the target class. Then {half} of the test images of other classes got the "
        f"trigger; a model that now answers \u201c{run.target}\u201d relies on it."
    )


def _outcomes(evidence: Evidence, summaries: Mapping[TriggerRecord, AttackSummary]) -> tuple[Block, ...]:
    """With which triggers the attack worked, and when it counts as such."""
    always = [trigger.label for trigger, each in summaries.items() if each.graded == each.seeds]
    never = [trigger.label for trigger, each in summaries.items() if not each.graded]
    some = [
        f"{trigger.label} ({each.graded} of {each.seeds})"
        for trigger, each in summaries.items()
        if 0 < each.graded < each.seeds
    ]
    seeds = "in every seed" if len(manifest(evidence).seeds) > 1 else ""
    parts = [f"worked with {_all_or(always, summaries, 'every')} {seeds}".strip()] if always else []
    parts += [f"worked in some seeds only with {listed(some)}"] if some else []
    parts += [f"did not work with {_all_or(never, summaries, 'any')}"] if never else []
    return (*prose(f"The attack {listed(parts)}."), *prose(_gate(evidence) if some or never else ""))


def _all_or(names: Sequence[str], triggers: Collection[TriggerRecord], all_of_them: str) -> str:
    if len(names) == len(triggers):
        return f"{all_of_them} trigger" if len(names) > 1 else names[0]
    return listed(names) if len(names) <= 4 else f"{len(names)} of {len(triggers)} triggers"


def _gate(evidence: Evidence) -> str:
    gate = manifest(evidence).gate
    if gate is None:
        where = "there"
    else:
        success, share = (number(part, SHARE.rounded(0)) for part in (gate.attack_success, gate.clean_target))
        where = (
            f"where attack success is below {success}, accuracy on clean images fell by more than "
            f"{100 * gate.accuracy_drop:g} percentage points or more than {share} of the images get the "
            "target class even without the trigger"
        )
    return (
        f"Methods are not graded {where}: a map cannot be blamed for missing a trigger that the model hardly uses, so "
        "such a trigger has no score at all, rather than a score of 0."
    )


def _left_out(evidence: Evidence) -> str:
    """The images that got the target class without a trigger, counted and named."""
    seeds = manifest(evidence).seeds
    parts, total = [], 0
    for trigger in triggers_of(evidence):
        rows = [evidence.under(seed=seed).find(GRADED, "clean_target", trigger.name) for seed in seeds]
        cases = [case for row in rows if row and row.value for case in row.reason.split(", ")]
        if cases:
            total += len(cases)
            parts.append(f"{trigger.label}: {few(list(dict.fromkeys(cases)))}")
    if not total:
        return ""
    times = " over all seeds" if len(seeds) > 1 else ""
    return (
        f"{count(total, 'attacked image')}{times} got the target class even without the trigger. No trigger "
        f"sent them there, so neither overlap, nor remainder, nor recovery is graded on them ({'; '.join(parts)})."
    )


def _measured(evidence: Evidence) -> list[str]:
    """The columns for which the run has estimates."""
    measured = {key[1] for key in evidence.estimates if key[0] == ATTACK}
    return [metric for metric in COLUMNS if metric in measured]


def _table(evidence: Evidence, summaries: Mapping[TriggerRecord, AttackSummary]) -> Matrix:
    notes, metrics = Footnotes(), _measured(evidence)
    first = [_cell(evidence, "cda", BASELINE, notes) if metric == "cda" else _EMPTY for metric in metrics]
    base = labelled("Baseline", [*first, _EMPTY], note="before it was poisoned")
    rows = [
        labelled(
            trigger.label,
            [*(_cell(evidence, metric, trigger.name, notes) for metric in metrics), _graded(each, notes)],
            note=trigger.summary,
        )
        for trigger, each in summaries.items()
    ]
    columns = tuple(Column(name) for name in (*(COLUMNS[metric] for metric in metrics), "Graded"))
    groups = (("Before", (base,)), ("After poisoning", tuple(rows)))
    table = Matrix("The model before and after poisoning", columns, groups, tuple(notes.reasons), "Trigger")
    printed = _published(metrics) if literature.is_own_data(evidence) else []
    return with_rows(table, printed, notes, literature.SOURCE)


def _cell(evidence: Evidence, metric: str, finding: str, notes: Footnotes) -> Cell:
    unit = POINTS if metric == "cda_drop" else SHARE
    return cell_of(evidence.find(ATTACK, metric, finding), unit, notes)


def _graded(summary: AttackSummary, notes: Footnotes) -> Cell:
    if not summary.seeds:
        return Cell(MISSING, title="not recorded", note=notes.mark("whether it was graded was not recorded"))
    word = "yes" if summary.graded == summary.seeds else "no" if not summary.graded else "in part"
    seeds = f"{summary.graded} of {count(summary.seeds, 'seed')}"
    why = f"not graded in {summary.why_not}" if summary.reasons else ""
    return Cell(word, seeds, title=why, note=notes.mark(why))


def _published(metrics: Sequence[str]) -> list[Row]:
    ((base,), (clean,)) = (literature.reported("cda", subject) for subject in ("baseline", "poisoned"))
    (success,) = literature.reported("asr_above")
    printed = {
        "cda": Cell(number(clean.value, SHARE.rounded(2)), f"± {100 * clean.spread:.2f}"),
        "cda_drop": Cell(number(base.value - clean.value, POINTS.rounded(2))),
        "asr": Cell(f">{SPACE}{number(success.value, SHARE.rounded(0))}"),
    }
    before = {"cda": Cell(number(base.value, SHARE.rounded(2)))}
    return [
        labelled(name, [*(cells.get(metric, _EMPTY) for metric in metrics), _EMPTY], kind="published")
        for name, cells in (("Baseline", before), ("Mean of 11 triggers", printed))
    ]


def _by_seed(evidence: Evidence, triggers: Sequence[TriggerRecord]) -> Matrix:
    """Attack success with clean accuracy below it, trigger by seed."""
    notes, seeds = Footnotes(), manifest(evidence).seeds
    rows = [
        labelled(trigger.label, [_seed_cell(evidence, trigger.name, seed, notes) for seed in seeds])
        for trigger in triggers
    ]
    columns = tuple(Column(f"Seed {seed}") for seed in seeds)
    return Matrix("Attack success by seed", columns, (("Triggers", tuple(rows)),), tuple(notes.reasons), "Trigger")


def _seed_cell(evidence: Evidence, trigger: str, seed: int, notes: Footnotes) -> Cell:
    of_seed = evidence.under(seed=seed)
    success, clean = (of_seed.find(ATTACK, metric, trigger) for metric in ("asr", "cda"))
    graded = of_seed.find(GRADED, "asr", trigger)
    cell = cell_of(success, SHARE, notes)
    why = graded.reason if graded else ""
    outcome = "" if graded is None else "graded" if graded.value == 1 else "not graded"
    accuracy = f"CDA {number(clean.value, SHARE)}" if clean else ""
    return Cell(cell.text, accuracy, title=why or cell.title, note=cell.note or notes.mark(why), outcome=outcome)
