"""DenseNets under MONAI's names; torchvision's checkpoints load."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from heatcheck.models.registry import MODELS, ModelFacts, NetworkShape
from heatcheck.models.renaming import State, renamed

_TORCHVISION = (
    (r"(\.denselayer\d+\.)(norm|conv)\.?([12])\.", r"\1layers.\2\3."),  # until 2017 `norm.1`, since then `norm1`
    (r"^classifier\.(?:0\.)?", "class_layers.out."),
)


def from_torchvision(state: State, _module: nn.Module) -> State:
    """The state under MONAI's names."""
    return renamed(state, _TORCHVISION)


@dataclass(frozen=True, slots=True)
class DenseNetDimensions:
    """The number of layers per block, the width of the first features, and what each layer adds to them."""

    blocks: tuple[int, ...]
    features: int = 64
    growth: int = 32
    widening: int = 4  # width of a bottleneck, as a multiple of `growth`


class _Kinds(NamedTuple):
    """Torch's layers for images or for volumes."""

    conv: type[nn.Conv2d | nn.Conv3d]
    norm: type[nn.BatchNorm2d | nn.BatchNorm3d]
    max_pool: type[nn.MaxPool2d | nn.MaxPool3d]
    mean_pool: type[nn.AvgPool2d | nn.AvgPool3d]
    global_pool: type[nn.AdaptiveAvgPool2d | nn.AdaptiveAvgPool3d]


_KINDS = {
    2: _Kinds(nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d),
    3: _Kinds(nn.Conv3d, nn.BatchNorm3d, nn.MaxPool3d, nn.AvgPool3d, nn.AdaptiveAvgPool3d),
}


class _Layer(nn.Module):
    """The input features followed by `growth` new ones."""

    def __init__(self, kinds: _Kinds, width: int, dimensions: DenseNetDimensions) -> None:
        super().__init__()
        bottleneck = dimensions.widening * dimensions.growth
        self.layers = nn.Sequential()
        self.layers.norm1 = kinds.norm(width)
        self.layers.relu1 = nn.ReLU(inplace=True)
        self.layers.conv1 = kinds.conv(width, bottleneck, 1, bias=False)
        self.layers.norm2 = kinds.norm(bottleneck)
        self.layers.relu2 = nn.ReLU(inplace=True)
        self.layers.conv2 = kinds.conv(bottleneck, dimensions.growth, 3, padding=1, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        """The old and the new features."""
        return torch.cat([features, self.layers(features)], 1)


def _transition(kinds: _Kinds, width: int) -> nn.Sequential:
    """Half the channels on half the grid."""
    part = nn.Sequential()
    part.norm = kinds.norm(width)
    part.relu = nn.ReLU(inplace=True)
    part.conv = kinds.conv(width, width // 2, 1, bias=False)
    part.pool = kinds.mean_pool(2, 2)
    return part


class DenseNet(nn.Module):
    """Blocks of layers that read all layers before them (Huang et al. 2017); names and first weights are MONAI's."""

    def __init__(self, shape: NetworkShape, dimensions: DenseNetDimensions) -> None:
        super().__init__()
        kinds, width = _KINDS[len(shape.size)], dimensions.features
        self.features = nn.Sequential()
        self.features.conv0 = kinds.conv(shape.channels, width, 7, stride=2, padding=3, bias=False)
        self.features.norm0 = kinds.norm(width)
        self.features.relu0 = nn.ReLU(inplace=True)
        self.features.pool0 = kinds.max_pool(3, stride=2, padding=1)
        for block, layers in enumerate(dimensions.blocks, 1):
            dense = nn.Sequential()
            for layer in range(1, layers + 1):
                dense.add_module(f"denselayer{layer}", _Layer(kinds, width, dimensions))
                width += dimensions.growth
            self.features.add_module(f"denseblock{block}", dense)
            if block < len(dimensions.blocks):
                self.features.add_module(f"transition{block}", _transition(kinds, width))
                width //= 2
        self.features.norm5 = kinds.norm(width)
        self.class_layers = nn.Sequential()
        self.class_layers.relu = nn.ReLU(inplace=True)
        self.class_layers.pool = kinds.global_pool(1)
        self.class_layers.flatten = nn.Flatten()
        self.class_layers.out = nn.Linear(width, shape.outputs)
        for part in self.modules():
            if isinstance(part, kinds.conv):
                nn.init.kaiming_normal_(part.weight)
        nn.init.zeros_(self.class_layers.out.bias)

    def forward(self, images: Tensor) -> Tensor:
        """One logit per image and output."""
        return self.class_layers(self.features(images))


def densenet121(shape: NetworkShape) -> nn.Module:
    """The DenseNet of 121 layers."""
    return DenseNet(shape, DenseNetDimensions((6, 12, 24, 16)))


def densenet201(shape: NetworkShape) -> nn.Module:
    """The DenseNet of 201 layers."""
    return DenseNet(shape, DenseNetDimensions((6, 12, 48, 32)))


def densenet_compact(shape: NetworkShape) -> nn.Module:
    """A small DenseNet whose last feature map has a sixteenth of the input's side."""
    return DenseNet(shape, DenseNetDimensions((4, 6, 10), features=24, growth=16, widening=3))


for _name, _make in (("densenet121", densenet121), ("densenet201", densenet201)):
    MODELS.add(
        _name,
        ModelFacts(
            _name,
            _make,
            f"DenseNet-{_name.removeprefix('densenet')} (Huang et al. 2017); loads torchvision's checkpoints",
            "DenseNet",
            smallest=29,
            translate=from_torchvision,
        ),
    )
MODELS.add(
    "densenet_compact",
    ModelFacts(
        "densenet_compact",
        densenet_compact,
        "Compact DenseNet without weights, for training",
        "DenseNet",
        size=(64, 64),
        channels=1,
        smallest=13,
        translate=from_torchvision,
    ),
)
MODELS.add(
    "phantom_chest_densenet",
    ModelFacts(
        "phantom_chest_densenet",
        densenet_compact,
        "Compact DenseNet trained on the chest phantom's ten findings; its weights come with heatcheck",
        "DenseNet",
        size=(160, 160),
        channels=1,
        smallest=13,
        weights="phantom_chest_densenet.safetensors",
        drawn=True,
    ),
)
