"""Layer-wise relevance propagation: the score is shared out, layer by layer, among what made it up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from heatcheck.core.batches import MapBatch
from heatcheck.core.contracts import Classifier
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.registry import Access, Passes, method
from heatcheck.methods.speed.operations import (
    ACTIVATIONS,
    AVERAGES,
    CONVOLUTIONS,
    MAXIMA,
    PRODUCTS,
    ROUTING,
    SUMS,
    attention,
    inverse_quotient,
    multi_head_attention,
    quotient,
)
from heatcheck.methods.speed.tape import Decomposition, Node, Piece, Rule, Shares, Tape, followed, gradient, passed

CONSTANT = frozenset({"softmax", "rsqrt", "reciprocal"})  # attention weights and denominators
DECOMPOSED: Mapping[str, Decomposition] = {
    "div": quotient,
    "rdiv": inverse_quotient,
    "scaled_dot_product_attention": attention,
    "multi_head_attention_forward": multi_head_attention,
}


@method(
    "lrp",
    label="LRP",
    family="modified backward",
    needs=Access.INTERNALS,
    cost="3 + 1 backward per finding",
    summary="The finding's score, shared out layer by layer among the pixels that contributed to it",
    paper="Bach et al. 2015; Achtibat et al. 2024",
    models="convolutional networks and transformers made of known operations",
    differentiable=True,
)
@dataclass(frozen=True)
class Lrp:
    """Relevance R with R = logit at the output; at each operation an input gets R in proportion to its contribution.

    Linear layers, averages and LayerNorm (its denominator held constant) follow the ε rule, convolutions the rule of
    the setting; a BatchNorm right after a convolution or linear layer is folded into it, any other is a scale with a
    bias. Activations and added constants pass relevance on. Two summands share it in proportion, two factors equally.
    Attention weights are held constant, so that relevance follows the values, and so are denominators. Biases and ε
    absorb a part: the error is |Σ map − logit|.
    """

    convolutions: Literal["zplus", "epsilon", "gamma"] = "zplus"
    epsilon: Annotated[float, Field(gt=0)] = 1e-6
    gamma: Annotated[float, Field(ge=0)] = 0.25
    max_pooling: Literal["winner", "average"] = "winner"

    def __call__(
        self,
        classifier: Classifier,
        images: Images,
        targets: Targets,
        seeds: Sequence[int],  # noqa: ARG002 - nothing here is random
        *,
        create_graph: bool = False,
    ) -> MapBatch:
        """One map per image and target, with its conservation error."""
        tape = self.tape(create_graph=create_graph)
        logits = tape.record(classifier, images)
        maps = [tape.back(_only(logits, column)) for column in targets.unbind(1)]
        values = torch.stack(maps, 1)
        return MapBatch(values, (values.detach().flatten(2).sum(2) - logits.detach().gather(1, targets)).abs())

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - the same for all images
        """A forward pass that is written down, and per target a backward pass that computes each layer again."""
        return Passes(1, targets, extra=1 + targets)

    def check(self, classifier: Classifier, images: Images) -> None:
        """Raise ModelError where the network has an operation without a rule."""
        self.tape().record(classifier, images[:1])

    def tape(self, *, create_graph: bool = False) -> Tape:
        """An empty tape with the rules; attention weights are constants on it."""
        return Tape(self.rules(), DECOMPOSED, constant=CONSTANT, create_graph=create_graph)

    def rules(self) -> Mapping[str, Rule]:
        """How each operation passes on the relevance that arrives at its output."""
        return {
            **dict.fromkeys(ROUTING, gradient),
            **dict.fromkeys(ACTIVATIONS | {"neg"}, passed),
            **dict.fromkeys(CONVOLUTIONS, self._convolution),
            **dict.fromkeys(AVERAGES, self._in_proportion),
            **dict.fromkeys(SUMS, self._sum),
            "linear": self._product,
            **dict.fromkeys(PRODUCTS, self._product),
            **dict.fromkeys(MAXIMA, gradient if self.max_pooling == "winner" else self._as_average),
            "batch_norm": self._batch_norm,
            "layer_norm": self._layer_norm,
            "group_norm": passed,
            "instance_norm": passed,
        }

    def _in_proportion(self, node: Node, relevance: Tensor, piece: Piece | None = None) -> Shares:
        return zip(node.parents, self._epsilon_rule(piece or node.piece, relevance), strict=True)

    def _epsilon_rule(self, piece: Piece, relevance: Tensor, total: Tensor | None = None) -> list[Tensor]:
        """R_i = x_i · Σ_j w_ij · R_j / (z_j ± ε): the input times a gradient, since pulling back multiplies by w."""
        total = piece.output if total is None else total
        total, *values = (each if piece.create_graph else each.detach() for each in (total, *piece.inputs))
        shares = piece.pull(relevance / (total + torch.where(total < 0, -self.epsilon, self.epsilon)))
        return [share * value for value, share in zip(values, shares, strict=True)]

    def _sum(self, node: Node, relevance: Tensor) -> Shares:
        return passed(node, relevance) if len(node.parents) == 1 else self._in_proportion(node, relevance)

    def _product(self, node: Node, relevance: Tensor) -> Shares:
        if len(node.parents) == 1 and node.operation == "mul":
            return passed(node, relevance)
        return self._in_proportion(node, relevance / len(node.parents))

    def _convolution(self, node: Node, relevance: Tensor) -> Shares:
        if len(node.parents) > 1:
            return self._in_proportion(node, relevance / len(node.parents))
        return [(node.parents[0], self._through_weights(node, node, relevance))]

    def _batch_norm(self, node: Node, relevance: Tensor) -> Shares:
        before = node.parents[0]
        if before.operation not in CONVOLUTIONS | {"linear"} or len(before.parents) > 1:
            return self._in_proportion(node, relevance)
        return [(before.parents[0], self._through_weights(before, node, relevance))]

    def _through_weights(self, layer: Node, norm: Node, relevance: Tensor) -> Tensor:
        """The ε, z⁺ or γ rule on a layer, with the BatchNorm after it folded in where `norm` is one."""
        rule = self.convolutions if layer.operation in CONVOLUTIONS else "epsilon"
        parts = norm.once("parts", lambda: self._parts(layer, *_folded(layer, norm), rule))
        shares = []
        for mask, pieces in parts:
            total = sum(piece.output for piece in pieces)
            masked = relevance if mask is None else relevance * mask
            shares += [self._epsilon_rule(piece, masked, total)[0] for piece in pieces]
        return torch.stack(shares).sum(0) if len(shares) > 1 else shares[0]

    def _parts(
        self, layer: Node, weight: Tensor, bias: Tensor | None, rule: str
    ) -> list[tuple[Tensor | None, list[Piece]]]:
        """The terms of the sum that take relevance, as steps from the layer's input, with a mask of their outputs."""
        every_term = [(layer.parents[0].value, weight, bias)]
        if rule == "zplus":
            return [(None, _steps(layer, _of_sign(layer, weight, bias, 1)))]
        if rule == "epsilon":
            return [(None, _steps(layer, every_term))]
        above = layer.again(input=layer.parents[0].value, weight=weight, bias=bias).detach() >= 0
        return [  # terms of the output's own sign are amplified, so that the sum never comes near 0
            (
                mask,
                _steps(layer, every_term + [_times(self.gamma, part) for part in _of_sign(layer, weight, bias, sign)]),
            )
            for mask, sign in ((above, 1), (~above, -1))
        ]

    def _layer_norm(self, node: Node, relevance: Tensor) -> Shares:
        return self._in_proportion(node, relevance, node.once("piece", lambda: _norm_with_fixed_spread(node)))

    def _as_average(self, node: Node, relevance: Tensor) -> Shares:
        return self._in_proportion(node, relevance, node.once("piece", lambda: _pooled_by_mean(node)))


def _only(logits: Tensor, column: Tensor) -> Tensor:
    """The logits with everything but one target per image set to 0."""
    chosen = torch.zeros_like(logits, dtype=torch.bool).scatter(1, column[:, None], value=True)
    return torch.where(chosen, logits, torch.zeros_like(logits))


def _folded(layer: Node, norm: Node) -> tuple[Tensor, Tensor | None]:
    """Weight and bias of the layer with the BatchNorm after it: s·(w·x + b − μ) + β = (s·w)·x + s·(b − μ) + β."""
    weight, bias = layer.argument("weight"), layer.argument("bias")
    if norm is layer:
        return weight, bias
    spread = (norm.argument("running_var") + norm.argument("eps")).sqrt()
    scale = spread.reciprocal() if norm.argument("weight") is None else norm.argument("weight") / spread
    shift = -norm.argument("running_mean") * scale
    shift = shift if norm.argument("bias") is None else shift + norm.argument("bias")
    axis = 1 if "transpose" in layer.operation else 0
    across = [-1 if index == axis else 1 for index in range(weight.ndim)]
    return weight * scale.reshape(across), shift if bias is None else shift + bias * scale


Part = tuple[Tensor, Tensor, Tensor | None]  # a part of the input with a part of the weights and of the bias


def _of_sign(layer: Node, weight: Tensor, bias: Tensor | None, sign: int) -> list[Part]:
    """The products of input and weight that are positive (1) or negative (−1), and that part of the bias.

    Positive products are x⁺·w⁺ and x⁻·w⁻, negative ones x⁺·w⁻ and x⁻·w⁺; after a ReLU there is no x⁻.
    """
    value = layer.parents[0].value
    limit: dict[str, float] = {"min": 0} if sign == 1 else {"max": 0}
    opposite: dict[str, float] = {"max": 0} if sign == 1 else {"min": 0}
    parts: list[Part] = [(value.clamp(min=0), weight.clamp(**limit), None if bias is None else bias.clamp(**limit))]
    if bool((value < 0).any()):
        parts.append((value.clamp(max=0), weight.clamp(**opposite), None))
    return parts


def _times(factor: float, part: Part) -> Part:
    value, weight, bias = part
    return value, factor * weight, None if bias is None else factor * bias


def _steps(layer: Node, parts: list[Part]) -> list[Piece]:
    graph = layer.piece.create_graph
    with torch.enable_grad():
        starts = [followed(value, graph) for value, _, _ in parts]
        return [
            Piece((start,), layer.again(input=start, weight=weight, bias=bias), graph)
            for start, (_, weight, bias) in zip(starts, parts, strict=True)
        ]


def _norm_with_fixed_spread(node: Node) -> Piece:
    axes = tuple(range(-len(node.argument("normalized_shape")), 0))
    weight, bias, eps = node.argument("weight"), node.argument("bias"), node.argument("eps") or 1e-5
    value = node.parents[0].value
    start = followed(value, node.piece.create_graph)
    with torch.enable_grad():
        # computed from `value`, not from `start`, so that no relevance goes back through it
        spread = (value.var(axes, correction=0, keepdim=True) + eps).sqrt()
        normal = (start - start.mean(axes, keepdim=True)) / spread
        scaled = normal if weight is None else normal * weight
        return Piece((start,), scaled if bias is None else scaled + bias, node.piece.create_graph)


def _pooled_by_mean(node: Node) -> Piece:
    start = followed(node.parents[0].value, node.piece.create_graph)
    average = getattr(torch.nn.functional, node.operation.replace("max", "avg"))
    with torch.enable_grad():
        if node.operation.startswith("adaptive"):
            pooled = average(start, node.piece.output.shape[2:])
        else:
            names = ("kernel_size", "stride", "padding", "ceil_mode")
            size, stride, padding, ceil = (node.argument(name) for name in names)
            pooled = average(start, size, stride, padding or 0, bool(ceil), count_include_pad=False)
        return Piece((start,), pooled, node.piece.create_graph)
