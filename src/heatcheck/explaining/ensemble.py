"""An ensemble with the methods to be judged on it: predictions and maps are means over each finding's members."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from heatcheck.core.contracts import Method
from heatcheck.core.records import Case
from heatcheck.core.tensors import Images
from heatcheck.explaining.batch import BatchMaps, Explained, Explainer, answers_of, extra_values_for
from heatcheck.explaining.extra_inputs import ExtraInput, ExtraValues
from heatcheck.methods import METHODS
from heatcheck.methods.registry import Access
from heatcheck.models import Ensemble, Member, NetworkClassifier
from heatcheck.models.ensemble import logits_of


@dataclass(frozen=True)
class EnsembleExplainer:
    """As `Explainer`, of an ensemble; one member's weights are in memory at a time, for a whole batch.

    A finding's probability is the mean over its members', and so is its map, after the reduction of channels. A member
    explains only the findings it was chosen for. What does not look at the model is made once.
    """

    ensemble: Ensemble
    findings: tuple[str, ...]
    methods: Mapping[str, Method]
    channels: str
    seed: int
    extra_inputs: tuple[ExtraInput, ...] = ()

    @property
    def classifier(self) -> NetworkClassifier:
        """The member that stands for all: same outputs, same preprocessing, the hash of all weights."""
        return self.ensemble.stand_in

    @property
    def members(self) -> tuple[Member, ...]:
        """The members that explain some finding of the study."""
        return tuple(member for member in self.ensemble.members if set(member.findings) & set(self.findings))

    def __call__(self, cases: Sequence[Case]) -> tuple[list[Explained], dict[str, float]]:
        """Every case explained, and the seconds each method took for the batch."""
        extra_values = {
            name: extra_values_for(name, self.extra_inputs, cases, self.classifier) for name in self.methods
        }
        sums = _MemberSums(dict.fromkeys(self.methods, 0.0))
        images = self.ensemble.prepare([case.image for case in cases])
        for number, member in enumerate(self.members):
            self._ask(member, (cases, images), extra_values, sums, first=not number)
        counts = torch.tensor([sum(finding in m.findings for m in self.members) for finding in self.findings])
        probabilities = (sums.probabilities / counts).clamp(0, 1)
        grids = {name: sums.mean(name, counts) for name in self.methods}
        missing = {name: what.missing for name, what in extra_values.items()}
        made = BatchMaps(logits_of(probabilities), probabilities, grids, missing)
        return made.by_case(cases, self.ensemble.placement), sums.seconds

    def _ask(
        self,
        member: Member,
        batch: tuple[Sequence[Case], Images],
        extra_values: Mapping[str, ExtraValues],
        sums: "_MemberSums",
        *,
        first: bool,
    ) -> None:
        """Add what one member says of the findings it was chosen for."""
        cases, images = batch
        chosen = tuple(finding for finding in self.findings if finding in member.findings)
        mine = Explainer(self.ensemble.loaded(member), chosen, self.methods, self.channels, self.seed)
        columns = [self.findings.index(finding) for finding in chosen]
        said = answers_of(mine.classifier, images)[1][:, mine.columns]
        sums.add_probabilities(said.double().cpu(), columns, len(self.findings))
        for name in self.methods:
            start = time.perf_counter()
            if METHODS[name].needs is Access.NOTHING:
                if first:
                    whole = Explainer(mine.classifier, self.findings, self.methods, self.channels, self.seed)
                    sums.fixed[name] = whole.grids(name, cases, images, extra_values[name])
            else:
                sums.add_maps(name, mine.grids(name, cases, images, extra_values[name]), columns, len(self.findings))
            sums.seconds[name] += time.perf_counter() - start


@dataclass
class _MemberSums:
    """What the members have said so far."""

    seconds: dict[str, float]
    probabilities: Tensor = field(default_factory=lambda: torch.zeros(()))  # [case, finding]
    maps: dict[str, Tensor] = field(default_factory=dict)  # by method: [case, finding, *grid]
    fixed: dict[str, Tensor] = field(default_factory=dict)  # maps that no member changes

    def add_probabilities(self, said: Tensor, columns: list[int], findings: int) -> None:
        if not self.probabilities.ndim:
            self.probabilities = said.new_zeros(len(said), findings)
        self.probabilities[:, columns] += said

    def add_maps(self, name: str, maps: Tensor, columns: list[int], findings: int) -> None:
        if name not in self.maps:
            self.maps[name] = maps.new_zeros(len(maps), findings, *maps.shape[2:])
        self.maps[name][:, columns] += maps

    def mean(self, name: str, counts: Tensor) -> Tensor:
        """The method's maps of every finding."""
        if name in self.fixed:
            return self.fixed[name]
        total = self.maps[name]
        return total / counts.reshape(1, -1, *[1] * (total.ndim - 2))
