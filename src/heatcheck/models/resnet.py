"""ResNets, built by MONAI; its names are torchvision's, so those checkpoints load as they are."""

import warnings

from torch import nn

from heatcheck.models.registry import MODELS, ModelFacts, NetworkShape


def _resnet(shape: NetworkShape, layers: tuple[int, ...], widths: tuple[int, ...]) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # MONAI warns about its deprecations on import
        from monai.networks.nets.resnet import ResNet
    return ResNet(
        block="bottleneck",
        layers=list(layers),
        block_inplanes=list(widths),
        spatial_dims=2,
        n_input_channels=shape.channels,
        conv1_t_size=7,
        conv1_t_stride=2,
        num_classes=shape.outputs,
        bias_downsample=False,
    )


def resnet152(shape: NetworkShape) -> nn.Module:
    """The ResNet of 152 layers."""
    return _resnet(shape, (3, 8, 36, 3), (64, 128, 256, 512))


def resnet_compact(shape: NetworkShape) -> nn.Module:
    """A ResNet an eighth as wide, with two bottleneck blocks in the first stage and one in the others."""
    return _resnet(shape, (2, 1, 1, 1), (8, 16, 32, 64))


MODELS.add(
    "resnet152",
    ModelFacts(
        "resnet152", resnet152, "ResNet-152 (He et al. 2016); loads torchvision's checkpoints", "ResNet", smallest=32
    ),
)
MODELS.add(
    "resnet_compact",
    ModelFacts(
        "resnet_compact",
        resnet_compact,
        "Compact ResNet without weights, for training",
        "ResNet",
        size=(64, 64),
        channels=1,
        smallest=32,
    ),
)
