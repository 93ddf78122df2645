import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from heatcheck.core.errors import UnknownNameError
from heatcheck.core.records import UNCERTAIN
from heatcheck.training.labels import (
    STRATEGIES,
    masked_cross_entropy,
    single_label_cross_entropy,
    three_class_cross_entropy,
)

NAN = math.nan


def test_loss_worked_by_hand():
    logits = torch.tensor([[0.0, math.log(3), 5.0], [-math.log(3), 0.0, -2.0]])
    labels = torch.tensor([[1.0, 0.0, NAN], [0.0, NAN, NAN]])
    # of the known ones the model gives 1/2 to a positive, 3/4 and 1/4 to negatives
    expected = -(math.log(1 / 2) + math.log(1 / 4) + math.log(3 / 4)) / 3
    assert masked_cross_entropy(logits, labels).item() == pytest.approx(expected, rel=1e-6)


def test_loss_without_any_known_label_is_zero_and_moves_nothing():
    logits = torch.tensor([[1.0, -2.0]], requires_grad=True)
    loss = masked_cross_entropy(logits, torch.full((1, 2), NAN))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros(1, 2))


def test_unknown_label_moves_no_weight():
    logits = torch.tensor([[1.0, -2.0, 0.5]], requires_grad=True)
    masked_cross_entropy(logits, torch.tensor([[1.0, NAN, 0.0]])).backward()
    assert logits.grad[0, 1] == 0
    assert logits.grad[0, 0] < 0 < logits.grad[0, 2]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.floats(-50, 50, width=32), st.sampled_from([0.0, 1.0, NAN])), min_size=1, max_size=12))
def test_loss_is_torchs_mean_over_the_known_labels(pairs):
    logits, labels = (torch.tensor(values)[:, None] for values in zip(*pairs, strict=True))
    known = labels.isfinite()
    loss = masked_cross_entropy(logits, labels)
    if known.any():
        expected = functional.binary_cross_entropy_with_logits(logits[known], labels[known])
        torch.testing.assert_close(loss, expected)
    else:
        assert loss == 0


def test_labels_are_left_alone():
    labels = torch.tensor([[1.0, NAN]])
    masked_cross_entropy(torch.zeros(1, 2), labels)
    assert labels[0, 1].isnan()


def test_each_strategy_worked_by_hand():
    """A logit of ln 3 says 3/4; the second finding's label is uncertain, the third's unknown."""
    logits, labels = torch.tensor([[math.log(3)] * 3]), torch.tensor([[1.0, UNCERTAIN, NAN]])
    losses = {name: STRATEGIES[name].loss(logits, labels).item() for name in ("ignore", "zeros", "ones")}
    present, absent = -math.log(3 / 4), -math.log(1 / 4)
    assert losses == pytest.approx({"ignore": present, "zeros": (present + absent) / 2, "ones": present}, rel=1e-6)
    assert all(STRATEGIES[name].head == "binary" for name in losses)


def test_three_class_loss_worked_by_hand():
    """Softmax over negative, positive, uncertain: 1/4, 1/2, 1/4 for each finding."""
    finding = [0.0, math.log(2), 0.0]
    logits = torch.tensor([finding * 3, finding * 3])
    labels = torch.tensor([[0.0, 1.0, UNCERTAIN], [1.0, NAN, NAN]])
    expected = (math.log(4) + math.log(2) + math.log(4) + math.log(2)) / 4
    assert STRATEGIES["three_class"].loss(logits, labels).item() == pytest.approx(expected, rel=1e-6)
    assert STRATEGIES["three_class"].head == "three_class"


def test_three_class_loss_keeps_the_findings_apart():
    logits = torch.zeros(1, 6, requires_grad=True)
    three_class_cross_entropy(logits, torch.tensor([[UNCERTAIN, NAN]])).backward()
    assert torch.equal(logits.grad.sign(), torch.tensor([[1.0, 1.0, -1.0, 0.0, 0.0, 0.0]]))


def test_single_label_loss_worked_by_hand():
    """Softmax gives 1/4, 1/2, 1/4; the third image has no class, the fourth two, the fifth an uncertain one."""
    logits = torch.tensor([[0.0, math.log(2), 0.0]] * 5)
    labels = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, UNCERTAIN, 0.0]])
    strategy = STRATEGIES["single_label"]
    assert strategy.loss(logits, labels).item() == pytest.approx((math.log(2) + math.log(4)) / 2, rel=1e-6)
    assert (strategy.head, strategy.activation) == ("binary", "softmax")
    assert {STRATEGIES[name].activation for name in STRATEGIES if name != "single_label"} == {"sigmoid"}


ROWS = st.tuples(
    st.lists(st.floats(-50, 50, width=32), min_size=3, max_size=3), st.integers(0, 2), st.sampled_from([0.0, NAN])
)


@settings(deadline=None, max_examples=40)
@given(st.lists(ROWS, min_size=1, max_size=8))
def test_single_label_loss_is_torchs_mean_over_the_images_of_known_class(rows):
    logits, classes, others = (torch.tensor(values) for values in zip(*rows, strict=True))
    labels = functional.one_hot(classes, 3) + others[:, None] * torch.tensor([1.0, 0.0, 0.0])
    known = others == 0
    loss = single_label_cross_entropy(logits, labels)
    if known.any():
        torch.testing.assert_close(loss, functional.cross_entropy(logits[known], classes[known]))
    else:
        assert loss == 0


def test_image_without_a_known_class_moves_no_weight():
    logits = torch.tensor([[1.0, -2.0], [0.5, 0.5], [3.0, 1.0]], requires_grad=True)
    single_label_cross_entropy(logits, torch.tensor([[1.0, NAN], [1.0, 0.0], [1.0, 1.0]])).backward()
    assert torch.equal(logits.grad.sign(), torch.tensor([[0.0, 0.0], [-1.0, 1.0], [0.0, 0.0]]))


def test_unknown_strategy_is_answered_with_a_near_one():
    with pytest.raises(UnknownNameError, match="unknown label strategy 'zeroes'; did you mean 'zeros'"):
        STRATEGIES["zeroes"]
