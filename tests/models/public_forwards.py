"""What the public libraries compute from a state dict of theirs, in plain functions: the outside judge of our networks.

Written from the papers and the libraries' layouts, without any of our modules, and on purpose in another manner: Swin's
windows are masks over all pairs of tokens, for example.
"""

import re

import torch
from torch.nn import functional as F  # noqa: N812 - its usual name


def _norm(state, name, x, eps=1e-5):
    mean, var = state[f"{name}.running_mean"], state[f"{name}.running_var"]
    return F.batch_norm(x, mean, var, state[f"{name}.weight"], state[f"{name}.bias"], eps=eps)


def _linear(state, name, x):
    return F.linear(x, state[f"{name}.weight"], state.get(f"{name}.bias"))


def _layer_norm(state, name, x, eps):
    return F.layer_norm(x, x.shape[-1:], state[f"{name}.weight"], state[f"{name}.bias"], eps)


def _numbers(state, pattern):
    return sorted({int(match[1]) for name in state if (match := re.match(pattern, name))})


def densenet(state, x):
    x = F.conv2d(x, state["features.conv0.weight"], stride=2, padding=3)
    x = F.max_pool2d(_norm(state, "features.norm0", x).relu(), 3, 2, 1)
    blocks = _numbers(state, r"features\.denseblock(\d+)\.")
    for b in blocks:
        for i in _numbers(state, rf"features\.denseblock{b}\.denselayer(\d+)\."):
            prefix = f"features.denseblock{b}.denselayer{i}"
            y = F.conv2d(_norm(state, f"{prefix}.norm1", x).relu(), state[f"{prefix}.conv1.weight"])
            y = F.conv2d(_norm(state, f"{prefix}.norm2", y).relu(), state[f"{prefix}.conv2.weight"], padding=1)
            x = torch.cat([x, y], 1)
        if b != blocks[-1]:
            prefix = f"features.transition{b}"
            x = F.avg_pool2d(F.conv2d(_norm(state, f"{prefix}.norm", x).relu(), state[f"{prefix}.conv.weight"]), 2)
    return _linear(state, "classifier", _norm(state, "features.norm5", x).relu().mean((2, 3)))


def resnet(state, x):
    x = _norm(state, "bn1", F.conv2d(x, state["conv1.weight"], stride=2, padding=3)).relu()
    x = F.max_pool2d(x, 3, 2, 1)
    for stage in (1, 2, 3, 4):
        for i in _numbers(state, rf"layer{stage}\.(\d+)\."):
            prefix, stride = f"layer{stage}.{i}", 2 if stage > 1 and i == 0 else 1
            y = _norm(state, f"{prefix}.bn1", F.conv2d(x, state[f"{prefix}.conv1.weight"])).relu()
            y = _norm(
                state, f"{prefix}.bn2", F.conv2d(y, state[f"{prefix}.conv2.weight"], stride=stride, padding=1)
            ).relu()
            y = _norm(state, f"{prefix}.bn3", F.conv2d(y, state[f"{prefix}.conv3.weight"]))
            if f"{prefix}.downsample.0.weight" in state:
                x = _norm(
                    state, f"{prefix}.downsample.1", F.conv2d(x, state[f"{prefix}.downsample.0.weight"], stride=stride)
                )
            x = (x + y).relu()
    return _linear(state, "fc", x.mean((2, 3)))


def vgg(state, x, grid):
    kernels = [n for n in _numbers(state, r"features\.(\d+)\.weight") if state[f"features.{n}.weight"].ndim == 4]
    for position, following in zip(kernels, [*kernels[1:], None], strict=True):
        weight, bias = state[f"features.{position}.weight"], state[f"features.{position}.bias"]
        x = F.conv2d(x, weight, bias, padding=1)
        normalised = f"features.{position + 1}.running_mean" in state
        x = (_norm(state, f"features.{position + 1}", x) if normalised else x).relu()
        if following != position + 2 + normalised:  # a pooling layer lies between
            x = F.max_pool2d(x, 2)
    x = F.adaptive_avg_pool2d(x, grid).flatten(1)
    x = _linear(state, "classifier.3", _linear(state, "classifier.0", x).relu()).relu()
    return _linear(state, "classifier.6", x)


def inception(state, x, repeats, stride):
    def conv(name, x, stride=1, *, padded=True):
        weight = state[f"features.{name}.conv.weight"]
        padding = [side // 2 for side in weight.shape[2:]] if padded else 0
        return _norm(state, f"features.{name}.bn", F.conv2d(x, weight, None, stride, padding), 1e-3).relu()

    def chain(x, prefix, count):
        for i in range(count):
            x = conv(f"{prefix}.{i}", x)
        return x

    def mean3(x):
        ones = torch.ones_like(x)
        return F.avg_pool2d(x, 3, 1, 1) / F.avg_pool2d(ones, 3, 1, 1)

    def max3(x):
        return F.max_pool2d(x, 3, 2)

    x = conv("2", conv("1", conv("0", x, stride, padded=False), padded=False))
    x = torch.cat([max3(x), conv("3.conv", x, 2, padded=False)], 1)
    x = torch.cat([conv(f"4.branch{b}.{n}", chain(x, f"4.branch{b}", n), padded=False) for b, n in ((0, 1), (1, 3))], 1)
    x = torch.cat([conv("5.conv", x, 2, padded=False), max3(x)], 1)
    n = 6
    for _ in range(repeats[0]):
        parts = [conv(f"{n}.branch0", x), chain(x, f"{n}.branch1", 2), chain(x, f"{n}.branch2", 3)]
        x, n = torch.cat([*parts, conv(f"{n}.branch3.1", mean3(x))], 1), n + 1
    long = conv(f"{n}.branch1.2", chain(x, f"{n}.branch1", 2), 2, padded=False)
    x, n = torch.cat([conv(f"{n}.branch0", x, 2, padded=False), long, max3(x)], 1), n + 1
    for _ in range(repeats[1]):
        parts = [conv(f"{n}.branch0", x), chain(x, f"{n}.branch1", 3), chain(x, f"{n}.branch2", 5)]
        x, n = torch.cat([*parts, conv(f"{n}.branch3.1", mean3(x))], 1), n + 1
    short = conv(f"{n}.branch0.1", chain(x, f"{n}.branch0", 1), 2, padded=False)
    long = conv(f"{n}.branch1.3", chain(x, f"{n}.branch1", 3), 2, padded=False)
    x, n = torch.cat([short, long, max3(x)], 1), n + 1
    for _ in range(repeats[2]):
        one = conv(f"{n}.branch1_0", x)
        two = conv(f"{n}.branch2_2", conv(f"{n}.branch2_1", conv(f"{n}.branch2_0", x)))
        ends = [conv(f"{n}.branch1_1{e}", one) for e in "ab"] + [conv(f"{n}.branch2_3{e}", two) for e in "ab"]
        x, n = torch.cat([conv(f"{n}.branch0", x), *ends, conv(f"{n}.branch3.1", mean3(x))], 1), n + 1
    return _linear(state, "last_linear", x.mean((2, 3)))


def _attention(state, prefix, x, heads, bias=0.0):
    """Attention among all tokens; `bias` is added to the scores."""
    width = x.shape[-1]
    q, k, v = (
        part.unflatten(-1, (heads, width // heads)).transpose(1, 2)
        for part in _linear(state, f"{prefix}.qkv", x).split(width, -1)
    )
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / (width // heads) ** 0.5 + bias
    mixed = torch.einsum("bhij,bhjd->bihd", scores.softmax(-1), v).flatten(2)
    return _linear(state, f"{prefix}.proj", mixed)


def _perceptron(state, prefix, x):
    return _linear(state, f"{prefix}.fc2", F.gelu(_linear(state, f"{prefix}.fc1", x)))


def vit(state, x, heads):
    weight = state["patch_embed.proj.weight"]
    patches = F.conv2d(x, weight, state["patch_embed.proj.bias"], stride=weight.shape[-1]).flatten(2).transpose(1, 2)
    x = torch.cat([state["cls_token"].expand(len(x), -1, -1), patches], 1) + state["pos_embed"]
    for i in _numbers(state, r"blocks\.(\d+)\."):
        x = x + _attention(state, f"blocks.{i}.attn", _layer_norm(state, f"blocks.{i}.norm1", x, 1e-6), heads)
        x = x + _perceptron(state, f"blocks.{i}.mlp", _layer_norm(state, f"blocks.{i}.norm2", x, 1e-6))
    return _linear(state, "head", _layer_norm(state, "norm", x, 1e-6)[:, 0])


def _window_bias(table, grid, window, *, shifted):
    """What is added to the score of every pair of tokens: by their distance within one window, else minus infinity."""
    rows, columns = (axis.flatten() for axis in torch.meshgrid(*map(torch.arange, grid), indexing="ij"))
    axes = []
    for position, side in ((rows, grid[0]), (columns, grid[1])):
        shift = window // 2 if shifted and side > window else 0
        moved = (position - shift) % side
        axes.append((moved, moved // window, position < shift))  # tokens that wrapped around attend only to one another
    together = torch.ones(len(rows), len(rows), dtype=torch.bool)
    for _, windows, wrapped in axes:
        together &= (windows[:, None] == windows[None]) & (wrapped[:, None] == wrapped[None])
    down, right = ((moved[:, None] - moved[None]).clamp(1 - window, window - 1) + window - 1 for moved, _, _ in axes)
    bias = table[down * (2 * window - 1) + right].permute(2, 0, 1)
    return bias.masked_fill(~together, float("-inf"))


def swin(state, x, heads, window):
    x = F.conv2d(x, state["patch_embed.proj.weight"], state["patch_embed.proj.bias"], stride=4)
    grid = x.shape[2:]
    x = _layer_norm(state, "patch_embed.norm", x.flatten(2).transpose(1, 2), 1e-5)
    for stage, count in enumerate(heads):
        if stage:
            cells = x.unflatten(1, grid)
            quarter = [cells[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
            merged = _layer_norm(state, f"layers.{stage}.downsample.norm", torch.cat(quarter, -1), 1e-5)
            x = _linear(state, f"layers.{stage}.downsample.reduction", merged).flatten(1, 2)
            grid = merged.shape[1:3]
        for i in _numbers(state, rf"layers\.{stage}\.blocks\.(\d+)\."):
            prefix = f"layers.{stage}.blocks.{i}"
            bias = _window_bias(state[f"{prefix}.attn.relative_position_bias_table"], grid, window, shifted=i % 2 == 1)
            x = x + _attention(state, f"{prefix}.attn", _layer_norm(state, f"{prefix}.norm1", x, 1e-5), count, bias)
            x = x + _perceptron(state, f"{prefix}.mlp", _layer_norm(state, f"{prefix}.norm2", x, 1e-5))
    return _linear(state, "head.fc", _layer_norm(state, "norm", x, 1e-5).mean(1))
