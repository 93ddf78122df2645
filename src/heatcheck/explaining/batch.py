"""One batch of cases through classifier and methods: probabilities and maps."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.batches import MapBatch
from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.errors import CaseError
from heatcheck.core.geometry import Cells, Placement
from heatcheck.core.records import Case, Image, Map
from heatcheck.core.seeds import seed_for
from heatcheck.core.tensors import Images, Logits, Targets
from heatcheck.explaining.extra_inputs import ExtraInput, ExtraValues
from heatcheck.maps.channels import CHANNEL_RULES
from heatcheck.maps.resize import to_image
from heatcheck.methods import METHODS
from heatcheck.models import explained


@dataclass(frozen=True, slots=True)
class GridMaps:
    """A method's maps on its own grid, and where that grid lies."""

    values: Float[Tensor, "finding *grid"] | Float[Tensor, "case finding *grid"]
    cells: Cells | None = None  # None where the grid spans the model's

    def of_case(self, number: int) -> "GridMaps":
        """The maps of one case of a batch."""
        return GridMaps(self.values[number], self.cells)


@dataclass(frozen=True, slots=True)
class Explained:
    """The answers of the model and the maps of the methods for one case, in the order of the findings."""

    case: Case
    logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    grids: Mapping[str, GridMaps]  # by method: [finding, *grid]
    placement: Placement
    missing: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # by method and finding: why there is no map

    def map_of(self, method: str, column: int, *, plain: bool = False) -> Map | None:
        """The method's map of one finding on the image's grid; None if `why_missing` gives a reason.

        `plain` resizes the map as if its grid spanned the model's. Maps are resized one at a time: those of a batch
        would need much memory.
        """
        if self.why_missing(method, column):
            return None
        maps = self.grids[method]
        cells = None if plain else maps.cells
        resized: Map = to_image(maps.values[column : column + 1], self.placement, cells)[0]
        return resized

    def why_missing(self, method: str, column: int) -> str:
        """Why the method has no map of that finding; empty if it has one."""
        return self.missing.get(method, {}).get(column, "")


@dataclass(frozen=True, slots=True)
class BatchMaps:
    """The answers of the model and the maps of the methods for a batch of cases."""

    logits: Float[Tensor, "batch finding"]
    probabilities: Float[Tensor, "batch finding"]
    grids: Mapping[str, GridMaps]  # by method: [case, finding, *grid]
    missing: Mapping[str, Sequence[Mapping[int, str]]]  # by method and case

    def by_case(self, cases: Sequence[Case], placement: Callable[[Image], Placement]) -> list[Explained]:
        """The answers and maps of each case; `placement` gives the position of the model's grid on an image."""
        return [
            Explained(
                case,
                tuple(self.logits[i].tolist()),
                tuple(self.probabilities[i].tolist()),
                {name: maps.of_case(i) for name, maps in self.grids.items()},
                placement(case.image),
                {name: missing[i] for name, missing in self.missing.items() if missing[i]},
            )
            for i, case in enumerate(cases)
        ]


@dataclass(frozen=True, slots=True)
class MapRequest:
    """Images with the outputs to be explained, and the seed of everything random."""

    classifier: Classifier
    cases: Sequence[str]  # names: the random numbers of a case do not depend on its batch
    images: Images
    targets: Targets
    seed: int

    def made_by(self, name: str, method: Method) -> MapBatch:
        """The method's signed maps on the grid of the method, not yet checked."""
        seeds = [seed_for(self.seed, case, name) for case in self.cases]
        return method(explained(self.classifier), self.images, self.targets, seeds)


def require_finite(name: str, maps: Tensor) -> None:
    """Raise CaseError where a map of the method is not finite."""
    if not maps.isfinite().all():
        raise CaseError(f"the map of {name} is not finite", stage="map")


@dataclass(frozen=True)
class Explainer:
    """A classifier with the methods that explain it."""

    classifier: Classifier
    findings: tuple[str, ...]
    methods: Mapping[str, Method]
    channels: str
    seed: int
    extra_inputs: tuple[ExtraInput, ...] = ()
    own_channels: Mapping[str, str] = field(default_factory=dict)  # of methods with another rule

    def __call__(self, cases: Sequence[Case]) -> tuple[list[Explained], dict[str, float]]:
        """The explanation of every case, and the seconds that each method took for the batch."""
        images = self.classifier.prepare([case.image for case in cases])
        logits, probabilities = answers_of(self.classifier, images)
        grids: dict[str, GridMaps] = {}
        missing: dict[str, Sequence[Mapping[int, str]]] = {}
        seconds: dict[str, float] = {}
        for name in self.methods:
            start = time.perf_counter()
            extra_values = extra_values_for(name, self.extra_inputs, cases, self.classifier)
            grids[name] = self.grids(name, cases, images, extra_values)
            missing[name] = extra_values.missing
            seconds[name] = time.perf_counter() - start
        explained_cases = BatchMaps(logits[:, self.columns], probabilities[:, self.columns], grids, missing)
        return explained_cases.by_case(cases, self.classifier.placement), seconds

    @property
    def columns(self) -> list[int]:
        """The positions of the findings among the classifier's outputs."""
        return [self.classifier.outputs.index(finding) for finding in self.findings]

    def grids(self, name: str, cases: Sequence[Case], images: Images, extra_values: ExtraValues) -> GridMaps:
        """The method's maps of every finding on the grid of the method, [case, finding, *grid]."""
        targets = torch.tensor(self.columns, device=images.device).expand(len(cases), -1)
        request = MapRequest(self.classifier, [case.key.case for case in cases], images, targets, self.seed)
        made = request.made_by(name, extra_values.filled_in(self.methods[name]))
        maps = CHANNEL_RULES[self.own_channels.get(name, self.channels)](made.values)
        require_finite(name, maps)
        return GridMaps(maps.cpu(), made.cells)


def answers_of(classifier: Classifier, images: Images) -> tuple[Logits, Logits]:
    """The logits and the probabilities of a batch; a CaseError if they are not finite."""
    with torch.no_grad():
        logits = classifier.logits(images)
        probabilities = classifier.probabilities(logits)
    if not logits.isfinite().all():
        raise CaseError("the model's output is not finite", stage="model")
    return logits, probabilities


def extra_values_for(
    name: str, extra_inputs: Sequence[ExtraInput], cases: Sequence[Case], classifier: Classifier
) -> ExtraValues:
    """The extra values that the study provides to the method for these cases; most methods need none."""
    for extra_input in extra_inputs:
        if extra_input.wanted_by(METHODS[name]):
            return extra_input.for_batch(cases, classifier)
    return ExtraValues({}, [{}] * len(cases))
