"""Class activation maps: feature maps of one layer, weighted for each target."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.batches import MapBatch, without_error
from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.tensors import Images, MapValues, Targets
from heatcheck.methods.feature_maps import FeatureMap, feature_map
from heatcheck.methods.passes import Activations, activations_and_gradients, evaluation_mode
from heatcheck.methods.registry import Access, Passes, method

NOT_PLACED = "the layers do not say where the cells of this map look; it is spread evenly over the image"


class OnFeatureMap:
    """A method that works on a feature map, named by the user or found automatically.

    `placement` says where a cell of the map lies on the image: at the centre of its receptive field, or as `plain`
    resizing has it, which takes the cells to tile the image and is what other tools do.
    """

    layer: str
    placement: Literal["centres", "plain"]

    def placed_plainly(self) -> Method:
        """The same method with maps whose cells are taken to tile the image."""
        changed: Any = self  # each is a frozen dataclass with this setting
        plain: Method = replace(changed, placement="plain")
        return plain

    def maps(self, values: MapValues, layer: FeatureMap) -> MapBatch:
        """The maps with where their cells lie."""
        if self.placement == "plain":
            return without_error(values)
        return without_error(values, "" if layer.is_placed else NOT_PLACED, layer.cells)

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - gradients stop at the layer
        """One: the gradients stop at the layer."""
        return Passes(1)

    def check(self, classifier: Classifier, images: Images) -> None:
        """Raise ModelError where the named layer does not exist or the network has no feature map."""
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
    """ReLU(Σ_k mean(∂logit/∂A_k)·A_k) on the grid of the layer."""

    layer: str = ""  # found automatically when empty
    placement: Literal["centres", "plain"] = "centres"

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
        activations = activations_and_gradients(classifier, images, targets, self.layer, create_graph=create_graph)
        return self.maps(_weighted(activations, lambda gradient: gradient.mean(2)), activations.layer)


@method(
    "grad_cam_plus_plus",
    label="Grad-CAM++",
    family="CAM",
    models="networks with a feature map",
    needs=Access.INTERNALS,
    cost="1",
    summary="Grad-CAM with weights that favour positions where the score rises, so that it can show several spots",
    paper="Chattopadhyay et al. 2018",
    same_for_all_channels=True,
)
@dataclass(frozen=True)
class GradCamPlusPlus(OnFeatureMap):
    """ReLU(Σ_k w_k·A_k), w_k = Σ α·ReLU(g), α = g² / (2g² + g³·ΣA), g = ∂logit/∂A.

    This is the paper's derivation for exp(logit); the common factor exp(logit) cancels in α and is left out of w.
    """

    layer: str = ""
    placement: Literal["centres", "plain"] = "centres"

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """One map per image and target."""
        activations = activations_and_gradients(classifier, images, targets, self.layer)
        total = activations.values.flatten(2).sum(2, keepdim=True)

        def weights(gradient: Tensor) -> Tensor:
            shares = gradient.relu().div_(torch.mul(gradient, total).add_(2))  # α's common factor g² cancels
            sums = shares.sum(2)
            if bool(sums.isfinite().all()):
                return sums
            return shares.nan_to_num_(0.0, 0.0, 0.0).sum(2)  # where the denominator is 0

        return self.maps(_weighted(activations, weights), activations.layer)


@method(
    "eigen_cam",
    label="Eigen-CAM",
    family="CAM",
    models="networks with a feature map",
    needs=Access.INTERNALS,
    cost="1",
    summary="What the network's last feature maps have most in common; the same for every finding",
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
    placement: Literal["centres", "plain"] = "centres"

    def __call__(self, classifier: Classifier, images: Images, targets: Targets, seeds: Sequence[int]) -> MapBatch:  # noqa: ARG002
        """The same map for every target of an image."""
        activations = activations_and_gradients(classifier, images, targets[:, :1], self.layer)
        maps = torch.stack([_principal(features) for features in activations.values])
        return self.maps(maps[:, None, None].expand(-1, targets.shape[1], 1, *maps.shape[1:]), activations.layer)


def _weighted(
    activations: Activations,
    weights: Callable[[Float[Tensor, "batch feature position"]], Float[Tensor, "batch feature"]],
) -> Float[Tensor, "batch target 1 *grid"]:
    """The sum of the feature maps for each target, weighted by what `weights` makes of its gradient."""
    target_weights = torch.stack([weights(gradient.flatten(2)) for gradient in activations.gradients], 1)
    return torch.einsum("btk,bk...->bt...", target_weights, activations.values).relu().unsqueeze(2)


def _principal(features: Float[Tensor, "feature *grid"]) -> Float[Tensor, "*grid"]:
    rows = features.flatten(1).T  # one row per position
    centred = (rows - rows.mean(0)).double()
    # with X = U·S·Vᵀ the projection is U·S: from X·Xᵀ = U·S²·Uᵀ or from Xᵀ·X = V·S²·Vᵀ, whichever is smaller
    if len(rows) <= rows.shape[1]:
        eigenvalues, directions = torch.linalg.eigh(centred @ centred.T)
        projection = directions[:, -1] * eigenvalues[-1].clamp(min=0).sqrt()
    else:
        _, directions = torch.linalg.eigh(centred.T @ centred)
        projection = centred @ directions[:, -1]
    rises = (projection * centred.mean(1)).sum() >= 0
    return (projection if rises else -projection).float().reshape(features.shape[1:])
