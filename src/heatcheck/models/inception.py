"""Inception-v4 with timm's names (Szegedy et al. 2017)."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heatcheck.models.registry import MODELS, ModelFacts, NetworkShape


class ConvNormAct(nn.Module):
    """A convolution without bias, its normalisation and an in-place ReLU; sides shrink unless `padded`."""

    def __init__(
        self, before: int, after: int, kernel: tuple[int, int], *, stride: int = 1, padded: bool = False
    ) -> None:
        super().__init__()
        padding = (kernel[0] // 2, kernel[1] // 2) if padded else 0
        self.conv = nn.Conv2d(before, after, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(after, eps=1e-3)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, features: Tensor) -> Tensor:
        """The new features."""
        return self.relu(self.bn(self.conv(features)))


class Branches(nn.Module):
    """Several paths from the same features, in the order of their names."""

    def __init__(self, paths: dict[str, nn.Module]) -> None:
        super().__init__()
        for name, path in paths.items():
            self.add_module(name, path)

    def forward(self, features: Tensor) -> Tensor:
        """The outputs of the paths, concatenated along the channels."""
        return torch.cat([path(features) for path in self.children()], 1)


class SplitBranches(nn.Module):
    """The last kind of block: two of its four paths end in a horizontal and a vertical convolution."""

    def __init__(self, convs: "Convs", before: int) -> None:
        super().__init__()
        self.branch0 = convs.one(before, 256, 1)
        self.branch1_0 = convs.one(before, 384, 1)
        self.branch1_1a = convs.wide(384, 256, 3)
        self.branch1_1b = convs.tall(384, 256, 3)
        self.branch2_0 = convs.one(before, 384, 1)
        self.branch2_1 = convs.tall(384, 448, 3)
        self.branch2_2 = convs.wide(448, 512, 3)
        self.branch2_3a = convs.wide(512, 256, 3)
        self.branch2_3b = convs.tall(512, 256, 3)
        self.branch3 = nn.Sequential(_mean_pool(), convs.one(before, 256, 1))

    def forward(self, features: Tensor) -> Tensor:
        """The outputs of the six ends, concatenated along the channels."""
        short = self.branch1_0(features)
        long = self.branch2_2(self.branch2_1(self.branch2_0(features)))
        return torch.cat(
            [
                self.branch0(features),
                self.branch1_1a(short),
                self.branch1_1b(short),
                self.branch2_3a(long),
                self.branch2_3b(long),
                self.branch3(features),
            ],
            1,
        )


@dataclass(frozen=True, slots=True)
class Convs:
    """The convolutions of a network whose widths are the paper's, divided by `narrowing`."""

    narrowing: int

    def width(self, channels: int) -> int:
        """The paper's number of channels, narrowed."""
        return channels // self.narrowing

    def one(self, before: int, after: int, side: int, *, stride: int = 1, padded: bool = False) -> ConvNormAct:
        """A square convolution."""
        return ConvNormAct(self.width(before), self.width(after), (side, side), stride=stride, padded=padded)

    def wide(self, before: int, after: int, side: int) -> ConvNormAct:
        """A padded convolution along the row."""
        return ConvNormAct(self.width(before), self.width(after), (1, side), padded=True)

    def tall(self, before: int, after: int, side: int) -> ConvNormAct:
        """A padded convolution along the column."""
        return ConvNormAct(self.width(before), self.width(after), (side, 1), padded=True)


def _mean_pool() -> nn.Module:
    return nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)


def _halving_pool() -> nn.Module:
    return nn.MaxPool2d(3, stride=2)


def _numbered(*paths: nn.Module) -> Branches:
    return Branches({f"branch{index}": path for index, path in enumerate(paths)})


def _stem(convs: Convs, channels: int, stride: int) -> Iterator[nn.Module]:
    yield ConvNormAct(channels, convs.width(32), (3, 3), stride=stride)
    yield convs.one(32, 32, 3)
    yield convs.one(32, 64, 3, padded=True)
    yield Branches({"maxpool": _halving_pool(), "conv": convs.one(64, 96, 3, stride=2)})
    yield _numbered(
        nn.Sequential(convs.one(160, 64, 1), convs.one(64, 96, 3)),
        nn.Sequential(convs.one(160, 64, 1), convs.wide(64, 64, 7), convs.tall(64, 64, 7), convs.one(64, 96, 3)),
    )
    yield Branches({"conv": convs.one(192, 192, 3, stride=2), "maxpool": _halving_pool()})


def _block_a(convs: Convs) -> nn.Module:
    return _numbered(
        convs.one(384, 96, 1),
        nn.Sequential(convs.one(384, 64, 1), convs.one(64, 96, 3, padded=True)),
        nn.Sequential(convs.one(384, 64, 1), convs.one(64, 96, 3, padded=True), convs.one(96, 96, 3, padded=True)),
        nn.Sequential(_mean_pool(), convs.one(384, 96, 1)),
    )


def _reduction_a(convs: Convs) -> nn.Module:
    return _numbered(
        convs.one(384, 384, 3, stride=2),
        nn.Sequential(convs.one(384, 192, 1), convs.one(192, 224, 3, padded=True), convs.one(224, 256, 3, stride=2)),
        _halving_pool(),
    )


def _block_b(convs: Convs) -> nn.Module:
    return _numbered(
        convs.one(1024, 384, 1),
        nn.Sequential(convs.one(1024, 192, 1), convs.wide(192, 224, 7), convs.tall(224, 256, 7)),
        nn.Sequential(
            convs.one(1024, 192, 1),
            convs.tall(192, 192, 7),
            convs.wide(192, 224, 7),
            convs.tall(224, 224, 7),
            convs.wide(224, 256, 7),
        ),
        nn.Sequential(_mean_pool(), convs.one(1024, 128, 1)),
    )


def _reduction_b(convs: Convs) -> nn.Module:
    return _numbered(
        nn.Sequential(convs.one(1024, 192, 1), convs.one(192, 192, 3, stride=2)),
        nn.Sequential(
            convs.one(1024, 256, 1), convs.wide(256, 256, 7), convs.tall(256, 320, 7), convs.one(320, 320, 3, stride=2)
        ),
        _halving_pool(),
    )


class Inception(nn.Module):
    """Stem, three kinds of blocks with two reductions between them, mean of the last map, one linear layer."""

    def __init__(self, shape: NetworkShape, repeats: tuple[int, int, int], narrowing: int, stride: int) -> None:
        super().__init__()
        convs = Convs(narrowing)
        self.features = nn.Sequential(
            *_stem(convs, shape.channels, stride),
            *(_block_a(convs) for _ in range(repeats[0])),
            _reduction_a(convs),
            *(_block_b(convs) for _ in range(repeats[1])),
            _reduction_b(convs),
            *(SplitBranches(convs, 1536) for _ in range(repeats[2])),
        )
        self.global_pool = nn.AdaptiveAvgPool2d(1)
        self.last_linear = nn.Linear(convs.width(1536), shape.outputs)

    def forward(self, images: Tensor) -> Tensor:
        """One logit per image and output."""
        return self.last_linear(self.global_pool(self.features(images)).flatten(1))


def inception_v4(shape: NetworkShape) -> nn.Module:
    """Inception-v4 as published."""
    return Inception(shape, (4, 7, 3), narrowing=1, stride=2)


def inception_compact(shape: NetworkShape) -> nn.Module:
    """One block of each kind, an eighth as wide; the first convolution has stride 1, so that 64 px are enough."""
    return Inception(shape, (1, 1, 1), narrowing=8, stride=1)


MODELS.add(
    "inception_v4",
    ModelFacts(
        "inception_v4",
        inception_v4,
        "Inception-v4 (Szegedy et al. 2017); loads timm's checkpoints",
        "Inception",
        size=(299, 299),
        smallest=75,
    ),
)
MODELS.add(
    "inception_compact",
    ModelFacts(
        "inception_compact",
        inception_compact,
        "Compact Inception without weights, for training",
        "Inception",
        size=(64, 64),
        channels=1,
        smallest=39,
    ),
)
