"""Many partly covered copies of an image through the model; what the model says of them serves every target."""

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, Protocol

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor

from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.tensors import Images, Logits, Targets
from heatcheck.methods.boxes import Box
from heatcheck.methods.folding import Folding, plain
from heatcheck.methods.local import Change, local_scores
from heatcheck.methods.passes import evaluation_mode, module_of

MaxBatch = Annotated[int, Field(ge=1)] | Literal["found"]  # copies that go through the model together
OUTSIDE_A_STUDY = 4  # of "found": a few copies are fastest on a CPU
TRIAL_PASSES = 14.0  # the time that finding the best batch may take, in forward passes of one image
ACTIVATIONS = 256  # a network rarely needs more than so many times the memory of its input


class Covers(Protocol):
    """Places of an image that are to be covered; pixels are made a few covers at a time."""

    def __len__(self) -> int:
        """How many covers there are."""

    def __getitem__(self, some: slice) -> Bool[Tensor, "some channel *space"]:
        """Some of them, True where the image is covered; one channel stands for all."""

    def region(self, place: int, since: int | None = None) -> Box | None:
        """A box around all that one of them covers, or covers other than another one; None where that is nothing."""

    def within(self, place: int, box: Box) -> Bool[Tensor, "1 channel *space"]:
        """A part of one of them."""


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

    def covered(
        self, image: Float[Tensor, "channel *space"], covers: Covers, fill: Float[Tensor, "channel *space"]
    ) -> Float[Tensor, "cover output"]:
        """The scores of the image with each cover, under which `fill` is seen."""
        starts = range(0, len(covers), self.at_a_time)
        pieces = (covers[start : start + self.at_a_time] for start in starts)
        return torch.cat([self.scores(torch.where(some, fill, image)) for some in pieces])

    def covered_a_little(
        self,
        image: Float[Tensor, "channel *space"],
        covers: Covers,
        fill: Float[Tensor, "channel *space"],
        *,
        in_turn: bool = False,
    ) -> Float[Tensor, "cover output"]:
        """The same for covers that hide a small part each, or differ little from the one before (`in_turn`).

        Of a network that takes volumes only what the changed part reaches is computed; scores differ by rounding.
        """
        if self.folding is None or image.ndim != 4 or image.device.type != "cpu":
            return self.covered(image, covers, fill)
        first = torch.where(covers[:1], fill, image) if in_turn else image.unsqueeze(0)
        changes = (
            _change(image, fill, covers, place, (place - 1 if place else 0) if in_turn else None)
            for place in range(len(covers))
        )
        answers = local_scores(self._logits, first, changes, in_turn=in_turn)
        return self.covered(image, covers, fill) if answers is None else answers

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

    def _logits(self, images: Images) -> Logits:
        if self.folding is None or images.ndim != 5 or images.device.type != "cpu":
            return self.classifier.logits(images)
        with self.folding:
            return plain(self.classifier.logits(images))


def _change(
    image: Float[Tensor, "channel *space"],
    fill: Float[Tensor, "channel *space"],
    covers: Covers,
    place: int,
    since: int | None,
) -> Change | None:
    """What a cover changes of the image, or of the image under another cover; None where that is nothing."""
    box = covers.region(place, since)
    if box is None:
        return None
    seen, under = (values[(slice(None), *box.place)].unsqueeze(0) for values in (image, fill))
    before = seen if since is None else torch.where(covers.within(since, box), under, seen)
    now = torch.where(covers.within(place, box), under, seen)
    return None if torch.equal(before, now) else Change(box, now)


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
        after = torch.stack([evaluate.covered_a_little(image, own, fill) for fill in seen]).mean(0)
        drops.append((before - after)[:, wanted])
    return drops


def leaves_batch_open(method: Method) -> bool:
    """Whether the method would use the best batch, if it were told."""
    return getattr(method, "max_batch", None) == "found"


def with_batch(method: Method, size: int) -> Method:
    """The method with that many copies at a time, unless its settings say how many."""
    return replace(method, max_batch=size) if leaves_batch_open(method) else method  # type: ignore[type-var]


def best_batch(classifier: Classifier, images: Images) -> int:
    """How many images at a time the classifier scores fastest, tried on the first of `images`: 1, 2, 4, 8 and so on.

    A larger batch must be faster per image to be chosen. The trial ends where it is not, where memory might not do,
    or after the time of some TRIAL_PASSES forward passes.
    """
    with evaluating(classifier, 1) as evaluate:
        evaluate.whole(images[:1])  # the first pass also sets things up
        single = fastest = _seconds(evaluate, images[:1])
        best, spent = 1, single
        for size in itertools.takewhile(lambda size: size <= _most(images), (2**power for power in range(1, 10))):
            if spent + size * fastest > TRIAL_PASSES * single:
                break
            seconds = _seconds(evaluate, images[:1].expand(size, *images.shape[1:]).contiguous())
            spent += seconds
            if seconds / size >= 0.98 * fastest:  # less is not more than chance
                break
            best, fastest = size, seconds / size
    return best


def _seconds(evaluate: Evaluator, batch: Images) -> float:
    """The time of one forward pass: the shortest of three where it is short, because chance only ever adds."""
    taken: list[float] = []
    while not taken or (len(taken) < 3 and sum(taken) < 0.05):
        start = time.perf_counter()
        evaluate.scores(batch)
        if batch.is_cuda:
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return min(taken)


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
