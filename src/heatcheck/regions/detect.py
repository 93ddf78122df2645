"""From a map to the one box in which a method sees the cause: how planted triggers are looked for."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from jaxtyping import Int
from scipy import ndimage

from heatcheck.core.boxes import Box, box_around
from heatcheck.core.records import Map, Mask
from heatcheck.core.registry import Registry

_REACH = 4.0  # the Gaussian ends at this many σ, as SciPy's does
_OWN_THRESHOLDS = {"gradient": 0.5, "guided_backprop": 0.8, "guided_grad_cam": 0.75}
_OTHER_THRESHOLD = 0.9


@dataclass(frozen=True, slots=True)
class DetectionRule:
    """How far a map is smoothed, where it is cut, and which of the parts above the cut count."""

    smooth: float = 2.0  # σ of the Gaussian in pixels; 0 leaves the map as it is
    threshold: float = 0.15
    of: Literal["maximum", "range"] = "maximum"  # the threshold is a share of this
    part: Literal["largest", "all"] = "largest"

    def __post_init__(self) -> None:
        if not (self.smooth >= 0 and math.isfinite(self.smooth)):
            raise ValueError(f"smoothing is a number of pixels from 0 up, got {self.smooth}")
        if not 0 <= self.threshold < 1:
            raise ValueError(f"a detection threshold is a share from 0 up to 1, got {self.threshold}")
        for name, value, known in (("of", self.of, ("maximum", "range")), ("part", self.part, ("largest", "all"))):
            if value not in known:
                raise ValueError(f"a detection rule's `{name}` is {' or '.join(map(repr, known))}, got {value!r}")


@dataclass(frozen=True, slots=True)
class DetectionPreset:
    """A named way to detect: its rule for each method, and all that is said of it anywhere."""

    label: str  # for the head of a table
    summary: str  # what becomes of a map; {smooth} and {percent} stand for the rule's numbers
    rule_for: Callable[[str], DetectionRule]  # of a method
    adjustable: bool  # whether a study may set smoothing and threshold; else they are part of the preset

    def in_words(self, rule: DetectionRule) -> str:
        """What becomes of a map by this rule of the preset."""
        return self.summary.format(smooth=f"{rule.smooth:g}", percent=f"{100 * rule.threshold:g}\u00a0%")


def gradcam15(method: str = "") -> DetectionRule:  # noqa: ARG001 - a preset is asked for the rule of a method
    """Grad-CAM's rule, the same for every method: above 15 % of the maximum of the smoothed map, largest part."""
    return DetectionRule()


def thresholded(method: str) -> DetectionRule:
    """The box of all that lies above the method's own threshold in the map stretched to [0, 1], without smoothing."""
    return DetectionRule(0.0, _OWN_THRESHOLDS.get(method, _OTHER_THRESHOLD), "range", "all")


PRESETS: Registry[DetectionPreset] = Registry("detection preset")
PRESETS.add(
    "gradcam15",
    DetectionPreset(
        "one rule for all",
        "the map is smoothed (Gaussian, σ {smooth} pixels), what lies above {percent} of its maximum is kept, and the "
        "box holds the largest connected part of that",
        gradcam15,
        adjustable=True,
    ),
)
PRESETS.add(
    "thresholded",
    DetectionPreset(
        "own threshold",
        "the map is stretched to 0\u20131, and the box holds every pixel above a threshold of the method\u2019s own "
        f"(gradient {_OWN_THRESHOLDS['gradient']:g}, guided backprop {_OWN_THRESHOLDS['guided_backprop']:g}, guided "
        f"Grad-CAM {_OWN_THRESHOLDS['guided_grad_cam']:g}, any other {_OTHER_THRESHOLD:g})",
        thresholded,
        adjustable=False,
    ),
)


def preset_rule(preset: str, method: str) -> DetectionRule:
    """The rule by which a preset detects in the maps of a method; an unknown preset is refused with a near name."""
    return PRESETS[preset].rule_for(method)


def detected_box(map: Map, rule: DetectionRule) -> Box | None:  # noqa: A002 - what it is
    """The tightest box around what lies above the rule's threshold, or None where nothing does.

    Evidence against (a negative value) is no evidence for: with a threshold `of` the maximum it counts as 0, before
    smoothing, so that it cannot cancel what lies beside it. A threshold `of` the range takes 0 for a number like any
    other. Above means strictly above, as for every region here: a threshold of 0 then keeps out what has no evidence
    at all, and the maximum itself is always in. A map without a positive value, or for the range without contrast,
    marks nothing.

    Parts that touch at a corner are one. Of parts with equally many pixels the one with more evidence counts, then
    the one that comes first.
    """
    if map.ndim not in {2, 3}:
        raise ValueError(f"a box is looked for in a 2D or 3D map, got shape {map.shape}")
    evidence = _evidence(map, of_range=rule.of == "range")
    if evidence is None:
        return None
    smooth = _smoothed(evidence, rule.smooth)
    low, high = (float(smooth.min()) if rule.of == "range" else 0.0), float(smooth.max())
    above = smooth > low + rule.threshold * (high - low)
    if rule.part == "largest":
        above = _largest_part(above, smooth)
    return box_around(above) if above.any() else None


def _evidence(raw: Map, *, of_range: bool) -> Map | None:
    """The map between 0 and 1, which keeps the smallest gradients clear of what float32 cannot hold; None for none."""
    low, high = float(raw.min()), float(raw.max())
    if not math.isfinite(high - low):
        raise ValueError("a map must hold finite numbers only, got NaN or infinity; look at the method that made it")
    zero = low if of_range else 0.0
    if high <= zero:
        return None
    scaled = (raw - zero) / (high - zero)
    return np.maximum(scaled, 0).astype(np.float32, copy=False)


def _smoothed(evidence: Map, sigma: float) -> Map:
    """The map under a Gaussian, going on beyond its border as in a mirror that lies on the border itself.

    Each pixel's evidence then stays in the image in full. With zeros beyond the border, a trigger in the corner would
    keep a quarter of its weight at the corner; a mirror through the outermost pixels would count those once only.
    """
    radius = int(_REACH * sigma + 0.5)
    if radius == 0:
        return evidence
    if evidence.ndim == 3:
        return np.asarray(ndimage.gaussian_filter(evidence, sigma, mode="reflect", truncate=_REACH))
    side = 2 * radius + 1
    return np.asarray(cv2.GaussianBlur(evidence, (side, side), sigma, borderType=cv2.BORDER_REFLECT))


def _largest_part(above: Mask, evidence: Map) -> Mask:
    parts = _parts(above)
    sizes = np.bincount(parts.ravel())[1:]
    if not len(sizes):
        return above
    tied = 1 + np.flatnonzero(sizes == sizes.max())
    if len(tied) > 1:
        sums = ndimage.sum_labels(evidence.astype(np.float64), parts, tied)
        tied = tied[sums == sums.max()]
    # labels need not be in the order of their first pixels
    number = tied[0] if len(tied) == 1 else parts[np.isin(parts, tied)][0]
    return np.asarray(parts == number)


def _parts(mask: Mask) -> Int[np.ndarray, "*space"]:
    if mask.ndim == 2:
        return np.asarray(cv2.connectedComponents(mask.view(np.uint8), connectivity=8)[1])
    return np.asarray(ndimage.label(mask, np.ones((3,) * mask.ndim, bool))[0])
