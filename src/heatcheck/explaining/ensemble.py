"""An ensemble with the methods that explain it: predictions and maps are means over each finding's members."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from heatcheck.core.contracts import Method
from heatcheck.core.records import Case
from heatcheck.core.tensors import Images
from heatcheck.explaining.batch import BatchMaps, Explained, Explainer, GridMaps, answers_of, extra_values_for
from heatcheck.explaining.extra_inputs import ExtraInput, ExtraValues
from heatcheck.methods import METHODS
from heatcheck.methods.registry import Access
from heatcheck.models import Ensemble, Member, NetworkClassifier
from heatcheck.models.ensemble import logits_of


@dataclass(frozen=True)
class EnsembleExplainer:
    """As `Explainer`, for an ensemble; one member at a time is in the network, for a batch.

    The probability of a finding is the mean over its members, and so is its map, after the channels are joined. A
    member explains only the findings it was chosen for. Maps that do not depend on the model are made once.
    """

    ensemble: Ensemble
    findings: tuple[str, ...]
    methods: Mapping[str, Method]
    channels: str
    seed: int
    extra_inputs: tuple[ExtraInput, ...] = ()

    @property
    def classifier(self) -> NetworkClassifier:
        """The member that represents the ensemble: same outputs and preprocessing, hash of all weights."""
        return self.ensemble.stand_in

    @property
    def members(self) -> tuple[Member, ...]:
        """The members that explain some finding of the study."""
        return tuple(member for member in self.ensemble.members if set(member.findings) & set(self.findings))

    def __call__(self, cases: Sequence[Case]) -> tuple[list[Explained], dict[str, float]]:
        """The explanation of every case, and the seconds that each method took for the batch."""
        images = self.ensemble.prepare([case.image for case in cases])
        extra_values = {
            name: extra_values_for(name, self.extra_inputs, cases, self.classifier) for name in self.methods
        }
        batch = _Batch(cases, images, extra_values)
        sums = _MemberSums(len(self.findings), dict.fromkeys(self.methods, 0.0))
        for member in self.members:
            self._add(member, batch, sums)
        counts = torch.tensor([sum(finding in m.findings for m in self.members) for finding in self.findings])
        probabilities = (sums.probabilities / counts).clamp(0, 1)
        grids = {name: sums.mean(name, counts) for name in self.methods}
        missing = {name: values.missing for name, values in extra_values.items()}
        explained = BatchMaps(logits_of(probabilities), probabilities, grids, missing)
        return explained.by_case(cases, self.ensemble.placement), sums.seconds

    def _add(self, member: Member, batch: "_Batch", sums: "_MemberSums") -> None:
        """Add the probabilities and maps of the findings that one member was chosen for."""
        classifier = self.ensemble.loaded(member)
        chosen = tuple(finding for finding in self.findings if finding in member.findings)
        columns = [self.findings.index(finding) for finding in chosen]
        explainer = Explainer(classifier, chosen, self.methods, self.channels, self.seed)
        probabilities = answers_of(classifier, batch.images)[1][:, explainer.columns]
        sums.add_probabilities(probabilities.double().cpu(), columns)
        for name in self.methods:
            start = time.perf_counter()
            if METHODS[name].needs is not Access.NOTHING:
                sums.add_maps(name, batch.grids(name, explainer), columns)
            elif name not in sums.fixed:
                sums.fixed[name] = batch.grids(name, replace(explainer, findings=self.findings))
            sums.seconds[name] += time.perf_counter() - start


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some cases as every member gets them."""

    cases: Sequence[Case]
    images: Images
    extra_values: Mapping[str, ExtraValues]  # by method

    def grids(self, method: str, explainer: Explainer) -> GridMaps:
        return explainer.grids(method, self.cases, self.images, self.extra_values[method])


@dataclass
class _MemberSums:
    """Sums over the members so far."""

    findings: int
    seconds: dict[str, float]
    probabilities: Tensor = field(default_factory=lambda: torch.zeros(()))  # [case, finding]
    maps: dict[str, GridMaps] = field(default_factory=dict)  # by method: [case, finding, *grid]
    fixed: dict[str, GridMaps] = field(default_factory=dict)  # maps that are the same for every member

    def add_probabilities(self, probabilities: Tensor, columns: list[int]) -> None:
        if not self.probabilities.ndim:
            self.probabilities = probabilities.new_zeros(len(probabilities), self.findings)
        self.probabilities[:, columns] += probabilities

    def add_maps(self, name: str, maps: GridMaps, columns: list[int]) -> None:
        if name not in self.maps:
            empty = maps.values.new_zeros(len(maps.values), self.findings, *maps.values.shape[2:])
            self.maps[name] = GridMaps(empty, maps.cells)
        self.maps[name].values[:, columns] += maps.values

    def mean(self, name: str, counts: Tensor) -> GridMaps:
        """The method's maps of every finding."""
        if name in self.fixed:
            return self.fixed[name]
        total = self.maps[name]
        return GridMaps(total.values / counts.reshape(1, -1, *[1] * (total.values.ndim - 2)), total.cells)
