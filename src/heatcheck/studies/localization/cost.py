"""What explaining and scoring the images of a split will cost."""

import math
import time
from collections.abc import Sequence

import numpy as np
import torch

from heatcheck.core.geometry import place
from heatcheck.core.records import Case
from heatcheck.explaining.batch import Explained, GridMaps
from heatcheck.explaining.cost import read_one, seconds_to_explain
from heatcheck.explaining.study_models import Split, StudyModels
from heatcheck.report.numbers import count
from heatcheck.running.case_stage import cut
from heatcheck.running.cost import Work, left
from heatcheck.runs.spec import Envelope
from heatcheck.runs.store import RunFolder
from heatcheck.scoring.rows import ScoringRule
from heatcheck.studies.localization.scores import score_case

SCORED = "scored"  # the split that is not for tuning
CELLS = 16  # along each axis of the noise that stands for a map


def images_to_explain(
    split: Split, models: StudyModels, rule: ScoringRule, envelope: Envelope, folder: RunFolder
) -> Work:
    """The images of a split that are left, each explained with every model and scored."""
    noun = "image" if split.name == SCORED else f"{split.name} image"
    waiting = _waiting(split, models.names, envelope.shard_size, folder)
    images, passes = max(waiting.values()), sum(waiting.values())
    if not images:
        return Work(0, noun, "to explain", 0.0)
    seconds, disk = 0.0, 0.0
    for name, explainer in models.each():
        seconds += waiting[name] * seconds_to_explain(explainer, envelope.batch_size)
        findings, methods = explainer.findings, list(explainer.methods)  # the same for all models
    read = read_one(split.source, split.keys)
    if read is not None:
        seconds += passes * (read.seconds + _seconds_to_score(read.case, findings, methods, rule))
        if envelope.keep_maps == "all" and split.name == SCORED:
            disk = 2.0 * passes * len(methods) * len(findings) * math.prod(read.case.image.shape[1:])
    by, of = count(len(methods), "method"), count(len(findings), "finding")
    doing = f"to explain by {by} for {of} with {count(len(models.names), 'model')}"
    return Work(images, noun, doing, seconds / images, disk)


def _waiting(split: Split, models: Sequence[str], size: int, folder: RunFolder) -> dict[str, int]:
    """By model: the images that the folder does not hold yet."""
    parts = cut(((name, split.keys) for name in models), size)
    waiting = dict.fromkeys(models, 0)
    for part, number in zip(parts, left(folder, [len(part.cases) for part in parts]), strict=True):
        waiting[part.group] += number
    return waiting


def _seconds_to_score(case: Case, findings: Sequence[str], methods: Sequence[str], rule: ScoringRule) -> float:
    """The seconds of scoring the maps of a case, measured on noise."""
    shape = tuple(case.image.shape[1:])
    noise = np.random.default_rng(0).random((len(findings), *(CELLS,) * len(shape)), np.float32)
    maps = GridMaps(torch.from_numpy(noise))
    some = (0.0,) * len(findings)
    explained = Explained(
        case, some, some, dict.fromkeys(methods, maps), place(shape, (CELLS,) * len(shape), "stretch")
    )
    begun = time.perf_counter()
    score_case(explained, findings, "", rule)
    return time.perf_counter() - begun
