"""DenseNets, built by MONAI; torchvision's checkpoints load."""

import warnings

from torch import nn

from heatcheck.models.registry import MODELS, ModelFacts, Shape
from heatcheck.models.renaming import State, renamed

_TORCHVISION = (
    (r"(\.denselayer\d+\.)(norm|conv)\.?([12])\.", r"\1layers.\2\3."),  # until 2017 `norm.1`, since then `norm1`
    (r"^classifier\.(?:0\.)?", "class_layers.out."),
)


def from_torchvision(state: State, _module: nn.Module) -> State:
    """The state under MONAI's names."""
    return renamed(state, _TORCHVISION)


def _densenet(
    shape: Shape, blocks: tuple[int, ...], features: int = 64, growth: int = 32, widening: int = 4
) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # MONAI's import warns about its own plans
        from monai.networks.nets.densenet import DenseNet
    return DenseNet(
        spatial_dims=2,
        in_channels=shape.channels,
        out_channels=shape.outputs,
        init_features=features,
        growth_rate=growth,
        block_config=blocks,
        bn_size=widening,
    )


def densenet121(shape: Shape) -> nn.Module:
    """The DenseNet of 121 layers."""
    return _densenet(shape, (6, 12, 24, 16))


def densenet201(shape: Shape) -> nn.Module:
    """The DenseNet of 201 layers."""
    return _densenet(shape, (6, 12, 48, 32))


def densenet_compact(shape: Shape) -> nn.Module:
    """A small DenseNet whose last feature map has a sixteenth of the input's side."""
    return _densenet(shape, (4, 6, 10), features=24, growth=16, widening=3)


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
    ),
)
