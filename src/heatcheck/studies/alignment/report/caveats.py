"""What weakens the verdict of an alignment study, one plain sentence each."""

import itertools
import math

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import AUROC, DIFFERENCE
from heatcheck.judging.guessing import is_below
from heatcheck.judging.judgement import Answer, judgement_of
from heatcheck.report.appendix import is_network
from heatcheck.report.caveats import skipped, smaller_settings
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, count, few, listed, number
from heatcheck.studies.alignment.report.facts import (
    ARM_LABELS,
    Pipeline,
    images_behind,
    interval_words,
    manifest,
    network_estimate,
    pipelines,
    trained_once,
)
from heatcheck.studies.alignment.report.readings import blames
from heatcheck.studies.alignment.report.sections.robustness import visible
from heatcheck.studies.alignment.vocabulary import DIRECTIONS, GUESS, GUESSING, ImageCounts

FEW_POSITIVES = 10
_UNIT = SCORE.rounded(2)


def caveats(evidence: Evidence) -> tuple[str, ...]:
    """The sentences that apply to this run."""
    sentences = (
        _limited(evidence),
        _failed(evidence),
        skipped(evidence),
        _one_seed(evidence),
        visible(evidence),
        _few_positives(evidence),
        _weak(evidence),
        _rough(evidence),
        _lost(evidence),
        _floors(evidence),
        _scale(evidence),
        smaller_settings(evidence),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _limited(evidence: Evidence) -> str:
    limit = manifest(evidence).limit
    if not limit:
        return ""
    return (
        f"This run was cut short on purpose (--limit {limit}): images of at most {count(limit, 'patient')} were "
        "explained for each finding, and every map score and reading rests on these alone."
    )


def _failed(evidence: Evidence) -> str:
    cases = evidence.run.cases
    failed = cases[cases["status"] == "failed"]
    networks = int(is_network(failed).sum())
    images = len(failed) - networks
    parts = [f"{count(networks, 'fine-tuned network')} failed"] if networks else []
    parts += [f"{count(images, 'image')} could not be read"] if images else []
    if not parts:
        return ""
    return f"{' and '.join(parts)}, and took no part; the section on gaps lists them with reasons."


def _one_seed(evidence: Evidence) -> str:
    if not trained_once(evidence):
        return ""
    return (
        "Every network was fine-tuned once, with one seed, so the numbers under fine-tuning hold for these networks "
        "alone, and nothing is claimed of how a method behaves under fine-tuning. What is said of the networks before "
        f"fine-tuning does not depend on it. {interval_words(evidence)}"
    )


def _few_positives(evidence: Evidence) -> str:
    rare = [f"{finding} ({n})" for finding, n in images_behind(evidence).items() if n < FEW_POSITIVES]
    if not rare:
        return ""
    return f"The numbers of {few(rare)} rest on fewer than {FEW_POSITIVES} evaluation images: they are anecdotal."


def _auroc(evidence: Evidence, pipeline: Pipeline, arm: str, finding: str) -> Estimate | None:
    row = network_estimate(evidence, pipeline, arm, AUROC, AUROC, finding)
    return None if row is None or math.isnan(row.value) else row


def _weak(evidence: Evidence) -> str:
    """Bases that are not shown to predict better than guessing, of which no map can be a good one."""
    aurocs: dict[tuple[str, str], tuple[float, Estimate]] = {}
    for pipeline in pipelines(evidence):
        name = pipeline.base.name
        for finding in evidence.findings:
            row = _auroc(evidence, pipeline, "base", finding)
            above = evidence.under(name, arm="base", versus=GUESSING).find(DIFFERENCE, AUROC, finding)
            if row and above and not judgement_of(above).is_yes and not is_below(row, GUESS):
                aurocs[finding, pipeline.base.label] = (row.value, above)
    worst = sorted(aurocs.items(), key=lambda each: each[1][0])
    weak = [
        f"{finding} ({label}, {number(value, _UNIT)}{'' if judgement_of(above).is_no else ', not shown'})"
        for (finding, label), (value, above) in worst
    ]
    if not weak:
        return ""
    size = next((number(above.size, _UNIT) for _, (_, above) in worst if not math.isnan(above.size)), "")
    return (
        f"Not clearly better than guessing (an AUROC of {GUESS:g}{f', by {size} or more' if size else ''}): "
        f"{few(weak)}. A map of such a model explains a guess, whatever it marks."
    )


def _rough(evidence: Evidence) -> str:
    """Findings with too few images to know how well any network predicts them."""
    rare = []
    for finding in evidence.findings:
        counts = manifest(evidence).positives.get(finding, ImageCounts())
        sizes = {"with": counts.evaluation_positives, "without": counts.evaluation_negatives}
        short = [f"{n} {side}" for side, n in sizes.items() if n is not None and n < FEW_POSITIVES]
        rare += [f"{finding} ({' and '.join(short)} it)"] if short else []
    if not rare:
        return ""
    return (
        f"Prediction can hardly be assessed where fewer than {FEW_POSITIVES} images have, or lack, the finding: "
        f"{few(rare)}. Such an AUROC does not count in \u201cAll findings\u201d."
    )


def _lost(evidence: Evidence) -> str:
    """Networks that predict worse than their control: the cost of the map loss, not of fine-tuning as such."""
    losses: dict[str, Estimate] = {}
    for pipeline in pipelines(evidence):
        for arm, finding in itertools.product(DIRECTIONS, evidence.findings):
            under = evidence.under(pipeline.base.name, arm=arm, versus="control")
            row = under.find(DIFFERENCE, AUROC, finding, pipeline.method.name)
            if row:
                losses[f"{pipeline.label}, {ARM_LABELS[arm]}, {finding}"] = row
    worst = sorted(losses.items(), key=lambda each: -each[1].value)
    names = [f"{name} ({number(-row.value, _UNIT)})" for name, row in worst if judgement_of(row).is_yes]
    missed = [row for _, row in worst if judgement_of(row).answer is Answer.OPEN and not math.isnan(row.size)]
    sentences = []
    if names:
        sentences.append(
            f"Tuning the maps cost prediction: the AUROC of {few(names)} lies clearly below that of the control, which "
            "was tuned without maps, so part of the difference is due to a worse model."
        )
    if missed:
        sentences.append(
            f"Whether tuning the maps cost prediction (an AUROC {number(missed[0].size, _UNIT)} or more below the "
            f"control\u2019s) is not shown for {len(missed)} of {count(len(losses), 'network')}."
        )
    return " ".join(sentences)


def _floors(evidence: Evidence) -> str:
    """Floors that pass as good maps: then the criterion is weak there."""
    rows = [row for row in blames(evidence) if row.pipeline.method.kind == "floor"]
    fooled = [row for row in rows if row.before in {"shows", "looks_elsewhere"} or row.under == "follows"]
    if not fooled:
        return ""
    where = few(list(dict.fromkeys(f"{row.finding} ({row.pipeline.base.label})" for row in fooled)))
    names = listed(list(dict.fromkeys(row.pipeline.method.label for row in fooled)))
    return (
        f"{names}, made without the model, is read as marking the region, or as following the model, on {where}: "
        "there, a map whose score is just above chance proves nothing."
    )


def _scale(evidence: Evidence) -> str:
    if not blames(evidence) or manifest(evidence).human == "readers":
        return ""
    return (
        "No second reader marked these images, so the upper end of the common scale is the mask itself: no human "
        "would reach it, and every score looks lower than it would on a scale with readers."
    )
