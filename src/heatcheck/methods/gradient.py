"""Input gradients, plain or averaged over points near the image or on a path to it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from heatcheck.core.batches import MapBatch, without_error
from heatcheck.core.contracts import Classifier
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.passes import evaluation_mode, input_gradients
from heatcheck.methods.registry import Access, Passes, method
from heatcheck.methods.speed.fast_convolution import DirectVolumes

Baseline = Literal["zero", "black", "mean", "blurred"]
Samples = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True)
class GradientPoint:
    """Where a gradient is taken, and the factor with which it enters the map."""

    images: Images
    factor: Images | float

    def term(
        self, classifier: Classifier, targets: Targets, *, create_graph: bool
    ) -> Float[Tensor, "batch target channel *space"]:
        """What the point adds to the map: factor ⊙ gradient."""
        factor = self.factor.unsqueeze(1) if isinstance(self.factor, Tensor) else self.factor
        return input_gradients(classifier, self.images, targets, create_graph=create_graph).values * factor


class OverPoints(ABC):
    """A method whose map is a weighted sum of gradients at some points, and nothing more."""

    @property
    def number(self) -> int:
        """The number of points."""
        return 1

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:  # noqa: ARG002 - the same for all images
        """A forward pass per point, and from each a backward pass per target."""
        return Passes(self.number, self.number * targets)

    @abstractmethod
    def points(self, images: Images, seeds: Sequence[int]) -> Iterator[GradientPoint]:
        """The points, one at a time."""

    def __call__(
        self,
        classifier: Classifier,
        images: Images,
        targets: Targets,
        seeds: Sequence[int],
        *,
        create_graph: bool = False,
    ) -> MapBatch:
        """One map per image and target."""
        return without_error(summed(self.points(images, seeds), classifier, targets, create_graph=create_graph))


@method(
    "gradient",
    label="Gradient",
    family="gradient",
    needs=Access.INTERNALS,
    cost="1 + 1 backward per finding",
    summary="How much the finding's score would change if a pixel changed a little",
    paper="Simonyan et al. 2014",
    differentiable=True,
)
@dataclass(frozen=True)
class Gradient(OverPoints):
    """∂logit/∂x."""

    def points(self, images: Images, seeds: Sequence[int]) -> Iterator[GradientPoint]:  # noqa: ARG002 - nothing is random
        """The image itself."""
        yield GradientPoint(images, 1.0)


@method(
    "input_x_gradient",
    label="Input × gradient",
    family="gradient",
    needs=Access.INTERNALS,
    cost="1 + 1 backward per finding",
    summary="The gradient times the pixel's value",
    paper="Shrikumar et al. 2016",
    differentiable=True,
)
@dataclass(frozen=True)
class InputTimesGradient(OverPoints):
    """x ⊙ ∂logit/∂x."""

    def points(self, images: Images, seeds: Sequence[int]) -> Iterator[GradientPoint]:  # noqa: ARG002 - nothing is random
        """The image itself, weighted by its values."""
        yield GradientPoint(images, images)


@method(
    "integrated_gradients",
    label="Integrated gradients",
    family="gradient",
    needs=Access.INTERNALS,
    cost="steps × gradient",
    summary="The gradient averaged on the path from an empty image to this one",
    paper="Sundararajan et al. 2017",
    differentiable=True,
    trial={"steps": 1},
)
@dataclass(frozen=True)
class IntegratedGradients(OverPoints):
    """(x − x′) ⊙ mean of the gradients on the straight line from the baseline x′ to x.

    The error is |Σ map − (f(x) − f(x′))|: how far the map is from explaining the whole score.
    """

    steps: Samples = 20
    baseline: Baseline = "zero"
    rule: Literal["right", "middle", "gauss"] = "middle"  # end or middle of each step, or Gauss-Legendre

    @property
    def number(self) -> int:
        """The number of points on the line."""
        return self.steps

    def passes(self, shape: tuple[int, ...], targets: int) -> Passes:
        """Those of the points, and one for each end of the line."""
        return super().passes(shape, targets) + Passes(2)

    def points(self, images: Images, seeds: Sequence[int]) -> Iterator[GradientPoint]:  # noqa: ARG002 - nothing is random
        """The points on the line, with the weights of the quadrature rule."""
        start = baseline_of(images, self.baseline)
        path = images - start
        for position, weight in self._nodes():
            yield GradientPoint(start + path * position, path * weight)

    def _nodes(self) -> list[tuple[float, float]]:
        """The positions on the line, from 0 to 1, and their weights, which add up to 1."""
        if self.rule == "gauss":
            nodes, weights = np.polynomial.legendre.leggauss(self.steps)  # on [−1, 1]
            return [(float(1 + node) / 2, float(weight) / 2) for node, weight in zip(nodes, weights, strict=True)]
        offset = 1.0 if self.rule == "right" else 0.5
        return [((step + offset) / self.steps, 1 / self.steps) for step in range(self.steps)]

    def __call__(
        self,
        classifier: Classifier,
        images: Images,
        targets: Targets,
        seeds: Sequence[int],
        *,
        create_graph: bool = False,
    ) -> MapBatch:
        """One map per image and target, with its completeness error."""
        values = summed(self.points(images, seeds), classifier, targets, create_graph=create_graph)
        with evaluation_mode(classifier.module), torch.no_grad(), DirectVolumes():
            ends = (images, baseline_of(images, self.baseline))
            at_image, at_baseline = (classifier.logits(end).gather(1, targets) for end in ends)
        return MapBatch(values, (values.detach().flatten(2).sum(2) - (at_image - at_baseline)).abs())


@method(
    "smooth_grad",
    label="SmoothGrad",
    family="gradient",
    needs=Access.INTERNALS,
    cost="samples × gradient",
    summary="The gradient averaged over noisy copies of the image",
    paper="Smilkov et al. 2017",
    differentiable=True,
    trial={"samples": 1},
)
@dataclass(frozen=True)
class SmoothGrad(OverPoints):
    """The mean gradient over copies with Gaussian noise."""

    samples: Samples = 20
    noise: Annotated[float, Field(ge=0)] = 0.1
    noise_is: Literal["relative", "absolute"] = (
        "relative"  # to the image's range, or in the units of the network's input
    )

    @property
    def number(self) -> int:
        """The number of noisy copies."""
        return self.samples

    def points(self, images: Images, seeds: Sequence[int]) -> Iterator[GradientPoint]:
        """Noisy copies of the images."""
        generators = generators_of(seeds)
        spread = _per_image(images, images.flatten(1).amax(1) - images.flatten(1).amin(1))
        sigma = self.noise * (spread if self.noise_is == "relative" else torch.ones_like(spread))
        for _ in range(self.samples):
            yield GradientPoint(images + sigma * _noise(images, generators), 1 / self.samples)


@method(
    "gradient_shap",
    label="Gradient SHAP",
    family="gradient",
    needs=Access.INTERNALS,
    cost="samples × gradient",
    summary="The gradient averaged over random points between the image and a random dark image",
    paper="Lundberg and Lee 2017",
    differentiable=True,
    trial={"samples": 1},
)
@dataclass(frozen=True)
class GradientShap(OverPoints):
    """The mean of (x − x′) ⊙ gradient at random points on the line from random baselines x′ to noisy copies of x."""

    samples: Samples = 20
    noise: Annotated[float, Field(ge=0)] = 0.0  # in the units of the network's input
    baseline_noise: Annotated[float, Field(ge=0)] = 0.1  # spread of the baselines around zero

    @property
    def number(self) -> int:
        """The number of random points."""
        return self.samples

    def points(self, images: Images, seeds: Sequence[int]) -> Iterator[GradientPoint]:
        """Random points, each weighted by its image's distance from its baseline."""
        generators = generators_of(seeds)
        for _ in range(self.samples):
            end = images + self.noise * _noise(images, generators)
            start = self.baseline_noise * _noise(images, generators)
            position = torch.stack([torch.rand((), generator=g) for g in generators]).to(images.device)
            yield GradientPoint(start + _per_image(images, position) * (end - start), (end - start) / self.samples)


def summed(
    points: Iterator[GradientPoint], classifier: Classifier, targets: Targets, *, create_graph: bool = False
) -> Float[Tensor, "batch target channel *space"]:
    """The sum over the points of factor ⊙ gradient; without a graph, one point at a time is in memory."""
    total: Tensor | None = None
    for point in points:
        term = point.term(classifier, targets, create_graph=create_graph)
        total = term if total is None else total + term
    if total is None:
        raise ValueError("a gradient method needs at least one point")
    return total


def baseline_of(images: Images, kind: Baseline) -> Images:
    """The empty image: zero in the network's units, the image's darkest value, its mean, or a strong blur of it."""
    if kind == "zero":
        return torch.zeros_like(images)
    if kind == "black":
        return _per_image(images, images.flatten(1).amin(1)).expand_as(images)
    if kind == "mean":
        return _per_image(images, images.flatten(1).mean(1)).expand_as(images)
    small = tuple(max(1, size // 16) for size in images.shape[2:])
    pool = functional.adaptive_avg_pool2d if images.ndim == 4 else functional.adaptive_avg_pool3d
    mode = "bilinear" if images.ndim == 4 else "trilinear"
    return functional.interpolate(pool(images, small), images.shape[2:], mode=mode, align_corners=False)  # type: ignore[arg-type]


def generators_of(seeds: Sequence[int]) -> list[torch.Generator]:
    """One generator per image, so that an image's draws do not depend on its batch."""
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def _noise(images: Images, generators: Sequence[torch.Generator]) -> Images:
    return torch.stack([torch.randn(images.shape[1:], generator=g) for g in generators]).to(images.device)


def _per_image(images: Images, values: Float[Tensor, " batch"]) -> Images:
    return values.reshape(-1, *[1] * (images.ndim - 1))
