"""Small networks with the structures that break other libraries."""

import torch
from torch import nn
from torch.nn import functional


class Residual(nn.Module):
    """Two branches that are added and two that are concatenated, without biases."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.start, self.a, self.b = (nn.Conv2d(i, 4, 3, padding=1, bias=False) for i in (1, 4, 4))
        self.head = nn.Linear(8, 3, bias=False)

    def forward(self, images):
        x = functional.relu(self.start(images))
        y = functional.relu_(self.a(x))
        y += x
        z = functional.max_pool2d(torch.cat([y, self.b(x).relu()], 1), 2)
        return self.head(z.mean((2, 3)))


class Attending(nn.Module):
    """Patches, LayerNorm, attention, GELU and residual sums, without biases."""

    def __init__(self, fused):
        super().__init__()
        torch.manual_seed(7)
        self.fused = fused
        self.patches, self.positions = nn.Conv2d(1, 8, 4, 4, bias=False), nn.Parameter(torch.randn(1, 9, 8) * 0.1)
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24, bias=False), nn.Linear(8, 8, bias=False)
        self.mlp = nn.Sequential(nn.Linear(8, 16, bias=False), nn.GELU(), nn.Linear(16, 8, bias=False))
        self.head = nn.Linear(8, 3, bias=False)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        if self.fused:
            mixed = functional.scaled_dot_product_attention(q, k, v)
        else:
            mixed = torch.einsum("bij,bjd->bid", (q @ k.transpose(1, 2) * 8**-0.5).softmax(-1), v)
        x = x + self.out(mixed)
        x = x + self.mlp(self.norm2(x))
        return self.head(x.mean(1))
