"""Pictures for a report: the gallery of a run, images and maps as grey files, masks as outlines."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import cv2
import numpy as np
from jaxtyping import Float, UInt8

from heatcheck.core.records import Case, Map, Mask, Outlines
from heatcheck.running.progress import Watcher
from heatcheck.running.slices import View
from heatcheck.runs.gallery import index_of
from heatcheck.runs.store import RunFolder

IMAGE_SIDE, MAP_SIDE = 640, 224  # pixels at most


@dataclass(frozen=True, slots=True)
class DrawnCase:
    """A case whose pictures are written: its entry in the index, and the maps to keep, by name."""

    entry: object  # the study's record
    maps: Mapping[str, Map] = field(default_factory=dict)


def store_gallery(folder: RunFolder, drawn: Iterable[DrawnCase | None], planned: int, watcher: Watcher) -> None:
    """Draw the planned cases one by one, and store their index and maps in the run's folder.

    None stands for a case that has nothing to show.
    """
    watcher.start("gallery", planned)
    entries: list[object] = []
    maps: dict[str, Map] = {}
    for case in drawn:
        if case is not None:
            entries.append(case.entry)
            maps |= case.maps
        watcher.advance()
    if maps:
        folder.write_maps("gallery", maps)
    folder.write_gallery(index_of(entries))


def outlines(mask: Mask) -> Outlines:
    """The outer and inner outlines of a mask as [x, y] points, simplified."""
    every, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    tolerance = 0.0015 * max(mask.shape)
    return [cv2.approxPolyDP(outline, tolerance, closed=True)[:, 0].tolist() for outline in every]


def film(case: Case, view: View | None = None) -> Map:
    """The image as it is shown: grey values in [0, 1], clipped at the lowest and highest half per cent.

    All slices of a volume share one scale, so that one with little tissue does not look like noise.
    """
    image = case.image.mean(0) if len(case.image) > 1 else case.image[0]
    small = smaller(image if view is None else view.picture(image), IMAGE_SIDE)
    low, high = np.percentile(small if image.ndim == 2 else image, [0.5, 99.5])
    return np.clip((small - low) / max(high - low, 1e-6), 0, 1).astype(np.float32)


def write_grey(folder: RunFolder, name: str, values: Map, side: int) -> None:
    """Store values between 0 and 1 as a grey picture in the gallery, its longer side at most `side` pixels."""
    folder.write_picture(name, grey(smaller(values, side)))


def grey(values: Float[np.ndarray, "row column"]) -> UInt8[np.ndarray, "row column"]:
    """Values between 0 and 1 as 8-bit grey."""
    return np.clip(np.round(values * 255), 0, 255).astype(np.uint8)


def smaller(values: Map, side: int) -> Map:
    """The picture, shrunk if its longer side exceeds `side` pixels."""
    scale = min(1.0, side / max(values.shape))
    if scale == 1:
        return values
    size = (max(1, round(values.shape[1] * scale)), max(1, round(values.shape[0] * scale)))
    return np.asarray(cv2.resize(np.ascontiguousarray(values), size, interpolation=cv2.INTER_AREA))
