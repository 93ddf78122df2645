"""Scores of many partly covered copies of an image; one pass serves every target."""

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.tensors import Images, Logits, Targets
from heatcheck.methods.covering.covers import ChosenCovers, Covers, Pixels, change_by
from heatcheck.methods.passes import evaluation_mode, module_of
from heatcheck.methods.speed.folding import Folding, plain
from heatcheck.methods.speed.local import local_scores

MaxBatch = Annotated[int, Field(ge=1)] | Literal["found"]  # copies that pass through the model together
OUTSIDE_A_STUDY = 4  # in place of "found", which only a study measures: a few copies are fastest on a CPU
TRIAL_PASSES = 14.0  # time limit for finding the best batch, in forward passes of one image
ACTIVATIONS = 256  # a network rarely needs more than this many times the memory of its input


@dataclass
class Evaluator:
    """Scores of all outputs of a classifier, at most `at_a_time` images at once.

    This number is fixed, not measured while running, because another one changes the last digits of the scores, and
    an interrupted run must end with the same scores.
    """

    classifier: Classifier
    at_a_time: int
    folding: Folding | None = None  # used for volumes; for 2D images it would cost as much as it saves
    channels_last: bool = False  # memory layout of images; faster on a CPU, for volumes by a third

    def uncovered(self, images: Images) -> Logits:
        """The scores of the images as they are."""
        return torch.cat([self.scores(some) for some in torch.split(images, self.at_a_time)])

    def covered(self, image: Pixels, covers: Covers, fill: Pixels) -> Float[Tensor, "cover output"]:
        """The scores of the image with each cover, under which `fill` shows."""
        starts = range(0, len(covers), self.at_a_time)
        pieces = (covers[start : start + self.at_a_time] for start in starts)
        return torch.cat([self.scores(torch.where(some, fill, image)) for some in pieces])

    def covered_alone(
        self, image: Pixels, covers: Covers, fill: Pixels, before: Float[Tensor, " output"]
    ) -> Float[Tensor, "cover output"]:
        """The same for covers that each hide a small part of an image whose scores `before` covering are known.

        A cover that changes nothing gets exactly these. For volumes only what a change reaches is computed; the scores
        then differ by rounding.
        """
        if self._can_follow(image):
            changes = (change_by(covers, index, image, fill) for index in range(len(covers)))
            answers = local_scores(self._logits, image.unsqueeze(0), changes, before.unsqueeze(0))
            if answers is not None:
                return answers
        changing = [index for index in range(len(covers)) if change_by(covers, index, image, fill) is not None]
        answers = before.repeat(len(covers), 1)
        if changing:
            answers[changing] = self.covered(image, ChosenCovers(covers, changing), fill)
        return answers

    def covered_in_turn(self, image: Pixels, covers: Covers, fill: Pixels) -> Float[Tensor, "cover output"]:
        """The same for covers most of which differ little from the one before."""
        if self._can_follow(image):
            changes = (change_by(covers, index, image, fill, max(0, index - 1)) for index in range(len(covers)))
            answers = local_scores(self._logits, torch.where(covers[:1], fill, image), changes)
            if answers is not None:
                return answers
        return self.covered(image, covers, fill)

    def scores(self, images: Images) -> Logits:
        """The scores of these images, which pass through the model together."""
        if self.channels_last and images.device.type == "cpu":
            layout = torch.channels_last if images.ndim == 4 else torch.channels_last_3d
            laid_out = torch.empty_like(images, memory_format=layout).copy_(images)
            try:
                return self._logits(laid_out)
            except RuntimeError as error:
                if "view" not in str(error):
                    raise
                self.channels_last = False  # a network that calls `view` needs the default layout
        return self._logits(images)

    def _can_follow(self, image: Pixels) -> bool:
        """Whether changes of the image can be followed through the network."""
        return self.folding is not None and image.ndim == 4 and image.device.type == "cpu"

    def _logits(self, images: Images) -> Logits:
        if self.folding is None or images.ndim != 5 or images.device.type != "cpu":
            return self.classifier.logits(images)
        with self.folding:
            return plain(self.classifier.logits(images))


@contextmanager
def evaluating(classifier: Classifier, max_batch: MaxBatch) -> Iterator[Evaluator]:
    """An evaluator; the network, if there is access to it, is in evaluation mode and records no graph."""
    at_a_time = OUTSIDE_A_STUDY if max_batch == "found" else max_batch
    module = module_of(classifier)
    with evaluation_mode(module) if module else nullcontext(), torch.no_grad():
        yield Evaluator(classifier, at_a_time, Folding() if module else None, channels_last=module is not None)


def score_drops(
    evaluate: Evaluator, images: Images, targets: Targets, covers: Sequence[Covers], fills: Sequence[Images]
) -> list[Float[Tensor, "cover target"]]:
    """For each image, how far each of its covers lowers the targets' scores, on average over its fills."""
    drops = []
    scores = evaluate.uncovered(images)
    for image, masks, image_fills, before, target in zip(images, covers, fills, scores, targets, strict=True):
        after = torch.stack([evaluate.covered_alone(image, masks, fill, before) for fill in image_fills]).mean(0)
        drops.append((before - after)[:, target])
    return drops


def needs_batch_size(method: Method) -> bool:
    """Whether the method leaves its batch size to be measured."""
    return getattr(method, "max_batch", None) == "found"


def with_batch(method: Method, size: int) -> Method:
    """The method with that batch size, unless its settings name one."""
    return replace(method, max_batch=size) if needs_batch_size(method) else method  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class _PassTime:
    """Seconds that a forward pass takes per image, by the clock and summed over the cores."""

    elapsed: float
    worked: float

    def is_clearly_less_than(self, other: "_PassTime") -> bool:
        """Whether either is: the clock says little on a busy computer, and the work says little on many cores."""
        return self.elapsed < 0.98 * other.elapsed or self.worked < 0.98 * other.worked


def best_batch(classifier: Classifier, images: Images) -> int:
    """The batch size, of 1, 2, 4, 8 and so on, with which the classifier is fastest on copies of the first image.

    A larger batch must be faster per image to be chosen. The trial ends when two sizes in a row are not, when memory
    might not suffice, or after the time of TRIAL_PASSES forward passes.
    """
    with evaluating(classifier, 1) as evaluate:
        evaluate.uncovered(images[:1])  # the first pass is slower, as it sets things up
        single = fastest = _timed(evaluate, images[:1])
        best, spent, slower = 1, single.elapsed, 0
        for size in itertools.takewhile(
            lambda size: size <= _largest_batch(images), (2**power for power in range(1, 10))
        ):
            if spent + size * fastest.elapsed > TRIAL_PASSES * single.elapsed or slower == 2:
                break
            timed = _timed(evaluate, images[:1].expand(size, *images.shape[1:]).contiguous())
            spent += size * timed.elapsed
            if timed.is_clearly_less_than(fastest):
                best, fastest, slower = size, timed, 0
            else:
                slower += 1
    return best


def _timed(evaluate: Evaluator, batch: Images) -> _PassTime:
    """The time of one forward pass; of a short one the least of three, because disturbances only ever add time."""
    elapsed: list[float] = []
    worked: list[float] = []
    while not elapsed or (len(elapsed) < 3 and sum(elapsed) < 0.05):
        start, work = time.perf_counter(), time.process_time()
        evaluate.scores(batch)
        if batch.is_cuda:
            torch.cuda.synchronize()
        elapsed.append(time.perf_counter() - start)
        worked.append(0.0 if batch.is_cuda else time.process_time() - work)
    return _PassTime(min(elapsed) / len(batch), min(worked) / len(batch))


def _largest_batch(images: Images) -> int:
    """The number of images that should fit into half of the free memory."""
    one = images[0].numel() * images.element_size() * ACTIVATIONS
    return max(1, _free_memory(images.device) // 2 // one)


def _free_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    listed = Path("/proc/meminfo")
    if listed.exists():
        for line in listed.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
