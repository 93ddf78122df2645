"""Scores of slightly changed volumes equal those of full passes, and mostly cost less."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from heatcheck.methods.covering.boxes import Box, full_box
from heatcheck.methods.covering.segments import Grid, SegmentCovers, Slic, segments_of
from heatcheck.methods.perturbation import Occlusion
from heatcheck.methods.speed import folding, local, windows
from heatcheck.methods.speed.fast_convolution import direct
from heatcheck.methods.speed.folding import Folding, plain
from heatcheck.methods.speed.local import Change, local_scores
from heatcheck.methods.speed.windows import window_of

SIDE = 20


def layers(*parts, seed=0):
    """A network of volumes with the given layers, then a linear one; its normalisation is not without effect."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = nn.Sequential(
            *[part() for part in parts], nn.AdaptiveAvgPool3d(2), nn.Flatten(), nn.LazyLinear(2)
        ).eval()
        for part in network:
            if isinstance(part, nn.BatchNorm3d):
                part.running_mean.normal_()
                part.running_var.uniform_(0.5, 2)
        with torch.no_grad():
            network(torch.zeros(1, 2, SIDE, SIDE, SIDE))
    return network


def conv(wide=4, thin=4, **settings):
    return lambda: nn.Conv3d(thin, wide, **({"kernel_size": 3} | settings))


class Residual(nn.Module):
    """Two branches that are added."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.a, self.b = (nn.Conv3d(n, 4, 3, padding=1) for n in (2, 4, 4))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = functional.relu_(self.first(x))
        return self.head((self.a(x).relu() + self.b(functional.dropout(x, training=False))).mean((2, 3, 4)))


RELU = lambda: nn.ReLU(inplace=True)  # noqa: E731 - a layer like the others
NETWORKS = {
    "vgg": layers(conv(4, 2, padding=1), lambda: nn.BatchNorm3d(4), RELU, lambda: nn.MaxPool3d(2), conv(), nn.ReLU),
    "strided": layers(conv(4, 2, stride=2, padding=2), RELU, conv(stride=(1, 2, 3), kernel_size=(1, 2, 3))),
    "dilated": layers(conv(4, 2, dilation=2, padding=1), nn.GELU, conv(groups=2), nn.Dropout3d),
    "overlapping pools": layers(lambda: nn.MaxPool3d(3, 2, 1), conv(4, 2), lambda: nn.MaxPool3d(3, 3)),
    "a rectifier first": layers(lambda: nn.LeakyReLU(0.2), conv(4, 2, padding=1), conv(padding=1)),
    "residual": Residual().eval(),
}
CANNOT = {
    "in place on all values": lambda module, x: module(x.mul_(1)),
    "others each time": lambda module, x: module(functional.conv3d(x, torch.ones(2, 1, 1, 1, 1), groups=2) * 1.0),
    "nothing local": lambda module, x: module(x * 2),
}


def passed(module):
    """The network's scores as the evaluator asks for them."""

    def logits(volumes):
        with Folding():
            return plain(module(volumes))

    return logits


@st.composite
def changes(draw):
    collected = []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.integers(0, 5)) == 0:
            collected.append(None)
            continue
        starts = [draw(st.integers(0, SIDE - 1)) for _ in range(3)]
        spans = tuple((start, min(SIDE, start + draw(st.sampled_from([1, 2, 5, SIDE])))) for start in starts)
        generator = torch.Generator().manual_seed(len(collected))
        values = torch.randn(1, 2, *[stop - start for start, stop in spans], generator=generator)
        collected.append(Change(Box(spans), values))
    return collected


def volume():
    return torch.randn(1, 2, SIDE, SIDE, SIDE, generator=torch.Generator().manual_seed(1))


def carried_out(first, drawn, *, in_turn):
    now, collected = first.clone(), []
    for change in drawn:
        now = now if in_turn else first.clone()
        if change is not None:
            now[(slice(None), slice(None), *change.box.index)] = change.values
        collected.append(now.clone())
    return torch.cat(collected)


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
@settings(deadline=None, max_examples=12)
@given(drawn=changes())
def test_scores_are_those_of_full_passes(name, in_turn, drawn):
    module, first = NETWORKS[name], volume()
    with torch.no_grad():
        scores = local_scores(passed(module), first, drawn, None if in_turn else module(first))
        expected = module(carried_out(first, drawn, in_turn=in_turn))
    assert scores is not None
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("in_turn", [False, True])
def test_after_the_first_few_only_what_a_change_reaches_is_computed(in_turn, monkeypatch):
    voxels = []

    def counting(*args, **kwargs):
        answer = direct(*args, **kwargs)
        voxels.append(answer.numel())
        return answer

    for module in (windows, folding):
        monkeypatch.setattr(module, "direct", counting)
    first, one = volume(), Change(Box(((9, 11),) * 3), torch.ones(1, 2, 2, 2, 2))

    def spent(number):
        voxels.clear()
        local_scores(passed(NETWORKS["vgg"]), first, [one] * number, None if in_turn else torch.zeros(1, 2))
        return sum(voxels)

    with torch.no_grad():
        each = (spent(16) - spent(8)) / 8
        voxels.clear()
        passed(NETWORKS["vgg"])(first)
    assert 0 < each < 0.1 * sum(voxels)


@pytest.mark.parametrize("name", CANNOT)
def test_a_network_that_cannot_be_followed_is_left_to_full_passes(name):
    module = NETWORKS["vgg"]
    drawn = [Change(Box(((2, 4),) * 3), torch.full((1, 2, 2, 2, 2), float(n))) for n in range(140)]
    with torch.no_grad():
        assert local_scores(lambda x: CANNOT[name](module, x), volume(), drawn) is None


def test_a_network_that_differs_at_every_pass_is_left_to_full_passes():
    calls = []

    def fickle(volumes):
        calls.append(len(volumes))
        return NETWORKS["vgg"](volumes) + len(calls)

    with torch.no_grad():
        one = Change(Box(((2, 4),) * 3), torch.ones(1, 2, 2, 2, 2))
        assert local_scores(fickle, volume(), [one]) is None


def test_a_change_of_nothing_has_the_score_before_it():
    module, first = NETWORKS["vgg"], volume()
    one = Change(Box(((2, 6),) * 3), torch.ones(1, 2, 4, 4, 4))
    with torch.no_grad():
        before = module(first)
        alone = local_scores(passed(module), first, [None, one, None], before)
        in_turn = local_scores(passed(module), first, [None, one, None])
    assert torch.equal(alone[[0, 2]], before.expand(2, -1))
    torch.testing.assert_close(in_turn[0:1], before)
    assert torch.equal(in_turn[1], in_turn[2])
    assert not torch.allclose(in_turn[1:2], before)


@settings(deadline=None)
@given(
    st.sampled_from(["conv3d", "max_pool3d"]),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(1, 2),
    st.tuples(st.integers(0, 9), st.integers(1, 4)),
)
def test_a_window_reaches_all_that_a_change_touches(name, kernel, step, around, apart, span):
    around = min(around, kernel // 2)
    weight = torch.ones(1, 1, kernel, kernel, kernel)
    window = window_of(
        name, {"weight": weight, "kernel_size": kernel, "stride": step, "padding": around, "dilation": apart}
    )
    changed = Box(((span[0], min(10, sum(span))),) * 3)
    before = torch.rand(1, 1, 10, 10, 10)
    after = before.clone()
    after[(0, 0, *changed.index)] += 5
    answers = [window.on_grid(value) for value in (before, after)]
    grid = window.output_grid((10, 10, 10))
    assert grid == tuple(answers[0].shape[2:])
    box = window.reached(changed, grid)
    differs = (answers[0] != answers[1])[0, 0]
    assert not differs.sum() - differs[box.index].sum()
    cut = window.needed(box, (10, 10, 10))
    there = (slice(None), slice(None))
    partial = window.on_part(after[(*there, *cut.inside.index)], cut)
    torch.testing.assert_close(partial, answers[1][(*there, *box.index)])


def rules():
    return [Grid(cells=3), Grid(cells=2, per_channel=True), Slic(count=6, nonzero=True, per_channel=True)]


@pytest.mark.parametrize("rule", rules(), ids=str)
def test_regions_contain_all_that_covers_of_segments_change(rule):
    image = torch.where(torch.rand(2, 9, 8, 7, generator=torch.Generator().manual_seed(3)) > 0.3, 1.0, 0.0)
    image *= torch.rand(2, 9, 8, 7)
    segments = segments_of(image, rule)
    hidden = torch.rand(20, segments.count, generator=torch.Generator().manual_seed(4)) < 0.3
    hidden[3], hidden[7] = False, hidden[6]
    covers = SegmentCovers(hidden, segments)
    check_regions(covers, 20)


def test_regions_contain_all_that_windows_change():
    sliding = replace(Occlusion(4, 3).windows((9, 8, 7)), channels=2)
    check_regions(sliding, len(sliding))


def check_regions(covers, number):
    every = covers[:]
    for index in range(number):
        for previous in (None, max(0, index - 1)):
            changed = every[index] if previous is None else every[index] ^ every[previous]
            box = covers.region(index, previous)
            if box is None:
                assert not changed.any()
                continue
            outside = changed.clone()
            outside[(slice(None), *box.index)] = False
            assert not outside.any()
            assert torch.equal(
                covers.within(index, box)[0].expand(len(every[index]), -1, -1, -1),
                every[index][(slice(None), *box.index)],
            )


def test_boxes_by_hand():
    box, other = Box(((2, 5), (0, 3))), Box(((4, 9), (1, 2)))
    assert box.intersection(other) == Box(((4, 5), (1, 2)))
    assert box.intersection(Box(((5, 6), (0, 1)))) is None
    assert other.relative_to(box) == Box(((2, 7), (1, 2)))
    assert full_box((9, 3)).contains(box)
    assert not box.contains(other)
    assert box.share((9, 4)) == 0.25


def test_only_some_of_many_changed_volumes_are_in_memory_at_once(monkeypatch):
    monkeypatch.setattr(local, "VOXELS", 2 * SIDE**3)
    recorded = []

    def logits(volumes):
        recorded.append(len(volumes))
        return NETWORKS["vgg"](volumes)

    one = Change(Box(((2, 4),) * 3), torch.ones(1, 2, 2, 2, 2))
    with torch.no_grad():
        local_scores(logits, volume(), [one] * 5, torch.zeros(1, 2))
    assert max(recorded) == 2


@pytest.mark.parametrize("small", [True, False])
def test_small_volumes_use_one_thread_and_the_number_is_restored(small, monkeypatch):
    monkeypatch.setattr(local, "SMALL", SIDE**3 - (not small))
    threads = torch.get_num_threads()
    recorded = []

    def logits(volumes):
        recorded.append(torch.get_num_threads())
        return NETWORKS["vgg"](volumes)

    torch.set_num_threads(2)
    try:
        with torch.no_grad():
            local_scores(logits, volume(), [Change(Box(((2, 4),) * 3), torch.ones(1, 2, 2, 2, 2))], torch.zeros(1, 2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert set(recorded) == {1 if small else 2}
