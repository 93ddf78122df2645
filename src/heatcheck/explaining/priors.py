"""Where each finding usually is: mean truth masks of other patients, for the location prior.

The sums over all cases are gathered once; for each patient, its own masks are subtracted, so that neither the mask of
a case nor another view of the same patient leaks into its prior. Memory does not grow with the number of cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import cv2
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.contracts import Classifier, Source
from heatcheck.core.errors import CaseError
from heatcheck.core.geometry import Placement, image_to_model, map_to_image, place
from heatcheck.core.records import Case, CaseKey, Mask
from heatcheck.explaining.extra_inputs import ExtraValues
from heatcheck.methods import MethodFacts
from heatcheck.running.progress import Watcher

GRID = 64
NO_PRIOR = "no other patient has this finding"
MOST = 5000  # cases; a mean over more would hardly differ
Prior = Float[np.ndarray, "*grid"]


@dataclass
class _MaskSums:
    """The sum and the number of the masks of each finding, all with the same number of axes."""

    masks: Float[np.ndarray, "finding *grid"]
    counts: Float[np.ndarray, " finding"]

    @property
    def axes(self) -> int:
        """The number of axes of a mask: 2 for a picture, 3 for a volume."""
        return self.masks.ndim - 1

    def add(self, truth: dict[str, Mask], findings: Sequence[str]) -> None:
        """Add the masks of one case."""
        for column, finding in enumerate(findings):
            if finding in truth and truth[finding].ndim == self.axes:
                self.masks[column] += _on_grid(truth[finding])
                self.counts[column] += 1


@dataclass(frozen=True)
class LocationPriors:
    """The sums over the cases used, and the used cases of each patient."""

    source: Source
    findings: tuple[str, ...]
    total: _MaskSums
    members: dict[str, list[CaseKey]]

    def for_patient(self, patient: str) -> list[Prior | None]:
        """The prior of every finding for a patient; None if no other patient has the finding."""
        left_out = _no_sums(len(self.findings), self.total.axes)
        for key in self.members.get(patient, []):
            left_out.add(_truth(self.source, key), self.findings)
        others = self.total.counts - left_out.counts
        masks = np.clip(self.total.masks - left_out.masks, 0, None)  # rounding may give values just below 0
        return [masks[i] / others[i] if others[i] else None for i in range(len(self.findings))]

    def wanted_by(self, facts: MethodFacts) -> bool:
        """Whether the method needs priors."""
        return facts.wants_priors

    def for_batch(self, cases: Sequence[Case], classifier: Classifier) -> ExtraValues:
        """The priors on the model's field of view, for every output of the classifier; 0 for those not studied."""
        priors = [self.for_patient(case.key.patient) for case in cases]
        on_image = torch.stack([_stacked(rows, cases[0].image.ndim - 1) for rows in priors])
        placements = [classifier.placement(case.image) for case in cases]
        if not all(placement.covers_all for placement in placements):
            on_image = torch.stack([_on_model(*pair) for pair in zip(on_image, placements, strict=True)])
        spread = on_image.new_zeros(len(cases), len(classifier.outputs), *on_image.shape[2:])
        spread[:, [classifier.outputs.index(finding) for finding in self.findings]] = on_image
        missing = [{column: NO_PRIOR for column, prior in enumerate(rows) if prior is None} for rows in priors]
        return ExtraValues({"priors": spread}, missing)


def gather_priors(
    source: Source, keys: Sequence[CaseKey], findings: Sequence[str], watcher: Watcher, most: int = MOST
) -> LocationPriors:
    """The priors from the truth masks of at most `most` cases, spread evenly over the list."""
    total: _MaskSums | None = None
    members: dict[str, list[CaseKey]] = {}
    step = max(1, -(-len(keys) // most))
    watcher.start("location priors", -(-len(keys) // step))
    for key in islice(keys, 0, None, step):
        truth = _truth(source, key)
        if total is None and truth:  # the first mask shows whether these are pictures or volumes
            total = _no_sums(len(findings), next(iter(truth.values())).ndim)
        if total is not None:
            total.add(truth, findings)
        members.setdefault(key.patient, []).append(key)
        watcher.advance()
    return LocationPriors(source, tuple(findings), total or _no_sums(len(findings), 2), members)


def _no_sums(findings: int, axes: int) -> _MaskSums:
    return _MaskSums(np.zeros((findings, *(GRID,) * axes)), np.zeros(findings))


def _truth(source: Source, key: CaseKey) -> dict[str, Mask]:
    """The masks of a case; none if they cannot be read, which the run records."""
    try:
        return source.truth(key)
    except CaseError:
        return {}


def _on_grid(mask: Mask) -> Prior:
    if mask.ndim == 3:
        stretched = place(mask.shape, (GRID,) * 3, "stretch")
        return np.asarray(image_to_model(torch.from_numpy(mask[None].astype(np.float32)), stretched)[0], float)
    return np.asarray(cv2.resize(mask.astype(np.float32), (GRID, GRID), interpolation=cv2.INTER_AREA), float)


def _stacked(priors: Sequence[Prior | None], axes: int) -> Float[Tensor, "finding *grid"]:
    zeros = np.zeros((GRID,) * axes)
    return torch.from_numpy(np.stack([zeros if prior is None else prior for prior in priors])).float()


def _on_model(prior: Float[Tensor, "finding *grid"], placement: Placement) -> Float[Tensor, "finding *field"]:
    """A prior over the image as a prior over the model's field of view, which may be wider."""
    image = place(placement.image_shape, placement.image_shape, "stretch")
    return image_to_model(map_to_image(prior, image), placement)
