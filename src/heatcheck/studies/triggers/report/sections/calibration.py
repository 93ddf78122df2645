"""How sure the models are, and how often they are right: calibration before and after the attack."""

import math

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import CALIBRATION, CHANCE_CALIBRATION, DIFFERENCE
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.blocks.block import Block, Heading, Table, Terms, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, cell_of, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import MISSING, POINTS, SCORE, interval, number
from heatcheck.studies.triggers.report.facts import span, these_networks, triggers_of
from heatcheck.studies.triggers.vocabulary import ATTACK, BASELINE

UNIT = SCORE
POINT = POINTS.rounded(0)
ECE = (
    "How far a model\u2019s stated probability is from how often its answer is right, on average: 0 is perfect. Even a "
    "perfectly calibrated model does not reach 0 on few images; below each error stands what it would show by chance, "
    "on average and at most in 95 % of runs."
)
SURE = (
    "The mean probability that a model gives its answers, less the share of them that are right, in percentage points "
    "(pp): above 0 it is too sure of itself."
)
COLUMNS = {
    "ece": "ECE, clean images",
    "overconfidence": "Overconfidence, clean images",
    "baseline_ece_stamped": "ECE with the trigger, baseline",
    "ece_stamped": "ECE with the trigger, poisoned",
    "overconfidence_stamped": "Overconfidence with the trigger, poisoned",
}


def calibration(evidence: Evidence) -> tuple[Block, ...]:
    """The part on calibration of the section on the attack; nothing for a run that did not store confidences."""
    triggers = triggers_of(evidence)
    measured = [metric for metric in COLUMNS if any(_row(evidence, metric, each.name) for each in triggers)]
    if not measured:
        return ()
    notes = Footnotes()
    before = labelled("Baseline", [_cell(evidence, metric, BASELINE, notes) for metric in measured])
    after = [
        labelled(each.label, [_cell(evidence, metric, each.name, notes) for metric in measured]) for each in triggers
    ]
    columns = tuple(Column(COLUMNS[metric]) for metric in measured)
    groups = (("Before", (before,)), ("After poisoning", tuple(after)))
    table = Matrix("Calibration before and after poisoning", columns, groups, tuple(notes.reasons), "Trigger")
    return (
        Heading("Is the model as sure as it should be?"),
        *prose(on_clean(evidence)),
        *prose(on_stamped(evidence)),
        Table(table),
        Terms((("Calibration error (ECE)", ECE), ("Overconfidence", SURE))),
    )


def _row(evidence: Evidence, metric: str, finding: str) -> Estimate | None:
    statistic = CALIBRATION if metric.endswith(("ece", "ece_stamped")) else ATTACK
    return evidence.find(statistic, metric, finding)


def _cell(evidence: Evidence, metric: str, finding: str, notes: Footnotes) -> Cell:
    row = _row(evidence, metric, finding)
    if row is None:
        return Cell("")
    if row.statistic == ATTACK:
        return cell_of(row, POINTS, notes)
    if math.isnan(row.value):
        return Cell(MISSING, title=row.reason, note=notes.mark(row.reason))
    return Cell(number(row.value, UNIT), _by_chance(evidence.find(CHANCE_CALIBRATION, metric, finding)))


def _by_chance(row: Estimate | None) -> str:
    if row is None or math.isnan(row.value):
        return ""
    return f"by chance {number(row.value, UNIT)}, up to {number(row.high, UNIT)}"


def on_clean(evidence: Evidence) -> str:
    """The calibration error on clean images before and after poisoning, and what poisoning did to confidence."""
    before, after = (evidence.find(CALIBRATION, "ece", name) for name in (BASELINE, ALL_FINDINGS))
    perfect = evidence.find(CHANCE_CALIBRATION, "ece", ALL_FINDINGS)
    if before is None or after is None or perfect is None or math.isnan(after.value):
        return ""
    change = _claim(evidence.find(DIFFERENCE, "overconfidence", ALL_FINDINGS, "", BASELINE), these_networks(evidence))
    return (
        f"On clean images the calibration error (ECE) was {number(before.value, UNIT)} before poisoning and "
        f"{number(after.value, UNIT)} after it, the mean over triggers; a perfectly calibrated model with these "
        f"probabilities would show {number(perfect.value, UNIT)}, and at most {number(perfect.high, UNIT)} in 95 % of "
        f"runs. {change}".rstrip()
    )


def on_stamped(evidence: Evidence) -> str:
    """The calibration error on images with a trigger, of the baseline trigger by trigger and of the poisoned models."""
    poisoned, baseline = evidence.find(CALIBRATION, "ece_stamped", ALL_FINDINGS), of_baseline(evidence)
    if not baseline or poisoned is None or math.isnan(poisoned.value):
        return ""
    change = _claim(
        evidence.find(DIFFERENCE, "overconfidence_stamped", ALL_FINDINGS, "", BASELINE), these_networks(evidence)
    )
    return (
        f"On images with a trigger the baseline\u2019s error was {baseline}; that of the poisoned models was "
        f"{number(poisoned.value, UNIT)}, because their answer there is the target class and therefore wrong: a high "
        f"confidence does not warn of it. {change}".rstrip()
    )


def of_baseline(evidence: Evidence) -> str:
    """The baseline's error with the triggers; with a dynamic one, which is made from its weakness, by itself."""
    triggers = triggers_of(evidence)
    values = {each: evidence.value(CALIBRATION, "baseline_ece_stamped", each.name) for each in triggers}
    fixed = span((value for each, value in values.items() if not each.is_dynamic), UNIT)
    dynamic = span((value for each, value in values.items() if each.is_dynamic), UNIT)
    if dynamic == MISSING:
        return "" if fixed == MISSING else fixed
    made = f"{dynamic} with a dynamic patch, which is made from what the baseline is most sensitive to"
    return made if fixed == MISSING else f"{fixed} with a fixed patch and {made}"


def _claim(row: Estimate | None, these: str) -> str:
    """What poisoning did to confidence, judged over all triggers; only the number where nothing may be claimed."""
    if row is None or math.isnan(row.value):
        return ""
    between = interval(row.low, row.high, POINT, signed=True)
    rose = f"{number(row.value, POINT, signed=True)}{f', {between}' if between else ''}"
    if judgement_of(row).is_yes:
        return f"Poisoning clearly made the models too sure of these answers (overconfidence {rose})."
    if opposite_of(row).is_yes:
        return f"Poisoning clearly made the models less sure of these answers (overconfidence {rose})."
    if judgement_of(row).is_no and opposite_of(row).is_no:
        return f"Poisoning did not change by a size that matters how sure they are (overconfidence {rose})."
    if math.isnan(row.size):
        return f"In {these} overconfidence changed by {rose}."
    return f"That poisoning changed how sure they are is not shown (overconfidence {rose})."
