"""What a trigger study will cost: images to prepare, networks to train, and attacked images to explain."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heatcheck.core.records import CaseKey
from heatcheck.explaining.cost import seconds_to_explain
from heatcheck.fitting.cost import FitSize, PlannedFit, fits_to_do, not_finished, preparing, step_seconds
from heatcheck.fitting.networks import FOLDER
from heatcheck.fitting.stage import TRAINING
from heatcheck.models import NetworkClassifier
from heatcheck.models.load import usable_device
from heatcheck.report.numbers import count
from heatcheck.running.cost import Cost, Work, joined, left
from heatcheck.runs.store import RunFolder
from heatcheck.studies.triggers.gate import outcomes, why_not_graded
from heatcheck.studies.triggers.images import FOLDER as IMAGES
from heatcheck.studies.triggers.images import channels_of, plain_contract
from heatcheck.studies.triggers.scores import Scorer, attacked_image
from heatcheck.triggers.stamp import stamp_where

if TYPE_CHECKING:
    from heatcheck.studies.triggers.plan import TriggersPlan

MODELS_EXPLAINED = 2  # the poisoned one and the baseline, as its control


def triggers_cost(plan: "TriggersPlan", folder: RunFolder) -> Cost:
    """The work that the folder does not hold yet."""
    works = [*_planting(plan, folder)] if plan.triggers else []
    planted = _images_of_triggers(plan, folder) if plan.triggers else []
    found = [len(plan.artefact_keys)] * len(plan.artefacts.findings) if plan.artefacts else []
    parts = [0, *_shards(planted, plan), *_shards(found, plan)]
    waiting = left(folder, parts)
    first = 1 + len(_shards(planted, plan))
    one = _seconds_of_one(plan) if sum(waiting) else (0.0, 0.0)
    doing = f"to explain by {count(len(plan.methods), 'method')}"
    twice = f"{doing} with {count(MODELS_EXPLAINED, 'model')}"
    works.append(Work(sum(waiting[:first]), "attacked image", twice, MODELS_EXPLAINED * one[0] + one[1]))
    works.append(Work(sum(waiting[first:]), "image", f"with artefacts {doing}", sum(one)))
    return Cost(works, plan.options.device)


def _planting(plan: "TriggersPlan", folder: RunFolder) -> list[Work]:
    """The images to prepare and the networks to train."""
    body, contract = plan.body, plan.contract
    prepared = plain_contract(contract, channels_of(plan.sources["training"]))
    images = [
        preparing(source, prepared, folder.path / IMAGES / f"{name}.npy", plan.options.workers)
        for name, source in plan.sources.items()
    ]
    one = step_seconds(plan.untrained(), contract, body.fit, "single_label", plan.options.device)
    sizes = {name: len(source.index()) for name, source in plan.sources.items()}
    others = sum(not key.labels[plan.target] for key in plan.sources["validation"].index())
    fits = []
    for network in plan.networks:
        part, judged = (body.retrain, others) if network.trigger else (body.fit, 0)
        size = FitSize(part, sizes["training"], sizes["validation"] + judged)
        answers = sizes["test"] * (2 if network.trigger else 1) * one.judge  # of stamped ones two networks' are needed
        given = network.trigger is None and plan.given is not None
        state = folder.path / FOLDER / f"{network.file}.ckpt"
        fits.append(PlannedFit(size, (0.0 if given else size.seconds(one)) + answers, state))
    return [*joined(images), fits_to_do(not_finished(fits, folder.within(TRAINING)))]


def _images_of_triggers(plan: "TriggersPlan", folder: RunFolder) -> list[int]:
    """The images that are explained under each poisoned model: at most, until the networks are trained."""
    training = folder.within(TRAINING)
    poisoned = [network for network in plan.networks if network.trigger]
    if (training.path / "scores.parquet").exists():
        found = outcomes(training.path)
        graded = [found.get((network.name, network.seed)) for network in poisoned]
        sent = [each.sent for each in graded if each is not None and not why_not_graded(plan.body.gate, each)]
        return [len(cases[: plan.options.limit]) for cases in sent]
    others = sum(not key.labels[plan.target] for key in plan.sources["test"].index())
    attacked = max(1, min(round(plan.body.poison.test * others), others - 1))
    return [min(attacked, plan.options.limit or attacked)] * len(poisoned)


def _shards(images: Sequence[int], plan: "TriggersPlan") -> list[int]:
    """The images of each shard; no shard has those of two networks."""
    size = plan.envelope.shard_size
    return [min(size, number - start) for number in images for start in range(0, number, size)]


def _seconds_of_one(plan: "TriggersPlan") -> tuple[float, float]:
    """The seconds of explaining one image with one model, and of scoring its maps, measured on noise."""
    device = usable_device(plan.options.device)
    classifier = plan.given or NetworkClassifier(plan.model, plan.untrained().to(device).eval(), plan.contract)
    explainer = plan.explainer(classifier)
    random = np.random.default_rng(0)
    clean = random.random((plan.contract.channels, *plan.contract.size), np.float32)
    mask = np.zeros(plan.contract.size, bool)
    mask[tuple(slice(0, max(1, side // 10)) for side in plan.contract.size)] = True
    image = attacked_image(CaseKey("", "", {}), plan.target, clean, stamp_where(mask, 1 - clean))
    maps = {name: random.random(plan.contract.size, np.float32) for name in plan.methods}
    scorer = Scorer("", "", {}, plan.detector, 0, classifier, classifier, plan.pairs)
    begun = time.perf_counter()
    scorer.scores([image], [maps])
    scoring = time.perf_counter() - begun
    return seconds_to_explain(explainer, plan.envelope.batch_size), scoring
