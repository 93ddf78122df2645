"""DeepLIFT: the difference of the score from that of an empty image, shared out layer by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heatcheck.core.batches import MapBatch
from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import ModelError
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.gradient import Baseline, baseline_of
from heatcheck.methods.registry import Access, Passes, method
from heatcheck.methods.speed.operations import (
    ACTIVATIONS,
    AVERAGES,
    CONVOLUTIONS,
    ELEMENTWISE,
    MAXIMA,
    PRODUCTS,
    ROUTING,
    SUMS,
    attention,
    group_norm,
    inverse_quotient,
    layer_norm,
    multi_head_attention,
    quotient,
)
from heatcheck.methods.speed.tape import Decomposition, Node, Rule, Shares, Tape, gradient

DECOMPOSED: Mapping[str, Decomposition] = {
    "scaled_dot_product_attention": attention,
    "multi_head_attention_forward": multi_head_attention,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "div": quotient,
    "rdiv": inverse_quotient,
}
NO_DIFFERENCE = 1e-10  # below it a quotient of differences would be rounding noise: its limit, the slope, is used


@method(
    "deep_lift",
    label="DeepLIFT",
    family="modified backward",
    needs=Access.INTERNALS,
    cost="2 + 1 backward per finding",
    summary="Which pixels make the score differ from that of an empty image, followed layer by layer",
    paper="Shrikumar et al. 2017",
    models="convolutional networks and transformers made of known operations",
)
@dataclass(frozen=True)
class DeepLift:
    """(x − x′) ⊙ multipliers by the rescale rule, x′ the baseline.

    An elementwise operation's multiplier is Δoutput / Δinput, a product's is the gradient at its factors' midpoints, so
    that attention and LayerNorm lose nothing. The error is |Σ map − (f(x) − f(x′))|.
    """

    baseline: Baseline = "zero"

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target, with its completeness error."""
        start = baseline_of(images, self.baseline)
        rules = _Rescale()
        with_image, empty = rules.tape(), rules.tape()
        difference = with_image.record(classifier, images) - empty.record(classifier, start)
        rules.compare(with_image, empty)
        values = with_image.back_from_each(targets) * (images - start).unsqueeze(1)
        return MapBatch(values, (values.flatten(2).sum(2) - difference.gather(1, targets)).abs())

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - the same for all images
        """A forward pass of the image and of the baseline, and a backward pass per target."""
        return Passes(2, targets, extra=2)

    def check(self, classifier: Classifier, images: Images) -> None:
        """Raise ModelError where the network has an operation without a rule."""
        _Rescale().tape().record(classifier, images[:1])


class _Rescale:
    """The rules for one image; each looks up its twin, the same operation on the empty image."""

    def __init__(self) -> None:
        self.empty: list[Node] = []

    def tape(self) -> Tape:
        return Tape(self.rules(), DECOMPOSED)

    def compare(self, with_image: Tape, empty: Tape) -> None:
        """Take differences from `empty` from now on."""
        if [node.operation for node in with_image.nodes] != [node.operation for node in empty.nodes]:
            raise ModelError(
                "the network runs other operations on the empty image than on this one; use another method"
            )
        self.empty = empty.nodes

    def rules(self) -> Mapping[str, Rule]:
        return {
            **dict.fromkeys(ROUTING, self._routed),
            **dict.fromkeys(CONVOLUTIONS | AVERAGES | SUMS, gradient),
            **dict.fromkeys(("linear", "batch_norm", "neg"), gradient),
            **dict.fromkeys(ACTIVATIONS | ELEMENTWISE, self._elementwise),
            **dict.fromkeys(PRODUCTS, self._product),
            **dict.fromkeys(MAXIMA, self._maximum),
            "softmax": self._softmax,
        }

    def _elementwise(self, node: Node, multipliers: Tensor) -> Shares:
        if len(node.parents) != 1:
            raise _without_rule(f"{node.operation!r} with two inputs")
        return [(node.parents[0], multipliers * node.once("slope", lambda: self._slope(node)))]

    def _slope(self, node: Node) -> Tensor:
        before, after = self._differences(node)
        return _quotient(after, before, node.slope())

    def _product(self, node: Node, multipliers: Tensor) -> Shares:
        if len(node.parents) == 1:
            return self._routed(node, multipliers)
        twin = self.empty[node.position]
        # Δ(ab) = Δa·(b + b′)/2 + (a + a′)/2·Δb exactly: the gradient at the midpoints leaves no remainder
        middles = [(a.value + b.value) / 2 for a, b in zip(node.parents, twin.parents, strict=True)]
        piece = node.once("middle", lambda: node.piece_at(middles))
        return zip(node.parents, piece.pull(multipliers), strict=True)

    def _routed(self, node: Node, multipliers: Tensor) -> Shares:
        """The chain rule; or the quotient where the image itself decides what is kept, as in `where(x > 0, x, 0)`."""
        if node.once("same", lambda: self._same_constants(node)):
            return gradient(node, multipliers)
        in_place = node.operation in ("where", "masked_fill", "mul")  # values are kept or dropped, but not moved
        if in_place and len(node.parents) == 1 and node.parents[0].value.shape == node.value.shape:
            return self._elementwise(node, multipliers)
        raise _without_rule(f"{node.operation!r} with a mask or indices that depend on the image")

    def _same_constants(self, node: Node) -> bool:
        """Whether the operation was given the same masks, indices and factors for the empty image."""
        pairs = zip(node.constants, self.empty[node.position].constants, strict=True)
        return all(torch.equal(a, b) for a, b in pairs if isinstance(a, Tensor))

    def _maximum(self, node: Node, multipliers: Tensor) -> Shares:
        """The rise to the common maximum goes to the image's winner, the rest to the empty image's winner.

        With m = max(y, y′), Δy = (m − y′) + (y − m): the image's winner caused the first part, the other the second.
        """
        twin = self.empty[node.position]
        before, _ = self._differences(node)
        common = torch.maximum(node.value, twin.value)
        (rise,) = node.piece.pull(multipliers * (common - twin.value))
        (rest,) = twin.piece.pull(multipliers * (node.value - common))
        (slope,) = node.piece.pull(multipliers)
        return [(node.parents[0], _quotient(rise + rest, before, slope))]

    def _softmax(self, node: Node, multipliers: Tensor) -> Shares:
        """Softmax as exp times the reciprocal of a sum; in double precision, since rows may differ by large factors.

        With e = exp(x) and S = Σe the product rule of `_product` gives Δ(e/S) = Δe·mean(1/S) + mean(e)·Δ(1/S), and
        Δ(1/S) = −ΔS / (S·S′). The shift by the common maximum cancels in e/S.
        """
        twin, axis = self.empty[node.position], _axis(node)
        x, empty = node.parents[0].value.double(), twin.parents[0].value.double()
        shift = torch.maximum(x, empty).amax(axis, keepdim=True)
        powers, powers_empty = (x - shift).exp(), (empty - shift).exp()
        totals = powers.sum(axis, keepdim=True), powers_empty.sum(axis, keepdim=True)
        inverse = (1 / totals[0] + 1 / totals[1]) / 2
        arriving = multipliers.double()
        through_sum = (arriving * (powers + powers_empty) / 2).sum(axis, keepdim=True) / (totals[0] * totals[1])
        slope = _quotient(powers - powers_empty, torch.where(x == empty, 0.0, x - empty), powers)  # both may be −inf
        return [(node.parents[0], (slope * (arriving * inverse - through_sum)).to(multipliers.dtype))]

    def _differences(self, node: Node) -> tuple[Tensor, Tensor]:
        twin = self.empty[node.position]
        return node.parents[0].value - twin.parents[0].value, node.value - twin.value


def _quotient(above: Tensor, below: Tensor, limit: Tensor) -> Tensor:
    """The quotient; `limit` where `below` is nearly 0."""
    vanishes = below.abs() < NO_DIFFERENCE
    return torch.where(vanishes, limit, above / torch.where(vanishes, torch.ones_like(below), below))


def _without_rule(what: str) -> ModelError:
    return ModelError(f"the network uses {what}, for which deep_lift has no rule; use another method")


def _axis(node: Node) -> int:
    positional, named = node.arguments
    axis: int = positional[1] if len(positional) > 1 else named["dim"]
    return axis
