"""One batch of cases through classifier and methods: probabilities and maps."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.errors import CaseError
from heatcheck.core.geometry import Placement, image_to_model, map_to_image, place
from heatcheck.core.records import Case, Map
from heatcheck.core.seeds import seed_for
from heatcheck.core.tensors import Images, Targets
from heatcheck.maps.channels import CHANNEL_RULES
from heatcheck.maps.resize import to_image
from heatcheck.methods import METHODS
from heatcheck.studies.priors import GRID, LocationPriors, Prior

NO_PRIOR = "no other patient has this finding"


@dataclass(frozen=True, slots=True)
class Explained:
    """What model and methods say about one case; what is listed follows the findings."""

    case: Case
    logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    grids: Mapping[str, Float[Tensor, "finding *grid"]]  # by method, on its own grid
    placement: Placement
    without_prior: frozenset[int] = frozenset()  # findings that have no location prior

    def map_of(self, method: str, column: int) -> Map | None:
        """The method's map of one finding on the image's grid, resized when asked for: a batch of them is large.

        None where the method has nothing to go by.
        """
        if METHODS[method].wants_priors and column in self.without_prior:
            return None
        resized: Map = to_image(self.grids[method][column : column + 1], self.placement)[0]
        return resized


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
        targets = torch.tensor(self._outputs, device=images.device).expand(len(cases), -1)
        priors = [self.priors.of(case.key.patient) for case in cases] if self.priors else [[] for _ in cases]
        grids: dict[str, Tensor] = {}
        seconds: dict[str, float] = {}
        for name in self.methods:
            start = time.perf_counter()
            grids[name] = self._grids(name, cases, (images, targets), priors)
            seconds[name] = time.perf_counter() - start
        return [
            Explained(
                case,
                tuple(logits[i, self._outputs].tolist()),
                tuple(probabilities[i, self._outputs].tolist()),
                {name: values[i] for name, values in grids.items()},
                self.classifier.placement(case.image),
                frozenset(column for column, prior in enumerate(priors[i]) if prior is None),
            )
            for i, case in enumerate(cases)
        ], seconds

    @property
    def _outputs(self) -> list[int]:
        return [self.classifier.outputs.index(finding) for finding in self.findings]

    def _grids(
        self, name: str, cases: Sequence[Case], inputs: tuple[Images, Targets], priors: list[list[Prior | None]]
    ) -> Float[Tensor, "batch finding *grid"]:
        method = self.methods[name]
        if METHODS[name].wants_priors:
            method = replace(method, priors=self._spread(cases, priors))  # type: ignore[type-var]
        seeds = [seed_for(self.seed, case.key.case, name) for case in cases]
        reduced: Tensor = CHANNEL_RULES[self.channels](method(self.classifier, *inputs, seeds).values)
        if not reduced.isfinite().all():
            raise CaseError(f"the map of {name} is not finite", stage="map")
        return reduced.cpu()

    def _spread(self, cases: Sequence[Case], priors: list[list[Prior | None]]) -> Float[Tensor, "batch output *grid"]:
        """The priors on the model's field of view, by the classifier's outputs, of which the study may use some."""
        on_image = torch.stack([_stacked(rows, len(self.findings)) for rows in priors])
        placements = [self.classifier.placement(case.image) for case in cases]
        if not all(placement.covers_all for placement in placements):
            on_image = torch.stack([_on_model(p, at) for p, at in zip(on_image, placements, strict=True)])
        spread = on_image.new_zeros(len(cases), len(self.classifier.outputs), *on_image.shape[2:])
        spread[:, self._outputs] = on_image
        return spread


def _stacked(priors: list[Prior | None], findings: int) -> Float[Tensor, "finding row column"]:
    stacked = torch.zeros(findings, GRID, GRID)
    for column, prior in enumerate(priors):
        if prior is not None:
            stacked[column] = torch.from_numpy(prior)
    return stacked


def _on_model(prior: Float[Tensor, "finding *grid"], placement: Placement) -> Float[Tensor, "finding *field"]:
    """A prior over the image's field as a prior over the model's, which may be wider."""
    whole = place(placement.image_shape, placement.image_shape, "stretch")
    return image_to_model(map_to_image(prior, whole), placement)
