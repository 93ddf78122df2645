"""What a modality study will cost: networks to train, cases to show with each subset, and cases to explain."""

import time
from typing import TYPE_CHECKING, cast

import numpy as np

from heatcheck.core.errors import CaseError
from heatcheck.explaining.cost import PassSeconds, ReadCase, pass_seconds, passes_for, read_one
from heatcheck.fitting.cost import (
    FitSize,
    PlannedFit,
    fits_to_do,
    not_finished,
    preparing,
    reading_seconds,
    step_seconds,
)
from heatcheck.fitting.stage import TRAINING
from heatcheck.maps.joint import joint
from heatcheck.methods.registry import Passes
from heatcheck.models import NetworkClassifier
from heatcheck.models.load import usable_device
from heatcheck.report.numbers import count
from heatcheck.running.cost import Cost, Work, left
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality.estimating.importance import Importances
from heatcheck.studies.modality.floors import Floors
from heatcheck.studies.modality.networks import IMAGES
from heatcheck.studies.modality.scores import MapScorer
from heatcheck.studies.modality.shapley import FoldCases, ShapleyStage
from heatcheck.studies.modality.vocabulary import PHI, PLAIN

if TYPE_CHECKING:
    from heatcheck.studies.modality.plan import ModalityPlan

FLOORS = 3  # maps made without the network, which are scored as well


def modality_cost(plan: "ModalityPlan", folder: RunFolder) -> Cost:
    """The work that the folder does not hold yet."""
    device = usable_device(plan.options.device)
    module = plan.networks(folder).untrained().to(device).eval() if plan.given is None else plan.given.module
    classifier = NetworkClassifier(plan.model, module, plan.contract)
    passes = _passes(plan)
    seconds = pass_seconds(classifier, plan.envelope.batch_size, passes)
    read = read_one(plan.source, plan.source.index())
    works = _training(plan, folder) if plan.given is None else []
    works.append(_subsets(plan, folder, seconds, read))
    works.append(_maps(plan, folder, seconds.of(passes), read))
    return Cost(works, plan.options.device)


def _training(plan: "ModalityPlan", folder: RunFolder) -> list[Work]:
    """The images to prepare and the networks to train."""
    networks = plan.networks(folder)
    body, workers = plan.body, plan.options.workers
    one = step_seconds(networks.untrained(), plan.contract, body.fit, "single_label", plan.options.device)
    each = 0.0 if body.cache else reading_seconds(plan.source, plan.contract, workers)
    fits = []
    for kind in filter(None, (networks, plan.plain_networks(networks))):
        for fold in plan.folds:
            size = FitSize(body.fit, len(fold.training), len(fold.validation))
            spent = size.seconds(one) + (size.learned + size.judged) * each
            fits.append(PlannedFit(size, spent, kind.store.state(kind.name(fold.number))))
    waiting = not_finished(fits, folder.within(TRAINING))
    images = preparing(plan.source, plan.contract, folder.path / IMAGES / "cases.npy", workers)
    return [*([images] if body.cache and waiting else []), fits_to_do(waiting)]


def _subsets(plan: "ModalityPlan", folder: RunFolder, seconds: PassSeconds, read: ReadCase | None) -> Work:
    """The cases to show with each subset of their modalities, to all networks."""
    subsets, fills = len(plan.coalitions.members), len(plan.body.fills)
    tested, known = plan.tested_cases, plan.known_cases
    shown = [(ShapleyStage.name, [*tested, *known], fills)] + ([(PLAIN, tested, 1)] if plan.body.plain else [])
    cases, passes = 0, 0
    for name, every, kinds in shown:
        for part, number in _waiting(plan, every, folder.within(name)):
            cases += number
            passes += number * (1 if part.known else subsets * kinds * len(PHI))
    spent = passes * seconds.forward + cases * (read.seconds if read else 0.0)
    return Work(cases, "case", f"to show with {count(subsets, 'subset')} of the modalities", spent / max(1, cases))


def _passes(plan: "ModalityPlan") -> Passes:
    """The passes that explain one case, and those that answer it as its voxels are removed."""
    contract, removal = plan.contract, plan.body.removal
    passes = passes_for(plan.methods, (contract.channels, *contract.size), 1)
    if removal is None:
        return passes
    return passes + Passes((removal.random + len(plan.methods)) * (removal.steps + 1))


def _maps(plan: "ModalityPlan", folder: RunFolder, each: float, read: ReadCase | None) -> Work:
    """The cases to explain, score and take voxels from."""
    cases, methods = sum(number for _, number in _waiting(plan, plan.tested_cases, folder)), len(plan.methods)
    disk = 0.0
    if read is not None:
        each += read.seconds + (methods + FLOORS) * _seconds_to_score(plan, read)
        if plan.envelope.keep_maps == "all":
            disk = 2.0 * cases * methods * read.case.image.size
    return Work(cases, "case", f"to explain by {count(methods, 'method')}", each, disk)


def _waiting(plan: "ModalityPlan", every: list[FoldCases], folder: RunFolder) -> list[tuple[FoldCases, int]]:
    """The cases of each shard that is left, and whose they are."""
    parts = plan.case_settings.parts(every)
    numbers = left(folder, [len(part.cases) for part in parts])
    return [(part.group, number) for part, number in zip(parts, numbers, strict=True)]


def _seconds_to_score(plan: "ModalityPlan", read: ReadCase) -> float:
    """The seconds of scaling and scoring one map of the case, measured on noise."""
    try:
        case = plan.case_settings.case(read.case)
    except CaseError:
        return 0.0
    nothing = np.zeros(len(plan.modalities))
    found = Importances(nothing, nothing, np.zeros((len(nothing), len(nothing)), int))
    scorer = MapScorer(plan.modalities, found, "", 1, cast("Floors", None))  # it makes no floors here
    noise = np.random.default_rng(0).random(read.case.image.shape, np.float32)
    begun = time.perf_counter()
    scorer.scores(case, "", joint(noise, case.head), shared=False)
    return time.perf_counter() - begun
