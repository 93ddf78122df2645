"""What an alignment study will cost: bases to train, and networks to fine-tune and measure."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from heatcheck.core.contracts import Source
from heatcheck.core.records import CaseKey
from heatcheck.explaining.cost import PassSeconds, pass_seconds, read_one
from heatcheck.fitting.cost import FitSize, PlannedFit, fits_to_do, not_finished, reading_seconds, step_seconds
from heatcheck.fitting.networks import FOLDER as NETWORKS
from heatcheck.fitting.networks import new_network
from heatcheck.fitting.stage import TRAINING
from heatcheck.methods.registry import passes_of
from heatcheck.models import MODELS, NetworkClassifier
from heatcheck.models.load import usable_device
from heatcheck.running.cases import first_patients
from heatcheck.running.cost import Cost, Work
from heatcheck.runs.store import RunFolder
from heatcheck.scoring.rows import MapTarget, score_map
from heatcheck.studies.alignment.bases import UNTRAINED_NETWORKS, BaseNetworks, PlannedBase, fresh
from heatcheck.studies.alignment.images import FOLDER as IMAGES
from heatcheck.studies.alignment.images import INDEX, file_of
from heatcheck.studies.alignment.networks import NetworkCell, methods_on
from heatcheck.studies.alignment.reliance import RelianceSettings
from heatcheck.studies.alignment.vocabulary import FILLS, VALIDATION

if TYPE_CHECKING:
    from heatcheck.studies.alignment.plan import AlignmentPlan

REMEDY = "fewer `seeds`, `findings` or `methods` in the spec"
WITH_GRADIENT = 3  # a pass that is differentiated takes the time of three: itself, and its gradient twice that


def alignment_cost(plan: "AlignmentPlan", folder: RunFolder) -> Cost:
    """The work that the folder does not hold yet."""
    works = [_images(plan, folder)]
    if plan.body.base is not None:
        works += _bases(plan, folder)
    cells = [cell for shard, cell in enumerate(plan.cells, 1) if not folder.has_shard(shard)]
    measured = Measurements(plan, folder) if cells else None
    tuned = [cell for cell in cells if cell.arm != "base"]
    others = [cell for cell in cells if cell.arm == "base"]
    for some, doing in ((others, "to measure"), (tuned, "to fine-tune and measure")):
        seconds = math.fsum(measured.seconds(cell) for cell in some) if measured else 0.0
        works.append(Work(len(some), "network", doing, seconds / max(1, len(some))))
    return Cost(works, plan.options.device, REMEDY)


def _images(plan: "AlignmentPlan", folder: RunFolder) -> Work:
    """The images to prepare for fine-tuning and evaluation, once for each preprocessing."""
    sources = [plan.sources[name] for name in ("finetune", "evaluation") if not _is_read(folder, name)]
    contracts = {file_of(base.contract): base.contract for base in plan.bases}
    number, seconds = sum(len(source.index()) for source in sources), 0.0
    for source in sources:
        each = reading_seconds(source, next(iter(contracts.values())), plan.options.workers)
        seconds += len(source.index()) * each
    disk = 4.0 * number * sum(math.prod(contract.size) for contract in contracts.values())
    return Work(number, "image", "to prepare", seconds / max(1, number), disk)


def _is_read(folder: RunFolder, name: str) -> bool:
    return (folder.path / IMAGES / name / INDEX).exists()


def _bases(plan: "AlignmentPlan", folder: RunFolder) -> list[Work]:
    """The images to prepare for the bases, and the bases to train."""
    part, base_networks = plan.body.base, BaseNetworks(plan.bases, plan.spec, plan.options, folder.path / NETWORKS)
    if part is None:
        return []
    trained = [base for base in plan.bases if base.trained]
    source, validation = plan.sources["training"], plan.sources[VALIDATION]
    each = reading_seconds(source, trained[0].contract, plan.options.workers)
    fits, known = [], dict[str, float]()
    for base in trained:
        fit = base.fit or part.fit
        size = FitSize(fit, len(source.index()), len(validation.index()))
        if _kind(base) not in known:
            module = fresh(base, plan.envelope.seed)
            one = step_seconds(module, base.contract, fit, part.uncertainty, plan.options.device)
            known[_kind(base)] = size.seconds(one) + (0.0 if part.cache else (size.learned + size.judged) * each)
        fits.append(PlannedFit(size, known[_kind(base)], base_networks.store.state(base.file)))
    waiting = not_finished(fits, folder.within(TRAINING))
    files = {file_of(base.contract): base.contract for base in trained}
    number = (len(source.index()) + len(validation.index())) * len(files) if part.cache and waiting else 0
    disk = 2.0 * number * max(math.prod(contract.size) for contract in files.values())
    return [Work(number, "image", "of the bases to prepare", each, disk), fits_to_do(waiting, "to train as a base")]


def _kind(base: PlannedBase) -> str:
    """What bases share that take the same time: network, input and fit."""
    return f"{base.settings.name} {file_of(base.contract)} {base.contract.channels} {base.fit}"


@dataclass(frozen=True, slots=True)
class Split:
    """How many images a split has, and for each finding how many show it, of all and of those that are explained."""

    images: int
    positives: dict[str, int]
    explained: dict[str, int]

    @classmethod
    def of(cls, source: Source, findings: Sequence[str], limit: int | None) -> "Split":
        """The counts of a source, by its labels."""
        keys = source.index()
        positives = {name: [key for key in keys if key.labels.get(name) == 1] for name in findings}
        return cls(
            len(keys),
            {name: len(some) for name, some in positives.items()},
            {name: _of_first_patients(some, limit) for name, some in positives.items()},
        )


def _of_first_patients(keys: Sequence[CaseKey], limit: int | None) -> int:
    patients = first_patients(keys, limit)
    return sum(key.patient in patients for key in keys)


def copies_of(settings: RelianceSettings) -> int:
    """The forward passes that measure the reliance on one image: its copies and those of films without the finding."""
    of_one = 1 + (1 + settings.shifts) * len(FILLS)
    return (1 + settings.films) * of_one + 2 * settings.films


class Measurements:
    """The seconds of each network of the grid, from the passes of one of each kind."""

    def __init__(self, plan: "AlignmentPlan", folder: RunFolder) -> None:
        self.plan, self.folder = plan, folder
        limit, sources = plan.options.limit, plan.sources
        self.finetune = Split.of(sources["finetune"], plan.findings, limit)
        self.evaluation = Split.of(sources["evaluation"], plan.findings, limit)
        self.scoring = _seconds_to_score(plan)
        self._passes: dict[str, PassSeconds] = {}

    def seconds(self, cell: NetworkCell) -> float:
        """The seconds of fine-tuning and measuring one network."""
        base = next(base for base in self.plan.bases if base.key == cell.base)
        one = self._of(base)
        explained = sum(self.evaluation.explained[name] for name in cell.findings)
        maps = sum(self._map(method, base, one) + self.scoring for method in methods_on(cell, self.plan.rule))
        copies = copies_of(self.plan.measuring.reliance)
        spent = one.forward * (self.evaluation.images + explained * copies) + explained * maps
        if cell.arm == "base":
            again = len(cell.findings) * self.evaluation.images + explained * copies
            return spent + UNTRAINED_NETWORKS * one.forward * again
        learned = (1 - self.plan.body.selection) * sum(self.finetune.explained[name] for name in cell.findings)
        return spent + learned * maps + self._fine_tuning(cell, base, one)

    def _fine_tuning(self, cell: NetworkCell, base: PlannedBase, one: PassSeconds) -> float:
        """The seconds of the fit: of labels, and of maps where the finding is outlined."""
        choosing = round(self.plan.body.selection * self.finetune.images)
        size = FitSize(self.plan.body.fit, self.finetune.images - choosing, choosing)
        marked = sum(self.finetune.positives[name] for name in cell.findings) / self.finetune.images
        each = one.forward + (marked * self._map(cell.method, base, one) if cell.method else 0.0)
        return (WITH_GRADIENT * size.learned + size.judged) * each

    def _map(self, method: str, base: PlannedBase, one: PassSeconds) -> float:
        shape = (base.contract.channels, *base.contract.size)
        return one.of(passes_of(method, self.plan.measuring.methods[method], shape, 1))

    def _of(self, base: PlannedBase) -> PassSeconds:
        if _kind(base) not in self._passes:
            self._passes[_kind(base)] = pass_seconds(_network(self.plan, base), self.plan.envelope.batch_size)
        return self._passes[_kind(base)]


def _network(plan: "AlignmentPlan", base: PlannedBase) -> NetworkClassifier:
    """A network of the base's kind, with any weights."""
    if base.settings.name not in MODELS:
        return BaseNetworks(plan.bases, plan.spec, plan.options, Path()).classifier(base.key)
    module = new_network(base.settings.name, base.contract).to(usable_device(plan.options.device))
    return NetworkClassifier(base.key, module.eval(), base.contract)


def _seconds_to_score(plan: "AlignmentPlan") -> float:
    """The seconds of scoring one map, measured on noise."""
    finding = plan.findings[0]
    keys = [key for key in plan.sources["evaluation"].index() if key.labels.get(finding) == 1]
    read = read_one(plan.sources["evaluation"], keys)
    if read is None:
        return 0.0
    noise = np.random.default_rng(0).random(read.case.image.shape[1:], np.float32)
    begun = time.perf_counter()
    score_map(MapTarget(read.case, finding, "", math.nan), noise, "", plan.measuring.rule)
    return time.perf_counter() - begun
