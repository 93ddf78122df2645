"""One batch of cases through classifier and methods: probabilities and maps."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.errors import CaseError
from heatcheck.core.geometry import Placement
from heatcheck.core.records import Case, Map
from heatcheck.core.seeds import seed_for
from heatcheck.core.tensors import Images, Logits
from heatcheck.explaining.extra_inputs import Supplied, Supply
from heatcheck.maps.channels import CHANNEL_RULES
from heatcheck.maps.resize import to_image
from heatcheck.methods import METHODS
from heatcheck.models import explained


@dataclass(frozen=True, slots=True)
class Explained:
    """What model and methods say about one case; what is listed follows the findings."""

    case: Case
    logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    grids: Mapping[str, Float[Tensor, "finding *grid"]]  # by method, on its own grid
    placement: Placement
    missing: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # by method and finding: why it has no map

    def map_of(self, method: str, column: int) -> Map | None:
        """The method's map of one finding on the image's grid, resized when asked for: a batch of them is large.

        None where the method has nothing to go by.
        """
        if self.why_missing(method, column):
            return None
        resized: Map = to_image(self.grids[method][column : column + 1], self.placement)[0]
        return resized

    def why_missing(self, method: str, column: int) -> str:
        """Why the method has no map of that finding; empty where it has one."""
        return self.missing.get(method, {}).get(column, "")


@dataclass(frozen=True)
class Explainer:
    """A classifier with the methods to be judged on it."""

    classifier: Classifier
    findings: tuple[str, ...]
    methods: Mapping[str, Method]
    channels: str
    seed: int
    supplies: tuple[Supply, ...] = ()
    own_channels: Mapping[str, str] = field(default_factory=dict)  # of methods that join them in another way

    def __call__(self, cases: Sequence[Case]) -> tuple[list[Explained], dict[str, float]]:
        """Every case explained, and the seconds each method took for the batch."""
        images = self.classifier.prepare([case.image for case in cases])
        logits, probabilities = answers_of(self.classifier, images)
        grids: dict[str, Tensor] = {}
        missing: dict[str, Sequence[Mapping[int, str]]] = {}
        seconds: dict[str, float] = {}
        for name in self.methods:
            start = time.perf_counter()
            supplied = supplied_to(name, self.supplies, cases, self.classifier)
            grids[name] = self.grids(name, cases, images, supplied)
            missing[name] = supplied.missing
            seconds[name] = time.perf_counter() - start
        return [
            Explained(
                case,
                tuple(logits[i, self.columns].tolist()),
                tuple(probabilities[i, self.columns].tolist()),
                {name: values[i] for name, values in grids.items()},
                self.classifier.placement(case.image),
                {name: by_case[i] for name, by_case in missing.items() if by_case[i]},
            )
            for i, case in enumerate(cases)
        ], seconds

    @property
    def columns(self) -> list[int]:
        """The places of the findings among the classifier's outputs."""
        return [self.classifier.outputs.index(finding) for finding in self.findings]

    def grids(
        self, name: str, cases: Sequence[Case], images: Images, supplied: Supplied
    ) -> Float[Tensor, "batch finding *grid"]:
        """The method's maps of every finding on its own grid, one channel each."""
        method = self.methods[name]
        if supplied.settings:
            method = replace(method, **supplied.settings)  # type: ignore[type-var]
        targets = torch.tensor(self.columns, device=images.device).expand(len(cases), -1)
        seeds = [seed_for(self.seed, case.key.case, name) for case in cases]
        values = method(explained(self.classifier), images, targets, seeds).values
        reduced: Tensor = CHANNEL_RULES[self.own_channels.get(name, self.channels)](values)
        if not reduced.isfinite().all():
            raise CaseError(f"the map of {name} is not finite", stage="map")
        return reduced.cpu()


def answers_of(classifier: Classifier, images: Images) -> tuple[Logits, Logits]:
    """The logits and the probabilities of a batch, which must be numbers."""
    with torch.no_grad():
        logits = classifier.logits(images)
        probabilities = classifier.probabilities(logits)
    if not logits.isfinite().all():
        raise CaseError("the model's output is not finite", stage="model")
    return logits, probabilities


def supplied_to(name: str, supplies: Sequence[Supply], cases: Sequence[Case], classifier: Classifier) -> Supplied:
    """What the study hands to the method for these cases; most methods ask for nothing."""
    for supply in supplies:
        if supply.wanted_by(METHODS[name]):
            return supply.for_batch(cases, classifier)
    return Supplied({}, [{}] * len(cases))
