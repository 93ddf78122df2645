"""Names and shapes of public checkpoints, spelled out by rule from the libraries' own layouts."""

Shapes = dict[str, tuple[int, ...]]


def norm(name: str, width: int) -> Shapes:
    kinds = ("weight", "bias", "running_mean", "running_var")
    return {**{f"{name}.{kind}": (width,) for kind in kinds}, f"{name}.num_batches_tracked": ()}


def layer(name: str, *shape: int) -> Shapes:
    """A layer with weight and bias."""
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def torchvision_densenet(
    blocks: tuple[int, ...], classes: int, features: int = 64, growth: int = 32, widening: int = 4, *, old: bool = False
) -> Shapes:
    dot = "." if old else ""
    shapes: Shapes = {"features.conv0.weight": (features, 3, 7, 7), **norm("features.norm0", features)}
    width = features
    for b, count in enumerate(blocks, 1):
        for i in range(1, count + 1):
            prefix = f"features.denseblock{b}.denselayer{i}"
            shapes |= norm(f"{prefix}.norm{dot}1", width) | norm(f"{prefix}.norm{dot}2", widening * growth)
            shapes[f"{prefix}.conv{dot}1.weight"] = (widening * growth, width, 1, 1)
            shapes[f"{prefix}.conv{dot}2.weight"] = (growth, widening * growth, 3, 3)
            width += growth
        if b < len(blocks):
            shapes |= norm(f"features.transition{b}.norm", width)
            shapes[f"features.transition{b}.conv.weight"] = (width // 2, width, 1, 1)
            width //= 2
    return shapes | norm("features.norm5", width) | layer("classifier", classes, width)


def torchvision_resnet(layers: tuple[int, ...], classes: int, width: int = 64) -> Shapes:
    shapes: Shapes = {"conv1.weight": (width, 3, 7, 7), **norm("bn1", width)}
    before = width
    for stage, count in enumerate(layers):
        inner = width << stage
        for i in range(count):
            prefix = f"layer{stage + 1}.{i}"
            shapes |= {
                f"{prefix}.conv1.weight": (inner, before, 1, 1),
                f"{prefix}.conv2.weight": (inner, inner, 3, 3),
                f"{prefix}.conv3.weight": (4 * inner, inner, 1, 1),
            }
            shapes |= norm(f"{prefix}.bn1", inner) | norm(f"{prefix}.bn2", inner) | norm(f"{prefix}.bn3", 4 * inner)
            if i == 0:
                shapes |= {f"{prefix}.downsample.0.weight": (4 * inner, before, 1, 1)}
                shapes |= norm(f"{prefix}.downsample.1", 4 * inner)
            before = 4 * inner
    return shapes | layer("fc", classes, before)


def torchvision_vgg16(classes: int) -> Shapes:
    positions = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
    widths = (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)
    shapes: Shapes = {}
    for position, before, after in zip(positions, (3, *widths), widths, strict=False):
        shapes |= layer(f"features.{position}", after, before, 3, 3)
    hidden = layer("classifier.0", 4096, 512 * 49) | layer("classifier.3", 4096, 4096)
    return shapes | hidden | layer("classifier.6", classes, 4096)


# after the name: channels before, channels after, rows and columns of the kernel
_STEM = """
0 3 32 3 3|1 32 32 3 3|2 32 64 3 3|3.conv 64 96 3 3|4.branch0.0 160 64 1 1|4.branch0.1 64 96 3 3|4.branch1.0 160 64 1 1
4.branch1.1 64 64 1 7|4.branch1.2 64 64 7 1|4.branch1.3 64 96 3 3|5.conv 192 192 3 3
"""
_A = """
branch0 384 96 1 1|branch1.0 384 64 1 1|branch1.1 64 96 3 3|branch2.0 384 64 1 1|branch2.1 64 96 3 3
branch2.2 96 96 3 3|branch3.1 384 96 1 1
"""
_TO_B = "branch0 384 384 3 3|branch1.0 384 192 1 1|branch1.1 192 224 3 3|branch1.2 224 256 3 3"
_B = """
branch0 1024 384 1 1|branch1.0 1024 192 1 1|branch1.1 192 224 1 7|branch1.2 224 256 7 1|branch2.0 1024 192 1 1
branch2.1 192 192 7 1|branch2.2 192 224 1 7|branch2.3 224 224 7 1|branch2.4 224 256 1 7|branch3.1 1024 128 1 1
"""
_TO_C = """
branch0.0 1024 192 1 1|branch0.1 192 192 3 3|branch1.0 1024 256 1 1|branch1.1 256 256 1 7|branch1.2 256 320 7 1
branch1.3 320 320 3 3
"""
_C = """
branch0 1536 256 1 1|branch1_0 1536 384 1 1|branch1_1a 384 256 1 3|branch1_1b 384 256 3 1|branch2_0 1536 384 1 1
branch2_1 384 448 3 1|branch2_2 448 512 1 3|branch2_3a 512 256 1 3|branch2_3b 512 256 3 1|branch3.1 1536 256 1 1
"""


def timm_inception_v4(
    classes: int, repeats: tuple[int, int, int] = (4, 7, 3), narrowing: int = 1, channels: int = 3
) -> Shapes:
    a, b, c = repeats
    shapes = _convolutions("features.", _STEM, narrowing, channels)
    kinds = [_A] * a + [_TO_B] + [_B] * b + [_TO_C] + [_C] * c
    for index, kind in enumerate(kinds, 6):
        shapes |= _convolutions(f"features.{index}.", kind, narrowing, channels)
    return shapes | layer("last_linear", classes, 1536 // narrowing)


def _convolutions(prefix: str, table: str, narrowing: int, channels: int) -> Shapes:
    shapes: Shapes = {}
    for line in table.strip().replace("\n", "|").split("|"):
        name, before, after, rows, columns = line.split()
        entering = channels if before == "3" else int(before) // narrowing
        shapes[f"{prefix}{name}.conv.weight"] = (int(after) // narrowing, entering, int(rows), int(columns))
        shapes |= norm(f"{prefix}{name}.bn", int(after) // narrowing)
    return shapes


def timm_vit(classes: int, width: int, depth: int, patch: int, patches: int, channels: int = 3) -> Shapes:
    shapes: Shapes = {"cls_token": (1, 1, width), "pos_embed": (1, 1 + patches, width)}
    shapes |= layer("patch_embed.proj", width, channels, patch, patch)
    for i in range(depth):
        prefix = f"blocks.{i}"
        shapes |= layer(f"{prefix}.norm1", width) | layer(f"{prefix}.norm2", width)
        shapes |= layer(f"{prefix}.attn.qkv", 3 * width, width) | layer(f"{prefix}.attn.proj", width, width)
        shapes |= layer(f"{prefix}.mlp.fc1", 4 * width, width) | layer(f"{prefix}.mlp.fc2", width, 4 * width)
    return shapes | layer("norm", width) | layer("head", classes, width)


def timm_swin(
    classes: int, width: int, depths: tuple[int, ...], heads: tuple[int, ...], window: int, *, channels: int = 3
) -> Shapes:
    """As timm has named them since 0.9; `old_swin` gives the earlier names."""
    shapes = layer("patch_embed.proj", width, channels, 4, 4) | layer("patch_embed.norm", width)
    for stage, (depth, count) in enumerate(zip(depths, heads, strict=True)):
        stage_width = width << stage
        if stage:
            shapes |= layer(f"layers.{stage}.downsample.norm", 2 * stage_width)
            shapes[f"layers.{stage}.downsample.reduction.weight"] = (stage_width, 2 * stage_width)
        for i in range(depth):
            prefix = f"layers.{stage}.blocks.{i}"
            shapes |= layer(f"{prefix}.norm1", stage_width) | layer(f"{prefix}.norm2", stage_width)
            shapes |= layer(f"{prefix}.attn.qkv", 3 * stage_width, stage_width) | layer(
                f"{prefix}.attn.proj", stage_width, stage_width
            )
            shapes[f"{prefix}.attn.relative_position_bias_table"] = ((2 * window - 1) ** 2, count)
            shapes |= layer(f"{prefix}.mlp.fc1", 4 * stage_width, stage_width) | layer(
                f"{prefix}.mlp.fc2", stage_width, 4 * stage_width
            )
    last = width << (len(depths) - 1)
    return shapes | layer("norm", last) | layer("head.fc", classes, last)
