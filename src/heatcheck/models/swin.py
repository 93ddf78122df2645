"""Swin transformers from MONAI's blocks; timm's checkpoints load."""

import re
import warnings
from dataclasses import dataclass

from torch import Tensor, nn

from heatcheck.core.errors import ModelError
from heatcheck.models.registry import MODELS, ModelFacts, NetworkShape
from heatcheck.models.renaming import State, renamed

_INDEX = ".relative_position_index"
_TABLE = "relative_position_bias_table"
_TIMM = (
    (r"^(layers\.\d+\.blocks\.\d+\.mlp)\.fc([12])\.", r"\1.linear\2."),
    (r"^head\.fc\.", "head."),
)


@dataclass(frozen=True, slots=True)
class SwinDimensions:
    """The dimensions of a Swin transformer; its width doubles from stage to stage."""

    width: int
    depths: tuple[int, ...]
    heads: tuple[int, ...]
    window: int
    patch: int = 4

    @property
    def step(self) -> int:
        """The side of the smallest image, px: multiples of it fill whole windows at every stage."""
        return self.patch * 2 ** (len(self.depths) - 1) * self.window


class Swin(nn.Module):
    """Stages of attention in windows, every other block on shifted ones; the mean normed token gives the logits."""

    def __init__(self, shape: NetworkShape, dimensions: SwinDimensions) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # MONAI warns about its deprecations on import
            from monai.networks.blocks.patchembedding import PatchEmbed
            from monai.networks.nets.swin_unetr import BasicLayer, PatchMerging
        axes = len(shape.size)
        self.patch_embed = PatchEmbed(dimensions.patch, shape.channels, dimensions.width, nn.LayerNorm, axes)
        last = len(dimensions.depths) - 1
        self.layers = nn.ModuleList(
            BasicLayer(
                dim=dimensions.width << stage,
                depth=depth,
                num_heads=heads,
                window_size=(dimensions.window,) * axes,
                drop_path=[0.0] * depth,
                qkv_bias=True,
                downsample=PatchMerging if stage < last else None,  # type: ignore[arg-type]  # MONAI takes a class
            )
            for stage, (depth, heads) in enumerate(zip(dimensions.depths, dimensions.heads, strict=True))
        )
        self.norm = nn.LayerNorm(dimensions.width << last)
        self.head = nn.Linear(dimensions.width << last, shape.outputs)

    def forward(self, images: Tensor) -> Tensor:
        """One logit per image and output."""
        features = self.patch_embed(images)
        for layer in self.layers:
            features = layer(features)
        tokens = self.norm(features.flatten(2).transpose(1, 2))
        return self.head(tokens.mean(1))


def from_timm(state: State, module: nn.Module) -> State:
    """The state under heatcheck's names; patches are merged at the end of a stage, as in timm before 0.9."""
    state = renamed(state, _TIMM)
    if not any(name.startswith("layers.0.downsample.") for name in state):
        state = {
            re.sub(
                r"^layers\.(\d+)\.downsample\.", lambda match: f"layers.{int(match[1]) - 1}.downsample.", name
            ): value
            for name, value in state.items()
        }
    expected = module.state_dict()
    # older files also store what follows from the size alone; the network's own values replace it
    state = {name: value for name, value in state.items() if not name.endswith((_INDEX, ".attn_mask"))}
    state |= {name: value for name, value in expected.items() if name.endswith(_INDEX)}
    for name, value in state.items():
        if name.endswith(_TABLE) and name in expected and len(value) != len(expected[name]):
            sides = [(round(len(table) ** 0.5) + 1) // 2 for table in (value, expected[name])]
            raise ModelError(
                f"the weights were trained with windows of {sides[0]} patches, the model has windows of {sides[1]}; "
                f"use a checkpoint with windows of {sides[1]}"
            )
    return state


_TINY = SwinDimensions(width=96, depths=(2, 2, 6, 2), heads=(3, 6, 12, 24), window=7)
_BASE = SwinDimensions(width=128, depths=(2, 2, 18, 2), heads=(4, 8, 16, 32), window=7)
_COMPACT = SwinDimensions(width=32, depths=(2, 2, 2), heads=(2, 4, 8), window=4)


def swin_tiny(shape: NetworkShape) -> nn.Module:
    """Swin-T with windows of 7 × 7 patches."""
    return Swin(shape, _TINY)


def swin_base(shape: NetworkShape) -> nn.Module:
    """Swin-B with windows of 7 × 7 patches."""
    return Swin(shape, _BASE)


def swin_compact(shape: NetworkShape) -> nn.Module:
    """A Swin transformer of three stages with windows of 4 × 4 patches."""
    return Swin(shape, _COMPACT)


for _name, _make, _dimensions in (("swin_tiny", swin_tiny, _TINY), ("swin_base", swin_base, _BASE)):
    MODELS.add(
        _name,
        ModelFacts(
            _name,
            _make,
            f"{_name.replace('_', ' ').capitalize()}, windows of 7 (Liu et al. 2021); loads timm's checkpoints",
            "Swin",
            smallest=_dimensions.step,
            multiple=_dimensions.step,
            translate=from_timm,
        ),
    )
MODELS.add(
    "swin_compact",
    ModelFacts(
        "swin_compact",
        swin_compact,
        "Compact Swin transformer without weights, for training",
        "Swin",
        size=(64, 64),
        channels=1,
        smallest=_COMPACT.step,
        multiple=_COMPACT.step,
        translate=from_timm,
    ),
)
