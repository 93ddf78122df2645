"""What limits a trigger study's verdict, one plain sentence each."""

import math
from collections.abc import Collection

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import CALIBRATION, DIFFERENCE, MEAN
from heatcheck.judging.judgement import judge as judge_numbers
from heatcheck.judging.sizes import Sizes
from heatcheck.report.blocks.footnotes import lacks_interval
from heatcheck.report.caveats import failed, skipped, smaller_settings
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import MISSING, SCORE, SHARE, count, difference_of, few, listed, number
from heatcheck.studies.triggers.report.facts import (
    LARGE_BOX,
    TriggerRecord,
    graded_triggers,
    images_graded,
    manifest,
    span,
    these_networks,
    training_each,
    trainings,
    triggers_of,
)
from heatcheck.studies.triggers.report.sections.differences import least_shown
from heatcheck.studies.triggers.report.sections.rules import METRIC, largest_shift, moved
from heatcheck.studies.triggers.report.verdict import floors_that_find
from heatcheck.studies.triggers.vocabulary import ATTACK, BASELINE, CRITERION_METRICS, RANDOM_BOX, SIZES

FEW_IMAGES = 30
MISSES = {2: 0.114, 3: 0.072}  # of intervals of mean overlap, at worst, by seeds: docs/simulations.md
_NOUNS = {"trigger_iou": "overlap", "recovered": "recovery"}
FOOLED = 0.1  # share of stamped images that a baseline sends to the target, above which it does not ignore a trigger
WEAK = 0.6  # accuracy below which a return to the clean answer requires little


def caveats(evidence: Evidence) -> tuple[str, ...]:
    """The sentences that apply to this run."""
    judged = graded_triggers(evidence) and images_graded(evidence)
    sentences = [
        failed(evidence),
        skipped(evidence),
        *((_few_trainings(evidence), _few_images(evidence), _out_of_sight(evidence)) if judged else ()),
        *((_box_rule(evidence), _large_boxes(evidence), _no_interval(evidence), _floors(evidence)) if judged else ()),
        _weak_baseline(evidence),
        _fooled_baseline(evidence),
        _dynamic(evidence) if judged else "",
        smaller_settings(evidence) if judged or manifest(evidence).artefacts else "",
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _few_trainings(evidence: Evidence) -> str:
    """What one training or two cannot say."""
    if trainings(evidence) == 1:
        return (
            f"Methods were judged on {training_each(evidence)}: intervals cover other images, but not another "
            f"training. What was seen in {these_networks(evidence)} says nothing about the methods in general; three "
            "trainings (seeds) are a start."
        )
    if trainings(evidence) == 2:
        return (
            "Two trainings hardly show how much trainings differ: in simulations, intervals over two seeds missed the "
            f"truth in up to {number(MISSES[2], SHARE.rounded(0))}, where 5 % are due, and over three in "
            f"{number(MISSES[3], SHARE.rounded(0))}."
        )
    return ""


def _out_of_sight(evidence: Evidence) -> str:
    """The differences that a run of this size could not have shown."""
    boxes, methods = (
        [_size_seen(evidence, metric, among) for metric in CRITERION_METRICS]
        for among in ({RANDOM_BOX}, {method.name for method in evidence.methods})
    )
    parts = [
        f"{noun} below {listed([words for words in sizes if words])}"
        for noun, sizes in (("differences from random boxes", boxes), ("differences between two methods", methods))
        if any(sizes)
    ]
    if not parts:
        return ""
    rows = [row for row, _ in evidence.rows(DIFFERENCE) if row.other_method == RANDOM_BOX]
    patients = max((row.n_patients for row in rows), default=0)
    basis = f"{count(patients, 'patient')} and {count(trainings(evidence), 'seed')}" if patients else "these images"
    where = f" even in {these_networks(evidence)}" if trainings(evidence) == 1 else ""
    return f"With {basis}, {listed(parts)} would go unnoticed in more than half of such runs{where}."


def _size_seen(evidence: Evidence, metric: str, among: Collection[str]) -> str:
    rows = [row for key, row in evidence.estimates.items()
            if key[:3] == (DIFFERENCE, metric, ALL_FINDINGS) and row.other_method in among]  # fmt: skip
    size = least_shown(rows)
    if math.isnan(size):
        return ""
    unit = difference_of(evidence.metrics[metric].unit)
    return f"{number(size, unit.rounded(unit.decimals - 1))} ({_NOUNS[metric]})"


def _few_images(evidence: Evidence) -> str:
    images = images_graded(evidence)
    if images >= FEW_IMAGES:
        return ""
    return f"Only {count(images, 'poisoned image')} could be graded: treat the results as preliminary."


def _box_rule(evidence: Evidence) -> str:
    """The method whose overlap another box rule changes most, where that is a size that matters between two."""
    shift = largest_shift(evidence)
    size = Sizes(**manifest(evidence).sizes).between_methods(SIZES[METRIC])
    return f"Overlap depends on how a map becomes a box: {moved(evidence)}" if shift and shift.size >= size else ""


def _large_boxes(evidence: Evidence) -> str:
    """The methods whose boxes are so large that they recover images by their size."""
    areas = {m.label: evidence.value(MEAN, "box_area", ALL_FINDINGS, m.name) for m in evidence.methods}
    large = [f"{label} ({number(area, SHARE.rounded(0))})" for label, area in areas.items() if area >= LARGE_BOX]
    if not large:
        return ""
    return (
        f"Boxes can win by size: those of {few(large)} cover a large part of the image on average. A box around the "
        "whole image would leave nothing of any trigger (OD 0) and recover every image (TDR 100 %), so read recovery "
        "against its floor, and overlap first."
    )


def _no_interval(evidence: Evidence) -> str:
    names = []
    for method in evidence.methods:
        rows = [evidence.find(DIFFERENCE, m, ALL_FINDINGS, method.name, RANDOM_BOX) for m in CRITERION_METRICS]
        if any(row is None or lacks_interval(row) for row in rows):
            names.append(method.label)
    if not names:
        return ""
    has, them = ("has", "it") if len(names) == 1 else ("have", "them")
    return f"{few(names)} {has} no interval against random boxes, so nothing can be shown of {them}."


def _floors(evidence: Evidence) -> str:
    """Floors that meet the criterion, which is then too weak here."""
    names = [floor.label for floor in floors_that_find(evidence)]
    if not names:
        return ""
    meets = "meets" if len(names) == 1 else "meet"
    return (
        f"{listed(names)}, made without the model, {meets} the criterion too: here a picture can point at the triggers "
        "without knowing the model, so finding them proves little."
    )


def _weak_baseline(evidence: Evidence) -> str:
    row = evidence.find(ATTACK, "cda", BASELINE)
    if row is None or not judge_numbers(WEAK - row.value, WEAK - row.high, WEAK - row.low, 0.0).is_yes:
        return ""
    interval = f"{_share(row.value)}, 95 % interval {_share(row.low)} to {_share(row.high)}"
    return (
        f"The baseline clearly classifies fewer than {_share(WEAK)} of clean images correctly ({interval}), so "
        "\u201creturns to its answer for the clean image\u201d requires little of a recovered image."
    )


def fooled_triggers(evidence: Evidence) -> dict[TriggerRecord, Estimate]:
    """The triggers that bring the target class even from the model that was never attacked, with how often."""
    rows = {trigger: evidence.find(ATTACK, "baseline_asr", trigger.name) for trigger in triggers_of(evidence)}
    return {
        trigger: row
        for trigger, row in rows.items()
        if row is not None and judge_numbers(row.value - FOOLED, row.low - FOOLED, row.high - FOOLED, 0.0).is_yes
    }


def _fooled_baseline(evidence: Evidence) -> str:
    fooled = [
        f"{trigger.label} ({_share(row.value)}, 95 % interval {_share(row.low)} to {_share(row.high)})"
        for trigger, row in fooled_triggers(evidence).items()
    ]
    if not fooled:
        return ""
    return (
        f"The baseline, which was never attacked, already names the target class on clearly more than "
        f"{_share(FOOLED)} of the images with {few(fooled)}: it does not ignore the trigger, so the overlap on the "
        "baseline is a control that asks too much there, and attack success is not the attack\u2019s alone."
    )


def _dynamic(evidence: Evidence) -> str:
    """That the baseline does not ignore a patch that is made from its own weakness."""
    names = [trigger.label for trigger in graded_triggers(evidence) if trigger.is_dynamic]
    if not names:
        return ""
    errors = span((evidence.value(CALIBRATION, "baseline_ece_stamped", each.name) for each in graded_triggers(evidence)
                   if each.is_dynamic), SCORE.rounded(2))  # fmt: skip
    known = f" (its calibration error with it is {errors})" if errors != MISSING else ""
    return (
        f"The patch of {few(names)} is made from what the baseline is most sensitive to, so even the baseline, never "
        f"attacked, does not ignore it{known}: there its maps may mark the trigger, and the comparison with them is "
        "strict."
    )


def _share(value: float) -> str:
    return number(value, SHARE.rounded(0))
