"""Attention rollout: where a transformer's attention gathers from, followed through all layers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from heatcheck.core.batches import MapBatch, without_error
from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import ModelError
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.feature_maps import FeatureMap, feature_map
from heatcheck.methods.passes import evaluation_mode
from heatcheck.methods.registry import Access, Passes, method
from heatcheck.methods.speed.operations import attention, multi_head_attention
from heatcheck.methods.speed.tape import Decomposition, Tape, gradient

DECOMPOSED: Mapping[str, Decomposition] = {
    "scaled_dot_product_attention": attention,
    "multi_head_attention_forward": multi_head_attention,
}
NO_GLOBAL_ATTENTION = (
    "the network has no attention over all its patches, which attention_rollout follows; use another method"
)


@method(
    "attention_rollout",
    label="Attention rollout",
    family="attention",
    needs=Access.INTERNALS,
    cost="1",
    summary="Where a transformer's attention gathers from, followed through all layers; the same for every finding",
    paper="Abnar and Zuidema 2020",
    same_for_all_targets=True,
    models="transformers in which every patch attends to all",
    same_for_all_channels=True,
)
@dataclass(frozen=True)
class AttentionRollout:
    """The product over the layers of (1 − skip)·attention + skip·identity, attention joined over the heads.

    A row of the product says where a token's content came from: the class token's row is shown, or the mean row where
    the network reads its answer from all patches.
    """

    heads: Literal["mean", "max"] = "mean"
    skip: Annotated[float, Field(ge=0, lt=1)] = 0.5  # the share of the residual connection

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """The same map for every target of an image."""
        patches = self._patches(classifier, images)
        rollout: Tensor | None = None
        for weights in self._layers(classifier, images, patches):
            joined = weights.mean(1) if self.heads == "mean" else weights.amax(1)
            step = (1 - self.skip) * joined + self.skip * torch.eye(joined.shape[-1], device=joined.device)
            step = step / step.sum(-1, keepdim=True)  # the maximum over heads does not keep the rows' sum of 1
            rollout = step if rollout is None else step @ rollout
        if rollout is None:
            raise ModelError(NO_GLOBAL_ATTENTION)
        read = rollout[:, patches.extra_tokens :].mean(1) if patches.read_by_head else rollout[:, 0]
        maps = read[:, patches.extra_tokens :].reshape(len(images), 1, 1, *patches.grid)
        return without_error(maps.expand(-1, targets.shape[1], *maps.shape[2:]), cells=patches.cells)

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - the same for all targets
        """One."""
        return Passes(1, extra=1)

    def check(self, classifier: Classifier, images: Images) -> None:
        """Raise ModelError where the network does not attend over all its patches."""
        patches = self._patches(classifier, images)
        if not self._layers(classifier, images[:1], patches):
            raise ModelError(NO_GLOBAL_ATTENTION)

    def _patches(self, classifier: Classifier, images: Images) -> FeatureMap:
        with evaluation_mode(classifier.module):
            return feature_map(classifier.module, images)

    def _layers(
        self, classifier: Classifier, images: Images, patches: FeatureMap
    ) -> list[Float[Tensor, "batch head token token"]]:
        """The attention weights of every layer that attends over all tokens of the map."""
        if not patches.channels_last:
            raise ModelError(NO_GLOBAL_ATTENTION)
        tape = Tape({}, DECOMPOSED, otherwise=gradient)
        tape.record(classifier, images)
        tokens = torch.Size(patches.grid).numel() + patches.extra_tokens
        layers = [node.value for node in tape.nodes if node.operation == "softmax"]
        if not all(_is_global(weights, len(images), tokens) for weights in layers):
            raise ModelError(NO_GLOBAL_ATTENTION)
        return [weights.reshape(len(images), -1, tokens, tokens) for weights in layers]


def _is_global(weights: Tensor, images: int, tokens: int) -> bool:
    """Whether each token attends to all, not to a window; the first axis may hold both images and heads."""
    batches = weights.shape[0] == images if weights.ndim == 4 else weights.shape[0] % images == 0
    return batches and weights.shape[-2:] == (tokens, tokens)
