"""How long networks take to train on this machine, from a step or two of one of them."""

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from heatcheck.core.contracts import Source
from heatcheck.core.tensors import Images
from heatcheck.explaining.cost import seconds_per_image
from heatcheck.fitting.contract import channels_for
from heatcheck.fitting.examples import CaseExamples
from heatcheck.fitting.networks import new_network
from heatcheck.fitting.spec import FitPart, TrainingPlan
from heatcheck.models import Preprocessing
from heatcheck.models.load import usable_device
from heatcheck.report.numbers import count
from heatcheck.running.cost import Cost, Work, joined
from heatcheck.running.execute import cores
from heatcheck.runs.store import RunFolder
from heatcheck.training import STRATEGIES, LabelObjective, Machine, quick, steps_done
from heatcheck.training.batches import Batches
from heatcheck.training.objective import Means
from heatcheck.training.schedule import OPTIMIZERS

REMEDY = "fewer `epochs` or `runs` in the spec"


@dataclass(frozen=True, slots=True)
class StepSeconds:
    """The seconds of one image in a step of a fit, and in a check on validation data."""

    learn: float
    judge: float


@dataclass(frozen=True, slots=True)
class FitSize:
    """How many images a fit goes through."""

    part: FitPart
    training: int
    validation: int
    check_every: int | None = None  # steps; None: at the end of each epoch

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.part.epochs * len(Batches(self.training, self.part.batch_size, 0))

    @property
    def learned(self) -> int:
        """The images of all steps, each as often as it is learned from."""
        return self.steps * self.part.batch_size

    @property
    def judged(self) -> int:
        """The images of all checks, each as often as it is answered."""
        checks = self.part.epochs if self.check_every is None else math.ceil(self.steps / self.check_every)
        return checks * self.validation

    def seconds(self, one: StepSeconds) -> float:
        """The seconds of the whole fit."""
        return self.learned * one.learn + self.judged * one.judge

    def __str__(self) -> str:
        return f"{count(self.part.epochs, 'epoch')} of {count(self.training, 'image')}"


def step_seconds(
    module: nn.Module, contract: Preprocessing, part: FitPart, strategy: str, device: str = "cpu"
) -> StepSeconds:
    """The seconds of an image in a step of learning from labels, in full precision; the module is used up."""
    network = quick(module.to(usable_device(device)))
    objective = LabelObjective(strategy)
    optimizer = OPTIMIZERS[part.optimizer](network.parameters(), lr=0.0)
    noise = torch.rand(part.batch_size, contract.channels, *contract.size, generator=torch.Generator().manual_seed(0))
    means = Means(network, 0, Tensor.backward, nullcontext)

    def labels(images: Images) -> Tensor:
        return torch.eye(len(contract.outputs), device=images.device)[:1].expand(len(images), -1)

    def learn(images: Images) -> None:
        optimizer.zero_grad(set_to_none=True)
        objective.learn(means, [images, labels(images)])

    def judge(images: Images) -> None:
        with torch.no_grad():
            objective.judge(means, [images, labels(images)])

    images = noise.to(usable_device(device))
    with torch.random.fork_rng():
        # BatchNorm cannot learn from one image that has one pixel left
        learned = seconds_per_image(learn, images, least=min(2, len(images)))
        updated = _seconds_of_update(optimizer, images) / part.batch_size
        network.eval()
        judged = seconds_per_image(judge, images)
    return StepSeconds(learned + updated, judged)


def _seconds_of_update(optimizer: torch.optim.Optimizer, images: Images) -> float:
    """The seconds in which all weights are updated once, after an update that sets the optimizer up.

    However many images a step has: a large network learns from two of them in the time that its weights take.
    """

    def update(_: Images) -> None:
        optimizer.step()

    return seconds_per_image(update, images[:1])


@dataclass(frozen=True, slots=True)
class PlannedFit:
    """A fit that may have begun: its size, the seconds of all of it, and the file with its state."""

    size: FitSize
    seconds: float
    state: Path

    @property
    def seconds_left(self) -> float:
        """The seconds that an earlier call left."""
        return self.seconds * (1 - min(1.0, steps_done(self.state) / self.size.steps))


def fits_to_do(fits: Sequence[PlannedFit], doing: str = "to train") -> Work:
    """The networks of these fits, and the seconds of each on average."""
    described = sorted({str(fit.size) for fit in fits})
    what = f"{doing} for {described[0]}" if len(described) == 1 else doing
    return Work(len(fits), "network", what, math.fsum(fit.seconds_left for fit in fits) / max(1, len(fits)))


def not_finished(fits: Sequence[PlannedFit], folder: RunFolder) -> list[PlannedFit]:
    """The fits of a stage whose shard the folder does not hold yet."""
    return [fit for shard, fit in enumerate(fits) if not folder.has_shard(shard)]


def preparing(source: Source, contract: Preprocessing, file: Path, workers: int) -> Work:
    """The images of a source that are prepared once and stored in the file; none where it is there."""
    number = 0 if file.exists() else len(source.index())
    each = reading_seconds(source, contract, workers) if number else 0.0
    return Work(number, "image", "to prepare", each, 2.0 * number * contract.channels * math.prod(contract.size))


def reading_seconds(source: Source, contract: Preprocessing, workers: int) -> float:
    """The seconds of reading an image and putting it on the model's grid, where so many processes share the cores."""
    examples = CaseExamples(source, contract)

    def seconds(index: int) -> float:
        begun = time.perf_counter()
        examples[index]
        return time.perf_counter() - begun

    least = min(map(seconds, range(min(2, len(examples)))))  # the first call sets things up
    return least / max(1, min(workers, cores()))


def training_cost(plan: TrainingPlan, out: Path, machine: Machine, names: Sequence[str]) -> Cost:
    """What the runs of these names will cost, with the images that are read before and tested after them."""
    body, workers = plan.body, machine.workers
    channels = channels_for(body.pixels, plan.training)
    contract = Preprocessing(outputs=plan.outputs, size=body.size, channels=channels)
    sources = {"training": plan.training, "validation": plan.validation} | (
        {"test": plan.test} if body.ensemble else {}
    )
    reading = reading_seconds(plan.training, contract, workers)
    works = []
    if body.pixels.mean is None and body.pixels.scaling == "fixed" and not (out / "contract.json").exists():
        number = min(len(plan.training.index()), body.pixels.sample or len(plan.training.index()))
        works.append(Work(number, "image", "to measure", reading))
    if body.cache:
        works += [preparing(source, contract, out / f"{name}.npy", workers) for name, source in sources.items()]
    strategy = plan.strategies[0]
    answered = contract.model_copy(update={"head": STRATEGIES[strategy].head})
    one = step_seconds(new_network(body.model, answered), contract, body.fit, strategy, machine.device)
    size = FitSize(body.fit, len(plan.training.index()), len(plan.validation.index()), body.checkpoints.every_steps)
    again = 0.0 if body.cache else (size.learned + size.judged) * reading
    shared = StepSeconds(one.learn / machine.devices, one.judge)
    fits = [PlannedFit(size, size.seconds(shared) + again, out / "runs" / f"{name}.ckpt") for name in names]
    tested = Work(len(plan.test.index()), "image", "to test", _networks_tested(plan) * one.judge + reading)
    return Cost([*joined(works), fits_to_do(fits), tested], machine.device, REMEDY, rest="")


def _networks_tested(plan: TrainingPlan) -> int:
    """The best one and, at most, every member of the ensemble and of the best of each finding."""
    kept = len(plan.strategies) * plan.body.runs * plan.body.checkpoints.keep
    members = (
        [min(kept, number * len(plan.outputs)) for number in (plan.body.ensemble, 1)] if plan.body.ensemble else []
    )
    return 1 + sum(members)
