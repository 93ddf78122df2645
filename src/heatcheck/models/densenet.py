"""DenseNets, built by MONAI."""

import warnings

from torch import nn

from heatcheck.models.registry import MODELS, ModelFacts


def densenet_compact(channels: int, outputs: int) -> nn.Module:
    """A small DenseNet whose last feature map has a sixteenth of the input's side."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # MONAI's import warns about its own plans
        from monai.networks.nets.densenet import DenseNet
    return DenseNet(
        spatial_dims=2,
        in_channels=channels,
        out_channels=outputs,
        init_features=24,
        growth_rate=16,
        block_config=(4, 6, 10),
        bn_size=3,
    )


MODELS.add(
    "densenet_compact",
    ModelFacts("densenet_compact", densenet_compact, "Compact DenseNet without weights, for training"),
)
MODELS.add(
    "phantom_chest_densenet",
    ModelFacts(
        "phantom_chest_densenet",
        densenet_compact,
        "Compact DenseNet trained on the chest phantom's ten findings; its weights come with heatcheck",
        weights="phantom_chest_densenet.safetensors",
    ),
)
