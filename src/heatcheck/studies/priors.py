"""Where each finding usually lies: mean truth masks of other patients, for the location prior.

The sums over all cases are gathered once; a patient's own masks are taken out again when its turn comes, so that
neither a case's own mask nor another view of the same patient leaks into its prior. Memory does not grow with the
number of cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import cv2
import numpy as np
from jaxtyping import Float

from heatcheck.core.contracts import Source
from heatcheck.core.errors import CaseError
from heatcheck.core.records import CaseKey, Mask
from heatcheck.studies.progress import Watcher

GRID = 64
MOST = 5000  # cases; a mean over more would hardly look different

Prior = Float[np.ndarray, "row column"]


@dataclass
class _Sums:
    """The sum and the number of the masks of each finding."""

    masks: Float[np.ndarray, "finding row column"]
    counts: Float[np.ndarray, " finding"]

    def add(self, truth: dict[str, Mask], findings: Sequence[str]) -> None:
        """Count the masks of one case."""
        for column, finding in enumerate(findings):
            if finding in truth and truth[finding].ndim == 2:
                self.masks[column] += _on_grid(truth[finding])
                self.counts[column] += 1


@dataclass(frozen=True)
class LocationPriors:
    """The sums over all cases that took part, and which cases of each patient did."""

    source: Source
    findings: tuple[str, ...]
    total: _Sums
    members: dict[str, list[CaseKey]]

    def of(self, patient: str) -> list[Prior | None]:
        """The prior of every finding for a patient; None where no other patient has the finding."""
        own = _no_sums(len(self.findings))
        for key in self.members.get(patient, []):
            own.add(_truth(self.source, key), self.findings)
        others = self.total.counts - own.counts
        masks = np.clip(self.total.masks - own.masks, 0, None)  # sums in another order leave crumbs below 0
        return [masks[i] / others[i] if others[i] else None for i in range(len(self.findings))]


def gather_priors(
    source: Source, keys: Sequence[CaseKey], findings: Sequence[str], watcher: Watcher, most: int = MOST
) -> LocationPriors:
    """The priors from the truth masks of at most `most` cases, evenly spread over the list."""
    total = _no_sums(len(findings))
    members: dict[str, list[CaseKey]] = {}
    step = max(1, -(-len(keys) // most))
    watcher.start("usual places", -(-len(keys) // step))
    for key in islice(keys, 0, None, step):
        total.add(_truth(source, key), findings)
        members.setdefault(key.patient, []).append(key)
        watcher.advance()
    return LocationPriors(source, tuple(findings), total, members)


def _no_sums(findings: int) -> _Sums:
    return _Sums(np.zeros((findings, GRID, GRID)), np.zeros(findings))


def _truth(source: Source, key: CaseKey) -> dict[str, Mask]:
    """The masks of a case; none where they cannot be read, which the run itself records."""
    try:
        return source.truth(key)
    except CaseError:
        return {}


def _on_grid(mask: Mask) -> Prior:
    return np.asarray(cv2.resize(mask.astype(np.float32), (GRID, GRID), interpolation=cv2.INTER_AREA), float)
