"""The geometry of a mask: parts, size, and how much its dominant outline differs from a square and a rectangle."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from scipy import ndimage

from heatcheck.core.records import Mask

EMPTY = "the mask is empty"
VOLUME = "the shape of an outline is defined in 2D only"
LINE = "the outline is a line one pixel wide"

Corners = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A mask's geometry; `reason` says why elongation and irrectangularity are undefined."""

    components: int  # 8-connected (26-connected in a volume)
    size: float  # share of the image
    elongation: float = math.nan  # long over short side of the tightest rectangle around the dominant outline
    irrectangularity: float = math.nan  # share of that rectangle outside the outline
    rectangle: Corners = ()  # four corners (row, column); empty without an outline
    reason: str = ""


def shape_of(mask: Mask) -> Shape:
    """The mask's geometry, as the CheXlocalize paper measures it.

    The dominant outline is the one with most pixels, in a tie the first that OpenCV finds; outlines of holes count
    too. Sides run from pixel centre to pixel centre, so a line one pixel wide has no short side.
    """
    if mask.ndim == 2:
        return _shape_in_plane(np.ascontiguousarray(mask).view(np.uint8))
    _, components = ndimage.label(mask, np.ones((3,) * mask.ndim))
    return Shape(int(components), float(mask.mean()), reason=VOLUME)


def _shape_in_plane(mask: np.ndarray) -> Shape:
    column, row, width, height = cv2.boundingRect(mask)
    if not width:
        return Shape(0, 0.0, reason=EMPTY)
    part = mask[row : row + height, column : column + width]  # `offset` below keeps the coordinates of the image
    outlines, _ = cv2.findContours(part, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE, offset=(column, row))
    outline = max(outlines, key=len)
    rectangle = cv2.minAreaRect(outline)
    sides = rectangle[1]
    corners = tuple((float(y), float(x)) for x, y in cv2.boxPoints(rectangle))
    components = cv2.connectedComponents(part, connectivity=8)[0] - 1
    size = cv2.countNonZero(part) / mask.size
    if cv2.contourArea(cv2.convexHull(outline)) == 0:  # exact, unlike the sides of the rectangle around a steep line
        return Shape(components, size, rectangle=corners, reason=LINE)
    filled = cv2.contourArea(outline) / (sides[0] * sides[1])
    return Shape(components, size, max(sides) / min(sides), 1 - filled, corners)
