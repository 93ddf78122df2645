"""Maps of each modality that are made without the network: what a method must beat to say anything about it.

Each is scored as the maps of methods are. A uniform head, the fourth floor, has no order of modalities and is in
`metrics.modality.shares`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from jaxtyping import Float
from scipy import ndimage

from heatcheck.core.contracts import Source
from heatcheck.core.geometry import map_to_image, place
from heatcheck.core.records import CaseKey, Image, Mask
from heatcheck.explaining.priors import NO_PRIOR, LocationPriors, gather_priors
from heatcheck.maps.joint import joint
from heatcheck.running.progress import Watcher
from heatcheck.studies.modality.cases import MaskRule, ModalCase, masks_by_modality
from heatcheck.studies.modality.explaining import ModalMap
from heatcheck.studies.modality.vocabulary import EDGES, INTENSITY, USUAL_PLACE

SHARPNESS = 4  # the power of a z-score: the brightest tissue gets nearly all heat
Channels = Float[np.ndarray, "channel *space"]


@dataclass(frozen=True)
class Floors:
    """The model-free floors of the cases of a run."""

    places: LocationPriors  # masks of each modality, in place of findings

    def maps(self, case: ModalCase) -> Iterator[tuple[str, ModalMap | None, str]]:
        """Each floor's name and map, as maps of methods are post-processed; or None, and why there is no map."""
        image = case.case.image
        yield INTENSITY, joint(intensity_map(image), case.head), ""
        yield EDGES, joint(edge_map(image), case.head), ""
        usual = self._usual_place(case)
        yield USUAL_PLACE, None if usual is None else joint(usual, case.head), "" if usual is not None else NO_PRIOR

    def _usual_place(self, case: ModalCase) -> Channels | None:
        """The mean mask of other patients in each modality; None where there is no other patient."""
        shape = case.case.image.shape[1:]
        priors = self.places.for_patient(case.case.key.patient)
        found = [prior for prior in priors if prior is not None and prior.ndim == len(shape)]
        if len(found) < len(priors):
            return None
        on_grid = torch.from_numpy(np.stack(found)).float()
        return np.asarray(map_to_image(on_grid, place(shape, shape, "stretch")).numpy())


def floors_of(
    source: Source, keys: Sequence[CaseKey], modalities: tuple[str, ...], rule: MaskRule, watcher: Watcher
) -> Floors:
    """The floors of these cases; the masks of all of them are read once."""
    masks = cast("Source", _MasksByModality(source, modalities, rule))
    return Floors(gather_priors(masks, keys, modalities, watcher))


@dataclass(frozen=True)
class _MasksByModality:
    """The truth of a source by modality, of which nothing else is needed."""

    source: Source
    modalities: tuple[str, ...]
    rule: MaskRule

    def truth(self, key: CaseKey) -> dict[str, Mask]:
        """The masks of each modality."""
        return masks_by_modality(self.source.truth(key), self.modalities, self.rule)


def intensity_map(image: Image) -> Channels:
    """How bright each voxel is within its modality: the positive part of its z-score, sharpened."""
    return np.maximum(_z_scores(image), 0) ** SHARPNESS


def edge_map(image: Image) -> Channels:
    """How strong the edges are in each modality: the magnitude of the Sobel gradient of the z-scores."""
    # channel by channel: the filter smooths along all axes but one, and must not mix modalities
    return np.stack([
        np.sqrt(np.sum([ndimage.sobel(channel, axis) ** 2 for axis in range(channel.ndim)], axis=0))
        for channel in _z_scores(image)
    ])  # fmt: skip


def _z_scores(image: Image) -> Channels:
    """Each channel scaled by the mean and the spread of its voxels that are not 0; the others stay 0."""
    scores = np.zeros(image.shape)
    for channel, target in zip(image.astype(np.float64), scores, strict=True):
        inside = channel != 0
        spread = float(channel[inside].std()) if inside.any() else 0.0
        if spread > 0:
            target[inside] = (channel[inside] - channel[inside].mean()) / spread
    return scores
