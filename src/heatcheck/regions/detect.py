"""Detects in a map the one box that should contain a planted trigger."""

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

_TRUNCATE = 4.0  # the Gaussian ends at this many σ, as in SciPy
_METHOD_THRESHOLDS = {"gradient": 0.5, "guided_backprop": 0.8, "guided_grad_cam": 0.75}
_OTHER_THRESHOLD = 0.9


@dataclass(frozen=True, slots=True)
class DetectionRule:
    """How far a map is smoothed, its threshold, and which of the parts above the threshold count."""

    smooth: float = 2.0  # σ of the Gaussian in pixels; 0 leaves the map unchanged
    threshold: float = 0.15
    of: Literal["maximum", "range"] = "maximum"  # the threshold is a share of this
    part: Literal["largest", "all"] = "largest"

    def __post_init__(self) -> None:
        if not (self.smooth >= 0 and math.isfinite(self.smooth)):
            raise ValueError(f"smoothing must be a number of pixels, 0 or more, got {self.smooth}")
        if not 0 <= self.threshold < 1:
            raise ValueError(f"a detection threshold must be a share from 0 to below 1, got {self.threshold}")
        for name, value, known in (("of", self.of, ("maximum", "range")), ("part", self.part, ("largest", "all"))):
            if value not in known:
                raise ValueError(f"`{name}` of a detection rule must be {' or '.join(map(repr, known))}, got {value!r}")


@dataclass(frozen=True, slots=True)
class DetectionPreset:
    """A named set of detection rules, one per method, with the texts that reports show."""

    label: str  # table heading
    summary: str  # the steps from map to box; {smooth} and {percent} are filled in from the rule
    rule_for: Callable[[str], DetectionRule]  # by method
    adjustable: bool  # whether a study may set smoothing and threshold

    def in_words(self, rule: DetectionRule) -> str:
        """The summary with the numbers of this rule."""
        return self.summary.format(smooth=f"{rule.smooth:g}", percent=f"{100 * rule.threshold:g}\u00a0%")


def gradcam15(method: str = "") -> DetectionRule:  # noqa: ARG001 - the signature of DetectionPreset.rule_for
    """The rule of the Grad-CAM paper for every method: largest part above 15 % of the smoothed map's maximum."""
    return DetectionRule()


def thresholded(method: str) -> DetectionRule:
    """Everything above a threshold that depends on the method, in the map stretched to [0, 1], without smoothing."""
    return DetectionRule(0.0, _METHOD_THRESHOLDS.get(method, _OTHER_THRESHOLD), "range", "all")


PRESETS: Registry[DetectionPreset] = Registry("detection preset")
PRESETS.add(
    "gradcam15",
    DetectionPreset(
        "one rule for all",
        "the map is smoothed (Gaussian, σ {smooth} pixels), what lies above {percent} of its maximum is kept, and the "
        "box encloses the largest connected part of that",
        gradcam15,
        adjustable=True,
    ),
)
PRESETS.add(
    "thresholded",
    DetectionPreset(
        "own threshold",
        "the map is stretched to 0\u20131, and the box encloses every pixel above a threshold that depends on the "
        f"method (gradient {_METHOD_THRESHOLDS['gradient']:g}, "
        f"guided backprop {_METHOD_THRESHOLDS['guided_backprop']:g}, "
        f"guided Grad-CAM {_METHOD_THRESHOLDS['guided_grad_cam']:g}, any other {_OTHER_THRESHOLD:g})",
        thresholded,
        adjustable=False,
    ),
)


def preset_rule(preset: str, method: str) -> DetectionRule:
    """The rule of a preset for the maps of a method."""
    return PRESETS[preset].rule_for(method)


def detected_box(map: Map, rule: DetectionRule) -> Box | None:  # noqa: A002 - a map, not the built-in
    """The tightest box around the pixels above the rule's threshold, or None if there are none.

    With a threshold `of` the maximum, negative values (evidence against) count as 0 and are removed before smoothing,
    so that they cannot cancel their neighbours. With a threshold `of` the range, 0 has no special meaning. Above means
    strictly above, as for all regions: a threshold of 0 leaves out pixels without evidence and always keeps the
    maximum. A map without a positive value, or for the range without contrast, has no box.

    Parts that touch at a corner are one. Of parts with equally many pixels the one with more evidence counts, then
    the one that comes first.
    """
    if map.ndim not in {2, 3}:
        raise ValueError(
            f"a box can be detected in a 2D or 3D map only, got shape {map.shape}; reduce its channels first"
        )
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
    """The evidence between 0 and 1, so that tiny gradients do not underflow in float32; None without evidence."""
    low, high = float(raw.min()), float(raw.max())
    if not math.isfinite(high - low):
        raise ValueError("a map must hold finite numbers only, got NaN or infinity; check the method that made it")
    zero = low if of_range else 0.0
    if high <= zero:
        return None
    scaled = (raw - zero) / (high - zero)
    return np.maximum(scaled, 0).astype(np.float32, copy=False)


def _smoothed(evidence: Map, sigma: float) -> Map:
    """The map after a Gaussian filter, mirrored at its border.

    The mirror lies on the border itself (half-sample symmetry), so that the sum of the evidence is kept. With zeros
    beyond the border a trigger in the corner would lose three quarters of its weight there; a mirror through the
    outermost pixels would count those only once.
    """
    radius = int(_TRUNCATE * sigma + 0.5)
    if radius == 0:
        return evidence
    if evidence.ndim == 3:
        return np.asarray(ndimage.gaussian_filter(evidence, sigma, mode="reflect", truncate=_TRUNCATE))
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
    # labels are not always in the order of their first pixels
    number = tied[0] if len(tied) == 1 else parts[np.isin(parts, tied)][0]
    return np.asarray(parts == number)


def _parts(mask: Mask) -> Int[np.ndarray, "*space"]:
    if mask.ndim == 2:
        return np.asarray(cv2.connectedComponents(mask.view(np.uint8), connectivity=8)[1])
    return np.asarray(ndimage.label(mask, np.ones((3,) * mask.ndim, bool))[0])
