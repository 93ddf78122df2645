"""What a careful reader should hold against an alignment study's verdict, one plain sentence each."""

import math

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.report.alignment_blame import blames
from heatcheck.report.alignment_facts import ARMS, Pipeline, against_truth, of_network, pipelines, seeds_of
from heatcheck.report.caveats import smaller_settings
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, count, few, listed, number

FEW_POSITIVES = 10
MOST_LOST = 0.05  # of AUROC, before a tuned network is called another model
WEAK = 0.6


def caveats(evidence: Evidence) -> tuple[str, ...]:
    """The sentences that apply to this run."""
    made = (
        _failed(evidence),
        _one_seed(evidence),
        _few_positives(evidence),
        _phantom(evidence),
        _weak(evidence),
        _lost(evidence),
        _floors(evidence),
        _scale(evidence),
        smaller_settings(evidence),
    )
    return tuple(sentence for sentence in made if sentence)


def _failed(evidence: Evidence) -> str:
    """How many networks and images took no part."""
    cases = evidence.run.cases
    lost = cases[cases["status"] == "failed"]
    cells = int((lost["stage"] == "training").sum())
    images = len(lost) - cells
    told = [f"{count(cells, 'fine-tuned network')} failed"] if cells else []
    told += [f"{count(images, 'image')} could not be read"] if images else []
    if not told:
        return ""
    return f"{' and '.join(told)}, and took no part; the section on gaps lists them with reasons."


def _one_seed(evidence: Evidence) -> str:
    if len(seeds_of(evidence)) != 1:
        return ""
    return (
        "Every network was fine-tuned once, with one seed: the intervals speak of other patients, not of another "
        "training, which may end elsewhere."
    )


def _few_positives(evidence: Evidence) -> str:
    told = evidence.run.manifest.get("positives") or {}
    rare = [f"{finding} ({facts['evaluation']})" for finding, facts in told.items()
            if facts.get("evaluation") is not None and facts["evaluation"] < FEW_POSITIVES]  # fmt: skip
    if not rare:
        return ""
    return f"Fewer than {FEW_POSITIVES} evaluation images stand behind {few(rare)}: read those rows as anecdotes."


def _phantom(evidence: Evidence) -> str:
    name = str((evidence.run.manifest.get("source") or {}).get("name") or "")
    if not name.startswith("phantom"):
        return ""
    return "The images are drawn, not taken of patients: what holds here need not hold on radiographs."


def _auroc(evidence: Evidence, pipeline: Pipeline, arm: str) -> float:
    row = of_network(evidence, pipeline, arm, ("auroc", "auroc", ALL_FINDINGS))
    return row.value if row else math.nan


def _weak(evidence: Evidence) -> str:
    """Base models that hardly predict: what such a model relies on is a poor measure of any map."""
    values = {pipeline.base.label: _auroc(evidence, pipeline, "base") for pipeline in pipelines(evidence)}
    weak = [f"{label} ({number(value, SCORE.rounded(2))})" for label, value in values.items() if value < WEAK]
    if not weak:
        return ""
    return f"Hardly better than guessing (AUROC): {few(weak)}. Whatever such a model\u2019s maps show explains a guess."


def _lost(evidence: Evidence) -> str:
    """Networks that lost prediction while their maps were tuned: the comparison is then not of like with like."""
    lost = []
    for pipeline in pipelines(evidence):
        base = _auroc(evidence, pipeline, "base")
        for arm in ("align", "misalign"):
            fall = base - _auroc(evidence, pipeline, arm)
            if fall > MOST_LOST:
                lost.append(f"{pipeline.label}, {ARMS[arm]} ({number(-fall, SCORE.rounded(2))})")
    if not lost:
        return ""
    return (
        f"Tuning the maps cost prediction: the AUROC of {few(lost)} fell by more than {MOST_LOST:g}, so part of the "
        "distance is that of a worse model."
    )


def _floors(evidence: Evidence) -> str:
    """Pictures made without the model that are read as if they showed something: then little was asked here."""
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
    if not blames(evidence) or not against_truth(evidence):
        return ""
    return (
        "No second reader marked these images, so the upper end of the common scale is the mask itself: no human "
        "would reach it, and every score looks lower than it would beside readers."
    )
