"""Class activation maps: feature maps of one layer, weighted for each target."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from heatcheck.core.batches import MapBatch, without_error
from heatcheck.core.contracts import Classifier
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.passes import activations_and_gradients
from heatcheck.methods.registry import Needs, method


@method(
    "grad_cam",
    label="Grad-CAM",
    family="CAM",
    needs=Needs.INTERNALS,
    cost="1",
    summary="Adds up the network's last feature maps, each weighted by how much it raises the finding's score",
    paper="Selvaraju et al. 2017",
)
@dataclass(frozen=True)
class GradCam:
    """ReLU(Σ_k mean(∂logit/∂A_k)·A_k) on the layer's own grid."""

    layer: str = ""  # found automatically when empty

    def __call__(
        self,
        classifier: Classifier,
        images: Images,
        targets: Targets,
        seeds: Sequence[int],  # noqa: ARG002 - nothing here is random
    ) -> MapBatch:
        """One map per image and target."""
        seen = activations_and_gradients(classifier, images, targets, self.layer)
        weights = seen.gradients.flatten(3).mean(3)
        maps = torch.einsum("btk,bk...->bt...", weights, seen.values).relu()
        return without_error(maps.unsqueeze(2))
