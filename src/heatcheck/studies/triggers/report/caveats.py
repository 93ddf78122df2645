"""What limits a trigger study's verdict, one plain sentence each."""

import math

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.report.caveats import failed, smaller_settings
from heatcheck.report.evidence import Evidence
from heatcheck.report.footnotes import lacks_interval
from heatcheck.report.numbers import SHARE, count, few, listed, number
from heatcheck.studies.triggers.report.facts import graded_triggers, images_graded, manifest
from heatcheck.studies.triggers.report.verdict import FINDS, is_unanimous, judge
from heatcheck.studies.triggers.vocabulary import ATTACK, BASELINE, CRITERION_METRICS, RANDOM_BOX

FEW_IMAGES = 30
LARGE_BOX = 0.2  # of the image
WEAK = 0.6  # accuracy of a baseline that hardly separates its classes


def caveats(evidence: Evidence) -> tuple[str, ...]:
    """The sentences that apply to this run."""
    judged = graded_triggers(evidence) and images_graded(evidence)
    sentences = [
        failed(evidence),
        *((_one_seed(evidence), _few_images(evidence), _large_boxes(evidence)) if judged else ()),
        *((_no_interval(evidence), _floors(evidence)) if judged else ()),
        _drawn(evidence),
        _weak_baseline(evidence),
        smaller_settings(evidence) if judged or manifest(evidence).artefacts else "",
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _one_seed(evidence: Evidence) -> str:
    if len(manifest(evidence).seeds) != 1:
        return ""
    return (
        "Every model was trained once, with one seed: the intervals cover other images, but not another training, "
        "which may rank the methods differently."
    )


def _few_images(evidence: Evidence) -> str:
    images = images_graded(evidence)
    if images >= FEW_IMAGES:
        return ""
    return f"Only {count(images, 'poisoned image')} could be graded: treat the results as preliminary."


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
        if any(row is None or (lacks_interval(row) and not is_unanimous(row)) for row in rows):
            names.append(method.label)
    if not names:
        return ""
    has = "has" if len(names) == 1 else "have"
    return f"{few(names)} {has} no interval against random boxes, so no difference of theirs can be called clear."


def _floors(evidence: Evidence) -> str:
    """Floors that meet the criterion, which is then too weak here."""
    names = [floor.label for floor in evidence.floors if judge(evidence, floor).outcome == FINDS]
    if not names:
        return ""
    meets = "meets" if len(names) == 1 else "meet"
    return (
        f"{listed(names)}, made without the model, {meets} the criterion too: here a picture can point at the triggers "
        "without knowing the model, so finding them proves little."
    )


def _drawn(evidence: Evidence) -> str:
    if not evidence.manifest.source.drawn:
        return ""
    return "The images are drawn, not taken from patients: what holds here need not hold for radiographs."


def _weak_baseline(evidence: Evidence) -> str:
    accuracy = evidence.value(ATTACK, "cda", BASELINE)
    if math.isnan(accuracy) or accuracy >= WEAK:
        return ""
    return (
        f"The baseline classifies only {number(accuracy, SHARE.rounded(0))} of clean images correctly, so "
        "\u201creturns to its answer for the clean image\u201d requires little of a recovered image."
    )
