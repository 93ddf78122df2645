import math

import numpy as np
import pytest
import scipy.stats
import torch

from heatcheck.core.errors import InputError
from heatcheck.training.batches import Batches, readable


def epoch(batches, number, first=0):
    batches.epoch, batches.first = number, first
    return list(batches)


def test_epochs_visit_the_examples_in_new_orders_without_the_incomplete_batch():
    batches = Batches(18, 4, seed=1)
    orders = [epoch(batches, number) for number in range(3)]
    assert [len(order) for order in orders] == [4, 4, 4]
    assert all(len({index for batch in order for index in batch}) == 16 for order in orders)
    assert orders[0] != orders[1] != orders[2]
    assert epoch(Batches(18, 4, seed=1), 1) == orders[1]
    assert epoch(Batches(18, 4, seed=2), 1) != orders[1]


def test_stopped_epoch_continues_with_the_batches_that_are_left():
    batches = Batches(18, 4, seed=1)
    assert epoch(batches, 2, first=3) == epoch(batches, 2)[3:]


def test_processes_share_each_batch():
    undivided = epoch(Batches(18, 4, seed=1), 0)
    shares = [epoch(Batches(18, 4, seed=1, rank=rank, processes=2), 0) for rank in range(2)]
    assert [one + other for one, other in zip(*shares, strict=True)] == undivided


def test_classes_are_drawn_equally_often_however_rare_they_are():
    classes = np.repeat([5, 2, 9], [900, 90, 10])
    batches = Batches(1000, 50, seed=1, classes=classes)
    drawn = np.array([epoch(batches, number) for number in range(6)]).ravel()
    counts = [(classes[drawn] == kind).sum() for kind in (5, 2, 9)]
    assert len(drawn) == 6000
    assert scipy.stats.chisquare(counts).pvalue > 0.001
    within = np.bincount(drawn[classes[drawn] == 9] - 990, minlength=10)
    assert scipy.stats.chisquare(within).pvalue > 0.001


def test_balanced_batches_are_named_resumed_and_shared_as_others_are():
    def balanced(**changes):
        return Batches(18, 4, **{"seed": 1, **changes}, classes=np.arange(18) % 3)

    uninterrupted = epoch(balanced(), 2)
    assert [len(batch) for batch in uninterrupted] == [4] * 4
    assert epoch(balanced(), 2, first=3) == uninterrupted[3:]
    assert epoch(balanced(), 1) != uninterrupted
    assert epoch(balanced(seed=2), 2) != uninterrupted
    shares = [epoch(balanced(rank=rank, processes=2), 2) for rank in range(2)]
    assert [one + other for one, other in zip(*shares, strict=True)] == uninterrupted


def test_class_of_each_example_must_be_known():
    with pytest.raises(ValueError, match="each of 18 examples needs a class, got 17"):
        Batches(18, 4, seed=1, classes=np.zeros(17, int))


def test_batch_that_cannot_be_filled_or_shared_is_refused():
    with pytest.raises(InputError, match="3 examples do not fill a batch of 4; lower the batch size"):
        Batches(3, 4, seed=0)
    with pytest.raises(InputError, match="a batch of 5 cannot be shared by 2 devices"):
        Batches(10, 5, seed=0, processes=2)


def test_image_that_cannot_be_read_becomes_empty_with_unknown_labels():
    images, labels = torch.ones(3, 1, 2, 2), torch.tensor([[1.0], [0.0], [1.0]])
    assert readable(images, labels)[0] is images
    images[1] = math.nan
    shown, known = readable(images, labels)
    assert shown.flatten(1).sum(1).tolist() == [4, 0, 4]
    assert known.isnan().flatten().tolist() == [False, True, False]
