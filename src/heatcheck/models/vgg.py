"""VGG-16 and compact networks of its kind with torchvision's names, and VGGs for volumes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from torch import Tensor, nn

from heatcheck.models.registry import MODELS, ModelFacts, NetworkShape

_VGG16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
_VGG3D = ((16,), (32, 32), (64, 64), (128, 128), (128, 128), (128, 128))


@dataclass(frozen=True, slots=True)
class VggDimensions:
    """The widths of a VGG's convolutions by stage, and the grid and width of its linear layers."""

    stages: tuple[tuple[int, ...], ...]
    grid: int
    hidden: int
    normalised: bool = False  # each convolution is followed by batch normalisation
    dropout: float = 0.5


class VGG(nn.Module):
    """Stages of convolutions, each ended by pooling, then three linear layers on a fixed grid."""

    def __init__(self, shape: NetworkShape, dimensions: VggDimensions) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = shape.channels
        for stage in dimensions.stages:
            for wider in stage:
                norm = [nn.BatchNorm2d(wider)] if dimensions.normalised else []
                layers += [nn.Conv2d(width, wider, 3, padding=1), *norm, nn.ReLU(inplace=True)]
                width = wider
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(dimensions.grid)
        self.classifier = nn.Sequential(
            nn.Linear(width * dimensions.grid**2, dimensions.hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dimensions.dropout),
            nn.Linear(dimensions.hidden, dimensions.hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dimensions.dropout),
            nn.Linear(dimensions.hidden, shape.outputs),
        )
        for layer in layers:
            if (
                isinstance(layer, nn.Conv2d) and not dimensions.normalised
            ):  # with torch's default, signals fade from layer to layer
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """One logit per image and output."""
        return self.classifier(self.avgpool(self.features(images)).flatten(1))


class VGG3D(nn.Module):
    """Blocks of normalised 3D convolutions, each ended by pooling, then two linear layers."""

    def __init__(self, shape: NetworkShape, blocks: Sequence[Sequence[int]], hidden: int) -> None:
        super().__init__()
        blocks = blocks[: _blocks_for(min(shape.size), len(blocks))]
        layers: list[nn.Module] = []
        width = shape.channels
        for block in blocks:
            for wider in block:
                layers += [nn.Conv3d(width, wider, 3, padding=1), nn.BatchNorm3d(wider), nn.ReLU(inplace=True)]
                width = wider
            layers.append(nn.MaxPool3d(2))
        self.features = nn.Sequential(*layers)
        voxels = prod(side >> len(blocks) for side in shape.size)
        self.classifier = nn.Sequential(
            nn.Linear(width * voxels, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, shape.outputs)
        )

    def forward(self, volumes: Tensor) -> Tensor:
        """One logit per volume and output."""
        return self.classifier(self.features(volumes).flatten(1))


def _blocks_for(side: int, most: int) -> int:
    """All blocks from 64 px on; below, as many as leave at least 2 px of the shortest side."""
    return most if side >= 64 else min(most, side.bit_length() - 2)


def vgg16(shape: NetworkShape) -> nn.Module:
    """The VGG of 16 layers without normalisation."""
    return VGG(shape, VggDimensions(_VGG16, grid=7, hidden=4096))


def vgg_compact(shape: NetworkShape) -> nn.Module:
    """A VGG of three stages whose last feature map has an eighth of the input's side."""
    return VGG(shape, VggDimensions(((16,), (32,), (64, 64)), grid=4, hidden=128))


def vgg_bn_compact(shape: NetworkShape) -> nn.Module:
    """A VGG of four stages with normalisation, whose last feature map has a sixteenth of the input's side."""
    return VGG(shape, VggDimensions(((16,), (32,), (64,), (96, 96)), grid=7, hidden=64, normalised=True, dropout=0.2))


def vgg_bn_pooled(shape: NetworkShape) -> nn.Module:
    """The same with its last feature map averaged, so that it learns what is there without learning where."""
    return VGG(shape, VggDimensions(((16,), (32,), (64,), (96, 96)), grid=1, hidden=64, normalised=True, dropout=0.2))


def vgg3d(shape: NetworkShape) -> nn.Module:
    """The 3D network of the modality study, with as many of its six blocks as the volume allows."""
    return VGG3D(shape, _VGG3D, hidden=4096)


def vgg3d_compact(shape: NetworkShape) -> nn.Module:
    """A 3D VGG of at most three narrow blocks."""
    return VGG3D(shape, ((8,), (16, 16), (32, 32)), hidden=64)


MODELS.add(
    "vgg16",
    ModelFacts(
        "vgg16", vgg16, "VGG-16 (Simonyan & Zisserman 2015); loads torchvision's checkpoints", "VGG", smallest=32
    ),
)
MODELS.add(
    "vgg_compact",
    ModelFacts(
        "vgg_compact",
        vgg_compact,
        "Compact VGG without weights, for training",
        "VGG",
        size=(64, 64),
        channels=1,
        smallest=8,
    ),
)
MODELS.add(
    "vgg_bn_compact",
    ModelFacts(
        "vgg_bn_compact",
        vgg_bn_compact,
        "Compact VGG with batch normalisation without weights, for training on few images",
        "VGG",
        size=(64, 64),
        channels=1,
        smallest=16,
    ),
)
MODELS.add(
    "vgg_bn_pooled",
    ModelFacts(
        "vgg_bn_pooled",
        vgg_bn_pooled,
        "Compact pooled VGG with batch normalisation without weights, for training on lesions that may be anywhere",
        "VGG",
        size=(64, 64),
        channels=1,
        smallest=16,
    ),
)
MODELS.add(
    "phantom_classes_vgg",
    ModelFacts(
        "phantom_classes_vgg",
        vgg_bn_compact,
        "Compact VGG with batch normalisation trained on the phantom's four classes; its weights come with heatcheck",
        "VGG",
        size=(96, 96),
        channels=1,
        smallest=16,
        weights="phantom_classes_vgg.safetensors",
        drawn=True,
    ),
)
MODELS.add(
    "phantom_brain_vgg",
    ModelFacts(
        "phantom_brain_vgg",
        vgg_bn_pooled,
        "Compact pooled VGG with batch normalisation trained on the brain phantom; its weights come with heatcheck",
        "VGG",
        size=(80, 80),
        channels=4,
        smallest=16,
        weights="phantom_brain_vgg.safetensors",
        drawn=True,
    ),
)
MODELS.add(
    "phantom_brain_vgg_plain",
    ModelFacts(
        "phantom_brain_vgg_plain",
        vgg_bn_pooled,
        "Compact pooled VGG with batch normalisation trained on the brain phantom without hiding modalities; its "
        "weights come with heatcheck",
        "VGG",
        size=(80, 80),
        channels=4,
        smallest=16,
        weights="phantom_brain_vgg_plain.safetensors",
        drawn=True,
    ),
)
MODELS.add(
    "vgg3d",
    ModelFacts(
        "vgg3d",
        vgg3d,
        "3D VGG for volumes of several modalities, as in the study of modality importance",
        "3D VGG",
        size=(128, 128, 128),
        channels=4,
        smallest=4,
    ),
)
MODELS.add(
    "vgg3d_compact",
    ModelFacts(
        "vgg3d_compact",
        vgg3d_compact,
        "Compact 3D VGG without weights, for training",
        "3D VGG",
        size=(32, 32, 32),
        channels=4,
        smallest=4,
    ),
)
