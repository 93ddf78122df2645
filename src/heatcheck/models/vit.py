"""Vision transformers from MONAI's blocks; timm's checkpoints load."""

import math
import warnings
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from heatcheck.core.errors import ModelError
from heatcheck.models.registry import MODELS, ModelFacts, NetworkShape
from heatcheck.models.renaming import State, renamed

_POSITIONS = "patch_embedding.position_embeddings"
_TIMM = (
    (r"^patch_embed\.proj\.", "patch_embedding.patch_embeddings."),
    (r"^pos_embed$", _POSITIONS),
    (r"^(blocks\.\d+\.attn)\.proj\.", r"\1.out_proj."),
    (r"^(blocks\.\d+\.mlp)\.fc([12])\.", r"\1.linear\2."),
)


@dataclass(frozen=True, slots=True)
class VitDimensions:
    """The patch size, width, depth and number of heads of a vision transformer."""

    patch: int
    width: int
    depth: int
    heads: int


class VisionTransformer(nn.Module):
    """Patches and a class token through attention blocks; the normed class token gives the logits.

    The class token includes its position embedding, which timm adds from the first row of its table.
    """

    def __init__(self, shape: NetworkShape, dimensions: VitDimensions) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # MONAI warns about its deprecations on import
            from monai.networks.blocks.patchembedding import PatchEmbeddingBlock
            from monai.networks.blocks.transformerblock import TransformerBlock
        self.grid = tuple(side // dimensions.patch for side in shape.size)
        self.patch_embedding = PatchEmbeddingBlock(
            in_channels=shape.channels,
            img_size=shape.size,
            patch_size=dimensions.patch,
            hidden_size=dimensions.width,
            num_heads=dimensions.heads,
            proj_type="conv",
            pos_embed_type="learnable",
            spatial_dims=len(shape.size),
        )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dimensions.width))
        self.blocks = nn.ModuleList(
            TransformerBlock(dimensions.width, 4 * dimensions.width, dimensions.heads, qkv_bias=True)
            for _ in range(dimensions.depth)
        )
        for block in self.blocks:  # MONAI keeps layers here that only decoders use
            block.norm_cross_attn = nn.Identity()
            block.cross_attn = nn.Identity()
        self.norm = nn.LayerNorm(dimensions.width)
        self.head = nn.Linear(dimensions.width, shape.outputs)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = 1e-6  # timm's; MONAI does not let it be chosen

    def forward(self, images: Tensor) -> Tensor:
        """One logit per image and output."""
        patches = self.patch_embedding(images)
        tokens = torch.cat([self.cls_token.expand(len(patches), -1, -1), patches], 1)
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(self.norm(tokens)[:, 0])


def from_timm(state: State, module: nn.Module) -> State:
    """The state under heatcheck's names, with the position embeddings on the network's grid of patches."""
    grid = cast(VisionTransformer, module).grid
    state = renamed(state, _TIMM) if "pos_embed" not in state else _with_class_position(renamed(state, _TIMM), grid)
    positions = state.get(_POSITIONS)
    if positions is None or positions.shape[1] == math.prod(grid):
        return state
    return {**state, _POSITIONS: _on_grid(positions, grid)}


def _with_class_position(state: State, grid: tuple[int, ...]) -> State:
    first, rest = state[_POSITIONS][:, :1], state[_POSITIONS][:, 1:]
    token = state["cls_token"] + first if "cls_token" in state else first
    # timm's tables are square: on another grid the same number of patches has other positions
    return {**state, "cls_token": token, _POSITIONS: _on_grid(rest, grid)}


def _on_grid(positions: Tensor, grid: tuple[int, ...]) -> Tensor:
    """Embeddings of a square grid of patches on another grid, bicubic as in timm."""
    side = math.isqrt(positions.shape[1])
    if side**2 != positions.shape[1]:
        raise ModelError(
            f"the weights hold {positions.shape[1]} positions of patches, which is not a square number; "
            "set `size` in the contract to the size they were trained at"
        )
    if grid == (side, side):
        return positions
    square = positions.float().transpose(1, 2).reshape(1, -1, side, side)
    resized = functional.interpolate(square, size=grid, mode="bicubic", antialias=True)
    return resized.flatten(2).transpose(1, 2).contiguous()


def vit_base_16(shape: NetworkShape) -> nn.Module:
    """ViT-B/16."""
    return VisionTransformer(shape, VitDimensions(patch=16, width=768, depth=12, heads=12))


def vit_compact(shape: NetworkShape) -> nn.Module:
    """A vision transformer of four narrow blocks on patches of 8 px."""
    return VisionTransformer(shape, VitDimensions(patch=8, width=96, depth=4, heads=3))


MODELS.add(
    "vit_base_16",
    ModelFacts(
        "vit_base_16",
        vit_base_16,
        "ViT-B/16 (Dosovitskiy et al. 2021); loads timm's checkpoints, also those trained at another size",
        "ViT",
        smallest=16,
        multiple=16,
        translate=from_timm,
    ),
)
MODELS.add(
    "vit_compact",
    ModelFacts(
        "vit_compact",
        vit_compact,
        "Compact vision transformer without weights, for training",
        "ViT",
        size=(64, 64),
        channels=1,
        smallest=8,
        multiple=8,
        translate=from_timm,
    ),
)
MODELS.add(
    "phantom_chest_vit",
    ModelFacts(
        "phantom_chest_vit",
        vit_compact,
        "Compact vision transformer trained on the chest phantom's ten findings; its weights come with heatcheck",
        "ViT",
        size=(96, 96),
        channels=1,
        smallest=8,
        multiple=8,
        weights="phantom_chest_vit.safetensors",
        drawn=True,
    ),
)
