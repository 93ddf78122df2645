"""Pictures for a report: images and maps as grey files, masks as outlines."""

import cv2
import numpy as np

from heatcheck.core.records import Case, Map, Mask
from heatcheck.running.slices import View
from heatcheck.runs.store import RunFolder

IMAGE_SIDE, MAP_SIDE = 640, 224  # pixels at most


def outlines(mask: Mask) -> list[list[list[int]]]:
    """The outer and inner outlines of a mask as [x, y] points, small steps merged."""
    found, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    tolerance = 0.0015 * max(mask.shape)
    return [cv2.approxPolyDP(outline, tolerance, closed=True)[:, 0].tolist() for outline in found]


def film(case: Case, view: View | None = None) -> Map:
    """The image as it is shown: grey values in [0, 1], its darkest and brightest half per cent cut off.

    All slices of a volume share one scale, so that one with little tissue does not look like noise.
    """
    whole = case.image.mean(0) if len(case.image) > 1 else case.image[0]
    grey = smaller(whole if view is None else view.picture(whole), IMAGE_SIDE)
    low, high = np.percentile(grey if whole.ndim == 2 else whole, [0.5, 99.5])
    return np.clip((grey - low) / max(high - low, 1e-6), 0, 1).astype(np.float32)


def write_grey(folder: RunFolder, name: str, values: Map, side: int) -> None:
    """Store values between 0 and 1 as a grey picture in the gallery, its longer side no longer than that."""
    small = smaller(values, side)
    folder.write_picture(name, np.clip(np.round(small * 255), 0, 255).astype(np.uint8))


def smaller(values: Map, side: int) -> Map:
    """The picture with its longer side no longer than that."""
    scale = min(1.0, side / max(values.shape))
    if scale == 1:
        return values
    size = (max(1, round(values.shape[1] * scale)), max(1, round(values.shape[0] * scale)))
    return np.asarray(cv2.resize(np.ascontiguousarray(values), size, interpolation=cv2.INTER_AREA))
