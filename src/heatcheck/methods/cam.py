"""Class activation maps: feature maps of one layer, weighted for each target."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.batches import MapBatch, without_error
from heatcheck.core.contracts import Classifier
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.feature_maps import feature_map
from heatcheck.methods.passes import Activations, activations_and_gradients, evaluation_mode
from heatcheck.methods.registry import Access, method


class OnFeatureMap:
    """A method that needs a feature map, by name or found."""

    layer: str

    def check(self, classifier: Classifier, images: Images) -> None:
        """Raise ModelError where there is no such layer, or no feature map at all."""
        with evaluation_mode(classifier.module):
            feature_map(classifier.module, images, self.layer)


@method(
    "grad_cam",
    label="Grad-CAM",
    family="CAM",
    models="networks with a feature map",
    needs=Access.INTERNALS,
    cost="1",
    summary="Adds up the network's last feature maps, each weighted by how much it raises the finding's score",
    paper="Selvaraju et al. 2017",
    differentiable=True,
    same_for_all_channels=True,
)
@dataclass(frozen=True)
class GradCam(OnFeatureMap):
    """ReLU(Σ_k mean(∂logit/∂A_k)·A_k) on the layer's own grid."""

    layer: str = ""  # found automatically when empty

    def __call__(
        self,
        classifier: Classifier,
        images: Images,
        targets: Targets,
        seeds: Sequence[int],  # noqa: ARG002 - nothing here is random
        *,
        create_graph: bool = False,
    ) -> MapBatch:
        """One map per image and target."""
        seen = activations_and_gradients(classifier, images, targets, self.layer, create_graph=create_graph)
        return without_error(_weighted(seen, lambda gradient: gradient.mean(2)))


@method(
    "grad_cam_plus_plus",
    label="Grad-CAM++",
    family="CAM",
    models="networks with a feature map",
    needs=Access.INTERNALS,
    cost="1",
    summary="Grad-CAM with weights that favour the places where the score rises, so that several spots can show",
    paper="Chattopadhyay et al. 2018",
    same_for_all_channels=True,
)
@dataclass(frozen=True)
class GradCamPlusPlus(OnFeatureMap):
    """ReLU(Σ_k w_k·A_k), w_k = Σ α·ReLU(g), α = g² / (2g² + g³·ΣA), g = ∂logit/∂A.

    The paper's derivation for exp(logit): its common factor cancels in α and is left out of the weights.
    """

    layer: str = ""

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target."""
        seen = activations_and_gradients(classifier, images, targets, self.layer)
        total = seen.values.flatten(2).sum(2, keepdim=True)

        def weights(gradient: Tensor) -> Tensor:
            shares = gradient.relu().div_(torch.mul(gradient, total).add_(2))  # α's common factor g² cancels
            added = shares.sum(2)
            return added if bool(added.isfinite().all()) else shares.nan_to_num_(0.0, 0.0, 0.0).sum(2)

        return without_error(_weighted(seen, weights))


@method(
    "eigen_cam",
    label="Eigen-CAM",
    family="CAM",
    models="networks with a feature map",
    needs=Access.INTERNALS,
    cost="1",
    summary="What the network's last feature maps have most in common, whatever the finding",
    paper="Muhammad and Yeasin 2020",
    same_for_all_targets=True,
    same_for_all_channels=True,
)
@dataclass(frozen=True)
class EigenCam(OnFeatureMap):
    """The projection of the centred feature maps on their first principal direction.

    A singular vector's sign is arbitrary: it is chosen so that the map rises with the mean activation.
    """

    layer: str = ""

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """The same map for every target of an image."""
        seen = activations_and_gradients(classifier, images, targets[:, :1], self.layer)
        maps = torch.stack([_principal(features) for features in seen.values])
        return without_error(maps[:, None, None].expand(-1, targets.shape[1], 1, *maps.shape[1:]))


def _weighted(
    seen: Activations,
    weights: Callable[[Float[Tensor, "batch feature place"]], Float[Tensor, "batch feature"]],
) -> Float[Tensor, "batch target 1 *grid"]:
    """For each target the sum of the feature maps, weighted by what its gradient says of them."""
    every = torch.stack([weights(gradient.flatten(2)) for gradient in seen.gradients], 1)
    return torch.einsum("btk,bk...->bt...", every, seen.values).relu().unsqueeze(2)


def _principal(features: Float[Tensor, "feature *grid"]) -> Float[Tensor, "*grid"]:
    rows = features.flatten(1).T  # a row a position
    centred = (rows - rows.mean(0)).double()
    if len(rows) <= rows.shape[1]:  # the smaller of the two squares has the same first direction
        sizes, directions = torch.linalg.eigh(centred @ centred.T)
        projected = directions[:, -1] * sizes[-1].clamp(min=0).sqrt()
    else:
        _, directions = torch.linalg.eigh(centred.T @ centred)
        projected = centred @ directions[:, -1]
    rises = (projected * centred.mean(1)).sum() >= 0
    return (projected if rises else -projected).float().reshape(features.shape[1:])
