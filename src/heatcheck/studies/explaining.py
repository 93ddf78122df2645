"""One batch of cases through classifier and methods: probabilities, and maps on each image's own grid."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.errors import CaseError
from heatcheck.core.geometry import Placement, image_to_model, map_to_image
from heatcheck.core.records import Case, Map
from heatcheck.core.seeds import seed_for
from heatcheck.core.tensors import Images, Targets
from heatcheck.maps.channels import CHANNEL_RULES
from heatcheck.maps.resize import to_image
from heatcheck.methods import METHODS
from heatcheck.studies.priors import LocationPriors


@dataclass(frozen=True, slots=True)
class Explained:
    """What model and methods say about one case; lists follow the findings."""

    case: Case
    logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    maps: Mapping[str, tuple[Map, ...]]  # by method, on the image's grid


@dataclass(frozen=True)
class Explainer:
    """A classifier with the methods to be judged on it."""

    classifier: Classifier
    findings: tuple[str, ...]
    methods: Mapping[str, Method]
    channels: str
    seed: int
    priors: LocationPriors | None = None

    def __call__(self, cases: Sequence[Case]) -> tuple[list[Explained], dict[str, float]]:
        """Every case explained, and the seconds each method took for the batch."""
        images = self.classifier.prepare([case.image for case in cases])
        with torch.no_grad():
            logits = self.classifier.logits(images)
            probabilities = self.classifier.probabilities(logits)
        if not logits.isfinite().all():
            raise CaseError("the model's output is not finite", stage="model")
        outputs = [self.classifier.outputs.index(finding) for finding in self.findings]
        targets = torch.tensor(outputs, device=images.device).expand(len(cases), -1)
        maps: dict[str, list[Float[np.ndarray, ...]]] = {}
        seconds: dict[str, float] = {}
        for name in self.methods:
            start = time.perf_counter()
            maps[name] = self._maps(name, cases, images, targets)
            seconds[name] = time.perf_counter() - start
        return [
            Explained(
                case,
                tuple(logits[i, outputs].tolist()),
                tuple(probabilities[i, outputs].tolist()),
                {name: tuple(values[i]) for name, values in maps.items()},
            )
            for i, case in enumerate(cases)
        ], seconds

    def _maps(
        self, name: str, cases: Sequence[Case], images: Images, targets: Targets
    ) -> list[Float[np.ndarray, "..."]]:
        method = self.methods[name]
        if METHODS[name].wants_priors and self.priors is not None:
            method = replace(method, priors=self._priors(cases))  # type: ignore[type-var]
        seeds = [seed_for(self.seed, case.key.case, name) for case in cases]
        reduced = CHANNEL_RULES[self.channels](method(self.classifier, images, targets, seeds).values)
        if not reduced.isfinite().all():
            raise CaseError(f"the map of {name} is not finite", stage="map")
        return [to_image(reduced[i], self.classifier.placement(case.image)) for i, case in enumerate(cases)]

    def _priors(self, cases: Sequence[Case]) -> Float[Tensor, "batch output *grid"]:
        """The priors on the model's field of view, by the classifier's outputs, of which the study may use some."""
        if self.priors is None:
            raise ValueError("location priors were not gathered before the first batch")
        on_image = self.priors.of([case.key.patient for case in cases])
        placements = [self.classifier.placement(case.image) for case in cases]
        if not all(placement.covers_all for placement in placements):
            on_image = torch.stack([_on_model(p, at) for p, at in zip(on_image, placements, strict=True)])
        spread = on_image.new_zeros(len(cases), len(self.classifier.outputs), *on_image.shape[2:])
        spread[:, [self.classifier.outputs.index(finding) for finding in self.findings]] = on_image
        return spread


def _on_model(prior: Float[Tensor, "finding *grid"], placement: Placement) -> Float[Tensor, "finding *field"]:
    """A prior over the image's field as a prior over the model's, which may be wider."""
    whole = replace(
        placement, model_shape=placement.image_shape, origin=(0.0,) * prior[0].ndim, scale=(1.0,) * prior[0].ndim
    )
    return image_to_model(map_to_image(prior, whole), placement)
