"""Where each finding usually lies: mean truth masks of other patients, for the location prior.

Patients are dealt into ten groups; a case is given the mean over the other nine, so that neither its own mask nor
another view of the same patient leaks into its prior. Memory does not grow with the number of cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import cv2
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError
from heatcheck.core.records import CaseKey, Mask
from heatcheck.core.seeds import seed_for
from heatcheck.studies.progress import Watcher

GROUPS = 10
GRID = 64


@dataclass(frozen=True)
class LocationPriors:
    """Sums and counts of the truth masks by group and finding."""

    sums: Float[np.ndarray, "group finding row column"]
    counts: Float[np.ndarray, "group finding"]

    def of(self, patients: Sequence[str]) -> Float[Tensor, "batch finding row column"]:
        """The prior of every finding for each patient; 0 everywhere where no other patient has the finding."""
        groups = [group_of(patient) for patient in patients]
        others = self.counts.sum(0) - self.counts[groups]
        totals = self.sums.sum(0) - self.sums[groups]
        means = totals / np.maximum(others, 1)[..., None, None]
        return torch.from_numpy(means.astype(np.float32))


def group_of(patient: str) -> int:
    """The patient's group, the same in every run."""
    return seed_for("location prior", patient) % GROUPS


def gather_priors(
    source: Source, keys: Sequence[CaseKey], findings: Sequence[str], watcher: Watcher, most: int = 5000
) -> LocationPriors:
    """The priors from the truth masks of at most `most` cases, evenly spread over the list.

    A case whose masks cannot be read takes no part; the run itself records why.
    """
    sums = np.zeros((GROUPS, len(findings), GRID, GRID))
    counts = np.zeros((GROUPS, len(findings)))
    step = max(1, -(-len(keys) // most))
    watcher.start("usual places", -(-len(keys) // step))
    for key in islice(keys, 0, None, step):
        try:
            truth = source.truth(key)
        except CaseError:
            truth = {}
        group = group_of(key.patient)
        for column, finding in enumerate(findings):
            if finding in truth and truth[finding].ndim == 2:
                sums[group, column] += _on_grid(truth[finding])
                counts[group, column] += 1
        watcher.advance()
    return LocationPriors(sums, counts)


def _on_grid(mask: Mask) -> Float[np.ndarray, "row column"]:
    return np.asarray(cv2.resize(mask.astype(np.float32), (GRID, GRID), interpolation=cv2.INTER_AREA), float)
