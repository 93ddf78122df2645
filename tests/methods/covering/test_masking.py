"""Covered copies pass through the model a few at a time, and the best number of them is measured."""

import itertools

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from heatcheck.core.errors import ModelError
from heatcheck.methods.covering import masking
from heatcheck.methods.covering.masking import Evaluator, best_batch, needs_batch_size, score_drops, with_batch
from heatcheck.methods.covering.segments import Grid, SegmentCovers, segments_of
from heatcheck.methods.perturbation import FeatureAblation, Occlusion
from heatcheck.methods.surrogates import KernelShap, Lime, ShapleyValueSampling
from heatcheck.models import NetworkClassifier, Preprocessing

SIDE = 48


class Sums:
    """A classifier without a network whose outputs are sums over three parts of the image."""

    name, outputs = "sums", ("a", "b", "c")

    def __init__(self):
        self.sizes = []

    @property
    def module(self):
        raise ModelError("only predictions")

    def logits(self, images):
        self.sizes.append(len(images))
        return images.flatten(1).cumsum(1)[:, -3:]


class Largest(TorchFunctionMode):
    """The number of elements of the largest tensor that any operation returned."""

    elements = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        answer = function(*args, **(kwargs or {}))
        for one in answer if isinstance(answer, tuple | list) else [answer]:
            if isinstance(one, torch.Tensor) and one.untyped_storage().nbytes() > 0:
                self.elements = max(self.elements, one.untyped_storage().nbytes() // one.element_size())
        return answer


def test_drops_do_not_depend_on_how_many_copies_go_at_a_time():
    images = torch.rand(2, 1, 6, 6)
    segments = segments_of(images[0], Grid(cells=6))
    hidden = torch.rand(37, 36) < 0.5
    classifier = Sums()
    covers = [SegmentCovers(hidden, segments)] * 2
    drops = score_drops(
        Evaluator(classifier, 5), images, torch.tensor([[2, 0], [1, 1]]), covers, torch.zeros(2, 1, 1, 6, 6)
    )
    for image, drop, wanted in zip(images, drops, ([2, 0], [1, 1]), strict=True):
        lost = (image * hidden.reshape(37, 1, 6, 6)).flatten(1).cumsum(1)[:, -3:]
        torch.testing.assert_close(drop, lost[:, wanted])
    assert classifier.sizes == [2, *[5] * 7, 2, *[5] * 7, 2]


@pytest.mark.parametrize(
    "method",
    [
        Occlusion(window=6, stride=2, max_batch=3),
        FeatureAblation(Grid(cells=24), max_batch=3),
        ShapleyValueSampling(permutations=10, segments=Grid(cells=5), max_batch=3),
        KernelShap(samples=300, segments=Grid(cells=4), max_batch=3),
        Lime(samples=300, segments=Grid(cells=4), max_batch=3),
    ],
    ids=lambda method: type(method).__name__,
)
def test_memory_is_bounded_by_the_batch_and_not_by_the_number_of_masks(method):
    classifier, images = Sums(), torch.rand(2, 1, SIDE, SIDE)
    with Largest() as largest:
        method(classifier, images, torch.tensor([[0, 2], [1, 0]]), [1, 2])
    masks = sum(classifier.sizes) // 2
    assert masks > 200
    assert max(classifier.sizes) == 3
    # a batch of copies, or the list of hidden segments, each far below the masks as pixels
    batch, listed = 3 * SIDE**2, masks * 24**2 if isinstance(method, FeatureAblation) else masks * 25
    assert largest.elements <= max(batch, listed, 2 * 2 * SIDE**2)
    assert largest.elements < masks * SIDE**2 / 3


def test_no_method_asks_for_a_pass_per_target():
    counts = []
    for targets in ([[0]], [[0, 1, 2]]):
        classifier = Sums()
        Lime(samples=50)(classifier, torch.rand(1, 1, 16, 16), torch.tensor(targets), [1])
        counts.append(sum(classifier.sizes))
    assert counts == [50, 50]


class Flattening(nn.Module):
    """A network that flattens with `view`, which needs images in the default memory layout."""

    passes = 0

    def forward(self, images):
        self.passes += 1
        return images.view(len(images), -1)[:, :3]


def test_a_network_that_needs_the_default_memory_layout_gets_it():
    module = Flattening()
    contract = Preprocessing(outputs=("a", "b", "c"), size=(16, 16), channels=2, mean=(0.0,), std=(1.0,))
    images = torch.rand(1, 2, 16, 16)
    ablation = FeatureAblation(Grid(cells=4), max_batch=4)
    maps = ablation(NetworkClassifier("flat", module, contract), images, torch.tensor([[1]]), [0])
    assert maps.values[0, 0, 0, 0, 0] == images[0, 0, 0, 1]
    assert module.passes == 1 + 1 + 4  # the need is found once


def test_outside_a_study_four_copies_go_at_a_time_and_a_number_in_the_settings_wins():
    for method, expected in ((Lime(samples=9), 4), (Lime(samples=9, max_batch=7), 7)):
        classifier = Sums()
        method(classifier, torch.rand(1, 1, 16, 16), torch.tensor([[0]]), [1])
        assert max(classifier.sizes) == expected
    assert needs_batch_size(Lime())
    assert with_batch(Lime(), 6).max_batch == 6
    assert with_batch(Lime(max_batch=7), 6).max_batch == 7
    assert with_batch(masking.best_batch, 6) is masking.best_batch


class Clocked(Sums):
    """A classifier whose passes take the time that `seconds` says for each size of batch, on clocks of its own."""

    def __init__(self, seconds, monkeypatch, work=lambda _: 0.0):
        super().__init__()
        self.seconds, self.work, self.now, self.worked = seconds, work, 0.0, 0.0
        monkeypatch.setattr(masking.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(masking.time, "process_time", lambda: self.worked)

    def logits(self, images):
        self.now += self.seconds(len(images))
        self.worked += self.work(len(images))
        return super().logits(images)


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        (lambda n: n * {1: 1.0, 2: 0.9, 4: 0.8, 8: 1.2}[n], 4),
        (lambda n: n * 1.0, 1),
        (lambda n: n + 0.5 * (n > 1), 1),
        (lambda _: 1.0, 512),
        (lambda n: 1 + n / 20, 64),
    ],
    ids=["cores few", "no gain", "worse", "a large device", "time is up"],
)
def test_the_best_batch_is_the_fastest_per_image_that_can_be_found_soon(seconds, best, monkeypatch):
    classifier = Clocked(seconds, monkeypatch)
    assert best_batch(classifier, torch.rand(3, 1, 8, 8)) == best
    assert classifier.now - seconds(1) <= (masking.TRIAL_PASSES + 2) * seconds(1)


def test_on_a_busy_computer_the_work_on_the_cores_decides(monkeypatch):
    """Other programs come in between where a pass is long."""
    classifier = Clocked(lambda n: n * (1 + n / 40), monkeypatch, work=lambda n: 1 + n / 2)
    assert best_batch(classifier, torch.rand(1, 1, 8, 8)) == 4


def test_one_size_without_a_gain_does_not_end_the_trial(monkeypatch):
    classifier = Clocked(lambda n: n * {1: 1.0, 2: 1.02, 4: 0.8, 8: 0.9}[n], monkeypatch)
    assert best_batch(classifier, torch.rand(1, 1, 8, 8)) == 4


def test_a_short_pass_is_timed_three_times(monkeypatch):
    noise = itertools.cycle([9e-3, 1e-3, 5e-3])
    classifier = Clocked(lambda n: n * 1e-3 + next(noise), monkeypatch)
    assert best_batch(classifier, torch.rand(1, 1, 8, 8)) > 1


def test_the_best_batch_fits_into_memory(monkeypatch):
    one = 8 * 8 * 4 * masking.ACTIVATIONS
    monkeypatch.setattr(masking, "_free_memory", lambda _: one * 2 * 5)
    assert best_batch(Clocked(lambda _: 1.0, monkeypatch), torch.rand(1, 1, 8, 8)) == 4
    monkeypatch.setattr(masking, "_free_memory", lambda _: 0)
    assert best_batch(Clocked(lambda _: 1.0, monkeypatch), torch.rand(1, 1, 8, 8)) == 1


def test_free_memory_is_known_here():
    assert masking._free_memory(torch.device("cpu")) > 1e7
