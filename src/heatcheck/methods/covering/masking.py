"""Many partly covered copies of an image through the model; what the model says of them serves every target."""

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
from heatcheck.methods.covering.covers import Chosen, Covers, Pixels, change_by
from heatcheck.methods.passes import evaluation_mode, module_of
from heatcheck.methods.speed.folding import Folding, plain
from heatcheck.methods.speed.local import local_scores

MaxBatch = Annotated[int, Field(ge=1)] | Literal["found"]  # copies that go through the model together
OUTSIDE_A_STUDY = 4  # of "found": a few copies are fastest on a CPU
TRIAL_PASSES = 14.0  # the time that finding the best batch may take, in forward passes of one image
ACTIVATIONS = 256  # a network rarely needs more than so many times the memory of its input


@dataclass
class Evaluator:
    """A classifier asked for the scores of all its outputs, never with more than `at_a_time` images at once.

    Their number is fixed, not measured while running, because another one changes the last digits of the scores, and
    a run that was interrupted must end with the same ones.
    """

    classifier: Classifier
    at_a_time: int
    folding: Folding | None = None  # of a network that takes volumes; for 2D images it would cost as much as it saves
    channels_last: bool = False  # how images lie in memory; on a CPU convolutions are faster so, of volumes by a third

    def whole(self, images: Images) -> Logits:
        """The scores of the images as they are."""
        return torch.cat([self.scores(some) for some in torch.split(images, self.at_a_time)])

    def covered(self, image: Pixels, covers: Covers, fill: Pixels) -> Float[Tensor, "cover output"]:
        """The scores of the image with each cover, under which `fill` is seen."""
        starts = range(0, len(covers), self.at_a_time)
        pieces = (covers[start : start + self.at_a_time] for start in starts)
        return torch.cat([self.scores(torch.where(some, fill, image)) for some in pieces])

    def covered_alone(
        self, image: Pixels, covers: Covers, fill: Pixels, before: Float[Tensor, " output"]
    ) -> Float[Tensor, "cover output"]:
        """The same for covers that hide a small part each of an image whose own scores are known.

        A cover that changes nothing has exactly these. Of a network that takes volumes only what a change reaches is
        computed; the scores differ by rounding.
        """
        if self._follows(image):
            changes = (change_by(covers, place, image, fill) for place in range(len(covers)))
            answers = local_scores(self._logits, image.unsqueeze(0), changes, before.unsqueeze(0))
            if answers is not None:
                return answers
        places = [place for place in range(len(covers)) if change_by(covers, place, image, fill) is not None]
        answers = before.repeat(len(covers), 1)
        if places:
            answers[places] = self.covered(image, Chosen(covers, places), fill)
        return answers

    def covered_in_turn(self, image: Pixels, covers: Covers, fill: Pixels) -> Float[Tensor, "cover output"]:
        """The same for covers of which most differ little from the one before."""
        if self._follows(image):
            changes = (change_by(covers, place, image, fill, max(0, place - 1)) for place in range(len(covers)))
            answers = local_scores(self._logits, torch.where(covers[:1], fill, image), changes)
            if answers is not None:
                return answers
        return self.covered(image, covers, fill)

    def scores(self, images: Images) -> Logits:
        """The scores of these images, which go through the model together."""
        if self.channels_last and images.device.type == "cpu":
            layout = torch.channels_last if images.ndim == 4 else torch.channels_last_3d
            laid_out = torch.empty_like(images, memory_format=layout).copy_(images)
            try:
                return self._logits(laid_out)
            except RuntimeError as error:
                if "view" not in str(error):
                    raise
                self.channels_last = False  # a network that calls `view` wants its images the usual way
        return self._logits(images)

    def _follows(self, image: Pixels) -> bool:
        """Whether changes of the image can be followed through the network."""
        return self.folding is not None and image.ndim == 4 and image.device.type == "cpu"

    def _logits(self, images: Images) -> Logits:
        if self.folding is None or images.ndim != 5 or images.device.type != "cpu":
            return self.classifier.logits(images)
        with self.folding:
            return plain(self.classifier.logits(images))


@contextmanager
def evaluating(classifier: Classifier, max_batch: MaxBatch) -> Iterator[Evaluator]:
    """An evaluator, with the network (if there is one to be seen) in evaluation mode and without a graph."""
    at_a_time = OUTSIDE_A_STUDY if max_batch == "found" else max_batch
    module = module_of(classifier)
    with evaluation_mode(module) if module else nullcontext(), torch.no_grad():
        yield Evaluator(classifier, at_a_time, Folding() if module else None, channels_last=module is not None)


def score_drops(
    evaluate: Evaluator, images: Images, targets: Targets, covers: Sequence[Covers], fills: Sequence[Images]
) -> list[Float[Tensor, "cover target"]]:
    """For each image: how far each of its covers lowers the targets' scores, on average over what is seen under it."""
    drops = []
    for image, own, seen, before, wanted in zip(images, covers, fills, evaluate.whole(images), targets, strict=True):
        after = torch.stack([evaluate.covered_alone(image, own, fill, before) for fill in seen]).mean(0)
        drops.append((before - after)[:, wanted])
    return drops


def leaves_batch_open(method: Method) -> bool:
    """Whether the method would use the best batch, if it were told."""
    return getattr(method, "max_batch", None) == "found"


def with_batch(method: Method, size: int) -> Method:
    """The method with that many copies at a time, unless its settings say how many."""
    return replace(method, max_batch=size) if leaves_batch_open(method) else method  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a forward pass takes of an image's share: seconds by the clock, and seconds of work on the cores."""

    elapsed: float
    worked: float

    def clearly_less_than(self, other: "_Taken") -> bool:
        """Whether either is: on a busy computer the clock says little, and on many cores the work says little."""
        return self.elapsed < 0.98 * other.elapsed or self.worked < 0.98 * other.worked


def best_batch(classifier: Classifier, images: Images) -> int:
    """How many images at a time the classifier scores fastest, tried on the first of `images`: 1, 2, 4, 8 and so on.

    A larger batch must be faster per image to be chosen. The trial ends where two sizes in turn are not, where memory
    might not do, or after the time of some TRIAL_PASSES forward passes.
    """
    with evaluating(classifier, 1) as evaluate:
        evaluate.whole(images[:1])  # the first pass also sets things up
        single = fastest = _taken(evaluate, images[:1])
        best, spent, in_vain = 1, single.elapsed, 0
        for size in itertools.takewhile(lambda size: size <= _most(images), (2**power for power in range(1, 10))):
            if spent + size * fastest.elapsed > TRIAL_PASSES * single.elapsed or in_vain == 2:
                break
            taken = _taken(evaluate, images[:1].expand(size, *images.shape[1:]).contiguous())
            spent += size * taken.elapsed
            if taken.clearly_less_than(fastest):
                best, fastest, in_vain = size, taken, 0
            else:
                in_vain += 1
    return best


def _taken(evaluate: Evaluator, batch: Images) -> _Taken:
    """Of one forward pass, an image's share: the least of three where it is short, because chance only ever adds."""
    elapsed: list[float] = []
    worked: list[float] = []
    while not elapsed or (len(elapsed) < 3 and sum(elapsed) < 0.05):
        start, work = time.perf_counter(), time.process_time()
        evaluate.scores(batch)
        if batch.is_cuda:
            torch.cuda.synchronize()
        elapsed.append(time.perf_counter() - start)
        worked.append(0.0 if batch.is_cuda else time.process_time() - work)
    return _Taken(min(elapsed) / len(batch), min(worked) / len(batch))


def _most(images: Images) -> int:
    """The images that surely fit into half of the free memory."""
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
