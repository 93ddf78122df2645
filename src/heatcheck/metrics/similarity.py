"""Similarity of the maps of several methods on one image, for every pair of maps in one call."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float
from scipy import ndimage

from heatcheck.core.errors import UnknownNameError
from heatcheck.core.records import Map, Measured
from heatcheck.core.registry import suggest
from heatcheck.metrics.information import PairMatrix, information, levels_of, shared_information
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import undefined

BINS, PAPER_BINS = 32, 256
WINDOW = 7
C1, C2 = 0.01**2, 0.03**2  # the stabilising constants of SSIM, for maps between 0 and 1

NO_CONTRAST = "a map without contrast"
TOO_SMALL = "too few pixels"

_PAPER = "Sun et al. 2023, doi:10.1038/s41598-023-46493-2"

study_metric(
    "mutual_information",
    study="triggers",
    label="Mutual information",
    summary="How much one map tells about the other beyond chance, in nats: 0 nothing, also slightly below by chance.",
    higher_is_better=True,
    needs=Needs.MAPS,
    reference="Vinh et al. 2010, Journal of Machine Learning Research 11:2837",
)
study_metric(
    "normalised_mutual_information",
    study="triggers",
    label="Normalised mutual information",
    summary="Mutual information beyond chance over the most that it could be: 0 none, 1 the maps determine each other.",
    higher_is_better=True,
    needs=Needs.MAPS,
    reference="Vinh et al. 2010, Journal of Machine Learning Research 11:2837",
)
study_metric(
    "mutual_information_paper",
    study="triggers",
    label="Mutual information as in the paper",
    summary="Mutual information over 256 levels with what chance adds to it, which for small maps is most of it.",
    higher_is_better=True,
    needs=Needs.MAPS,
    reference=_PAPER,
)
study_metric(
    "cross_correlation",
    study="triggers",
    label="Cross-correlation",
    summary="Whether the maps rise and fall together, pixel by pixel: 1 in step, 0 unrelated, -1 opposed.",
    higher_is_better=True,
    needs=Needs.MAPS,
    reference=_PAPER,
)
study_metric(
    "ssim",
    study="triggers",
    label="Structural similarity (SSIM)",
    summary="How alike the maps look in small windows, by brightness, contrast and structure: 1 identical.",
    higher_is_better=True,
    needs=Needs.MAPS,
    reference="Wang et al. 2004, IEEE Transactions on Image Processing 13:600",
)
study_metric(
    "ssim_global",
    study="triggers",
    label="SSIM over the whole map",
    summary="How alike the maps are as a whole, by brightness, contrast and structure: 1 identical.",
    higher_is_better=True,
    needs=Needs.MAPS,
    reference=_PAPER,
)

Maps = Float[np.ndarray, "method *space"]
Lines = Float[np.ndarray, "method pixels"]


@dataclass(frozen=True, slots=True)
class Similarities:
    """Each measure as a symmetric matrix, method by method; NaN where undefined."""

    values: Mapping[str, PairMatrix]
    flat: tuple[bool, ...]  # the maps that have one value everywhere

    def of(self, metric: str, one: int, other: int) -> Measured:
        """The measure of two maps, given their indices; NaN with its reason."""
        value = float(self.values[metric][one, other])
        if not np.isnan(value):
            return Measured(value)
        return undefined(NO_CONTRAST if self.flat[one] or self.flat[other] else TOO_SMALL)


def similarities(maps: Maps, which: Sequence[str] = ()) -> Similarities:
    """The named measures of every pair of maps; by default all but the paper's mutual information.

    Each map is first scaled to [0, 1], so that scale and offset do not matter. For a map without contrast this is
    impossible, and all its measures are undefined.
    """
    names = tuple(which) or RECOMMENDED
    for name in names:
        if name not in _MEASURES:
            raise UnknownNameError(f"unknown measure of two maps {name!r}; {suggest(name, _MEASURES)}")
    if maps.ndim not in {3, 4} or not maps.size:
        raise ValueError(f"similarities need a stack of 2D or 3D maps, got shape {maps.shape}")
    scaled, flat = _scaled(maps)
    with_contrast = scaled[~flat]
    measured: dict[str, PairMatrix] = {}
    for name in names:
        if name not in measured:  # some measures are computed together
            measured |= _MEASURES[name](with_contrast)
    return Similarities({name: _with_gaps(measured[name], flat) for name in names}, tuple(flat.tolist()))


def _scaled(maps: Maps) -> tuple[Maps, np.ndarray]:
    """The maps scaled to [0, 1], and which of them have one value everywhere."""
    lines = maps.reshape(len(maps), -1).astype(np.float64)
    low, high = lines.min(1, keepdims=True), lines.max(1, keepdims=True)
    if not np.isfinite(high - low).all():
        raise ValueError("maps must hold finite numbers only, got NaN or infinity; check the method that made them")
    flat = (high == low)[:, 0]
    lines -= low
    np.divide(lines, high - low, out=lines, where=~flat[:, None])
    return lines.reshape(maps.shape), flat


def _with_gaps(measured: PairMatrix, flat: np.ndarray) -> PairMatrix:
    """The matrix of all maps from that of the maps with contrast; NaN elsewhere."""
    matrix = np.full((len(flat), len(flat)), np.nan)
    matrix[np.ix_(~flat, ~flat)] = measured
    return matrix


def _lines(maps: Maps) -> Lines:
    return maps.reshape(len(maps), math.prod(maps.shape[1:]))


def _beyond_chance(maps: Maps) -> dict[str, PairMatrix]:
    shared = information(levels_of(_lines(maps), BINS), BINS)
    return {"mutual_information": shared.beyond_chance, "normalised_mutual_information": shared.normalised}


def _as_published(maps: Maps) -> dict[str, PairMatrix]:
    return {"mutual_information_paper": shared_information(levels_of(_lines(maps), PAPER_BINS), PAPER_BINS)}


def _cross_correlation(maps: Maps) -> dict[str, PairMatrix]:
    centred = _lines(maps) - _lines(maps).mean(1, keepdims=True)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    return {"cross_correlation": np.clip(centred @ centred.T, -1, 1)}


def _ssim_global(maps: Maps) -> dict[str, PairMatrix]:
    means = _lines(maps).mean(1)
    centred = _lines(maps) - means[:, None]
    shared = centred @ centred.T / centred.shape[1]
    return {"ssim_global": _ssim_of(means[:, None], means, shared, shared.diagonal()[:, None], shared.diagonal())}


def _ssim(maps: Maps) -> dict[str, PairMatrix]:
    """The mean over all complete windows of 7 pixels per side, with unbiased variances."""
    matrix = np.full((len(maps), len(maps)), np.nan)
    if min(maps.shape[1:]) < WINDOW:
        return {"ssim": matrix}
    pixels = WINDOW ** (maps.ndim - 1)
    unbiased = pixels / (pixels - 1)
    means = [_window_means(one) for one in maps]
    variances = [unbiased * (_window_means(one * one) - mean * mean) for one, mean in zip(maps, means, strict=True)]
    for i, one in enumerate(maps):
        matrix[i, i] = 1.0
        for j in range(i):
            shared = unbiased * (_window_means(one * maps[j]) - means[i] * means[j])
            by_window = _ssim_of(means[i], means[j], shared, variances[i], variances[j])
            matrix[i, j] = matrix[j, i] = by_window.mean()
    return {"ssim": matrix}


def _ssim_of(
    mean: np.ndarray, other_mean: np.ndarray, shared: np.ndarray, variance: np.ndarray, other_variance: np.ndarray
) -> np.ndarray:
    brightness = (2 * mean * other_mean + C1) / (mean**2 + other_mean**2 + C1)
    return np.asarray(brightness * (2 * shared + C2) / (variance + other_variance + C2))


def _window_means(values: Map) -> Map:
    """The mean of each window that lies completely in the map."""
    means = cv2.blur(values, (WINDOW, WINDOW)) if values.ndim == 2 else ndimage.uniform_filter(values, WINDOW)
    edge = WINDOW // 2
    return np.asarray(means[(slice(edge, -edge),) * values.ndim])


_MEASURES: Mapping[str, Callable[[Maps], dict[str, PairMatrix]]] = {
    "mutual_information": _beyond_chance,
    "normalised_mutual_information": _beyond_chance,
    "cross_correlation": _cross_correlation,
    "ssim": _ssim,
    "ssim_global": _ssim_global,
    "mutual_information_paper": _as_published,
}
RECOMMENDED = tuple(name for name in _MEASURES if name != "mutual_information_paper")
